"""Unpacks compressed files as they are read, by their first bytes, and counts what was taken of them.

Owns gzip and zstd. It knows nothing of lines or records.
"""

import gzip
import io
from collections.abc import Callable
from typing import IO, Any, cast

import zstandard

CHUNK_BYTES = 1 << 18


class Counting(io.RawIOBase):
    """Counts what is taken from a file, before it is unpacked."""

    def __init__(self, raw: IO[bytes], taken: Callable[[int], None], *, owned: bool) -> None:
        """`taken` is told of each part's bytes; what is `owned` is closed with this."""
        self._raw = raw
        self._taken = taken
        self._owned = owned

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Take what is there."""
        # `read1` of a buffered pipe returns what is there: records on standard input are decided as they come.
        size = len(buffer)
        taken: bytes = self._raw.read1(size) if isinstance(self._raw, io.BufferedReader) else self._raw.read(size)
        buffer[: len(taken)] = taken
        self._taken(len(taken))
        return len(taken)

    def close(self) -> None:
        """Close what is owned."""
        if self._owned and not self.closed:
            self._raw.close()
        super().close()


def unpacked(raw: io.RawIOBase) -> IO[bytes]:
    """Unpack by the first bytes, whatever the file is called."""
    packed = io.BufferedReader(raw, CHUNK_BYTES)
    magic = packed.peek(4)[:4]
    if magic.startswith(b"\x1f\x8b"):
        return cast("IO[bytes]", gzip.GzipFile(fileobj=packed))
    if magic == b"\x28\xb5\x2f\xfd":
        return io.BufferedReader(_Zstd(packed), CHUNK_BYTES)
    return packed


class _Zstd(io.RawIOBase):
    """Unpacks frame after frame. The library's own reader takes a file that is cut off for one that ends well."""

    def __init__(self, packed: "io.BufferedReader[Any]") -> None:
        self._packed = packed
        self._frame: Any = None
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Unpack what there is. Raises EOFError where the file is cut off."""
        while not self._ready:
            chunk = self._packed.read1(CHUNK_BYTES)
            if not chunk:
                if self._frame is not None:
                    raise EOFError
                return 0
            self._ready = memoryview(self._unpack(chunk))
        count = min(len(buffer), len(self._ready))
        buffer[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count

    def _unpack(self, chunk: bytes) -> bytes:
        parts = []
        while chunk:
            if self._frame is None:
                self._frame = zstandard.ZstdDecompressor().decompressobj()
            parts.append(self._frame.decompress(chunk))
            chunk = b""
            if self._frame.eof:
                chunk = self._frame.unused_data
                self._frame = None
        return b"".join(parts)
