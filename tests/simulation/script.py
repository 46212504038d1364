"""The input of one simulation: small streams of every kind, when each record is written, and what must come of them.

Owns the pace. What the streams are, and the truth about them, is `tests/e2e/workload.py`.
"""

import random
from collections import defaultdict
from dataclasses import dataclass, field

from tests.e2e import workload
from tests.e2e.workload import Workload

STREAM_TIMEOUT_MS, CLOSED_MEMORY_MS, IDLE_AFTER_MS = 4_500, 3_000, 800
"""Settings under which the expectations hold."""
LONGEST_GAP_MS = 2_300
"""Between two records of a key, so that nothing is forgotten or expires in the middle of a stream."""
NEAR_MS = 100
"""Records that are no further apart may go into one batch."""
OPEN_AT_ONCE = 3
ENDINGS = (*["completed"] * 6, "failed", "incomplete", "cancelled", *["silent"] * 4)


@dataclass
class Write:
    """Records that are written at one moment, as one batch."""

    at: float
    """Seconds after the start."""
    number: int
    """Partition."""
    records: list[tuple[bytes, bytes, int]]
    """Key, value, milliseconds by which its own timestamp is off."""
    transaction: str = ""
    """Written in a transaction that will be `committed` or `aborted`; empty: without one."""
    held: float = 0.0
    """Seconds for which that transaction stays open."""


@dataclass
class Script:
    """All of one simulation's input."""

    work: Workload
    writes: list[Write] = field(default_factory=list)
    append_time: bool = True

    @property
    def ends_at(self) -> float:
        """When the last record is written."""
        return max((write.at + write.held for write in self.writes), default=0.0)


def make(rng: random.Random, partitions: int, *, busy: bool = False) -> Script:
    """Draw the input of one simulation. `busy`: there is always something to do."""
    script = Script(Workload(), append_time=rng.random() < 0.5)
    for number in range(partitions):
        began, streams = 0, 0
        for _ in range(2 if busy else rng.choice((1, 1, 2))):
            count = rng.randint(4, 6) if busy else rng.randint(1, 3)
            lane = _lane(rng, script.work, number, range(streams, streams + count))
            times = [began + time for time in _times(rng, lane, busy=busy)]
            script.writes += _writes(rng, number, lane, times, script.append_time)
            # Long enough for the wall clock to expire what fell silent, before more is written.
            began, streams = times[-1] + rng.randint(500, 1_500 if busy else 8_500), streams + count
    script.writes.sort(key=lambda write: write.at)
    return script


def _lane(rng: random.Random, work: Workload, number: int, streams: range) -> list[tuple[bytes, bytes]]:
    """Some of one partition's records: streams interleaved, with some events to a record, and what nobody can read."""
    waiting = []
    for place in streams:
        key = f"conversation-{number}-{place}"
        waiting.append((key.encode(), _packed(rng, _stream(rng, work, key))))
    active: list[tuple[bytes, list[bytes]]] = []
    lane: list[tuple[bytes, bytes]] = []
    while waiting or active:
        while waiting and len(active) < OPEN_AT_ONCE:
            active.append(waiting.pop())
        key_bytes, queue = rng.choice(active)
        lane.append((key_bytes, queue.pop(0)))
        if not queue:
            active.remove((key_bytes, queue))
        if rng.random() < 0.03:
            value = f"no event {number} {key_bytes.decode()} {len(lane)} {{".encode()
            work.dead_letters.append(value)
            lane.append((key_bytes, value))
    return lane


def _stream(rng: random.Random, work: Workload, key: str) -> list[bytes]:
    """One or two responses under one key, which fall silent far more often than in life."""
    values: list[bytes] = []
    for turn in range(rng.choice((1, 1, 2))):
        ending = rng.choice(ENDINGS)
        events = workload._response(rng, work, key, f"resp-{key}-{turn}", ending)
        values += events
        if ending == "silent":
            break
        if rng.random() < 0.3:
            # A client that reconnects sends everything again, perhaps cut off: nothing new is decided.
            values += events[: rng.randint(1, len(events))]
            if rng.random() < 0.5:
                values.append(events[-1])
    return values


def _packed(rng: random.Random, events: list[bytes]) -> list[bytes]:
    """Put some events into one record."""
    most = rng.choice((3, 8, 20))
    packed = []
    while events:
        size = rng.randint(1, most)
        taken, events = events[:size], events[size:]
        packed.append(taken[0] if len(taken) == 1 else b"[" + b",".join(taken) + b"]")
    return packed


def _times(rng: random.Random, lane: list[tuple[bytes, bytes]], *, busy: bool) -> list[int]:
    """Milliseconds at which each record is written: bursts and pauses, but no key is silent for too long."""
    pauses = 0.0 if busy else 0.06
    while True:
        now, times = rng.randint(0, 1500), []
        pace = 120 if busy else rng.choice((5, 40, 120))
        last: dict[bytes, int] = defaultdict(lambda: -1)
        longest = 0
        for key, _ in lane:
            now += rng.randint(700, 1_900) if rng.random() < pauses else rng.randint(0, pace)
            if last[key] >= 0:
                longest = max(longest, now - last[key])
            last[key] = now
            times.append(now)
        if longest <= LONGEST_GAP_MS:
            return times
        pauses /= 2


def _writes(
    rng: random.Random, number: int, lane: list[tuple[bytes, bytes]], times: list[int], append_time: bool
) -> list[Write]:
    """Batches, some of them in transactions."""
    writes, place = [], 0
    transactions = rng.choice((0.0, 0.0, 0.1, 0.5))
    while place < len(lane):
        size = 1 if rng.random() < 0.7 else rng.randint(2, 4)
        # All of a batch are written with its first record: what would come later stays out.
        while times[min(place + size, len(lane)) - 1] - times[place] > NEAR_MS:
            size -= 1
        some = lane[place : place + size]
        skews = [0 if append_time else rng.randint(-200, 200) for _ in some]
        records = [(key, value, skew) for (key, value), skew in zip(some, skews, strict=True)]
        write = Write(times[place] / 1000, number, records)
        if rng.random() < transactions:
            write.held = rng.choice((0.0, 0.02, 0.3))
            write.transaction = "committed"
            if rng.random() < 0.3:
                # The same again: what was aborted was never there.
                aborted = Write(write.at, number, records, "aborted", rng.choice((0.0, 0.05)))
                writes.append(aborted)
        writes.append(write)
        place += size
    return writes
