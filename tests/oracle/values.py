"""What a partition is to the oracle: its settings, what it remembers, and the lines that it writes."""

from dataclasses import dataclass, field
from typing import Any

from tests.factories import Json
from tests.oracle.events import Response
from tests.oracle.use import Token
from tests.oracle.verdict import Toolset


@dataclass(frozen=True)
class Settings:
    """The settings that verdicts and state depend on, by the names of the design."""

    release: str = "response"
    stream_timeout_ms: int = 20 * 60_000
    closed_memory_ms: int = 2 * 60_000
    max_calls: int = 128
    max_argument_bytes: int = 1 << 20
    max_response_bytes: int = 8 << 20
    max_streams: int = 100_000
    tolerate: tuple[str, ...] = ()
    key_header: str = ""


@dataclass(frozen=True)
class Decision:
    """One line of the expected output."""

    offset: int
    """Of the record that released it; the position where nothing but the clock did."""
    stream: str | None
    response_id: str | None
    call_id: str | None
    reason: str
    arguments: Any = None
    """The exact text, where approved."""


DEAD = "dead_letter"
"""Reason of a line that stands for a dead letter."""


@dataclass
class Sorted:
    """A decision with its place in the log."""

    token: Token
    decision: Decision


@dataclass
class Log:
    """A partition, read once from start to end."""

    settings: Settings
    toolset: Toolset
    watermark: int = 0
    place: int = 0
    """Place of the record that is read, counted from 0."""
    position: int = 0
    """Its offset."""
    open: dict[str, Response] = field(default_factory=dict)
    known: dict[str, list[Response]] = field(default_factory=dict)
    """Closed and not forgotten, under their key; the one with the latest record last."""
    requests: dict[str, tuple[Json, int, int]] = field(default_factory=dict)
    keys: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Keys with a record lately: (place of the last, known until)."""
    responses: list[Response] = field(default_factory=list)
    lines: list[Sorted] = field(default_factory=list)
    offsets: dict[int, int] = field(default_factory=dict)
