"""Two validators on the same cases: where they differ, by keyword.

Owns the comparison. fastjsonschema generates code from the schema, so that this is for registry files alone, which somebody has
written on purpose; never for schemas that arrive in-band.
"""

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import fastjsonschema
import msgspec

from processor.core.engines import Schema, Validator
from processor.core.schema_walk import pointer, subschemas
from processor.lint.cases import Cases

MAX_SHOWN: Final = 120
"""Characters of a case that are shown."""


@dataclass(frozen=True)
class Difference:
    """One keyword that two validators read differently."""

    at: str
    """JSON Pointer into the schema."""
    keyword: str
    detail: str


def differences(schema: Schema, first: Validator, count: int, *, formats: bool) -> Iterator[Difference]:
    """Compare the deciding validator with fastjsonschema on so many cases; each place is told once.

    Says nothing where fastjsonschema cannot compile the schema at all.
    """
    try:
        check = _compiled(schema, formats=formats)
    except Exception:  # noqa: BLE001 - it generates code from the schema, and may trip over anything
        return
    seen: set[tuple[str, str]] = set()
    for value in Cases(schema).take(count):
        accepted = first.is_valid(value)
        refusal = _refusal(check, value)
        if accepted is (refusal is None):
            continue
        at, keyword = _blamed(schema, first, value, refusal)
        if (at, keyword) not in seen:
            seen.add((at, keyword))
            takes, refuses = ("jsonschema-rs", "fastjsonschema") if accepted else ("fastjsonschema", "jsonschema-rs")
            what = f"{keyword}: " if keyword else ""
            yield Difference(at, keyword, f"{what}{takes} takes {_shown(value)}, {refuses} refuses it")


def _compiled(schema: Schema, *, formats: bool) -> Callable[[Any], Any]:
    def refuse(uri: str) -> Any:
        raise ValueError(uri)

    handlers = {"": refuse, "http": refuse, "https": refuse, "file": refuse}
    made: Callable[[Any], Any] = fastjsonschema.compile(
        copy.deepcopy(schema), handlers=handlers, use_default=False, use_formats=formats
    )
    return made


def _refusal(check: Callable[[Any], Any], value: Any) -> Exception | None:
    try:
        check(value)
    except Exception as error:  # noqa: BLE001 - whatever it raises, it does not accept
        return error
    return None


def _blamed(schema: Schema, first: Validator, value: Any, refusal: Exception | None) -> tuple[str, str]:
    """Place and name of the keyword that the one that refuses names."""
    if refusal is None:
        flaws = first.flaws(value)
        return (flaws[0].schema, flaws[0].keyword) if flaws else ("", "")
    rule, definition = getattr(refusal, "rule", None), getattr(refusal, "rule_definition", None)
    if not isinstance(rule, str):
        return "", ""
    for path, part in subschemas(schema):
        if rule in part and part[rule] == definition:
            return pointer((*path, rule)), rule
    return "", rule


def _shown(value: Any) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + "..."
