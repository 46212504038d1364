"""The checks of one schema: each a function from the schema to places and sentences.

Owns what is looked for. Every finding is sound: it rests on the schema's text, on a proof of the engine, or on a value at hand.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

import jsonschema_rs

from processor.core.effort import Effort, Rates
from processor.core.engines import RustEngine, Schema, SchemaFault, Validator
from processor.core.patterns import fault_of_pattern
from processor.core.proven import unproven
from processor.core.schema_walk import REFERENCES, TooLarge, children, draft_of, expanded_size, pointer, resolve, subschemas
from processor.core.toolsets import MAX_TRUSTED_SIZE
from processor.lint.findings import Rule

Found: TypeAlias = Iterator[tuple[str, str]]
"""Pointers into the schema, with a sentence each."""

LARGE_CHARS: Final = 100_000
"""Arguments that are large, but not unheard of."""
LONG_NS: Final = 1_000_000_000
"""What in-band schemas may take by default."""
_INSIDE: Final = frozenset({"allOf", "if", "then", "else", "not", "dependentSchemas"})
"""Keywords whose schemas speak of an object that another schema closes."""
_NO_OBJECTS: Final[tuple[tuple[str, Any], ...]] = (
    ("null", None),
    ("true", True),
    ("a number", 0),
    ("a string", ""),
    ("a list", []),
)


def patterns(schema: Schema) -> Found:
    """Patterns that the linear-time engine does not run as ECMA-262 reads them."""
    for path, part in subschemas(schema):
        named = part.get("patternProperties")
        for pattern in named if isinstance(named, dict) else ():
            if fault := fault_of_pattern(pattern):
                yield pointer((*path, "patternProperties", pattern)), fault
        pattern = part.get("pattern")
        if isinstance(pattern, str) and (fault := fault_of_pattern(pattern)):
            yield pointer((*path, "pattern")), fault


def open_objects(schema: Schema) -> Found:
    """Objects that take members which they do not name."""
    for path, part in subschemas(schema):
        kind = part.get("type")
        is_object = kind == "object" or (isinstance(kind, list) and "object" in kind) or "properties" in part
        if not is_object or _INSIDE & set(path) or {"$ref", "allOf"} & part.keys():
            continue
        closed = {"additionalProperties", "unevaluatedProperties"} & {
            name for name in part if part[name] is not True and part[name] != {}
        }
        if not closed:
            yield pointer(path), "additionalProperties is left open"


def unbounded_integers(schema: Schema) -> Found:
    """Integers that may be of any size."""
    for path, part in subschemas(schema):
        kind = part.get("type")
        if (kind != "integer" and not (isinstance(kind, list) and "integer" in kind)) or {"enum", "const"} & part.keys():
            continue
        missing = [
            word
            for word, names in (("minimum", ("minimum", "exclusiveMinimum")), ("maximum", ("maximum", "exclusiveMaximum")))
            if not any(isinstance(part.get(name), int | float) for name in names)
        ]
        if missing:
            yield pointer(path), f"an integer without {' or '.join(missing)}"


def cycles(schema: Schema) -> Found:
    """References that come back to a schema around them."""
    yield from _cycles(schema, schema, (), (), set())


def _cycles(document: Any, part: Any, path: tuple[str | int, ...], around: tuple[int, ...], seen: set[int]) -> Found:
    if not isinstance(part, dict) or id(part) in seen:
        return
    seen.add(id(part))
    around = (*around, id(part))
    for keyword in sorted(REFERENCES & part.keys()):
        target = resolve(document, part[keyword]) if isinstance(part[keyword], str) else None
        if isinstance(target, dict) and id(target) in around:
            yield pointer((*path, keyword)), f"{keyword} {part[keyword]} comes back to a schema around it"
        elif isinstance(target, dict):
            yield from _cycles(document, target, tuple(part[keyword].split("/")[1:]), around, seen)
    for _, below, child in children(part):
        yield from _cycles(document, child, (*path, *below), around, seen)


def unreachable(schema: Schema) -> Found:
    """Parts that are proven to take nothing, unless they say so themselves, and enumerated values that no call can give."""
    draft = {"$schema": schema["$schema"]} if isinstance(schema, dict) and "$schema" in schema else {}
    told: list[str] = []
    for path, part in sorted(subschemas(schema), key=lambda each: len(each[0])):
        at = pointer(path)
        # What refers elsewhere, and what has identifiers, is not the same by itself.
        if not path or part == {"not": {}} or _refers(part) or any(at.startswith(above + "/") for above in told):
            continue
        if _takes_nothing({**part, **draft}):
            told.append(at)
            yield at, "no value can satisfy it"
        else:
            yield from _unreachable_values(part, at, draft)


def _refers(part: dict[str, Any]) -> bool:
    return any({"$id", "id", *REFERENCES} & inner.keys() for _, inner in subschemas(part))


def _takes_nothing(schema: Schema) -> bool:
    options: dict[str, Any] = {"offline": True, "pattern_options": jsonschema_rs.RegexOptions()}
    try:
        proven = jsonschema_rs.canonicalize(schema, **options).satisfiability()
    except Exception:  # noqa: BLE001 - no proof
        return False
    return proven == jsonschema_rs.canonical.Satisfiability.NO


def _unreachable_values(part: dict[str, Any], at: str, draft: dict[str, Any]) -> Found:
    """Enumerated values that the other keywords beside them refuse."""
    listed = part.get("enum")
    if not isinstance(listed, list):
        return
    try:
        beside = RustEngine().compile({name: value for name, value in (part | draft).items() if name != "enum"})
    except SchemaFault:
        return
    for place, value in enumerate(listed):
        if not beside.is_valid(value):
            yield f"{at}/enum/{place}", "the keywords beside it refuse this value"


def not_only_objects(validator: Validator) -> Found:
    """Values at hand that are taken though they are no object."""
    taken = [name for name, value in _NO_OBJECTS if validator.is_valid(value)]
    if taken:
        yield "", f'it takes {", ".join(taken)} too: say "type": "object"'


def one_engine(schema: Schema, *, formats: bool) -> Found:
    """The first keyword for which the second validator is not proven."""
    found = unproven(schema, formats=formats)
    if found:
        yield found[0], f"fastjsonschema is not proven to honour {found[1]} in {draft_of(schema)}"


def costly(schema: Schema) -> Found:
    """Whether large arguments of the usual kinds may take long: numbers far from 1 are left out, for which no tool asks."""
    try:
        expanded_size(schema, MAX_TRUSTED_SIZE)
        effort = Effort(schema)
    except TooLarge:
        return
    rates = [effort.common._replace(far=0)]
    rates += [rates[0].plus(member._replace(far=0)) for member in effort.members.values()]
    most_ns = LARGE_CHARS * max(map(Rates.most_a_char, rates))
    if most_ns > LONG_NS:
        yield "", f"{LARGE_CHARS // 1000} kB of arguments may take {most_ns / 1e9:.1f} s"


TEXTUAL: Final[tuple[tuple[Rule, Callable[[Schema], Found]], ...]] = (
    (Rule.PATTERN, patterns),
    (Rule.OPEN_OBJECT, open_objects),
    (Rule.UNREACHABLE, unreachable),
    (Rule.CYCLE, cycles),
    (Rule.UNBOUNDED_INTEGER, unbounded_integers),
    (Rule.COSTLY, costly),
)
"""Checks that need the schema alone, also where it does not compile."""
