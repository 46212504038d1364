"""One input partition: decode through decide, in order, over plain data.

`Partition` is all that adapters need. It never blocks, never reads a clock, and says with every commit point how a successor
rebuilds the same state.
"""

from collections.abc import Sequence
from typing import Protocol

from processor.core.candidate import Candidate
from processor.core.decide import Outgoing
from processor.core.limits import Bounds
from processor.core.offsets import Commit
from processor.core.signals import Tally


class Record(Protocol):
    """What is read of an input record: aiokafka's ConsumerRecord fits as it is, and so does an archived line."""

    offset: int
    timestamp: int
    """Milliseconds since the epoch."""
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]


class Judge(Protocol):
    """Gate and decide in one: a candidate to the record that is published for it."""

    def __call__(self, candidate: Candidate, topic: str, partition: int, now_ms: int) -> Outgoing:
        """Judge one call. Never raises for anything that is in the candidate."""
        ...


class Partition:
    """The state of one input partition, and the decisions that fall out of it.

    Life: construct; `resume` once, with what was committed; `feed` the records from W on, `reached` after each fetch; `idle`
    when `idle_due` has passed and the partition is read to its end. `take` hands over what must be published in the same
    transaction as `commit_point()`.
    """

    topic: str
    number: int
    position: int
    """P: next offset to decide (or, in a rebuild, to read)."""
    rebuilding: bool
    """True until the position reached the committed P: nothing is published or counted, idle moves are refused."""
    tally: Tally
    """Counts since the owner last replaced it."""

    def __init__(self, topic: str, number: int, bounds: Bounds, judge: Judge) -> None:
        raise NotImplementedError

    def resume(self, commit: Commit | None, offset: int) -> None:
        """Begin at a committed point, or afresh at `offset` where there is none."""

    def feed(self, records: Sequence[Record], now_ms: int) -> None:
        """Read records in order of offset; decisions collect for `take`. `now_ms` is only written into decisions."""

    def reached(self, position: int, now_ms: int) -> None:
        """Tell that everything before `position` has been fed: transaction markers leave gaps behind the last record.

        Ends the rebuild where it has reached P.
        """

    def idle_due(self) -> int | None:
        """Wall-clock time in ms from which an idle move would expire or forget something; None: nothing is known."""

    def idle(self, wall_ms: int, now_ms: int) -> bool:
        """Move the watermark by the wall clock: only when the partition is read to its end and has been quiet.

        False where it had no effect (nothing to expire or forget, or no room left in E).
        """

    def end_of_archive(self, now_ms: int) -> None:
        """Everything open has fallen silent for good (replay)."""

    def take(self) -> list[Outgoing]:
        """What is to be published since the last call, in order."""
        raise NotImplementedError

    def commit_point(self) -> Commit:
        """W, P, T, E and settings of the state as it is now."""
        raise NotImplementedError

    def counts(self) -> dict[str, int]:
        """Gauges: streams, open responses, known responses, open calls, buffered bytes."""
        raise NotImplementedError

    @property
    def pending_bounds(self) -> bool:
        """True where new settings wait for room in the metadata (logged by the owner)."""
        raise NotImplementedError
