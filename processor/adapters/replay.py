"""Sends an archive through the same core as `run`, and writes what it decides as JSON Lines.

Owns the order of an archive and the form of its output lines. It decides nothing itself: one partition's state for each topic
and partition of the archive, fed in the order of the lines.
"""

import base64
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import IO, Any

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
    records: Iterable[ArchivedRecord], make_partition: MakePartition, now_ms: Callable[[], int], *, keep_open: bool = False
) -> Iterator[list[Outgoing]]:
    """Yield what is decided, in order; at the end what is still open has fallen silent for good, unless `keep_open`."""
    partitions: dict[tuple[str, int], Partition] = {}
    run: list[ArchivedRecord] = []
    for record in records:
        if run and (len(run) >= RUN_RECORDS or (record.topic, record.partition) != (run[0].topic, run[0].partition)):
            yield _feed(partitions, run, make_partition, now_ms())
            run = []
        run.append(record)
    if run:
        yield _feed(partitions, run, make_partition, now_ms())
    if not keep_open:
        for partition in partitions.values():
            partition.end_of_archive(now_ms())
            yield partition.take()


def _feed(
    partitions: dict[tuple[str, int], Partition], run: list[ArchivedRecord], make_partition: MakePartition, now_ms: int
) -> list[Outgoing]:
    name = run[0].topic, run[0].partition
    partition = partitions.get(name)
    if partition is None:
        partition = partitions[name] = make_partition(*name)
        partition.resume(None, run[0].offset)
    partition.feed(run, now_ms)
    return partition.take()


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
