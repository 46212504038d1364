"""One partition's log as a broker keeps it: record batches, offsets, transactions, markers, retention.

Owns what a fetch may see: the high watermark, the last stable offset, aborted transactions. It answers no request and knows no
time but what it is told.
"""

import struct
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.util import calc_crc32c

HEAD = struct.Struct(">qiibIhiqqqhii")
"""Base offset, length, leader epoch, magic, checksum, attributes, last offset delta, first and highest timestamp, producer id,
producer epoch, first sequence number, count."""
SUMMED = 21
"""Where the checksummed part begins."""
TRANSACTIONAL, CONTROL, APPEND_TIME = 16, 32, 8
SEEN_BATCHES = 5
"""Batches of a producer that the broker remembers to tell repeats."""


class Refused(Exception):
    """The broker's answer is an error code."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


OUT_OF_RANGE, OUT_OF_ORDER = 1, 45


@dataclass
class Batch:
    """A record batch at its place."""

    base: int
    after: int
    """Offset after its last record."""
    data: bytes
    producer: int
    control: bool


@dataclass
class Log:
    """The log of one partition."""

    topic: str
    number: int
    append_time: bool = False
    """Whether the broker sets the timestamps (LogAppendTime)."""
    max_bytes: int = 1 << 23
    start: int = 0
    end: int = 0
    batches: list[Batch] = field(default_factory=list)
    """All that was ever written: `start` says from where on it can be read."""
    open: dict[int, int] = field(default_factory=dict)
    """Producers with a transaction that has no marker yet, and its first offset here."""
    aborted: list[tuple[int, int, int]] = field(default_factory=list)
    """Producer, first offset, offset of the marker."""
    on_change: list[Callable[[], None]] = field(default_factory=list)
    """Fetches that wait; told once."""
    _sequences: dict[tuple[int, int], deque[tuple[int, int, int]]] = field(default_factory=dict)

    @property
    def stable(self) -> int:
        """The last stable offset: before the oldest transaction that is not decided."""
        return min(self.open.values(), default=self.end)

    def append(self, data: bytes, now_ms: int) -> int:
        """Take a batch; returns its first offset. Raises Refused for a sequence number that does not follow."""
        _, length, _, magic, crc, attributes, delta, first_ms, most_ms, producer, epoch, sequence, count = HEAD.unpack_from(
            data
        )
        if producer >= 0 and sequence >= 0:
            seen = self._sequences.setdefault((producer, epoch), deque(maxlen=SEEN_BATCHES))
            for known, last, base in seen:
                if (known, last) == (sequence, sequence + delta):
                    return base
            if sequence != (seen[-1][1] + 1 if seen else 0):
                raise Refused(OUT_OF_ORDER)
            seen.append((sequence, sequence + delta, self.end))
        if attributes & TRANSACTIONAL and not attributes & CONTROL:
            self.open.setdefault(producer, self.end)
        changed = bytearray(data)
        if self.append_time:
            attributes, most_ms = attributes | APPEND_TIME, now_ms
            HEAD.pack_into(
                changed,
                0,
                self.end,
                length,
                0,
                magic,
                crc,
                attributes,
                delta,
                first_ms,
                most_ms,
                producer,
                epoch,
                sequence,
                count,
            )
            struct.pack_into(">I", changed, 17, calc_crc32c(bytes(changed[SUMMED:])))
        else:
            struct.pack_into(">qii", changed, 0, self.end, length, 0)
        base = self.end
        self.end += delta + 1
        self.batches.append(Batch(base, self.end, bytes(changed), producer, bool(attributes & CONTROL)))
        self.changed()
        return base

    def mark(self, producer: int, epoch: int, *, commit: bool, now_ms: int) -> None:
        """Write the marker that ends a producer's transaction here."""
        first = self.open.get(producer)
        if first is not None and not commit:
            self.aborted.append((producer, first, self.end))
        self.append(_marker(producer, epoch, commit=commit, now_ms=now_ms), now_ms)
        self.open.pop(producer, None)
        self.changed()

    def changed(self) -> None:
        """Tell the fetches that wait."""
        if self.on_change:
            waiting, self.on_change = self.on_change, []
            for tell in waiting:
                tell()

    def cut(self, offset: int) -> None:
        """Retention: nothing before this offset is there any more."""
        self.start = max(self.start, min(offset, self.end))

    def read(
        self, offset: int, most: int, *, committed: bool, cut_at: int | None = None
    ) -> tuple[bytes, list[tuple[int, int]]]:
        """Whole batches from the one with `offset` on, the first one in any case, and the transactions aborted in them.

        `cut_at`: bytes after the first batch at which the answer is cut off, in the middle of a batch. Raises Refused.
        """
        if not self.start <= offset <= self.end:
            raise Refused(OUT_OF_RANGE)
        return self.archived(offset, most, committed=committed, cut_at=cut_at)

    def archived(
        self, offset: int, most: int, *, committed: bool, cut_at: int | None = None
    ) -> tuple[bytes, list[tuple[int, int]]]:
        """What `read` gives, and also what retention has deleted."""
        until = self.stable if committed else self.end
        found: list[bytes] = []
        size, after = 0, offset
        for batch in self.batches:
            if batch.after <= offset:
                continue
            if batch.base >= until or (found and size + len(batch.data) > most):
                break
            found.append(batch.data)
            size += len(batch.data)
            after = batch.after
        data = b"".join(found)
        if cut_at is not None and len(found) > 1:
            data = data[: len(found[0]) + cut_at % (size - len(found[0]))]
        hidden = [(producer, first) for producer, first, last in self.aborted if last >= offset and first < after]
        return data, hidden


def records(
    values: Sequence[tuple[bytes | None, bytes | None, int]], producer: int = -1, epoch: int = -1, sequence: int = -1
) -> bytes:
    """Make a batch of (key, value, timestamp); with a producer it belongs to a transaction."""
    builder = DefaultRecordBatchBuilder(2, 0, int(producer >= 0), producer, epoch, sequence, 1 << 24)
    for place, (key, value, timestamp) in enumerate(values):
        builder.append(place, timestamp, key, value, [])
    return bytes(builder.build())


def _marker(producer: int, epoch: int, *, commit: bool, now_ms: int) -> bytes:
    builder = DefaultRecordBatchBuilder(2, 0, 1, producer, epoch, -1, 1 << 10)
    builder.append(0, now_ms, struct.pack(">hh", 0, int(commit)), struct.pack(">hi", 0, 0), [])
    made = bytearray(builder.build())
    (attributes,) = struct.unpack_from(">h", made, 21)
    struct.pack_into(">h", made, 21, attributes | CONTROL | TRANSACTIONAL)
    struct.pack_into(">I", made, 17, calc_crc32c(bytes(made[SUMMED:])))
    return bytes(made)
