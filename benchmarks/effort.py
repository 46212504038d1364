"""Whether judging by costly schemas takes no longer than `processor.core.effort` says it may, kind of schema by kind.

Each kind grows its arguments until the estimate comes to the bound, and then the clock is asked. Run it with
`python -m benchmarks.effort`; a ratio over 1 is a rate that is too low.
"""

import argparse
import json
import random
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from benchmarks import harness
from processor.core.effort import Effort
from processor.core.engines import RustEngine
from processor.core.verdict import GateSettings

BOUND_NS = GateSettings().max_in_band_effort_ms * 1_000_000

BRANCHES = [{"const": f"x{number}"} for number in range(4500)]


class Kind(NamedTuple):
    """A schema that costs much, and what costs most under it."""

    name: str
    schema: dict[str, Any]
    arguments: Callable[[int], dict[str, Any]]
    """Arguments of so many parts."""


def _items(part: Any) -> Callable[[int], dict[str, Any]]:
    return lambda count: {"a": [part] * count}


def _members(count: int) -> dict[str, Any]:
    return {f"k{number}": 1 for number in range(count)}


def _each(schema: dict[str, Any]) -> dict[str, Any]:
    """Every item of the list is held against it, and all pass: what fails ends the look at the list."""
    return {"properties": {"a": {"items": {"anyOf": [{"not": schema}, True]}}}}


def _list(schema: dict[str, Any]) -> dict[str, Any]:
    return {"properties": {"a": schema}}


def _noise(count: int) -> dict[str, Any]:
    """One long text, in which no state of a pattern's machine comes twice."""
    return {"a": ["".join(random.Random(1).choices("ab", k=count))]}


def _doubled(levels: int) -> dict[str, Any]:
    named: dict[str, Any] = {"d0": {"type": "integer"}}
    for level in range(1, levels + 1):
        named[f"d{level}"] = {"allOf": [{"$ref": f"#/$defs/d{level - 1}"}] * 2}
    return {"$defs": named, "properties": {"a": {"items": {"$ref": f"#/$defs/d{levels}"}}}}


def _unevaluated(levels: int, keyword: str) -> dict[str, Any]:
    schema: dict[str, Any] = {"properties": {"q": True}}
    for level in range(levels):
        schema = {"anyOf": [schema, {"properties": {f"z{level}": True}}], keyword: {"type": "integer"}}
    return schema


def _tree(count: int) -> dict[str, Any]:
    value: Any = list(range(count))
    for _ in range(50):
        value = [1, value]
    return {"a": value}


def kinds() -> list[Kind]:
    """Kinds of schemas, each within the bounds for one that arrives in-band."""
    return [*_in_place(), *_of_members(), *_of_lists(), *_of_values()]


def _in_place() -> list[Kind]:
    """Many schemas for one place."""
    digits = [{"type": "integer", "minimum": 1000 + number} for number in range(90)]
    narrow = {"additionalProperties": {"type": "integer"}, "maxProperties": 1}
    twice = {"not": {"not": {"type": "integer"}}}
    return [
        Kind("anyOf, wide", _list({"items": {"anyOf": [*BRANCHES, True]}}), _items(1)),
        Kind("anyOf, of whole objects", {"anyOf": [*[narrow] * 3000, True]}, _members),
        Kind("oneOf, nested", _each({"oneOf": [{"oneOf": digits} for _ in range(50)]}), _items(1)),
        Kind("allOf", _each({"allOf": [{"type": "integer"}] * 4000}), _items(1)),
        Kind("not", _each({"allOf": [twice] * 2000}), _items(1)),
        Kind("if", _each({"allOf": [{"if": {"type": "string"}, "then": False, "else": True}] * 2000}), _items(1)),
        Kind("$ref, doubled", _doubled(11), _items(1)),
    ]


def _of_members() -> list[Kind]:
    """What each member of an object is held against."""
    number = {"type": "integer"}
    ends = [{"pattern": f"x{n}$"} for n in range(2500)]
    alone = [{"properties": {f"k{n}": True}} for n in range(3000)]
    both = {"required": ["a", "b"]}
    return [
        Kind("patternProperties", {"patternProperties": {f"[a-z]*{n}x$": number for n in range(2500)}}, _members),
        Kind("propertyNames", {"propertyNames": {"anyOf": [*BRANCHES, True]}}, _members),
        Kind("propertyNames, patterns", {"propertyNames": {"anyOf": [*ends, True]}}, _members),
        Kind("properties", _list({"items": {"properties": {f"p{n}": False for n in range(9000)}}}), _items({})),
        Kind("required", _each({"allOf": [both] * 3000}), _items({"a": 1, "b": 1})),
        Kind("dependentRequired", _each({"dependentRequired": {f"p{n}": ["x"] for n in range(9000)}}), _items({})),
        Kind(
            "dependentSchemas", {"dependentSchemas": {f"k{n}": {"additionalProperties": number} for n in range(2000)}}, _members
        ),
        Kind("unevaluatedProperties", {"anyOf": alone, "unevaluatedProperties": number}, _members),
        Kind("unevaluatedProperties, nested", _unevaluated(8, "unevaluatedProperties"), _members),
    ]


def _of_lists() -> list[Kind]:
    """What a list is held against."""
    unique = {"uniqueItems": True}
    nested = {"properties": {"a": {"$ref": "#/$defs/u"}}, "$defs": {"u": {**unique, "items": {"$ref": "#/$defs/u"}}}}
    contains = [{"contains": {"const": f"{n}"}} for n in range(2000)]
    tiny = [n * 5e-324 for n in range(1, 16)]
    return [
        Kind("uniqueItems", _list(unique), lambda count: {"a": [number + 0.5 for number in range(count)]}),
        Kind("uniqueItems, short lists", _each(unique), lambda count: {"a": [tiny] * (count // 15)}),
        Kind("uniqueItems, nested", nested, _tree),
        Kind("contains", _list({"anyOf": [*contains, True]}), _items(1)),
        Kind("unevaluatedItems", _list({"anyOf": [*contains, True], "unevaluatedItems": {"type": "integer"}}), _items(1)),
        Kind("unevaluatedItems, nested", _list(_unevaluated(8, "unevaluatedItems")), _items(1)),
    ]


def _of_values() -> list[Kind]:
    """What texts and numbers are held against."""
    mixed = [f"v{number}" for number in range(4500)] + [number + 0.5 for number in range(4500)]
    similar = [{"const": {"a": [1, 2, n + 0.5]}} for n in range(2000)]
    return [
        Kind("pattern, counted", _each({"pattern": "a[ab]{1000}c"}), _noise),
        Kind("pattern, of Unicode", _each({"pattern": r"a\p{L}{30}c"}), _noise),
        Kind("patterns, many", _each({"anyOf": [{"pattern": f"x[0-9]{n}$"} for n in range(2000)]}), _noise),
        Kind("enum, mixed", _each({"enum": mixed}), _items(-1.5)),
        Kind("enum, of objects", _each({"enum": [{"a": number} for number in range(9000)]}), _items({"a": -1})),
        Kind("const, many", _each({"anyOf": similar}), _items({"a": [1, 2, 3]})),
        Kind("multipleOf", _each({"multipleOf": 0.1}), _items(1.5)),
        Kind("multipleOf, far", _each({"multipleOf": 1e-300}), _items(5e-324)),
        Kind("maximum", _each({"allOf": [{"maximum": 1e9 + 0.5}] * 100}), _items(1.5)),
        Kind("minimum, far", _each({"allOf": [{"minimum": -0.5}] * 100}), _items(5e-324)),
    ]


def parts_at_the_bound(kind: Kind, bound_ns: int = BOUND_NS) -> int:
    """The most parts of a kind, among the powers of two, whose estimate is within the bound."""
    effort, count = Effort(kind.schema), 1
    while effort.of(kind.arguments(2 * count)) <= bound_ns and count < 1 << 18:
        count *= 2
    return count


def main() -> None:
    """Measure each kind at the bound, print, and write the section of RESULTS.md."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.effort")
    harness.add_options(parser, broker=False)
    options = parser.parse_args()
    lines = ["| kind of schema | bytes of arguments | estimate, ms | measured, ms | ratio |", "| --- " * 5 + "|"]
    for kind in kinds():
        value = kind.arguments(parts_at_the_bound(kind))
        estimate = Effort(kind.schema).of(value)
        validator = RustEngine().compile(kind.schema)
        began = time.process_time_ns()
        if not validator.is_valid(value):
            validator.flaws(value)
        taken = time.process_time_ns() - began
        size = len(json.dumps(value, separators=(",", ":")))
        lines.append(f"| {kind.name} | {size:,} | {estimate / 1e6:.1f} | {taken / 1e6:.1f} | {taken / estimate:.2f} |")
        print(lines[-1], flush=True)
    facts = (
        f"The most arguments, by powers of two, that `max_in_band_effort` ({BOUND_NS // 1_000_000} ms) lets through. CPU time."
    )
    harness.publish(options, "effort", "Costly schemas of a stream, at the bound", facts, "\n".join(lines))


if __name__ == "__main__":
    main()
