"""Dead letters on their way back: what one holds, whether it moves, and which were moved already.

Owns the way back from `outgoing.dead_letter`, the filter, the loop guard, and the text in which a commit remembers what was
moved. It reads no clock and no topic.
"""

import base64
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Final, Self

from msgspec import Struct

from processor.core.outgoing import Header, Record
from processor.core.reasons import Explained

ADDED: Final = (
    "callgate-cause",
    "callgate-detail",
    "callgate-topic",
    "callgate-partition",
    "callgate-offset",
    "callgate-timestamp",
)
"""Headers that a dead letter has behind those of the record as it was read, in this order."""
ATTEMPTS: Final = "callgate-attempts"
"""Header of a record that was redriven: how often. It stays with the record, also where that becomes a dead letter again."""
MARK: Final = "callgate-redrive/1"
"""Begins the metadata of a commit; with another number it has another form."""
MAX_METADATA_BYTES: Final = 4_000
"""Kafka's own default takes 4,096, and more is fatal to the producer."""
MAX_GAP_BITS: Final = MAX_METADATA_BYTES * 8
"""Offsets from the first letter left to the last one moved, beyond which one bit for each cannot fit."""


class Fate(Explained):
    """What becomes of a dead letter."""

    MOVES = "moves", "Goes back to the input."
    MOVED_BEFORE = "moved before", "An earlier redrive has moved it."
    NOT_CHOSEN = "not chosen", "Not asked for: cause, time or offset."
    TRIED = "tried enough", "It has been redriven `--max-attempts` times, and came back each time."
    TOO_LARGE = "too large", "With one more header it is more than the input topic takes."
    OTHER_TOPIC = "other topic", "It was not read from the input topic of these settings."
    NO_PARTITION = "no partition", "The input topic does not have its partition."
    FOREIGN = "foreign", "callgate did not write it: its headers are missing."


class DeadLetter(Struct, frozen=True, gc=False):
    """The record as it was read, and why it could not be."""

    key: bytes | None
    value: bytes | None
    headers: list[Header]
    """Its own, without those that callgate added."""
    timestamp: int
    """Milliseconds since the epoch, of the record itself; -1 where it had none."""
    cause: str
    topic: str
    partition: int
    attempts: int
    """How often it was redriven."""

    def again(self) -> list[Header]:
        """Headers with which it goes back: its own, and one more attempt."""
        return [*self.headers, (ATTEMPTS, str(self.attempts + 1).encode())]


class Choice(Struct, frozen=True):
    """Which dead letters move."""

    topic: str
    """Input topic: those of another are left."""
    partitions: int
    """How many it has."""
    causes: frozenset[str] = frozenset()
    """Empty: all."""
    since_ms: int | None = None
    """Timestamp of the record itself, from here on."""
    until_ms: int | None = None
    """And before here."""
    first: int | None = None
    """Offset of the dead letter, from here on."""
    last: int | None = None
    """Up to here, this one too."""
    max_attempts: int = 3


def read(record: Record) -> DeadLetter | None:
    """Take a dead letter apart; None where callgate did not write it."""
    headers = list(record.headers)
    own, added = headers[: -len(ADDED)], headers[-len(ADDED) :]
    if tuple(name for name, _ in added) != ADDED:
        return None
    said = {name: (value or b"").decode("utf-8", "replace") for name, value in added}
    partition, timestamp = _number(said["callgate-partition"]), _number(said["callgate-timestamp"])
    if partition is None or partition < 0 or timestamp is None:
        return None
    attempts = 0
    for name, value in own:
        if name == ATTEMPTS:
            # What somebody else wrote there does not count, and does not stay.
            attempts = max(attempts, _number((value or b"").decode("utf-8", "replace")) or 0)
    return DeadLetter(
        key=record.key,
        value=record.value,
        headers=[header for header in own if header[0] != ATTEMPTS],
        timestamp=timestamp,
        cause=said["callgate-cause"],
        topic=said["callgate-topic"],
        partition=partition,
        attempts=attempts,
    )


def _number(text: str) -> int | None:
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdigit() and len(digits) <= 18 else None


def judge(letter: DeadLetter | None, offset: int, choice: Choice) -> Fate:
    """Say what becomes of a dead letter at an offset of its topic, by all that can be known without the broker."""
    if letter is None:
        return Fate.FOREIGN
    if letter.topic != choice.topic:
        return Fate.OTHER_TOPIC
    chosen = (
        (not choice.causes or letter.cause in choice.causes)
        and (choice.since_ms is None or letter.timestamp >= choice.since_ms)
        and (choice.until_ms is None or letter.timestamp < choice.until_ms)
        and (choice.first is None or offset >= choice.first)
        and (choice.last is None or offset <= choice.last)
    )
    if not chosen:
        return Fate.NOT_CHOSEN
    if letter.attempts >= choice.max_attempts:
        return Fate.TRIED
    return Fate.MOVES if letter.partition < choice.partitions else Fate.NO_PARTITION


class Moved:
    """Which offsets of one partition of the dead-letter topic are done with; travels in the redrive's own commits.

    Everything before `offset` is, and so are the spans after it: a filter leaves letters behind for another run.
    """

    def __init__(self, offset: int, spans: Sequence[tuple[int, int]] = ()) -> None:
        self.offset = offset
        self._spans = list(spans)

    def __contains__(self, offset: int) -> bool:
        if offset < self.offset:
            return True
        place = bisect_right(self._spans, (offset, MAX_OFFSET)) - 1
        return place >= 0 and offset < self._spans[place][1]

    def add(self, first: int, after: int) -> None:
        """Note that the offsets from `first` to before `after` are done with."""
        start, end = self._spans[-1] if self._spans else (self.offset, self.offset)
        # In order, as they are read: the usual case, and the cheap one.
        if first > end:
            self._spans.append((first, after))
            return
        if self._spans and first >= start:
            self._spans[-1] = start, max(after, end)
            return
        spans = [span for span in self._spans if span[1] < first or span[0] > after]
        near = [span for span in self._spans if span[1] >= first and span[0] <= after]
        spans.append((min([first, *(a for a, _ in near)]), max([after, *(b for _, b in near)])))
        spans.sort()
        while spans and spans[0][0] <= self.offset:
            self.offset = max(self.offset, spans.pop(0)[1])
        self._spans = spans

    def encode(self) -> str | None:
        """Write it as a commit's metadata, in the shorter of two ways; None where it has no room."""
        ways = [b"s" + base64.b85encode(_lengths(self.offset, self._spans))]
        if self._spans and self._spans[-1][1] - self.offset <= MAX_GAP_BITS:
            ways.append(b"b" + base64.b85encode(_bits(self.offset, self._spans)))
        text = f"{MARK} {self.offset} {min(ways, key=len).decode()}"
        return text if len(text) <= MAX_METADATA_BYTES else None

    @classmethod
    def decode(cls, offset: int, metadata: str | None) -> Self:
        """Read a commit; metadata that is not of this offset (somebody reset it) counts no more: all from there on is new."""
        mark, _, rest = (metadata or "").partition(" ")
        own, _, text = rest.partition(" ")
        if mark != MARK or _number(own) != offset or not text:
            return cls(offset)
        try:
            packed = base64.b85decode(text[1:])
        except ValueError:
            return cls(offset)
        return cls(offset, list(_from_lengths(offset, packed) if text[0] == "s" else _from_bits(offset, packed)))


MAX_OFFSET: Final = 1 << 62


def _lengths(offset: int, spans: Sequence[tuple[int, int]]) -> bytes:
    """Gap, length, gap, length: numbers of seven bits a byte, the last one of each below 128."""
    packed = bytearray()
    for first, after in spans:
        for number in (first - offset, after - first):
            rest = number
            while rest >= 0x80:
                packed.append(rest & 0x7F | 0x80)
                rest >>= 7
            packed.append(rest)
        offset = after
    return bytes(packed)


def _from_lengths(offset: int, packed: bytes) -> Iterator[tuple[int, int]]:
    numbers, number, shift = [], 0, 0
    for byte in packed:
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            numbers.append(number)
            number = shift = 0
    for gap, length in zip(numbers[::2], numbers[1::2], strict=False):
        yield offset + gap, offset + gap + length
        offset += gap + length


def _bits(offset: int, spans: Sequence[tuple[int, int]]) -> bytes:
    bits = 0
    for first, after in spans:
        bits |= ((1 << (after - first)) - 1) << (first - offset)
    return bits.to_bytes((bits.bit_length() + 7) // 8, "little")


def _from_bits(offset: int, packed: bytes) -> Iterator[tuple[int, int]]:
    bits = int.from_bytes(packed, "little")
    while bits:
        gap = (bits & -bits).bit_length() - 1
        bits >>= gap
        length = (~bits & (bits + 1)).bit_length() - 1
        bits >>= length
        yield offset + gap, offset + gap + length
        offset += gap + length
