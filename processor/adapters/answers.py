"""Large answers of a broker, put together in one copy.

Owns how the consumer's connections collect the bytes of one answer. It never looks into an answer, and asks for nothing.

The client waits for an answer of megabytes in an `asyncio.StreamReader`. That appends each part that the socket brings to a
buffer which has to grow, wakes the reader and stops and starts the socket for each, and copies everything out again at the end.
Here the parts are kept as they came until all are there, and joined once. As much is in memory at a time, or a little less.

No class of the client or of asyncio is changed: the reader of a connection of the one client that is given to `install` is made
one of a class derived from its own. Where a connection is not as it was in aiokafka 0.14, or the reader not as asyncio has it,
it stays as it is.
"""

import asyncio
from typing import Any

READER = ("_buffer", "_eof", "_exception", "_waiter", "_wait_for_data", "_wakeup_waiter")
"""What is used of asyncio's reader; all must be there."""
LARGE = 64 << 10
"""Bytes from which on an answer is worth it."""


class _Reader(asyncio.StreamReader):
    """A reader that keeps the parts of a large answer as they come."""

    _parts: "list[bytes] | None" = None
    """What is there of the answer that is waited for; None while asyncio's own way is gone."""
    _missing = 0
    """Bytes of it that are still to come."""

    def feed_data(self, data: Any) -> None:
        """Take what the socket brought: it may come several times before the reader wakes, and belong to the next answer."""
        parts = self._parts
        if parts is None or not self._missing:
            super().feed_data(data)
            return
        own, rest = data[: self._missing], data[self._missing :]
        parts.append(own)
        self._missing -= len(own)
        if not self._missing:
            if rest:
                super().feed_data(rest)
            self._wakeup_waiter()  # type: ignore[attr-defined]

    async def readexactly(self, n: int) -> bytes:
        """Wait for so many bytes. Raises IncompleteReadError where the connection ends before, or what it broke with."""
        buffer: bytearray = self._buffer  # type: ignore[attr-defined]
        if n < LARGE or n <= len(buffer):
            return await super().readexactly(n)
        parts = [bytes(buffer)]
        self._parts, self._missing = parts, n - len(buffer)
        buffer.clear()
        try:
            while self._missing and not self._ended():
                await self._wait_for_data("readexactly")  # type: ignore[attr-defined]
        finally:
            self._parts = None
            if self._missing:
                # Whoever reads next finds everything where asyncio's own way would have left it.
                buffer[:0] = b"".join(parts)
        return await super().readexactly(n) if self._missing else b"".join(parts)

    def _ended(self) -> bool:
        return bool(self._eof) or self._exception is not None  # type: ignore[attr-defined]


def install(client: Any) -> None:
    """Let the connections of a client that has not connected yet read so."""
    connect = getattr(client, "_get_conn", None)
    if connect is None:
        return

    async def connect_and_prepare(*arguments: Any, **options: Any) -> Any:
        connection = await connect(*arguments, **options)
        prepare(getattr(connection, "_reader", None))
        return connection

    client._get_conn = connect_and_prepare


def prepare(reader: Any) -> bool:
    """Let a reader collect large answers so; False where it is not as expected, and stays as it is."""
    if type(reader) is not asyncio.StreamReader or not all(hasattr(reader, name) for name in READER):
        return False
    reader.__class__ = _Reader
    return True
