"""References in schemas that come in-band: those that may mean another schema to the engine than to the count are refused."""

from typing import Any

import pytest

from processor.core.engines import SchemaFault
from processor.core.toolsets import Compiler

LEVELS = 29


def doubling(prefix: str) -> dict[str, Any]:
    """Each schema asks twice for the next one: half a billion visits, for an engine that follows them."""
    made: dict[str, Any] = {f"a{n}": {"allOf": [{"$ref": f"{prefix}a{n + 1}"}] * 2} for n in range(LEVELS)}
    return {**made, f"a{LEVELS}": {}}


INSIDE = {"$ref": "#/$defs/a0", "$defs": doubling("#/$defs/")}
HIDDEN: dict[str, dict[str, Any]] = {
    "an identifier below the root": {
        "$defs": {"r": {"$id": "http://x/r", **INSIDE}},
        "properties": {"a": {"$ref": "http://x/r"}},
    },
    "a relative one": {"$id": "http://x/q", "$defs": {"r": {"$id": "r", **INSIDE}}, "properties": {"a": {"$ref": "r"}}},
    "one of draft 4": {
        "$schema": "http://json-schema.org/draft-04/schema#",
        "definitions": {"r": {"id": "http://x/r", **INSIDE}},
        "properties": {"a": {"$ref": "http://x/r"}},
    },
    "harmless names at the root": {
        "$defs": {**{f"a{n}": {} for n in range(LEVELS + 1)}, "r": {"$id": "http://x/r", **INSIDE}},
        "properties": {"a": {"$ref": "http://x/r"}},
    },
    "a query": {"$id": "http://x/q?v", "$defs": doubling("?v#/$defs/"), "properties": {"a": {"$ref": "#/$defs/a0"}}},
    "the engine's own base": {"$defs": doubling("json-schema:///#/$defs/"), "properties": {"a": {"$ref": "#/$defs/a0"}}},
    "an anchor given twice": {
        "$defs": {"x": {"$anchor": "n"}, "y": {"$anchor": "n", "allOf": [{}]}},
        "properties": {"a": {"$ref": "#n"}},
    },
    "an escaped pointer": {"$defs": {"x y": {}}, "properties": {"a": {"$ref": "#/$defs/x%20y"}}},
}
PLAIN: dict[str, dict[str, Any]] = {
    "a pointer": {"$defs": {"x": {"type": "integer"}}, "properties": {"a": {"$ref": "#/$defs/x"}}},
    "itself": {"properties": {"a": {"$ref": "#"}}},
    "an anchor": {"$defs": {"x": {"$anchor": "n", "type": "integer"}}, "properties": {"a": {"$ref": "#n"}}},
    "an identifier of the root": {"$id": "http://x/q", "$defs": {"x": {}}, "properties": {"a": {"$ref": "#/$defs/x"}}},
    "properties of these names": {"properties": {name: {"type": "string"} for name in ("$id", "id", "$ref", "$anchor")}},
}


@pytest.mark.parametrize("name", HIDDEN)
def test_a_reference_that_may_point_elsewhere_is_refused(name: str) -> None:
    """Design section 6: 2 kB of references must not cost hours, whichever way they are spelt."""
    with pytest.raises(SchemaFault):
        Compiler().tool(None, "f", HIDDEN[name], trusted=False)


@pytest.mark.parametrize("name", PLAIN)
def test_what_tools_use_is_taken(name: str) -> None:
    """Pointers, anchors and members that only look like keywords mean one thing."""
    assert Compiler().tool(None, "f", PLAIN[name], trusted=False).name == "f"
