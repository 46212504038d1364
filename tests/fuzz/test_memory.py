"""Bytes that a response holds, for every field that can be long: what is kept is counted (section 4 of the design)."""

import pytest

from processor.core.limits import Bounds
from tests.factories import (
    Json,
    added,
    announced,
    arguments_done,
    created,
    delta,
    done,
    function_call,
    numbered,
    records,
    response,
)
from tests.fuzz.drive import drive

BOUNDS = Bounds(max_response_bytes=6000)
LONG = "x" * 3000
CALL = function_call()

COUNTED: dict[str, list[Json]] = {
    "deltas": [announced(0, CALL), *(delta(0, LONG) for _ in range(5))],
    "early deltas": [delta(0, LONG) for _ in range(5)],
    "arguments.done": [arguments_done(i, f"{i}{LONG}") for i in range(5)],
    "added.name": [added(i, {**CALL, "name": f"{i}{LONG}"}) for i in range(5)],
    "added.arguments": [added(i, {**CALL, "arguments": f"{i}{LONG}"}) for i in range(5)],
    "added.call_id": [added(i, {**CALL, "call_id": f"{i}{LONG}"}) for i in range(5)],
    "added.type": [added(i, {**CALL, "type": f"{i}{LONG}"}) for i in range(5)],
    "done.arguments": [done(i, {**CALL, "call_id": f"c{i}", "arguments": f"{i}{LONG}"}) for i in range(5)],
    "done.name": [done(i, {**CALL, "call_id": f"c{i}", "name": f"{i}{LONG}"}) for i in range(5)],
    "done.call_id": [done(i, {**CALL, "call_id": f"{i}{LONG}"}) for i in range(5)],
    "done.content": [done(i, {**CALL, "call_id": f"c{i}", "content": [f"{i}{LONG}"]}) for i in range(5)],
    "message": [done(i, {"type": "message", "id": f"{i}{LONG}", "content": [LONG]}) for i in range(5)],
    "tools": [created(tools=[{"type": "function", "name": f"{LONG}{LONG}{LONG}"}])],
    "tool_choice": [{"type": "response.in_progress", "response": response(tool_choice=f"{i}{LONG}")} for i in range(5)],
    "items without text": [done(i, {"type": "a:b"}) for i in range(200)],
    **{
        f"done.{name}": [done(i, {**CALL, "call_id": f"c{i}", name: f"{i}{LONG}"}) for i in range(5)]
        for name in ("id", "status", "namespace", "type", "role", "execution")
    },
    "empty deltas": numbered([announced(0, CALL), *(delta(0, "") for _ in range(1000))]),
}


def hold(events: list[Json]) -> None:
    """Read them under one key and hold what is kept to the bound, after each record."""
    drive(records([created(), *events]), BOUNDS)


@pytest.mark.parametrize("name", COUNTED)
def test_what_is_kept_is_counted(name: str) -> None:
    """Bounds: whatever is long, a response holds no more than `max_response_bytes`."""
    hold(COUNTED[name])


def test_trace_headers_are_kept_whole() -> None:
    """A call keeps the trace headers of the record that finished it: their length is Kafka's to bound, not the response's."""
    log = records([created(), done(0, CALL)])
    log[1].headers = [("traceparent", b"z" * 1000), ("tracestate", b"z" * 1000)]
    drive(log, BOUNDS)
