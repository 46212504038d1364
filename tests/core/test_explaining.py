"""What explaining rejected calls may cost: the calls of one record share an allowance, counted, never timed."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from processor.app import Core, compiler
from processor.core.engines import MAX_ALLOWANCE, MAX_EFFORT, Allowance, RustEngine
from processor.core.feedback import wanted
from processor.core.registry import ToolFile, build
from processor.settings import Settings
from tests import factories as make
from tests.core.deciding import published

EACH = 900
"""Items of a call's arguments, none of which fits."""
COSTLY: list[dict[str, Any]] = [{"minimum": 0}] * 20
SCHEMAS: dict[str, Any] = {
    "plain": {"type": "array", "items": {"allOf": [{"type": "string"}, *COSTLY]}},
    "branching": {"type": "array", "items": {"allOf": [{"not": {"type": "integer"}}, *COSTLY]}},
}


class Listing:
    """A compiled schema that counts the errors that it lists."""

    def __init__(self, compiled: Any) -> None:
        self.compiled = compiled
        self.listed = 0

    def iter_errors(self, value: Any) -> Iterator[Any]:
        """All errors: the engine makes them before it gives the first."""
        errors = list(self.compiled.iter_errors(value))
        self.listed += len(errors)
        return iter(errors)

    def validate(self, value: Any) -> None:
        """Raise the first error."""
        self.compiled.validate(value)


def whole(calls: int, arguments: str) -> dict[str, Any]:
    """A response of so many calls that all say the same."""
    output = [make.function_call(f"c{number}", "f", arguments) for number in range(calls)]
    return {"object": "response", "id": f"r{calls}", "status": "completed", "output": output}


@pytest.mark.parametrize("kind", SCHEMAS)
def test_calls_of_one_record_share_what_explaining_may_take(kind: str) -> None:
    """Section 6: 128 rejected calls of one record took 34 s to explain; reasons stay, and what is said of each gets shorter."""
    settings = Settings()
    tools = build([ToolFile("f.json", None, make.tool("f", {"a": SCHEMAS[kind]}))], compiler(settings))
    explaining: Any = tools.tools[0].flaws
    counting = explaining.compiled = Listing(explaining.compiled)
    partition = Core(settings, tools).partition("events", 0)
    partition.resume(None, 0)
    arguments = json.dumps({"a": [1] * EACH})

    def decided(offset: int, calls: int) -> list[Any]:
        counting.listed = 0
        partition.feed([make.record(offset, whole(calls, arguments))], 0)
        return published(partition.take())

    decisions = decided(0, 100)
    assert {decision["reason"] for decision in decisions} == {"arguments_schema"}
    assert len(decisions) == 100
    assert EACH < counting.listed * len(COSTLY) <= MAX_ALLOWANCE
    explained = [len(decision.get("errors", ())) for decision in decisions]
    assert explained == sorted(explained, reverse=True)
    assert explained[0] == 8
    assert decisions[-1]["errors"][0]["keyword"] == ("type" if kind == "plain" else "")
    assert decisions[-1]["feedback"]["output"].startswith("The call was not executed.")
    # The next record has an allowance of its own, and the same record always says the same.
    (alone,) = decided(1, 1)
    assert alone["errors"] == decisions[0]["errors"]
    again = Core(settings, tools).partition("events", 0)
    again.resume(None, 0)
    again.feed([make.record(0, whole(100, arguments))], 0)
    assert published(again.take()) == decisions


def test_an_allowance_is_for_what_is_listed() -> None:
    """Section 6: small faults are explained by the hundred, and what is left is never exceeded."""
    checked = RustEngine().compile({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["b"]})
    allowance = Allowance()
    assert all(len(checked.flaws({"a": 1}, allowance)) == 2 for _ in range(1000))
    assert MAX_ALLOWANCE - MAX_EFFORT < allowance.left < MAX_ALLOWANCE
    spent = Allowance(0)
    assert len(checked.flaws({"a": 1}, spent)) == 1
    assert spent.left == 0


class Said(list[int]):
    """Values of an enum that count how many of them are said."""

    said = 0

    def __getitem__(self, place: Any) -> Any:
        """One of them, or some."""
        found = super().__getitem__(place)
        Said.said += len(found)
        return found

    def __iter__(self) -> Iterator[int]:
        """All of them."""
        Said.said += len(self)
        return super().__iter__()


def test_a_long_enum_is_not_written_out_to_see_that_it_is_long() -> None:
    """Section 6: an enum of a stream's schema may have a hundred thousand values, and is asked for at eight places a call."""
    schema = {"enum": Said(range(100_000))}
    (flaw,) = RustEngine().compile({"enum": [1]}).flaws(2)
    assert wanted(flaw, schema) == "must be one of the values that the schema lists"
    assert Said.said <= 300
