"""The decision record: what is published for one call, and its deterministic id (design section 2, rule 32)."""

from enum import StrEnum

from msgspec import Struct


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
    headers: list[tuple[str, bytes | None]]
    reason: str
    """The decision's reason, or the dead letter's cause: for metrics and replay."""
