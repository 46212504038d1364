"""Server-Sent-Events text, as the HTML standard has it, taken apart into frames.

Owns lines and fields. It never looks into the data of a frame.
"""

import re

from msgspec import Struct

from processor.core.reasons import Cause
from processor.core.slow_json import NotReadableError

_BOM = b"\xef\xbb\xbf"
_RECOGNISED = re.compile(rb"(?:\A(?:\xef\xbb\xbf)?|[\r\n])(?:data|event|id|retry)?:")
_FIELDS = frozenset((b"data", b"event", b"id", b"retry"))
_STARTS = (b"data:", b"event:", b"id:", b"retry:", b":")
_SPACE = ord(" ")
_DEFAULT_LABEL = b"message"
"""What the standard calls a frame that has no `event:` line."""


class Frame(Struct, frozen=True):
    """One dispatched frame."""

    label: bytes
    """Of the `event:` line; empty where there is none, or where it says what no line says: `message`."""
    data: bytes
    """The `data:` lines, joined by newlines; never blank."""


def recognised(value: bytes) -> bool:
    """Say whether a value is Server-Sent-Events text: some line of it is a comment or has one of the standard's fields."""
    return value.startswith(_STARTS) or _RECOGNISED.search(value) is not None


def frames(value: bytes) -> list[Frame]:
    """Take a value apart. The last frame may run to the end without a blank line; a frame without data is no frame.

    Raises NotReadableError: there are fields outside the standard, which are ignored, and nothing but them to read.
    """
    if b"\r" in value:
        value = value.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    found: list[Frame] = []
    label = b""
    data: list[bytes] = []
    strange = False
    for line in (*value.removeprefix(_BOM).split(b"\n"), b""):
        if not line:
            text = data[0] if len(data) == 1 else b"\n".join(data)
            if text and (text[0] > _SPACE or text.strip(b" \t\n")):
                found.append(Frame(b"" if label == _DEFAULT_LABEL else label, text))
            label = b""
            data.clear()
            continue
        name, _, rest = line.partition(b":")
        if rest and rest[0] == _SPACE:
            rest = rest[1:]
        if name == b"data":
            data.append(rest)
        elif name == b"event":
            label = rest
        elif name and name not in _FIELDS:
            strange = True
    if strange and not found:
        raise NotReadableError(Cause.NOT_JSON, "neither JSON nor Server-Sent Events with data")
    return found
