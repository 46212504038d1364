"""One byte string for all JSON texts that say the same: what hashes and comparisons of tools are made of.

Owns the canonical form (in the manner of RFC 8785: no blanks, names in order, one spelling of each number). It is made for
equality and hashing only, is never published, and must never raise: what is no JSON stands for itself.
"""

import hashlib
import json
from typing import Any, Final

import msgspec

from processor.core.schema_walk import depth_of

MAX_DEPTH: Final = 250
"""Nesting that is looked into; beyond it a text stands for itself. A bound of its own keeps the answer, on which a partition's
state may depend, from depending on how deep the caller's stack is."""


def canonical(value: Any) -> bytes:
    """Canonical form of a value, or of the JSON text in a `bytes`; bytes that are no JSON are returned as they are."""
    if isinstance(value, bytes | bytearray | memoryview):
        raw = bytes(value)
        try:
            value = parse(raw)
        except (ValueError, RecursionError):
            return raw
        return raw if depth_of(value, MAX_DEPTH) > MAX_DEPTH else _print(value)
    return b"too deep to be compared" if depth_of(value, MAX_DEPTH) > MAX_DEPTH else _print(value)


def parse(raw: bytes) -> Any:
    """Value of a JSON text as the outer reader has it (rule 27): the last of two equal names wins, surrogates may be lone.

    Raises ValueError or RecursionError where it is none.
    """
    try:
        return msgspec.json.decode(raw)
    except ValueError:
        return json.loads(raw, parse_constant=_refuse)


def sha256(value: Any) -> str:
    """SHA-256 of the canonical form, in hexadecimal."""
    return hashlib.sha256(canonical(value)).hexdigest()


def _print(value: Any) -> bytes:
    value = _settle_numbers(value)
    try:
        return msgspec.json.encode(value, order="deterministic")
    except (ValueError, TypeError, OverflowError):
        # Lone surrogates and integers over 64 bits: the slower printer knows both.
        return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def _refuse(_constant: str) -> None:
    message = "NaN and infinities are no JSON"
    raise ValueError(message)


def _settle_numbers(value: Any) -> Any:
    """Spell 1.0 and 1e0 as 1; everything else stays. Loops: a comprehension would take a second frame a level."""
    kind = type(value)
    settled: Any = value
    if kind is dict:
        settled = {}
        for name, part in value.items():
            settled[name] = _settle_numbers(part)
    elif kind is list:
        settled = []
        for part in value:
            settled.append(_settle_numbers(part))
    elif kind is float and value.is_integer():
        settled = int(value)
    return settled
