"""The records to publish: their routes, keys and headers, parts of their values, and dead letters whole.

Owns the headers of the output topics (design section 2). It encodes no decision.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Final, Protocol, TypeAlias

from msgspec import Struct

from processor.core.candidate import Candidate
from processor.core.events import Unreadable
from processor.core.reasons import Reason

MAX_HEADER_BYTES: Final = 1024
"""Bytes of a header made from a call's own text; the value holds it in full."""


Header: TypeAlias = tuple[str, bytes | None]
"""One header of a record."""


class Route(StrEnum):
    """Which output topic."""

    APPROVED = "approved"
    REJECTED = "rejected"
    DEAD_LETTER = "dead_letter"


class Outgoing(Struct, gc=False):
    """One record to publish, encoded."""

    route: Route
    key: bytes | None
    value: bytes | None
    headers: list[Header]
    reason: str
    """The decision's reason, or the dead letter's cause: for metrics and replay."""


class Source(Struct, frozen=True, gc=False):
    """Where a call was read."""

    topic: str
    partition: int
    first_offset: int
    last_offset: int


class PortableItem(Struct, frozen=True, omit_defaults=True, gc=False):
    """The approved call, ready to be sent back with its `function_call_output`."""

    type: str
    id: str | None = None
    call_id: str | None = None
    name: str | None = None
    namespace: str | None = None
    arguments: str | None = None
    status: str | None = None


class Record(Protocol):
    """What a dead letter keeps of an input record."""

    @property
    def offset(self) -> int:
        """Where it was read."""

    @property
    def timestamp(self) -> int:
        """Milliseconds since the epoch."""

    @property
    def key(self) -> bytes | None:
        """As read."""

    @property
    def value(self) -> bytes | None:
        """As read."""

    @property
    def headers(self) -> Sequence[Header]:
        """As read."""


JSON: Final[Header] = ("content-type", b"application/json")
APPROVED: Final[Header] = ("decision", b"approved")
REJECTED: Final[Header] = ("decision", b"rejected")
REASONS: Final[dict[Reason, Header]] = {reason: ("reason", reason.value.encode()) for reason in Reason}
"""Headers that many decisions share: made once, ten times as fast as made for each."""


def dead_letter(record: Record, unreadable: Unreadable, topic: str, partition: int) -> Outgoing:
    """The record as it was read, with the cause in headers; `topic` and `partition` are those it was read from."""
    headers = [
        *record.headers,
        ("callgate-cause", unreadable.cause.value.encode()),
        ("callgate-detail", header_bytes(unreadable.detail)),
        ("callgate-topic", topic.encode("utf-8", "backslashreplace")),
        ("callgate-partition", str(partition).encode()),
        ("callgate-offset", str(record.offset).encode()),
        ("callgate-timestamp", str(record.timestamp).encode()),
    ]
    return Outgoing(Route.DEAD_LETTER, record.key, record.value, headers, unreadable.cause.value)


def decision_headers(call: Candidate, reason: Reason, *, approved: bool) -> list[Header]:
    """Headers of a decision: what a consumer filters by, and the trace."""
    headers: list[Header] = [APPROVED if approved else REJECTED, REASONS[reason]]
    if call.call_id is not None:
        headers.append(("call_id", header_bytes(call.call_id)))
    if isinstance(call.name, str):
        headers.append(("name", header_bytes(call.name)))
    headers.append(JSON)
    if call.traceparent is not None:
        headers.append(("traceparent", call.traceparent))
    if call.tracestate is not None:
        headers.append(("tracestate", call.tracestate))
    return headers


def header_bytes(text: str) -> bytes:
    """A text as a header value: never fails, never longer than the bound."""
    raw = text.encode("utf-8", "backslashreplace")
    return raw if len(raw) <= MAX_HEADER_BYTES else raw[:MAX_HEADER_BYTES].decode("utf-8", "ignore").encode()


def key_bytes(stream: str | None) -> bytes | None:
    """The key back as bytes; `surrogateescape` and lone surrogates go back to what they were."""
    if stream is None:
        return None
    try:
        return stream.encode()
    except UnicodeEncodeError:
        try:
            return stream.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            return stream.encode("utf-8", "surrogatepass")
