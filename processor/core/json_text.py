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
    # The hook is asked for the one type of its own that decode gives: a number that is kept as written.
    plain = msgspec.to_builtins(value, str_keys=True, enc_hook=float)
    try:
        return json.dumps(plain, separators=(",", ":")).encode()
    except (ValueError, RecursionError):
        return json.dumps(repr(type(value))).encode()
