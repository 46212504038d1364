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
import json
import sys
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import msgspec
import zstandard

from processor.adapters.unpack import Counting, unpacked

STDIN = "-"
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


class _Usual(msgspec.Struct, gc=False):
    """A line of `kcat -J` as it nearly always is: everything there, and text where text should be."""

    topic: str
    partition: int
    offset: int
    ts: int
    payload: str
    key: str | None = None
    headers: Any = None
    key_base64: Any = None
    payload_base64: Any = msgspec.UNSET


_decode_usual = msgspec.json.Decoder(_Usual).decode
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
                yield from self._records(unpacked(raw), _key_of(name))
        except READ_FAULTS as fault:
            why = getattr(fault, "strerror", None) or (
                "its compressed data is damaged or cut off" if not isinstance(fault, OSError) else str(fault)
            )
            raise ArchiveError(f"{name} cannot be read: {why}.") from None

    def _open(self, name: str) -> Counting:
        if name == STDIN:
            return Counting(self._stdin or sys.stdin.buffer, self._taken, owned=False)
        return Counting(Path(name).open("rb", buffering=0), self._taken, owned=True)

    def _taken(self, size: int) -> None:
        self.compressed_bytes += size

    def _records(self, lines: IO[bytes], key: bytes) -> Iterator[ArchivedRecord]:
        frame: list[bytes] = []
        usually = True
        for line in lines:
            if usually and not frame and (usual := self._usual(line)) is not None:
                yield usual
                continue
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
            record = self._record(text)
            # A file of plain events has no usual line in it.
            usually = record is not None
            yield record or self._plain(text, key)
        if frame:
            yield self._plain(b"\n".join(frame) + b"\n\n", key)

    def _usual(self, line: bytes) -> ArchivedRecord | None:
        """The record of a usual line, by the shortest way; None: `_record` says what it is. Where both do they agree."""
        try:
            found = _decode_usual(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        topic, partition, offset, key = found.topic, found.partition, found.offset, found.key
        place = self._places.get((topic, partition))
        if place is None or not place.offset < offset < 1 << 62 or not 0 <= found.ts <= LAST_TIMESTAMP:
            return None
        if found.headers or found.key_base64 is not None or found.payload_base64 is not msgspec.UNSET:
            return None
        place.offset, place.timestamp = offset, found.ts
        self.records += 1
        return ArchivedRecord(
            topic, partition, offset, found.ts, None if key is None else key.encode(), found.payload.encode(), ()
        )

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
