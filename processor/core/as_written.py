"""Values whose JSON text says more than they do: numbers that a double does not carry, objects that name a member twice.

Owns what is kept of such texts, and writing it again. It reads nothing and judges nothing. Without it an object of arguments
would come to the gate rounded and with its repeated names gone (rule 31), and be approved as something that nobody wrote.
"""

import json
from typing import Any, Self


class Number(float):
    """A number with its text: infinite where no double holds it, else rounded."""

    __slots__ = ("text",)

    text: str

    def __new__(cls, text: str) -> Self:
        """Make the number from its JSON text."""
        number = super().__new__(cls, text)
        number.text = text
        return number


class Object(dict[str, Any]):
    """An object that names a member twice: the last one wins (rule 27), and all are kept."""

    __slots__ = ("pairs",)

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.pairs = pairs


def object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of these members, in order."""
    made = dict(pairs)
    return made if len(made) == len(pairs) else Object(pairs)


def is_plain(value: Any) -> bool:
    """Whether nothing in it was written otherwise."""
    todo = [value]
    for part in todo:
        kind = type(part)
        if kind is Number or kind is Object:
            return False
        if kind is dict:
            todo.extend(part.values())
        elif kind is list:
            todo.extend(part)
    return True


def write(value: Any) -> str:
    """Compact JSON text of a value, as it was written. Raises ValueError for infinities and NaN without a text."""
    if type(value) is Number:
        return value.text
    if isinstance(value, dict):
        pairs = value.pairs if type(value) is Object else list(value.items())
        # No generators: each would cost a second frame a level.
        members = [write(member) for _, member in pairs]
        names = [json.dumps(name, ensure_ascii=False) for name, _ in pairs]
        return "{" + ",".join(map("{}:{}".format, names, members)) + "}"
    if isinstance(value, list):
        return "[" + ",".join([write(member) for member in value]) + "]"
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
