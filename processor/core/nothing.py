"""The dictionary that nothing is in.

Owns one object, which takes the place of dictionaries until they are needed: a hundred thousand empty ones are 6 MB.
"""

from typing import Any, Final


class Nothing(dict[Any, Any]):
    """Reads as an empty dictionary, and cannot be written to like one."""

    __slots__ = ()
    __hash__ = object.__hash__  # type: ignore[assignment] # a data class takes no default without a hash

    def __setitem__(self, key: object, value: object) -> None:
        """Refuse: it is everybody's."""
        raise TypeError("nothing can be put here")

    def __ior__(self, other: object) -> Any:  # type: ignore[misc]
        """Refuse."""
        self[other] = None

    def update(self, *others: object, **named: object) -> None:
        """Refuse."""
        self[others] = named

    def setdefault(self, key: object, value: object = None, /) -> Any:
        """Refuse."""
        self[key] = value


NOTHING: Final = Nothing()
