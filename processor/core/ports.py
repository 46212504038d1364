"""What a partition needs from outside, as protocols: records to read, and a judge for calls."""

from collections.abc import Sequence
from typing import Any, Protocol

from processor.core.candidate import Candidate
from processor.core.events import Unreadable
from processor.core.outgoing import Outgoing
from processor.core.signals import Tally


class Record(Protocol):
    """What is read of an input record: aiokafka's ConsumerRecord fits as it is, and so does an archived line."""

    @property
    def offset(self) -> int:
        """Its place in the partition."""

    @property
    def timestamp(self) -> int:
        """Milliseconds since the epoch."""

    @property
    def key(self) -> bytes | None:
        """Names the stream."""

    @property
    def value(self) -> bytes | None:
        """One of the forms of section 3 of the design."""

    @property
    def headers(self) -> Sequence[tuple[str, bytes | None]]:
        """In order; names may repeat."""


class Judge(Protocol):
    """Gate and decide in one: what is published for a call, and for a record that cannot be read."""

    tally: Tally

    def __call__(self, candidate: Candidate, topic: str, partition: int, now_ms: int) -> Outgoing:
        """Judge one call. Never raises for anything that is in the candidate."""
        ...

    def dead_letter(self, record: Any, unreadable: Unreadable, topic: str, partition: int) -> Outgoing:
        """Keep a record that cannot be read, with the cause."""
        ...
