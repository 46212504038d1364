"""Lists of tools that were read before: an event that echoes one of them again is read without it.

Agent platforms echo all of their tools in three events of every response, and these are most of its bytes: a list of 40 kB
is skipped, held against the bound of nesting and copied, for a hundred times what it costs to tell it from one that was read
before. What that saves is counted by `python -m benchmarks.instructions --idle-tools 40`.

Owns the short cut's memory alone: `decode` says of an event with a list cut out what it says of the whole event.
"""

from processor.core.limits import SHARED_BYTES

LEAST_BYTES = 4096
"""Bytes of a list under which little is won: a short one is skipped about as fast as it is looked for."""
MARK = b'"cut out"'
"""What stands where a list was: a text, as a list is no text."""
_KEY = b'"tools":'
_START_BYTES = 64
"""By so much of their beginning lists are told apart; those that share it are tried one by one."""
_MOST_ALIKE = 8
_MOST_PLACES = 8
"""Places of a value that are looked at: one may say `"tools":` a hundred thousand times."""
_OPENING = ord("[")


class ToolLists:
    """The lists of tools that one partition read, up to a bound; then it begins anew."""

    def __init__(self) -> None:
        """Start empty."""
        self._by_start: dict[bytes, list[bytes]] = {}
        self._size = 0

    def learn(self, tools: bytes) -> None:
        """Keep a list that was read: JSON text in UTF-8, as `response.tools` of an event that is not nested too deep."""
        if len(tools) < LEAST_BYTES or tools[0] != _OPENING:
            return
        if tools in self._by_start.get(tools[:_START_BYTES], ()):
            return
        self._size += len(tools)
        if self._size > SHARED_BYTES:
            self._by_start.clear()
            self._size = len(tools)
        alike = self._by_start.setdefault(tools[:_START_BYTES], [])
        alike.insert(0, tools)
        for gone in alike[_MOST_ALIKE:]:
            self._size -= len(gone)
        del alike[_MOST_ALIKE:]

    def cut(self, value: bytes) -> tuple[bytes, bytes] | None:
        """A value with MARK in place of the first known list of `"tools"` that is in it, and that list; None: there is none.

        A list ends where its bracket closes, so that what begins with it holds it whole. MARK stands in the rest but once, and
        where it is read the list was, and whether a response has its tools there is for `decode` to see.
        """
        place = 0
        for _ in range(_MOST_PLACES):
            place = value.find(_KEY, place)
            if place < 0:
                break
            place += len(_KEY)
            if value[place : place + 1] == b" ":
                place += 1
            for tools in self._by_start.get(value[place : place + _START_BYTES], ()):
                if value.startswith(tools, place):
                    rest = b"%b%b%b" % (value[:place], MARK, value[place + len(tools) :])
                    return (rest, tools) if rest.count(MARK) == 1 else None
        return None
