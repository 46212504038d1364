"""What the runner needs from its surroundings, as protocols: a log, a clock, hooks, publishers.

Owns the promises between the parts: for every method whether it may block, what it raises, and what holds after
cancellation. It holds no code.
"""

from collections.abc import Sequence
from typing import Any, Protocol

from processor.core.offsets import Commit
from processor.core.outgoing import Outgoing
from processor.core.pipeline import Partition


class Log(Protocol):
    """A structured log: an event name and fields. Never blocks, never raises. A structlog logger fits."""

    def info(self, event: str, **fields: Any) -> Any:
        """Say what happened, for the record."""

    def warning(self, event: str, **fields: Any) -> Any:
        """Say what was cured by itself, but should not be frequent."""

    def error(self, event: str, **fields: Any) -> Any:
        """Say what a person must act on."""


class Clock(Protocol):
    """Both clocks. Never block, never raise."""

    def wall_ms(self) -> int:
        """Milliseconds since the epoch."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go back."""
        ...


class Hooks(Protocol):
    """What observers are told, at most once a batch. Must neither block nor raise."""

    def on_batch(self, partition: Partition) -> None:
        """A batch was fed: `partition.tally` may be flushed."""

    def on_commit(self, number: int, records: int, seconds: float) -> None:
        """A transaction with so many records was committed, and took so long."""

    def on_failure(self, number: int, kind: str) -> None:
        """A partition lost its transaction or its ownership; `kind` is the class name of the error."""

    def on_rebuilt(self, number: int, seconds: float) -> None:
        """A partition went live, so long after it was assigned."""


class Publisher(Protocol):
    """The only seam through which one partition's decisions and offsets go out.

    Life: `start` once, `publish` any number of times one after the other, `close` once. After any exception only `close` may
    be called.
    """

    fenced: bool
    """Whether a successor's start ends this one: then a late commit can do no harm."""

    async def start(self) -> None:
        """Fence the last owner and settle its pending transaction. Raises Retryable, Fenced, Fatal."""

    async def publish(self, outgoing: Sequence[Outgoing], commit: Commit) -> None:
        """Make the records and the commit visible at once, or not at all.

        Returns after the broker has acknowledged the commit. Raises Retryable, Fenced, Poisoned, Fatal; the fate of the
        commit is then unknown. The same holds after cancellation.
        """

    async def close(self) -> None:
        """Abort what was begun and let go of the connections, within a few seconds. Never raises."""
