"""JSON text of the records that callgate publishes.

Owns the one promise that publishing needs: any value that was read can be written again, lone surrogates included (as escapes).
"""

import json
from typing import Any

import msgspec

_encode = msgspec.json.Encoder().encode


def encode(value: Any) -> bytes:
    """JSON text of a value. Never raises for what decode can have read."""
    try:
        return _encode(value)
    except (ValueError, TypeError, OverflowError, RecursionError):
        pass
    plain = msgspec.to_builtins(value, str_keys=True)
    try:
        return json.dumps(plain, separators=(",", ":")).encode()
    except (ValueError, RecursionError):
        return json.dumps(repr(type(value))).encode()
