"""Instants as text: milliseconds since the epoch to RFC 3339 in UTC.

Owns that format. It reads no clock.
"""

from datetime import UTC, datetime, timedelta
from typing import Final

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_MS: Final = 253_402_300_799_999


class Stamps:
    """Formats instants; the last text is kept, since records come in order of time."""

    def __init__(self) -> None:
        self._ms = 0
        self._stamp = "1970-01-01T00:00:00.000Z"
        self._second = 0
        self._text = "1970-01-01T00:00:00"

    def __call__(self, ms: int) -> str | None:
        """Text of an instant, such as `2026-04-24T12:00:00.123Z`; None for what no calendar has (Kafka's -1 among it)."""
        if ms == self._ms:
            return self._stamp
        second, rest = divmod(ms, 1000)
        if second != self._second:
            if not 0 <= ms <= _LAST_MS:
                return None
            self._second = second
            self._text = (_EPOCH + timedelta(seconds=second)).strftime("%Y-%m-%dT%H:%M:%S")
        self._ms = ms
        self._stamp = f"{self._text}.{rest:03d}Z"
        return self._stamp
