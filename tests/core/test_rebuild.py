"""The state is a function of the log: rebuilt from (W, metadata) at any point, it makes the decisions of an undisturbed run.

Design section 7. Random logs with faults of every kind; at every offset and after every idle move the process is replaced by
one that knows nothing but the commit, and both go on to the end of the log and into silence.
"""

import json
import os
import random
from collections.abc import Sequence
from typing import Any

import pytest

from processor.core import limits, offsets
from processor.core.candidate import Candidate
from processor.core.decide import Outgoing, Route
from processor.core.events import Unreadable
from processor.core.limits import Bounds
from processor.core.pipeline import Partition
from processor.core.signals import Tally
from tests.factories import Record, done, function_call
from tests.oracle.compare import bounds_of
from tests.oracle.generate import case

SEEDS = int(os.environ.get("CALLGATE_TEST_REBUILD_N", "150"))

Plan = Sequence[tuple[int, int]]


class Recorder:
    """Publishes what assembly says, before any gate: later decisions differ exactly where these do."""

    def __init__(self) -> None:
        self.tally = Tally()

    def __call__(self, candidate: Candidate, topic: str, partition: int, now_ms: int) -> Outgoing:
        """Publish all of the candidate."""
        return Outgoing(Route.REJECTED, None, repr((topic, partition, now_ms, candidate)).encode(), [], str(candidate.fault))

    def dead_letter(self, record: Any, unreadable: Unreadable, topic: str, partition: int) -> Outgoing:
        """Publish where it was."""
        return Outgoing(Route.DEAD_LETTER, None, repr((topic, partition, record.offset)).encode(), [], unreadable.cause)


def begin(bounds: Bounds) -> Partition:
    """A partition that starts afresh."""
    partition = Partition("events", 0, bounds, Recorder())
    partition.resume(None, 0)
    return partition


def successor(partition: Partition, log: Sequence[Record], bounds: Bounds, rng: random.Random) -> Partition:
    """A member that knows nothing but the commit takes over."""
    commit = partition.commit_point()
    metadata = offsets.encode(commit)
    assert len(metadata.encode()) <= limits.METADATA_BYTES
    found = offsets.decode(commit.offset, metadata)
    assert found == commit
    other = Partition("events", 0, bounds, Recorder())
    other.resume(commit, commit.offset)
    place = commit.offset
    while place < commit.position:  # fetches of any size
        size = rng.randint(1, 5)
        other.feed(log[place : min(place + size, commit.position)], 0)
        place += size
    other.reached(commit.position)
    assert not other.rebuilding
    assert other.take() == []
    assert other.position == partition.position
    assert other.tally == Tally()
    again = other.commit_point()
    assert again.position == commit.position
    assert again.offset >= commit.offset, "W goes back"
    return other


def play(partition: Partition, log: Sequence[Record], plan: Plan, start: int, skip: int = 0) -> list[Outgoing]:
    """All decisions from here on: the rest of the log with its idle moves, then silence."""
    out: list[Outgoing] = []
    for place in range(start, len(log) + 1):
        for number, wall in enumerate([wall for at, wall in plan if at == place]):
            if place > start or number >= skip:
                partition.idle(wall, 0)
        if place < len(log):
            partition.feed([log[place]], 0)
        out += partition.take()
    partition.end_of_archive(0)
    return out + partition.take()


def undisturbed(log: Sequence[Record], plan: Plan, bounds: Bounds, start: int, skip: int) -> Partition:
    """The state of a run that nothing disturbs, before its move number `skip` at place `start`."""
    partition = begin(bounds)
    for place in range(start + 1):
        for number, wall in enumerate([wall for at, wall in plan if at == place]):
            if place < start or number < skip:
                partition.idle(wall, 0)
        if place < start:
            partition.feed([log[place]], 0)
    partition.take()
    partition.tally = Tally()
    return partition


def points(log: Sequence[Record], plan: Plan) -> list[tuple[int, int]]:
    """Every place to stop at: before each record, and after each idle move there."""
    return [(place, skip) for place in range(len(log) + 1) for skip in range(1 + sum(at == place for at, _ in plan))]


def check(seed: int, *, full_from: int = 0) -> int:
    """Replace the process at every point of one log; returns how many points held W back."""
    drawn = case(seed)
    rng = random.Random(seed)
    log = [Record(n, r.timestamp, r.key, r.value, tuple(r.headers)) for n, r in enumerate(drawn.log)]
    bounds = bounds_of(drawn)
    held = 0
    for place, skip in points(log, drawn.idle)[full_from:]:
        here = undisturbed(log, drawn.idle, bounds, place, skip)
        commit = here.commit_point()
        held += commit.offset < commit.position
        there = successor(here, log, bounds, rng)
        assert play(there, log, drawn.idle, place, skip) == play(here, log, drawn.idle, place, skip), (
            f"CALLGATE seed {seed}: replaced before record {place}, after {skip} idle moves there"
        )
    return held


@pytest.mark.parametrize("block", range(10))
def test_state_is_a_function_of_the_log(block: int) -> None:
    """Section 7: wherever the process is replaced, no later decision differs."""
    held = sum(check(seed) for seed in range(block, SEEDS, 10))
    assert held > 0, "no point held W back: the logs test nothing"


def test_idle_expiry_waits_when_e_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    """Section 7: when E has no room, measured by the W after the move, idle expiry waits; nothing is expired unrecorded."""
    monkeypatch.setattr(limits, "METADATA_BYTES", 200)
    bounds = Bounds(stream_timeout_ms=100, closed_memory_ms=10)
    added = b'{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","call_id":"c"}}'
    log = [Record(0, 1, b"holds", added)]
    partition = begin(bounds)
    partition.feed(log, 0)
    now, waited = 1, False
    for number in range(40):
        now += 60
        log += [Record(len(log), now, b"holds", b'{"type":"keepalive"}'), Record(len(log) + 1, now, b"%d" % number, added)]
        partition.feed(log[-2:], 0)
        partition.feed([], 0)
        log.append(Record(len(log), now + 60, b"holds", b'{"type":"keepalive"}'))
        partition.feed(log[-1:], 0)
        now += 60
        expired = partition.idle(now + 45, 0)  # the numbered stream is silent for 105, the other for 45
        waited |= not expired
        partition.take()
        partition.tally = Tally()
        other = successor(partition, log, bounds, random.Random(number))
        assert other.counts() == partition.counts()
    assert waited, "E never filled up"
    assert partition.commit_point().offset == 0


@pytest.mark.parametrize("block", range(5))
def test_settings_that_change_between_crash_and_rebuild(block: int) -> None:
    """Section 7: a rebuild up to P uses the stored settings, then switches; restarts after the switch find the same state."""
    for seed in range(20_000 + block, 20_000 + SEEDS // 2, 5):
        drawn = case(seed)
        rng = random.Random(seed)
        log = [Record(n, r.timestamp, r.key, r.value, tuple(r.headers)) for n, r in enumerate(drawn.log)]
        before, after = bounds_of(drawn), bounds_of(case(seed + 1_000_000))
        place = rng.randint(0, len(log))
        old = undisturbed(log, drawn.idle, before, place, 0)
        straight = successor(old, log, after, rng)
        restarted = successor(old, log, after, rng)
        out: list[Outgoing] = []
        for at in range(place, len(log) + 1):
            for wall in [wall for when, wall in drawn.idle if when == at]:
                restarted.idle(wall, 0)
                out += restarted.take()
                restarted = successor(restarted, log, after, rng)
            if at < len(log):
                restarted.feed([log[at]], 0)
                out += restarted.take()
                restarted = successor(restarted, log, after, rng)
        restarted.end_of_archive(0)
        out += restarted.take()
        assert out == play(straight, log, drawn.idle, place), f"CALLGATE seed {seed}: settings changed at {place}"


@pytest.mark.parametrize("short_ms", [50, 400])
def test_a_change_of_settings_expires_nothing_by_itself(short_ms: int) -> None:
    """Section 7: settings that were in force between two restarts, while no record came, decide nothing in a rebuild either."""
    added = b'{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","call_id":"c","name":"f"}}'
    log = [Record(0, 0, b"k", added), Record(1, 100, b"other", b'{"type":"keepalive"}')]
    first, short = Bounds(stream_timeout_ms=1_000), Bounds(stream_timeout_ms=short_ms)
    partition = begin(first)
    partition.feed(log, 0)
    rng = random.Random(1)
    for bounds in (short, first, short, first):
        partition = successor(partition, log, bounds, rng)
        assert partition.counts()["open_calls"] == 1
    out = play(partition, log, [], len(log))
    assert [one.reason for one in out] == ["timeout"]


SECOND_MS = 1_000


def told(*events: tuple[int, bytes, dict[str, Any]]) -> list[Record]:
    """Records: seconds, key, value."""
    return [
        Record(place, seconds * SECOND_MS, key, json.dumps(value).encode())
        for place, (seconds, key, value) in enumerate(events)
    ]


def replaced(log: Sequence[Record], place: int, bounds: Bounds) -> tuple[list[Outgoing], list[Outgoing]]:
    """What is decided from one place on: undisturbed, and after a takeover there."""
    here = undisturbed(log, [], bounds, place, 0)
    there = successor(here, log, bounds, random.Random(1))
    return play(here, log, [], place), play(there, log, [], place)


def test_the_end_of_what_began_before_w_ends_what_its_events_renewed() -> None:
    """Section 7: a nameless response with a whole one beside it, both over by P: a rebuild knows nothing of the key then."""
    log = told(
        (0, b"j", {"type": "response.created", "response": {"id": "J"}}),
        (1, b"k", done(0, function_call("c"))),
        (2, b"k", {"object": "response", "id": "S", "status": "completed", "output": []}),
        (3, b"k", done(0, function_call("c"))),
        (4, b"k", {"type": "response.completed", "response": {"id": "N"}}),
        (200, b"j", {"type": "keepalive"}),
        (201, b"k", done(0, function_call("c2"))),
        (202, b"k", {"type": "response.completed", "response": {}}),
    )
    here, there = replaced(log, 6, Bounds())
    assert here, "nothing is decided after the takeover"
    assert there == here


def test_a_request_that_is_used_up_ends_no_epoch() -> None:
    """Section 7: H names a beginning while anything is known under its key, also where a response takes a request's place."""
    log = told(
        (0, b"k", {"type": "response.create", "response": {"tool_choice": "none"}}),
        (1, b"k", {"type": "response.completed", "response": {"id": "R"}}),
        (1, b"k", done(1, function_call("c1"))),
        (2, b"k", {"object": "response", "id": "R", "status": "completed", "output": [function_call("c8")]}),
        (3, b"k", {"type": "response.created", "response": {"id": "Q"}}),
        (4, b"k", done(1, function_call("c2"))),
        (5, b"k", {"type": "response.completed", "response": {"id": "Q", "status": "completed"}}),
    )
    here, there = replaced(log, 5, Bounds(closed_memory_ms=1, stream_timeout_ms=100 * SECOND_MS))
    assert there == here
    assert b'"none"' in (here[0].value or b"")


def test_what_is_evicted_is_let_go() -> None:
    """Rule 18, `max_streams`: a key that went leaves nothing of its response in memory."""
    partition = begin(Bounds(max_streams=2))
    for number in range(400):
        partition.feed(told((0, b"%d" % number, done(0, function_call("c")))), 0)
        partition.take()
    due = partition._streams.timetable._due
    assert len(due) < 100
    assert sum(known.open is not None for *_, known in due) == 2
