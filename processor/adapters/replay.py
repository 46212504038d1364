"""Sends an archive through the same core as `run`, and writes what it decides as JSON Lines.

Owns the order of an archive, the form of its output lines, and what each tolerance would have changed. It decides nothing
itself: one partition's state for each topic and partition of the archive, fed in the order of the lines.
"""

import base64
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice
from typing import IO, Any, NamedTuple

from processor.adapters.archive import ArchivedRecord
from processor.core.json_text import encode
from processor.core.outgoing import Outgoing, Route
from processor.core.pipeline import Partition

RUN_RECORDS = 256
"""Records fed at once: enough to be quick, few enough that a progress bar moves."""

PLACES = {
    "callgate-topic": "topic",
    "callgate-partition": "partition",
    "callgate-offset": "offset",
    "callgate-timestamp": "ts",
}
"""Headers of a dead letter that say where it was read, and their names in a line of `kcat -J`."""

MakePartition = Callable[[str, int], Partition]


def replay(
    records: Iterable[ArchivedRecord],
    make_partition: MakePartition,
    now_ms: Callable[[], int],
    *,
    keep_open: bool = False,
    suggestions: "Suggestions | None" = None,
) -> Iterator[list[Outgoing]]:
    """Yield what is decided, in order; at the end what is still open has fallen silent for good, unless `keep_open`.

    `suggestions` reads along, where it is given.
    """
    core = _Through(make_partition)
    for run in _runs(records):
        decided = core.feed(run, now_ms())
        if suggestions is not None:
            suggestions.feed(run, decided, now_ms())
        yield decided
    if not keep_open:
        for decided in core.end(now_ms()):
            if suggestions is not None:
                suggestions.note(decided)
            yield decided
        if suggestions is not None:
            suggestions.end(now_ms())


def _runs(records: Iterable[ArchivedRecord]) -> Iterator[list[ArchivedRecord]]:
    """Records of one partition that follow one another, up to so many."""
    left = iter(records)
    while some := list(islice(left, RUN_RECORDS)):
        if len({(record.topic, record.partition) for record in some}) == 1:
            yield some
        else:
            for _, run in groupby(some, key=lambda record: (record.topic, record.partition)):
                yield list(run)


class _Through:
    """The partitions of one core, made as the archive names them."""

    def __init__(self, make: MakePartition) -> None:
        self._make = make
        self._partitions: dict[tuple[str, int], Partition] = {}

    def feed(self, run: Sequence[ArchivedRecord], now_ms: int) -> list[Outgoing]:
        """Decide records of one partition."""
        name = run[0].topic, run[0].partition
        partition = self._partitions.get(name)
        if partition is None:
            partition = self._partitions[name] = self._make(*name)
            partition.resume(None, run[0].offset)
        partition.feed(run, now_ms)
        return partition.take()

    def end(self, now_ms: int) -> Iterator[list[Outgoing]]:
        """What is open has fallen silent for good."""
        for partition in self._partitions.values():
            partition.end_of_archive(now_ms)
            yield partition.take()


class Suggestion(NamedTuple):
    """What one tolerance more would have changed in an archive."""

    tolerance: str
    approved: int
    """Calls that it would have let through."""
    lost: int
    """Calls that it would have rejected although they are approved: tolerances also change which events belong together."""


class Suggestions:
    """Reads an archive along with the core, once for each tolerance that is not in force, each of them added by itself.

    Half of the tolerances change which events make a call, so the gate cannot be asked about a rejected call alone, and the
    records of a call cannot be read again by themselves: only the whole archive, read with the tolerance, tells. It costs what
    the replay costs once more for each tolerance, no memory that grows with the archive, and one pass over the input.
    """

    def __init__(self, makes: Mapping[str, MakePartition]) -> None:
        """`makes`: for each tolerance what makes a partition that has it too."""
        self._cores = {name: _Through(make) for name, make in makes.items()}
        self._differences: dict[str, Counter[str]] = {name: Counter() for name in makes}
        """By tolerance: approvals with it less those without, by decision id. What is alike is let go."""

    def feed(self, run: Sequence[ArchivedRecord], decided: Iterable[Outgoing], now_ms: int) -> None:
        """Read the records of one run; `decided` is what was made of them without."""
        self.note(decided)
        for name, core in self._cores.items():
            self._count(name, core.feed(run, now_ms), 1)

    def note(self, decided: Iterable[Outgoing]) -> None:
        """Take what the core decided."""
        approved = [each for each in decided if each.route is Route.APPROVED]
        for name in self._cores:
            self._count(name, approved, -1)

    def end(self, now_ms: int) -> None:
        """The archive has ended."""
        for name, core in self._cores.items():
            for decided in core.end(now_ms):
                self._count(name, decided, 1)

    def found(self) -> list[Suggestion]:
        """Tolerances that would have let something through, the most useful one first."""
        found = [
            Suggestion(name, sum(n for n in counts.values() if n > 0), -sum(n for n in counts.values() if n < 0))
            for name, counts in self._differences.items()
        ]
        return sorted((each for each in found if each.approved), key=lambda each: -each.approved)

    def _count(self, name: str, decided: Iterable[Outgoing], step: int) -> None:
        counts = self._differences[name]
        for each in decided:
            if each.route is Route.APPROVED:
                which: str = json.loads(each.value or b"{}")["id"]
                counts[which] += step
                if not counts[which]:
                    del counts[which]


class Report:
    """Counts what came out, for the summary."""

    def __init__(self) -> None:
        self.decisions: Counter[str] = Counter()
        """By reason."""
        self.dead_letters: Counter[str] = Counter()
        """By cause."""

    def add(self, outgoing: Outgoing) -> None:
        """Count one."""
        (self.dead_letters if outgoing.route is Route.DEAD_LETTER else self.decisions)[outgoing.reason] += 1


def write(outgoing: Iterable[Outgoing], decisions: IO[bytes] | None, dead_letters: IO[bytes] | None) -> None:
    """Write one decision, or one dead letter, a line; what has no file is dropped."""
    for each in outgoing:
        if each.route is Route.DEAD_LETTER:
            if dead_letters is not None:
                dead_letters.write(dead_letter_line(each))
        elif decisions is not None:
            decisions.write(each.value or b"null")
            decisions.write(b"\n")


def dead_letter_line(outgoing: Outgoing) -> bytes:
    """Write a dead letter as `kcat -J` would: key, payload and headers as they go to the topic, and the cause.

    Bytes that are no text go into `payload_base64`, so that the line can be replayed.
    """
    line: dict[str, Any] = {"cause": outgoing.reason}
    texts = [(name, None if value is None else value.decode("utf-8", "replace")) for name, value in outgoing.headers]
    # Ours come last: a record may have brought some of the same names along.
    places = {PLACES[name]: text for name, text in texts if name in PLACES and text is not None}
    line |= {name: text if name == "topic" else int(text) for name, text in places.items()}
    line["headers"] = [part for pair in texts for part in pair]
    _put(line, "key", outgoing.key)
    _put(line, "payload", outgoing.value)
    return encode(line) + b"\n"


def _put(line: dict[str, Any], name: str, content: bytes | None) -> None:
    try:
        line[name] = None if content is None else content.decode("utf-8")
    except UnicodeDecodeError:
        line[f"{name}_base64"] = base64.b64encode(content or b"").decode("ascii")
