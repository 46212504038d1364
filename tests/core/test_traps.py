"""Traps of time and of metadata (issue 6), in the core alone: each decides the same for a successor as without a takeover."""

from collections.abc import Sequence
from typing import Any

from processor.core import limits
from processor.core.offsets import encode
from processor.core.pipeline import Partition
from tests.core.deciding import partition, published, weather
from tests.factories import Json, Record, announced, created, done, record, terminal

TIMES: Json = {"stream_timeout_ms": 100, "closed_memory_ms": 1_000}


def at(offset: int, timestamp: int, value: object, key: str = "stream-1") -> Record:
    """A record at its place."""
    return record(offset, value, key=key, timestamp=timestamp)  # type: ignore[arg-type]


def verdicts(part: Partition) -> list[tuple[str | None, str]]:
    """What was decided since the last look."""
    return [(line["call_id"], line["reason"]) for line in published(part.take())]


def successor(part: Partition, log: Sequence[Record]) -> Partition:
    """The partition at another member, rebuilt from what is committed."""
    commit = part.commit_point()
    other = partition(**TIMES)
    other.resume(commit, commit.offset)
    other.feed([one for one in log if commit.offset <= one.offset < commit.position], 0)
    other.reached(commit.position)
    assert not other.rebuilding
    assert other.take() == []
    return other


def open_call(offset: int, timestamp: int, key: str = "stream-1", response: str = "resp_1") -> list[Record]:
    """A response that has begun a call."""
    events: list[Any] = [created(response), announced(0, weather())]
    return [at(offset + place, timestamp, event, key) for place, event in enumerate(events)]


def test_late_records_after_idle_expiry_decide_nothing() -> None:
    """Rule 14: the wall clock expired a call; what came in time is late now, also after a takeover."""
    log = open_call(0, 1_000)
    first = partition(**TIMES)
    first.feed(log, 0)
    assert first.idle(1_200, 0)
    assert verdicts(first) == [("c1", "timeout")]
    late = [at(2, 1_050, done(0, weather())), at(3, 1_060, terminal(output=[weather()]))]
    second = successor(first, log)
    for part in (first, second):
        part.feed(late, 0)
        assert verdicts(part) == []
    assert successor(second, log + late).counts() == first.counts()


def test_a_record_from_the_future_expires_once_and_for_all() -> None:
    """Section 7: the watermark goes ahead with it and never back; what comes with the right time is judged as ever."""
    log = open_call(0, 1_000)
    first = partition(**TIMES)
    first.feed(log, 0)
    future = at(2, 9_000_000, {"type": "keepalive"}, "other")
    first.feed([future], 0)
    assert verdicts(first) == [("c1", "timeout")]
    # The wall clock is behind the watermark from now on: it moves nothing, and is not entered.
    assert not first.idle(1_500, 0)
    assert first.commit_point().moves == ()
    rest = [*open_call(3, 1_010, "stream-2", "resp_2"), at(5, 1_020, done(0, weather()), "stream-2")]
    rest.append(at(6, 1_030, terminal("completed", "resp_2", output=[weather()]), "stream-2"))
    second = successor(first, [*log, future])
    for part in (first, second):
        part.feed(rest, 0)
        assert verdicts(part) == [("c1", "ok")]
    assert first.commit_point() == second.commit_point()


def test_metadata_stays_within_its_bound_whatever_is_open() -> None:
    """Section 7: thousands of open responses, idle moves after each, and a key header of the longest: 2.5 kB at most."""
    settings = TIMES | {"key_header": "h" * 200, "stream_timeout_ms": 10_000}
    part = partition(**settings)
    largest = 0
    offset, now = 10**12, 10**12
    part.resume(None, offset)
    for number in range(400):
        key = f"stream-{number}"
        # Without a head: where such a response began is in the metadata too.
        part.feed([at(offset, now, announced(0, weather()), key), at(offset + 1, now, created(f"r{number}"), key)], 0)
        offset, now = offset + 2, now + 60
        part.reached(offset)
        part.idle(now + 5_000, 0)
        part.take()
        largest = max(largest, len(encode(part.commit_point()).encode()))
    assert part.counts()
    assert 100 < largest <= limits.METADATA_BYTES <= 2_500
