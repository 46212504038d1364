"""What is in hand: records fetched and not yet decided, decisions not yet published, counted in bytes over all partitions.

Owns the bound `kafka.max_buffered_bytes` and each partition's share of it. It fetches nothing and drops nothing by itself.
"""

import asyncio
from collections import deque
from collections.abc import Iterator, Sequence

from processor.core.outgoing import Outgoing
from processor.core.ports import Record

RECORD_BYTES = 300
"""What a record costs beside its own bytes."""
LEAST_SHARE = 64 << 10
"""Bytes that a partition may hold however many there are."""
HELD_BATCHES = 4
"""Fetched batches that may wait for a partition before it is paused: more would only wait."""


def size_of(records: Sequence[Record]) -> int:
    """Bytes of records, about, with keys and headers."""
    keys = sum([len(record.key or b"") for record in records])
    headers = sum([len(value) for record in records for _, value in record.headers if value])
    return value_bytes(records) + keys + headers


def value_bytes(records: Sequence[Record]) -> int:
    """Bytes of records by their values alone: for each event there is, so it must cost next to nothing."""
    return sum([len(record.value or b"") for record in records]) + RECORD_BYTES * len(records)


class Room:
    """The bytes that all partitions of this process have in hand."""

    def __init__(self, most: int) -> None:
        self.most = most
        """The bound: nothing more is read while it is reached. One batch of records may go over it."""
        self.partitions = 1
        """How many share it."""
        self.held = 0
        """Bytes in hand now."""
        self.peak = 0
        """The most that ever was."""
        self._free = asyncio.Event()
        self._read: dict[int, int] = {}

    @property
    def share(self) -> int:
        """Bytes that one partition may have: a slow one must not take the room of the others."""
        return max(self.most // self.partitions, LEAST_SHARE)

    @property
    def full(self) -> bool:
        """Whether nothing more may be read."""
        return self.held >= self.most

    def take(self, count: int) -> None:
        """Count bytes that came into hand."""
        self.held += count
        self.peak = max(self.peak, self.held)

    def free(self, count: int) -> None:
        """Count bytes that are in hand no more."""
        self.held -= count
        if not self.full:
            self._free.set()

    async def wait(self, seconds: float) -> None:
        """Wait until there is room, at most so long."""
        self._free.clear()
        try:
            async with asyncio.timeout(seconds):
                await self._free.wait()
        except TimeoutError:
            pass

    def note_read(self, number: int, count: int) -> None:
        """Count bytes at once where they are read, before anybody asked whose they are."""
        self._read[number] = self._read.get(number, 0) + count
        self.take(count)

    def claim(self, number: int, records: Sequence[Record]) -> int:
        """Bytes of what was just read of a partition, which are whoever claims them from now on."""
        count = self._read.pop(number, 0)
        if not count and records:
            # Read in the client's own way, which counts nothing.
            count = size_of(records)
            self.take(count)
        return count


class Hand:
    """What one partition has in hand."""

    def __init__(self, number: int, room: Room) -> None:
        self._number = number
        self._room = room
        self._batches: deque[tuple[Sequence[Record], int, int]] = deque()
        self._waiting = 0
        self._fed = 0
        self._decided = 0

    def __len__(self) -> int:
        return len(self._batches)

    @property
    def records(self) -> int:
        """Records that wait."""
        return sum(len(records) for records, _, _ in self._batches)

    @property
    def full(self) -> bool:
        """Whether nothing more should be fetched of the partition."""
        return len(self._batches) >= HELD_BATCHES or self._waiting >= self._room.share

    @property
    def low(self) -> bool:
        """Whether more may be fetched again."""
        return len(self._batches) <= 1 and self._waiting < self._room.share

    @property
    def crowded(self) -> bool:
        """Whether decisions that wait for their transaction take the whole share: nothing more is fed before it."""
        return self._decided >= self._room.share

    def put(self, records: Sequence[Record], position: int) -> None:
        """Take what was fetched, and the position after it."""
        count = self._room.claim(self._number, records)
        self._waiting += count
        self._batches.append((records, position, count))

    def draw(self) -> tuple[Sequence[Record], int]:
        """The next batch, to be fed now; the last one is done with."""
        self._room.free(self._fed)
        records, position, self._fed = self._batches.popleft()
        self._waiting -= self._fed
        return records, position

    def drop(self) -> None:
        """Let go of all records: they are another's, or are read again."""
        # Also what was read and never handed over: another partition's fault has lost it.
        self._room.free(self._waiting + self._fed + self._room.claim(self._number, ()))
        self._waiting = self._fed = 0
        self._batches.clear()

    def fed(self) -> None:
        """The batch that was drawn is done with."""
        self._room.free(self._fed)
        self._fed = 0

    def decide(self, outgoing: Sequence[Outgoing]) -> int:
        """Count records to publish; returns their bytes."""
        count = sum([len(one.value or b"") + RECORD_BYTES for one in outgoing])
        self._decided += count
        self._room.take(count)
        return count

    def publish(self, count: int) -> None:
        """Count bytes that were published, or given up."""
        self._decided -= count
        self._room.free(count)


def stretches(records: Sequence[Record], most: int, most_bytes: int) -> Iterator[tuple[Sequence[Record], int]]:
    """Cut a batch into what may be fed at a stretch: so many records, and no more bytes unless one record has them.

    Each comes with the bytes of its values.
    """
    for start in range(0, len(records), most):
        some = records if len(records) <= most else records[start : start + most]
        sizes = [len(record.value or b"") for record in some]
        if (total := sum(sizes)) <= most_bytes:
            yield some, total
            continue
        first = taken = 0
        for place, size in enumerate(sizes):
            if place > first and taken + size > most_bytes:
                yield some[first:place], taken
                first, taken = place, 0
            taken += size
        yield some[first:], taken
