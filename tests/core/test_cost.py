"""What a record costs grows with its size and no faster: the largest one must not hold up a partition.

Counted in lines of the core that run, not in seconds: the same on any machine.
"""

import json
import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

import pytest

from processor import app
from processor.core.toolsets import EMPTY
from processor.settings import Settings
from tests.core.test_redrive import Plain

FEW, TIMES = 500, 4
"""More than `max_calls`, and that many times as many; work that grows with the square grows sixteenfold."""
MOST = TIMES * 1.3

Shape = Callable[[int], Sequence[bytes]]


def item(**changes: Any) -> dict[str, Any]:
    """A finished function call."""
    usual = {"type": "function_call", "id": "i", "call_id": "c", "name": "n", "arguments": '{"a": 1}', "status": "completed"}
    return usual | changes


def events(*those: dict[str, Any]) -> bytes:
    """Many events in one record."""
    return b"".join(b"data: %b\n\n" % json.dumps(event).encode() for event in those)


def added(index: int, **changes: Any) -> dict[str, Any]:
    """An announcement."""
    return {"type": "response.output_item.added", "output_index": index, "item": item(arguments="", **changes)}


def done(index: int | None, **changes: Any) -> dict[str, Any]:
    """A final piece."""
    place = {} if index is None else {"output_index": index}
    return {"type": "response.output_item.done", **place, "item": item(**changes)}


def delta(index: int) -> dict[str, Any]:
    """A fragment."""
    return {"type": "response.function_call_arguments.delta", "output_index": index, "delta": "x"}


def given(index: int, **said: Any) -> dict[str, Any]:
    """The arguments, and what else is told with them."""
    return {"type": "response.function_call_arguments.done", "output_index": index, **said}


def completed(*output: dict[str, Any]) -> dict[str, Any]:
    """The end of a response."""
    return {"type": "response.completed", "response": {"id": "r", "status": "completed", "output": list(output)}}


def ended(how: str, *output: dict[str, Any]) -> dict[str, Any]:
    """Another end of it."""
    return {"type": f"response.{how}", "response": {"id": "r", "status": how, "output": list(output)}}


CUSTOM: dict[str, Any] = {"type": "custom_tool_call", "arguments": None, "input": "x"}

SHAPES: dict[str, Shape] = {
    "calls that only the list tells of": lambda n: [events(completed(*(item(call_id=f"c{i}") for i in range(n))))],
    "announced, then listed": lambda n: [
        events(*(added(i, call_id=f"c{i}") for i in range(n))),
        events(completed(*(item(call_id=f"c{i}") for i in range(n)))),
    ],
    "announced, then listed under other ids": lambda n: [
        events(*(added(i, call_id=f"c{i}") for i in range(n))),
        events(completed(*(item(call_id=f"d{i}") for i in range(n)))),
    ],
    "finished, then listed under other ids": lambda n: [
        events(*(done(i, call_id=f"c{i}") for i in range(n))),
        events(completed(*(item(call_id=f"d{i}") for i in range(n)))),
    ],
    "custom calls, then others under other ids": lambda n: [
        events(*(done(i, call_id=f"c{i}", **CUSTOM) for i in range(n))),
        events(completed(*(item(call_id=f"d{i}", **CUSTOM) for i in range(n)))),
    ],
    "announced under one call_id, and listed under it": lambda n: [
        events(*(added(i, type="custom_tool_call") for i in range(n))),
        events(completed(*(item(**CUSTOM | {"name": f"m{i}"}) for i in range(n)))),
    ],
    "cut off, and listed again and again": lambda n: [
        events(*(added(i, type="custom_tool_call") for i in range(n))),
        events(ended("incomplete", *(item(**CUSTOM) for i in range(n)))),
    ],
    "too many calls, told two call_ids each": lambda n: [
        events(*(added(i, call_id=f"a{i}") for i in range(FEW))),
        events(*(e for i in range(FEW, FEW + n) for e in (given(i, call_id=f"b{i}"), added(i)))),
        events(*(added(i) for i in range(FEW + n, FEW + 2 * n))),
    ],
    "announced at one index": lambda n: [events(*(added(0, call_id=f"c{i}") for i in range(n)))],
    "announced and finished beside an open item": lambda n: [
        events(added(0), *(e for i in range(n) for e in (added(0, call_id=f"c{i}"), done(0, call_id=f"c{i}"))))
    ],
    "finished at one index": lambda n: [events(*(done(0, call_id=f"c{i}") for i in range(n)))],
    "fragments of what nobody announced": lambda n: [
        events(*(delta(i) for i in range(n))),
        events(completed(*(item(call_id=f"c{i}") for i in range(n)))),
    ],
    "responses one after the other": lambda n: [
        events(*({"type": "response.created", "response": {"id": f"r{i}", "status": "in_progress"}} for i in range(n)))
    ],
    "a journal": lambda n: [json.dumps([item(call_id=f"c{i}") for i in range(n)]).encode()],
    "a journal of one call_id": lambda n: [json.dumps([item(arguments=f'{{"a": {i}}}') for i in range(n)]).encode()],
    "a journal of outputs": lambda n: [
        json.dumps([item(), *({"type": "function_call_output", "call_id": "c", "output": "x"} for _ in range(n))]).encode()
    ],
    "no JSON": lambda n: [b"{" + b'"a":[1],' * n],
    "objects": lambda n: [b"[" + b"{}," * n + b"{}]"],
}


def work(values: Sequence[bytes], *tolerate: str) -> int:
    """Lines of the core that run while these records are fed and their decisions made."""
    partition = app.Core(Settings(tolerate=tolerate), EMPTY).partition("t", 0)
    partition.resume(None, 0)
    lines = 0

    def count(_frame: FrameType, event: str, _: object) -> Any:
        nonlocal lines
        lines += event == "line"
        return count

    def entered(frame: FrameType, _event: str, _: object) -> Any:
        return count if "processor" in frame.f_code.co_filename else None

    before = sys.gettrace()
    sys.settrace(entered)
    try:
        for offset, value in enumerate(values):
            partition.feed([Plain(offset, 1, b"key", value)], 1)
        assert isinstance(partition.take(), list)
    finally:
        sys.settrace(before)
    return lines


@pytest.mark.parametrize("shape", SHAPES)
def test_work_grows_with_the_record(shape: str) -> None:
    """Issue 6: four times the record, four times the work; a record once took 39 s where its half took 10."""
    few = work(SHAPES[shape](FEW))
    assert work(SHAPES[shape](FEW * TIMES)) <= MOST * few


def lives(n: int, kind: str = "in_progress", **said: Any) -> bytes:
    """Many events of as many responses."""
    return events(*({"type": f"response.{kind}", "response": {"id": f"r{i}", **said}} for i in range(n)))


ROTATING: dict[str, Shape] = {
    "an id each": lambda n: [lives(1, "created"), lives(n)],
    "late for a response of many ids": lambda n: [
        lives(1, "created"),
        lives(n),
        lives(1, "completed", status="completed"),
        events(*[{"type": "response.in_progress"}] * n),
    ],
    "responses after one of many ids": lambda n: [
        lives(1, "created"),
        lives(n),
        lives(1, "completed", status="completed"),
        events(*({"type": "response.created", "response": {"id": f"s{i}"}} for i in range(n))),
    ],
    "requests after many responses": lambda n: [lives(n, "created"), events(*[{"type": "response.create", "input": "x"}] * n)],
}


@pytest.mark.parametrize("shape", ROTATING)
def test_ids_that_rotate_cost_no_more_than_they_are(shape: str) -> None:
    """Rule 34, `response_id_rotates`: what is known under a key is not looked through for each event; it once took 20 s."""
    few = work(ROTATING[shape](FEW), "response_id_rotates")
    assert work(ROTATING[shape](FEW * TIMES), "response_id_rotates") <= MOST * few


def test_objects_are_made_texts_once() -> None:
    """Rule 34, `arguments_object`: a small event does not cost what all objects under its call_id come to; it took 50 s."""

    def again(n: int) -> int:
        large = {f"k{number}": number for number in range(n)}
        uses = [events(*(done(i, name=f"n{i}", arguments=large) for i in range(20)))]
        return work([*uses, events(*(done(i, arguments=None) for i in range(n)))], "arguments_object")

    assert again(FEW * TIMES) <= MOST * again(FEW)


def test_tool_choices_are_read_once_for_the_calls_of_a_response() -> None:
    """Rule 22: a thousand values of tool_choice cost no more for a hundred calls than for ten."""
    said = b"".join([lives(1, tool_choice=f"choice {number}") for number in range(1000)])

    def judged(calls: int) -> int:
        listed = [item(call_id=f"c{i}") for i in range(calls)]
        return work([lives(1, "created"), said, lives(1, "completed", status="completed", output=listed)])

    few = judged(10)
    assert judged(100) - few <= 100 * 500
    assert few > judged(0) + 1000


def test_a_response_that_starts_again_costs_bytes_where_it_has_many_items() -> None:
    """Section 7, bounds: each `response.created` looks at all of them; thousands of both took 28 s a record."""
    settings = Settings(max_response_bytes=1 << 20, release="item")
    partition = app.Core(settings, EMPTY).partition("events", 0)
    partition.resume(None, 0)
    finished = [done(i, call_id=f"c{i}", **CUSTOM) for i in range(1_000)]
    for offset, value in enumerate(
        (lives(1, "created"), events(*finished), lives(1, "created") * 50, lives(1, "created") * 100)
    ):
        partition.feed([Plain(offset, 1, b"k", value)], 0)
        assert partition.counts()["open_responses"] == (offset < 3)


def test_open_items_of_one_index_cost_bytes_where_there_are_many() -> None:
    """Section 7, bounds: each `done` may look at all of them, so that thousands of both pass `max_response_bytes`."""
    settings = Settings(max_response_bytes=1 << 20)
    partition = app.Core(settings, EMPTY).partition("events", 0)
    partition.resume(None, 0)
    announced = [added(0, type="custom_tool_call", call_id=f"c{i}") for i in range(4_000)]
    for offset, value in enumerate((announced, [done(0, **CUSTOM)] * 100, [done(0, **CUSTOM)] * 200)):
        partition.feed([Plain(offset, 1, b"k", events(*value))], 0)
        assert partition.counts()["open_responses"] == (offset < 2)
    decided = partition.take()
    assert len(decided) == len(announced)
    assert {out.reason for out in decided} == {"limit"}


def test_uses_of_one_call_id_are_not_held_against_each_entry() -> None:
    """Rule 4: a list of thousands costs no more beside a hundred uses of its call_id than beside ten; it once took 9 s."""
    entries = events(completed(*(item(**CUSTOM | {"name": f"m{i}"}) for i in range(FEW))))

    def beside(uses: int) -> int:
        finished = events(*(done(i, **CUSTOM | {"name": f"n{i}"}) for i in range(uses)))
        return work([finished, entries]) - work([finished, events(completed())])

    assert beside(100) <= 2 * beside(10)


def test_events_that_name_no_place_cost_bytes_where_there_are_many_items() -> None:
    """Section 7, bounds: each looks at all items of its response, so that thousands of both pass `max_response_bytes`."""
    settings = Settings(max_response_bytes=1 << 20)
    partition = app.Core(settings, EMPTY).partition("events", 0)
    partition.resume(None, 0)
    message = {"type": "message", "role": "assistant"}
    announced = [{"type": "response.output_item.added", "output_index": n, "item": message} for n in range(8_000)]
    nowhere = {"type": "response.function_call_arguments.delta", "delta": "x"}
    for offset, value in enumerate((events(*announced), events(*[nowhere] * 200), events(*[nowhere] * 400))):
        partition.feed([Plain(offset, 1, b"k", value)], 0)
        assert partition.counts()["open_responses"] == (offset < 2)
