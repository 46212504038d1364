"""What a rebuild leaves unread makes no difference: the state at P equals that of a rebuild that reads every record.

Design section 7. Compared is the whole state, field by field, not only what is decided later.
"""

import json
import os
import random
from collections.abc import Sequence
from typing import Any

import pytest

from processor.core import limits, unread
from processor.core.limits import Bounds
from processor.core.offsets import Commit
from processor.core.pipeline import Partition
from processor.core.responses import Responses
from processor.core.state import Context
from processor.core.timetable import everything
from processor.core.unread import Unread
from tests.core.test_rebuild import Recorder, undisturbed
from tests.core.test_rebuild_of_anything import EVENTS, MORE, draw
from tests.core.test_rest_of_a_response import created, done, ended
from tests.factories import Record
from tests.oracle.compare import bounds_of
from tests.oracle.generate import case

LOGS = int(os.environ.get("CALLGATE_TEST_REBUILD_N", "150")) * 2

Moves = list[tuple[int, int]]


def rebuilt(commit: Commit, log: Sequence[Record]) -> Partition:
    """A successor at P, under the same settings; nothing came out of it."""
    partition = Partition("events", 0, commit.bounds, Recorder())
    partition.resume(commit, commit.offset)
    partition.feed(log[commit.offset : commit.position], 0)
    partition.reached(commit.position)
    assert not partition.rebuilding
    assert partition.take() == []
    return partition


def state(partition: Partition) -> Any:
    """All of it that later records can meet."""
    streams, context = partition._streams, partition._context
    for stream in streams.by_key.values():
        for each in everything(stream):
            each.due = 0  # an entry of the timetable may be late
    known = sorted(((stream.key, stream) for stream in streams.by_key.values()), key=lambda each: each[1].at)
    headless = [(offset, stream.key, epoch) for offset, stream, epoch in streams.headless]
    return known, headless, context.watermark, context.bounds, partition.counts()


class Counted:
    """How many records were skimmed, how many of these were read after all, and the most bytes that were held unread."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.skimmed = self.read = self.held = 0
        skim, read = Unread.skim, Responses.read

        def skimmed(unread: Unread, record: Record, ctx: Context) -> bool:
            found = skim(unread, record, ctx)
            self.skimmed += found
            self.held = max(self.held, unread._bytes)
            return found

        def counted(*arguments: Any) -> None:
            self.read += 1
            read(*arguments)

        patch.setattr(Unread, "skim", skimmed)
        patch.setattr(Responses, "read", counted)


def compare(log: Sequence[Record], moves: Moves, bounds: Bounds, seed: object) -> int:
    """Rebuild both ways at three places of a log; returns how many records were skimmed."""
    rng = random.Random(len(log))
    found = 0
    for place in {len(log), rng.randint(0, len(log)), rng.randint(0, len(log))}:
        commit = undisturbed(log, moves, bounds, place, 0).commit_point()
        with pytest.MonkeyPatch.context() as patch:
            counted = Counted(patch)
            skimming = rebuilt(commit, log)
            found += counted.skimmed
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Unread, "skim", lambda *_: False)
            reading = rebuilt(commit, log)
        assert state(skimming) == state(reading), f"seed {seed}, P at {place}, W at {commit.offset}"
    return found


def test_the_same_state_from_streams_as_servers_send_them() -> None:
    """Section 7: streams with faults of every kind, under any settings."""
    found = 0
    for seed in range(LOGS):
        drawn = case(seed)
        log = [Record(n, r.timestamp, r.key, r.value, tuple(r.headers)) for n, r in enumerate(drawn.log)]
        found += compare(log, list(drawn.idle), bounds_of(drawn), seed)
    assert found > LOGS * 5, "hardly a record was skimmed: this tests nothing"


@pytest.mark.parametrize("mix", MORE)
def test_the_same_state_from_loose_events(mix: str) -> None:
    """Section 7: ends that nobody began, beginnings said again, numbers that come twice."""
    found = 0
    for seed in range(LOGS * 2):
        log, moves, bounds = draw(random.Random(f"unread {mix} {seed}"), EVENTS + MORE[mix])
        found += compare(log, moves, bounds, f"{mix} {seed}")
    assert found > LOGS, "hardly a record was skimmed: this tests nothing"


def records(*events: dict[str, Any]) -> list[Record]:
    """Events of one stream, numbered, a millisecond apart."""
    return [Record(n, n, b"k", json.dumps(event | {"sequence_number": n}).encode()) for n, event in enumerate(events)]


def test_a_response_that_is_over_is_never_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a response that ended before P a rebuild reads no event; of one that is open it reads them all."""
    over = records(created("R"), done("c1", 0), {"type": "keepalive"}, ended("R"))
    counted = Counted(monkeypatch)
    rebuilt(Commit(offset=0, position=4, watermark=0, moves=(), bounds=Bounds()), over)
    assert (counted.skimmed, counted.read) == (4, 0)
    rebuilt(Commit(offset=0, position=3, watermark=0, moves=(), bounds=Bounds()), over[:3])
    assert (counted.skimmed, counted.read) == (7, 3)


def test_what_might_pass_the_bound_is_read_at_once() -> None:
    """Rule 18: a response that passes `max_response_bytes` is over there and then, whatever ends it later."""
    events = [done(f"c{n}", n) for n in range(20)]
    for event in events:
        event["item"]["arguments"] = json.dumps({"text": "long" * 100})
    log = records(created("R"), *events, ended("R"), created("S"))
    for most in range(200, 40_000, 1_000):
        compare(log, [], Bounds(max_response_bytes=most), most)


def test_a_repeat_ends_nothing() -> None:
    """Rule 12: an event that is taken for a repeat is dropped, also where it calls itself the end of the response."""
    delta = {"type": "response.function_call_arguments.delta", "output_index": 0, "delta": "x"}
    end = ended("R") | {"output_index": 0, "delta": "x"}
    log = records(created("R"), delta, end, {"type": "keepalive"})
    log[2] = Record(2, 2, b"k", json.dumps(end | {"sequence_number": 1}).encode())
    compare(log, [], Bounds(), "repeat")
    assert rebuilt(Commit(offset=0, position=4, watermark=0, moves=(), bounds=Bounds()), log).counts()["open_responses"] == 1


def test_no_more_is_held_than_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Past UNREAD_BYTES what is kept is read, of the newest response first."""
    monkeypatch.setattr(unread, "UNREAD_BYTES", 2_000)
    assert limits.UNREAD_BYTES > 2_000
    log = records(created("R"), *(done(f"c{n}", n) for n in range(40)))
    counted = Counted(monkeypatch)
    rebuilt(Commit(offset=0, position=30, watermark=0, moves=(), bounds=Bounds()), log)
    assert (counted.skimmed, counted.read) == (30, 30)
    assert 1_000 < counted.held <= 2_000
    compare(log, [], Bounds(), "bound")


def test_what_is_over_by_its_bytes_holds_w_as_if_it_had_been_read() -> None:
    """Section 7: a late event of a response that is closed beside another thing holds W, also where that is unread."""
    request = {"type": "response.create", "response": {"tool_choice": "none"}}
    delta = {"type": "response.function_call_arguments.delta", "output_index": 0, "delta": "y" * 100}
    told = (created("Q"), ended("Q"), request, created("R"), request, delta, delta, ended("R"), {"type": "keepalive"})
    times = (0, 1, 2, 12, 13, 14, 15, 16, 30)  # Q is forgotten when R begins
    log = [Record(n, at, b"k", json.dumps(event).encode()) for n, (event, at) in enumerate(zip(told, times, strict=True))]
    bounds = Bounds(max_response_bytes=50, stream_timeout_ms=100, closed_memory_ms=10)
    for place in range(len(log) + 1):
        commit = undisturbed(log, [], bounds, place, 0).commit_point()
        skimming = rebuilt(commit, log)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Unread, "skim", lambda *_: False)
            reading = rebuilt(commit, log)
        assert state(skimming) == state(reading)
        assert skimming.commit_point() == reading.commit_point()
