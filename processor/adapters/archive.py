"""Reads archived topics: JSON Lines as `kcat -J` writes them, plain events, or raw Server-Sent Events, compressed or not.

Owns the file contract of design section 10. A line that is a JSON object with `payload` or `payload_base64` is a record; what
it lacks is counted up: the offset from the last one, the timestamp by one millisecond. Any other line is itself the value of a
record; its key is the file's name without its endings, since one such file holds one stream. Lines `[DONE]` and blank lines
are no records there, and a run of Server-Sent-Events lines up to the next blank one is a single record.

It decides nothing and never changes a byte of a value: lone surrogates, broken UTF-8 in base64 and lines that are no JSON at
all arrive as they are.
"""

import base64
import binascii
import gzip
import io
import json
import sys
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any, cast

import msgspec
import zstandard

STDIN = "-"
CHUNK_BYTES = 1 << 18
LAST_TIMESTAMP = 1 << 53
"""Timestamps past this are no times; they are counted up instead."""
SSE_FIELDS = (b"data:", b"event:", b"id:", b"retry:", b":")
READ_FAULTS = (OSError, EOFError, zlib.error, zstandard.ZstdError)


class ArchiveError(Exception):
    """A file cannot be read to its end; the message names it and says why."""


class ArchivedRecord(msgspec.Struct, gc=False):
    """One record; fits `processor.core.pipeline.Record`."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]


class _Line(msgspec.Struct, gc=False):
    """A line of `kcat -J`: whatever JSON is there."""

    topic: Any = None
    partition: Any = None
    offset: Any = None
    ts: Any = None
    headers: Any = None
    key: Any = None
    key_base64: Any = None
    payload: Any = msgspec.UNSET
    payload_base64: Any = msgspec.UNSET


class _RawLine(msgspec.Struct):
    payload: msgspec.Raw


_decode_line = msgspec.json.Decoder(_Line).decode
_decode_raw = msgspec.json.Decoder(_RawLine).decode


class _Place(msgspec.Struct):
    """Where a partition stands."""

    offset: int = -1
    timestamp: int = 0


class Archive:
    """Reads files in order as one archive; places are counted up over all of them."""

    def __init__(self, topic: str, stdin: IO[bytes] | None = None) -> None:
        """Give records without a topic to `topic`, partition 0."""
        self._topic = topic
        self._stdin = stdin
        self._places: dict[tuple[str, int], _Place] = {}
        self.records = 0
        """Records read so far."""
        self.compressed_bytes = 0
        """Bytes taken from files so far, for a progress bar."""
        self.renumbered = 0
        """Records whose offset did not rise, and was counted up instead."""

    def read(self, name: str) -> Iterator[ArchivedRecord]:
        """Read one file, or standard input for `-`. Raises ArchiveError."""
        try:
            with self._open(name) as raw:
                yield from self._records(_unpacked(raw), _key_of(name))
        except READ_FAULTS as fault:
            why = getattr(fault, "strerror", None) or (
                "its compressed data is damaged or cut off" if not isinstance(fault, OSError) else str(fault)
            )
            raise ArchiveError(f"{name} cannot be read: {why}.") from None

    def _open(self, name: str) -> "_Counting":
        if name == STDIN:
            return _Counting(self._stdin or sys.stdin.buffer, self, owned=False)
        return _Counting(Path(name).open("rb", buffering=0), self, owned=True)

    def _records(self, lines: IO[bytes], key: bytes) -> Iterator[ArchivedRecord]:
        frame: list[bytes] = []
        for line in lines:
            text = line.strip(b"\r\n")
            if frame or text.startswith(SSE_FIELDS):
                if text:
                    frame.append(text)
                else:
                    yield self._plain(b"\n".join(frame) + b"\n\n", key)
                    frame = []
                continue
            bare = text.strip()
            if bare in {b"", b"[DONE]"}:
                continue
            yield self._record(text) or self._plain(text, key)
        if frame:
            yield self._plain(b"\n".join(frame) + b"\n\n", key)

    def _plain(self, value: bytes, key: bytes) -> ArchivedRecord:
        return self._placed(_Line(), key, value)

    def _record(self, text: bytes) -> ArchivedRecord | None:
        try:
            line = _decode_line(text)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            slow = _decode_slowly(text)
            if slow is None:
                return None
            line = slow
        if line.payload is msgspec.UNSET and line.payload_base64 is msgspec.UNSET:
            return None
        try:
            value = _value(line, text)
            key = _bytes(line.key, line.key_base64)
        except (ValueError, binascii.Error):
            return None
        return self._placed(line, key, value)

    def _placed(self, line: _Line, key: bytes | None, value: bytes | None) -> ArchivedRecord:
        topic = line.topic if isinstance(line.topic, str) and line.topic else self._topic
        partition = line.partition if _is_int(line.partition) and 0 <= line.partition < 1 << 31 else 0
        place = self._places.get((topic, partition))
        if place is None:
            place = self._places[topic, partition] = _Place()
        if _is_int(line.offset) and place.offset < line.offset < 1 << 62:
            place.offset = line.offset
        else:
            self.renumbered += line.offset is not None
            place.offset += 1
        if _is_int(line.ts) and 0 <= line.ts <= LAST_TIMESTAMP:
            place.timestamp = line.ts
        else:
            place.timestamp += 1
        self.records += 1
        return ArchivedRecord(topic, partition, place.offset, place.timestamp, key, value, _headers(line.headers))


class _Counting(io.RawIOBase):
    """Counts what is taken from a file, before it is unpacked."""

    def __init__(self, raw: IO[bytes], archive: Archive, *, owned: bool) -> None:
        self._raw = raw
        self._archive = archive
        self._owned = owned

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        # `read1` of a buffered pipe returns what is there: records on standard input are decided as they come.
        size = len(buffer)
        taken: bytes = self._raw.read1(size) if isinstance(self._raw, io.BufferedReader) else self._raw.read(size)
        buffer[: len(taken)] = taken
        self._archive.compressed_bytes += len(taken)
        return len(taken)

    def close(self) -> None:
        if self._owned and not self.closed:
            self._raw.close()
        super().close()


def _unpacked(raw: io.RawIOBase) -> IO[bytes]:
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
        return True

    def readinto(self, buffer: Any) -> int:
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


def _key_of(name: str) -> bytes:
    if name == STDIN:
        return b"stdin"
    return Path(name).name.split(".")[0].encode("utf-8", "surrogateescape") or b"archive"


def _decode_slowly(text: bytes) -> _Line | None:
    """Read what msgspec refuses: lone surrogates, and numbers beyond doubles."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    return _Line(**{name: found[name] for name in _Line.__struct_fields__ if name in found})


def _value(line: _Line, text: bytes) -> bytes | None:
    if isinstance(line.payload, dict | list) and not isinstance(line.payload_base64, str):
        # Some exports write the value as JSON and not as text.
        try:
            return bytes(_decode_raw(text).payload)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return json.dumps(line.payload, separators=(",", ":")).encode("ascii")
    return _bytes(line.payload, line.payload_base64)


def _bytes(text: Any, encoded: Any) -> bytes | None:
    if isinstance(encoded, str):
        return base64.b64decode(encoded, validate=True)
    if text is None or text is msgspec.UNSET:
        return None
    if isinstance(text, str):
        # A lone surrogate has no UTF-8: its bytes become a dead letter, as they would on a topic.
        return text.encode("utf-8", "surrogatepass")
    return json.dumps(text).encode("ascii")


def _headers(found: Any) -> Sequence[tuple[str, bytes | None]]:
    """Headers as kcat writes them, `[name, value, name, value]`, as pairs, or as an object."""
    if not found:
        return ()
    if isinstance(found, dict):
        pairs = list(found.items())
    elif isinstance(found, list) and all(isinstance(each, list) and len(each) == 2 for each in found):
        pairs = [(each[0], each[1]) for each in found]
    elif isinstance(found, list):
        pairs = list(zip(found[::2], found[1::2], strict=False))
    else:
        return ()
    return tuple((name, _bytes(value, None)) for name, value in pairs if isinstance(name, str))


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
