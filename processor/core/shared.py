"""One object for equal values that many streams say: a hundred thousand open streams of one agent hold its tools once.

Owns identity only: what it hands out equals what was given, so that no decision and no state depends on it.
"""

from typing import Generic, TypeVar

from processor.core.limits import SHARED_BYTES

Value = TypeVar("Value", str, bytes)


class Shared(Generic[Value]):
    """Values as they were last said, up to a bound; then it begins anew."""

    def __init__(self) -> None:
        """Start empty."""
        self._kept: dict[Value, Value] = {}
        self._size = 0

    def of(self, value: Value) -> Value:
        """The first of all equal values, or this one."""
        found = self._kept.get(value)
        if found is not None:
            return found
        self._size += len(value) + _ENTRY_BYTES
        if self._size > SHARED_BYTES:
            self._kept.clear()
            self._size = len(value) + _ENTRY_BYTES
        self._kept[value] = value
        return value


_ENTRY_BYTES = 150
"""What an entry costs beside its text: the object, and its place in the dictionary."""
