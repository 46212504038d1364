"""The slow JSON reader: the authority on what a record's bytes say, for everything that the fast path refuses.

Owns the rules of the outer JSON (rule 27): UTF-8 only, the last of two equal names wins, NaN and Infinity are refused, lone
surrogates are kept, numbers of any size are safe, nesting is bounded; what a value does not say of its text is kept beside it.
It knows nothing about the forms of a record.
"""

import json
import math
from itertools import accumulate
from typing import Any, NoReturn

from msgspec import Raw

from processor.core.as_written import Number, object_of
from processor.core.numerals import number_of
from processor.core.reasons import Cause

MAX_DEPTH = 500
"""Nesting of arrays and objects in a record. Fixed, and well below what the stack allows: whether a record is a dead letter may
depend on nothing but its bytes, never on how deep the caller's stack happens to be."""

_MAX_DIGITS = 4_300
"""Python's own bound on turning text into an integer; the fast path has the same."""

_ROUNDS = 16
_NO_STRUCTURE = bytes(set(range(256)) - set(b'[]{}"'))
_STEPS = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}


class NotReadableError(Exception):
    """The record is a dead letter. Raised and caught inside decode only, which returns it as a value."""

    def __init__(self, cause: Cause, detail: str) -> None:
        """Keep the cause and a detail for people, which never holds a value."""
        super().__init__(detail)
        self.cause = cause
        self.detail = detail


def too_deep(value: bytes) -> bool:
    """Say whether JSON text is nested deeper than MAX_DEPTH; exact for well-formed text, and linear in its length."""
    if len(value) <= 2 * MAX_DEPTH:
        return False
    if _count(value, b"{", b"[") <= MAX_DEPTH:
        return False
    # The deepest place has all its openers before it and all its closers after it, so one half of the text must have enough.
    half = len(value) // 2
    if _count(value[:half], b"{", b"[") <= MAX_DEPTH and _count(value[half:], b"}", b"]") <= MAX_DEPTH:
        return False
    if b"\\" in value:
        value = value.replace(b"\\\\", b"").replace(b'\\"', b"")
    skeleton = value.translate(None, _NO_STRUCTURE).replace(b'""', b"")
    if b'"' in skeleton:
        skeleton = b"".join(skeleton.split(b'"')[::2])
    # Toolsets are wide and shallow: a few rounds of dropping what is empty (at most two levels each) leave nearly nothing.
    rest = skeleton
    for rounds in range(1, _ROUNDS + 1):
        rest = rest.replace(b"{}", b"").replace(b"[]", b"")
        if len(rest) // 2 + 2 * rounds <= MAX_DEPTH:
            return False
    return max(accumulate(map(_STEPS.__getitem__, skeleton)), default=0) > MAX_DEPTH


def _count(value: bytes, one: bytes, other: bytes) -> int:
    """How often two bytes occur: leaving out a single byte is faster than `count`."""
    return len(value) - len(value.replace(one, b"").replace(other, b""))


def loads(value: bytes) -> Any:
    """Read JSON text.

    Raises NotReadableError: not UTF-8, not one JSON text, or too deep.
    """
    try:
        text = value.decode()
    except UnicodeDecodeError as fault:
        raise NotReadableError(Cause.NOT_TEXT, f"not UTF-8 at byte {fault.start}") from None
    if too_deep(value):
        raise NotReadableError(Cause.TOO_DEEP, f"nested deeper than {MAX_DEPTH}")
    try:
        return _DECODER.decode(text)
    except json.JSONDecodeError as fault:
        at = len(text[: fault.pos].encode())
        raise NotReadableError(Cause.NOT_JSON, f"{fault.msg} at byte {at}") from None


def raw(value: Any) -> Raw | None:
    """Write a value that `loads` gave as ASCII JSON text, so that lone surrogates survive as escapes; null is None."""
    if value is None:
        return None
    try:
        return Raw(json.dumps(value, allow_nan=False, check_circular=False, separators=(",", ":")))
    except ValueError:
        return Raw(_write(value))


def _write(value: Any) -> str:
    """Write as `raw` does, for a value with infinite numbers in it, which the standard writer refuses."""
    if isinstance(value, Number) and math.isinf(value):
        return value.text
    if isinstance(value, dict):
        # No generator: it would cost a second frame a level.
        members = list(map(_write, value.values()))
        return "{" + ",".join(map("{}:{}".format, map(json.dumps, value), members)) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_write, value)) + "]"
    return json.dumps(value)


def _integer(text: str) -> int | Number:
    """Read an integer of any length in bounded time."""
    return int(text) if len(text) <= _MAX_DIGITS else Number(text)


def _number(text: str) -> float:
    """Read a number with a fraction or an exponent; one that a double does not carry keeps its text (rule 31)."""
    return float(text) if number_of(text) is not None else Number(text)


def _constant(name: str) -> NoReturn:
    """Refuse NaN, Infinity and -Infinity, which are not JSON."""
    raise NotReadableError(Cause.NOT_JSON, f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_int=_integer, parse_float=_number, parse_constant=_constant, object_pairs_hook=object_of)
