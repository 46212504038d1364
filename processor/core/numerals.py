"""Numbers that survive a double (rule 31): equal to it exactly, or its shortest form.

Owns that one question, for the text of one number. It reads nothing else, and never raises.
"""

import re
from decimal import Decimal
from typing import Final

NUMBER: Final = re.compile(r"(-?)(0|[1-9][0-9]*+)(?:\.([0-9]++))?(?:[eE]([+-]?)([0-9]++))?")
"""A number as JSON has it: sign, whole part, fraction, sign and digits of the exponent."""
_SURE_DIGITS: Final = 15
"""Decimals of this many significant digits always come back from a double."""
_SURE_EXPONENT: Final = 290
_MOST_DIGITS: Final = 800
"""No double has more significant decimal digits than 767."""
_HUGE: Final = 400
"""Beyond this power of ten everything is infinity or zero."""


def number_of(digits: str) -> int | float | None:
    """`survivor` of a number's text, at once for the short integers and the shortest forms that most numbers are."""
    if len(digits) <= _SURE_DIGITS and (digits.isdecimal() or digits[1:].isdecimal()):
        return int(digits)
    number = float(digits)
    if repr(number) == digits:
        return number
    match = NUMBER.match(digits)
    return survivor(match) if match else None


def survivor(match: re.Match[str]) -> int | float | None:
    """Value of a number that survives a double: equal to it exactly, or its shortest form (as numbers); else None."""
    sign, whole, fraction, exponent_sign, exponent = match.groups()
    digits = (whole + (fraction or "")).lstrip("0")
    significant = digits.rstrip("0")
    if not significant:
        return 0 if fraction is None and exponent is None else float(sign + "0")
    power = (exponent or "").lstrip("0")
    if len(power) > 9:
        return None
    scale = int(power or "0") * (-1 if exponent_sign == "-" else 1) - len(fraction or "") + len(digits) - len(significant)
    first = scale + len(significant)
    if len(significant) > _MOST_DIGITS or not -_HUGE < first < _HUGE:
        return None
    number = float(f"{sign}{significant}e{scale}")
    if not _carries(number, sign, significant, scale, first):
        return None
    return int(sign + whole) if fraction is None and exponent is None else number


def _carries(number: float, sign: str, significant: str, scale: int, first: int) -> bool:
    """Whether the double is this decimal: exactly, or by the shortest form that reads back as it."""
    if len(significant) <= _SURE_DIGITS and -_SURE_EXPONENT < first < _SURE_EXPONENT:
        return True
    if number in {float("inf"), float("-inf"), 0.0}:
        return False
    written = (1 if sign else 0, significant, scale)
    return written in (_normal(Decimal(number)), _normal(Decimal(repr(number))))


def _normal(number: Decimal) -> tuple[int, str, int]:
    """Sign, significant digits and scale with no zeros at either end."""
    sign, digits, exponent = number.as_tuple()
    text = "".join(map(str, digits))
    bare = text.rstrip("0")
    return sign, bare, int(exponent) + len(text) - len(bare)
