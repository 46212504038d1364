"""Python's own JSON reader with strict hooks: the second opinion on what is I-JSON (rule 31).

It shares no code with the readers under test.
"""

import json
import math
from decimal import Decimal
from typing import Any, NoReturn


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse a name that comes twice."""
    if len({name for name, _ in pairs}) != len(pairs):
        raise ValueError
    return dict(pairs)


def surviving(text: str) -> int | float:
    """Refuse a number that a double does not carry."""
    double, exact = float(text), Decimal(text)
    if not math.isfinite(double) or exact not in (Decimal(double), Decimal(repr(double))):
        raise ValueError
    return double if any(mark in text for mark in ".eE") else int(text)


def never(_: str) -> NoReturn:
    """NaN and infinities are no JSON."""
    raise ValueError


def other_reader(text: str) -> Any:
    """Python's own reader with strict hooks: the second opinion; None is no value here."""
    value = json.loads(text, object_pairs_hook=unique, parse_int=surviving, parse_float=surviving, parse_constant=never)
    json.dumps(value, ensure_ascii=False).encode()
    return value
