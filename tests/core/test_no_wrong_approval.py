"""What is approved, two other readers accept: Python's `json` with strict hooks, and the validator `jsonschema`.

A seeded sample runs everywhere; `CALLGATE_FUZZ=1000000` asks for as many inputs.
"""

import json
import os
import random
from typing import Any

import jsonschema
import pytest

from processor.core.candidate import AUTO
from processor.core.gate import Gate
from processor.core.reasons import Reason
from processor.core.registry import ToolFile, build
from processor.core.toolsets import Compiler
from tests.core.calls import candidate, gate
from tests.core.readers import other_reader

QUICK = 0.7
"""Share of the calls that take the quick path."""
INPUTS = int(os.environ.get("CALLGATE_FUZZ", "4000"))
"""Arguments to be judged, over all seeds."""
SEEDS = 4

SCHEMAS: list[dict[str, Any]] = [
    {},
    {"properties": {"a": {"type": "string", "maxLength": 3}, "b": {"type": "integer"}}, "additionalProperties": False},
    {"required": ["a"], "properties": {"a": {"enum": ["x", 1, 1.5, None, True, [0], {"b": 0}]}}},
    {"properties": {"a": {"type": ["number", "null"], "minimum": 0, "exclusiveMaximum": 10}, "b": {"multipleOf": 0.5}}},
    {"minProperties": 1, "maxProperties": 2, "propertyNames": {"maxLength": 1}},
    {"properties": {"a": {"type": "array", "items": {"type": "integer"}, "minItems": 1, "uniqueItems": True}}},
    {"patternProperties": {"^[ab]$": {"type": "string", "pattern": "^x*$"}}, "additionalProperties": {"type": "number"}},
    {"anyOf": [{"required": ["a"]}, {"properties": {"b": {"const": 1}}}], "not": {"required": ["c"]}},
    {
        "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
        "if": {"required": ["a"]},
        "then": {"properties": {"a": {"const": 0}}},
    },
    {
        "properties": {"a": {"$ref": "#"}, "b": {"$ref": "#/$defs/leaf"}},
        "unevaluatedProperties": False,
        "$defs": {"leaf": {"type": "null"}},
    },
    {
        "properties": {"a": {"prefixItems": [{"type": "string"}], "items": False, "contains": {"const": "x"}}},
        "dependentRequired": {"b": ["a"]},
    },
    {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "properties": {"a": {"items": [{"type": "string"}], "additionalItems": False}},
    },
    {
        "$schema": "http://json-schema.org/draft-04/schema#",
        "properties": {"a": {"type": "number", "minimum": 0, "exclusiveMinimum": True}},
    },
]
PIECES = [
    '"',
    "\\",
    ",",
    ":",
    "{",
    "}",
    "[",
    "]",
    "0",
    "9",
    ".",
    "e",
    "-",
    " ",
    "\x00",
    "\ud800",
    "é",
    "a",
    '"a":1,',
    "\\ud800",
]
PIECES += ["\\u0061", "NaN", "1e999", "9007199254740993", "0.1000000000000000055", "null", "true", "//", "\ufeff", "1.0", "\\n"]


def value_of(draw: random.Random, depth: int) -> Any:
    """A value in which the names and values that the schemas speak of are frequent."""
    kind = draw.randrange(10 if depth else 7)
    if kind >= 8:
        return {draw.choice("abcd"): value_of(draw, depth - 1) for _ in range(draw.randrange(4))}
    if kind == 7:
        return [value_of(draw, depth - 1) for _ in range(draw.randrange(4))]
    plain: list[Any] = [None, True, 0, 1, 5.5, "x", "xx", "", -1, 9.99, 1.0, 10, 0.5, "x\n", 2**53, "é", False]
    return draw.choice(plain)


def text_of(draw: random.Random) -> str:
    """JSON text of an object, mostly with a mutation or two."""
    value = {draw.choice("abcd"): value_of(draw, 2) for _ in range(draw.randrange(4))}
    text = json.dumps(value, ensure_ascii=draw.random() < 0.5, separators=draw.choice([(",", ":"), (", ", ": ")]))
    for _ in range(draw.choice([0, 0, 0, 1, 1, 2])):
        at = draw.randrange(len(text) + 1)
        text = text[:at] + draw.choice(PIECES) + text[at + draw.randrange(3) :]
    return text


def for_python(schema: Any) -> Any:
    r"""The schema with the `$` of its patterns as Python's `\Z`: Python's own `$` also fits before a last newline."""
    return json.loads(json.dumps(schema).replace('$":', '\\\\Z":').replace('*$"', '*\\\\Z"'))


def gates() -> list[Gate]:
    """The deciding engine alone, and both."""
    found = []
    for engine in ("jsonschema-rs", "both"):
        tools = [{"type": "function", "name": f"tool{number}", "parameters": schema} for number, schema in enumerate(SCHEMAS)]
        found.append(gate(build([ToolFile("tools.json", None, tools)], Compiler(engine)), engine=engine))
    return found


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.timeout(24 * 3600)
def test_what_is_approved_other_readers_accept(seed: int) -> None:
    """Approved implies: read alike by another parser, and valid by another validator."""
    draw = random.Random(seed)
    judges = gates()
    drafts = [jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator) for schema in SCHEMAS]
    validators = [draft(for_python(schema)) for draft, schema in zip(drafts, SCHEMAS, strict=True)]
    approved = 0
    for _ in range(INPUTS // SEEDS):
        number = draw.randrange(len(SCHEMAS))
        text = text_of(draw)
        path: dict[str, Any] = {"tool_choices": AUTO, "usual": True} if draw.random() < QUICK else {}
        verdict = judges[draw.randrange(2)].judge(candidate(name=f"tool{number}", arguments=text, **path))
        if verdict.reason is Reason.OK:
            approved += 1
            value = other_reader(text)
            assert isinstance(value, dict), text
            assert validators[number].is_valid(value), (SCHEMAS[number], text)
    assert approved > INPUTS // SEEDS // 10
