"""Argument text to value: the one reader of what callgate approves, I-JSON (RFC 7493) as rule 31 has it.

Owns the question "would every other JSON parser read exactly this value out of this text?". A cheap proof covers most texts
(msgspec's strict parser, then arithmetic that shows names unique and numbers harmless); whatever the proof does not cover goes
to `strict.py`, the slow reader that is the authority and says what is wrong, and where. It must never raise, whatever the text
is, and never put a value into a detail.
"""

import json
import re
from typing import Annotated, Any, Final

import msgspec

from processor.core.as_written import is_plain, write
from processor.core.reasons import Reason
from processor.core.strict import Fault, read_strictly

MAX_BYTES: Final = 1 << 20
"""Default bound on the UTF-8 bytes of one call's arguments (rule 31); over, not at, the bound is `limit`."""
MAX_DEPTH: Final = 64
"""Default bound on nesting (rule 31); over, not at, the bound is `limit`."""
DEEPEST: Final = 512
"""The largest depth that can be configured: validators behind this reader recurse on the C stack."""

_EXACT: Final = 1 << 53
"""Every integer up to here is a double."""

_decode = msgspec.json.Decoder().decode


def _object_of(*more: Any) -> Any:
    """Type of an object of words and exact integers (and more), with objects and lists of such down to QUICK_DEPTH levels."""
    plain: Any = str | bool | None | Annotated[int, msgspec.Meta(ge=-_EXACT, le=_EXACT)]
    for kind in more:
        plain |= kind
    part: Any = plain
    for _ in range(QUICK_DEPTH - 1):
        part = plain | list[part] | dict[str, part]
    return dict[str, part]


QUICK_DEPTH: Final = 6
decode_quickly = msgspec.json.Decoder(_object_of()).decode
"""Decodes most arguments, and refuses what has floats, large integers or more levels: those need a closer look."""
_decode_numbers = msgspec.json.Decoder(_object_of(float)).decode
_encode = msgspec.json.Encoder().encode
_STRING: Final = re.compile(r'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_BRACKET: Final = re.compile(r"[\[\]{}]")
_NO_BRACKETS: Final = re.compile(r"[^\[\]{}]++")
_DOUBTFUL: Final = re.compile(r"[0-9][0-9.]{15}|[0-9][eE]")
"""A number with an exponent, or with more digits than every double carries (15 significant ones always survive)."""
_NUMBER: Final = re.compile(r"-?[0-9][0-9.eE+-]*+")
_UNSURE: Final = -1
LONG: Final = 300
"""Characters for each mark from which on looking for the marks is faster than counting them."""


def read(text: str, max_bytes: int = MAX_BYTES, max_depth: int = MAX_DEPTH) -> Any:
    """Read one text: the value, or a `Fault` with reason `limit` or `arguments_parse`.

    Size and depth are checked before anything is parsed.
    """
    # A character takes at most 4 bytes, and what this decoder takes is of known depth.
    if len(text) * 4 <= max_bytes and max_depth >= QUICK_DEPTH:
        try:
            value = decode_quickly(text)
        except (ValueError, RecursionError):
            return read_closely(text, max_bytes, max_depth)
        # Where there is no comma no object has a second member. Else: every member that the parser read has a colon of its own
        # outside the strings. As many colons as members were kept: no name came twice. Colons inside strings only make this
        # proof fail, never wrong.
        if "," not in text or len(value) == count_to(text, ":", len(value)):
            return value
    return read_closely(text, max_bytes, max_depth)


def count_to(text: str, mark: str, bound: int) -> int:
    """Occurrences of a mark, counted no further than just past the bound."""
    if len(text) < LONG * (bound + 1):
        return text.count(mark)
    # Looking for a mark goes through long texts thirty times as fast as counting does.
    found = 0
    at = text.find(mark)
    while at >= 0 and found <= bound:
        found += 1
        at = text.find(mark, at + 1)
    return found


def read_closely(text: str, max_bytes: int, max_depth: int) -> Any:
    """Read what the quick decoder did not take, or what has colons to account for."""
    if len(text) * 4 <= max_bytes and max_depth >= QUICK_DEPTH:
        try:
            value = _decode_numbers(text)
            # The same when it is printed again: no name came twice, and numbers are shortest forms.
            return value if _encode(value) == text.encode() else _accounted(value, text)
        except (ValueError, RecursionError):
            pass
    size = _utf8_bytes(text)
    if size > max_bytes:
        return Fault(Reason.LIMIT, f"{size} bytes of arguments, the bound is {max_bytes}")
    if len(text) > max_depth and count_to(text, "[", max_depth) + count_to(text, "{", max_depth) > max_depth:
        at = _too_deep(text, max_depth)
        if at is not None:
            return Fault(Reason.LIMIT, f"nested deeper than {max_depth} at byte {_utf8_bytes(text[:at])}")
    try:
        value = _decode(text)
    except (ValueError, RecursionError):
        return read_strictly(text)
    return _accounted(value, text)


def _accounted(value: Any, text: str) -> Any:
    """The value that a quick parser read, where numbers and colons show that it is right; else what the strict one reads."""
    members, colons = _account(value, text)
    if members == _UNSURE:
        return read_strictly(text)
    found = count_to(text, ":", members + colons)
    if members == found or (members + colons == found and "\\u" not in text) or members == _STRING.sub("", text).count(":"):
        return value
    return read_strictly(text)


def compact(value: Any) -> str | None:
    """Compact JSON text of a value, for the tolerance `arguments_object`; None where JSON cannot say it (NaN, infinities).

    What was written with numbers that a double does not carry, or with a name that comes twice, is written so again.
    """
    try:
        if not is_plain(value):
            return write(value)
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (ValueError, TypeError, RecursionError):
        return None


def _utf8_bytes(text: str) -> int:
    """Size in UTF-8 bytes; a lone surrogate counts 3."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _too_deep(text: str, max_depth: int) -> int | None:
    """Index of the first bracket that goes over the bound; brackets inside strings do not count."""
    if _deepest(text, max_depth) <= max_depth:
        return None
    masked = _STRING.sub(lambda match: "_" * (match.end() - match.start()), text)
    depth = 0
    for match in _BRACKET.finditer(masked):
        if match.group() in "[{":
            depth += 1
            if depth > max_depth:
                return match.start()
        else:
            depth -= 1
    return None


def _deepest(text: str, most: int) -> int:
    """No text is nested deeper than this, counted up to `most`: pairs of brackets are taken out from the inside.

    Takes a tenth of what a look at each bracket does. Each replacement takes out one level at most of those around any place.
    """
    bare = _NO_BRACKETS.sub("", _STRING.sub("", text))
    levels, changed = 0, True
    while changed and levels <= most:
        changed = False
        for pair in ("[]", "{}"):
            left = bare.replace(pair, "")
            if len(left) < len(bare):
                bare, levels, changed = left, levels + 1, True
    return levels + bare.count("[") + bare.count("{")


def _account(value: Any, text: str) -> tuple[int, int]:
    """Members of all objects in the value, and colons in its strings; `_UNSURE` where a number may not survive a double.

    A name that came twice takes its first value with it: then there are more colons in the text than both together, unless an
    escape stands for a colon.
    """
    members = colons = 0
    checked = False
    todo = [value]
    for part in todo:
        kind = type(part)
        if kind is str:
            if ":" in part:
                colons += part.count(":")
        elif kind is dict:
            members += len(part)
            todo.extend(part)
            todo.extend(part.values())
        elif kind is list:
            todo.extend(part)
        elif kind is int:
            if not -_EXACT <= part <= _EXACT:
                return _UNSURE, 0
        elif kind is float and not checked:
            if _DOUBTFUL.search(text) and not _all_shortest(text):
                return _UNSURE, 0
            checked = True
    return members, colons


def _all_shortest(text: str) -> bool:
    """Whether each doubtful number of a valid JSON text is written in the double's shortest form, as most printers do."""
    return all(repr(float(number)) == number for number in _NUMBER.findall(_STRING.sub("", text)) if _DOUBTFUL.search(number))
