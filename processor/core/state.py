"""The state of one partition as plain data: it can be printed, compared and written down.

Owns the shapes only: slotted dataclasses, since the interpreter never specialises an assignment to a field of a msgspec
Struct, and an event assigns to ten. All of it is a function of the partition's log and idle moves (design section 7).
"""

from array import array
from dataclasses import dataclass, field
from typing import Any

from processor.core.call import Call
from processor.core.candidate import Candidate
from processor.core.limits import Bounds
from processor.core.nothing import NOTHING
from processor.core.shared import Shared
from processor.core.signals import Tally
from processor.core.tool_lists import ToolLists

NO_INDEX = -(1 << 64)
"""Output index below any that a stream has."""

NO_RECORD = -1
"""Offset that no record has."""

EVENT_BYTES = 16
"""What an item event costs against it whatever it says: its place among the fragments, and its print."""

ITEM_BYTES = 64
"""What an item costs against `max_response_bytes` beside its text, so that a million empty items are bounded too."""


def _prints() -> "array[int]":
    return array("q")


@dataclass(slots=True)
class Response:
    """An open response."""

    id: str | None
    """None while no event named it."""
    stream: str | None
    """The key, as text."""
    last: int
    """Offset of its last record."""
    model: str | None = None
    items: list[Call] = field(default_factory=list)
    """In order of first appearance."""
    latest: dict[int, Call] | None = None
    """By output index; None: the place among the items is the index of each (nearly always, and a dictionary is 232 bytes)."""
    clashed: dict[int, list[Call]] | None = None
    """What may be open at each output index where an item was announced beside an open one; None: nearly always, at none."""
    finished: dict[str, list[Call]] = NOTHING
    """Uses of a call_id that count as its content (rules 8 and 9), the first one first."""
    functions: int = 0
    """Function calls seen."""
    buffered_bytes: int = 0
    highest_index: int = NO_INDEX
    passed_number: int = -1
    """Highest sequence number of the events that decide nothing; -1: none yet."""
    next_number: int = 0
    """Sequence number that would follow the last event noted; the highest number of all is this less one, or the above."""
    unnumbered: bool = False
    """Its sequence numbers stood still or restarted: they say nothing any more."""
    prints: "array[int]" = field(default_factory=_prints)
    """Of every event that can change a decision, 64 bits that tell it from another (rule 12)."""
    runs: list[tuple[int, int]] | None = None
    """Where their numbers go on one by one: (first number, its place in the prints); None: from 0 on, all of them."""
    tools: bytes | None = None
    """What the response echoed; else its request's."""
    tools_echoed: bool = False
    tools_clash: bool = False
    """It echoed two different lists (rule 10)."""
    tools_canonical: bytes | None = None
    """Their canonical form, once another spelling came."""
    choice: bytes | None = None
    """The first tool_choice that was said."""
    other_choices: dict[bytes, None] | None = None
    """All that differ from it: nearly always none."""
    choices: tuple[bytes, ...] | None = None
    """All of them, once a call needed them."""
    serial: bool = False
    """`parallel_tool_calls` is false."""
    rotated: bool = False
    """Its id changed on the way, and that is tolerated."""
    released: int = 0
    """Calls handed to the gate before the end of the response."""

    def use(self, call_id: str, call: Call) -> None:
        """Add a use of a call_id, the last one."""
        if call_id in self.finished:
            self.finished[call_id].append(call)
            return
        if self.finished is NOTHING:
            self.finished = {}
        self.finished[call_id] = [call]

    def at(self, index: int | None) -> Call | None:
        """The latest item of an output index."""
        if self.latest is not None:
            return None if index is None else self.latest.get(index)
        return self.items[index] if index is not None and 0 <= index < len(self.items) else None

    def append(self, call: Call) -> None:
        """Add an item, the latest of its output index if it has one."""
        in_order = self.latest is None and call.index == len(self.items)
        self.items.append(call)
        if not in_order:
            self.put(call.index, call)

    def put(self, index: int | None, call: Call) -> None:
        """Say that an item is the latest of an output index."""
        if self.latest is None:
            self.latest = {each.index: each for each in self.items if each.index is not None}
        if index is not None:
            self.latest[index] = call


@dataclass(slots=True)
class Pending:
    """What a `response.create` said of the next response under its key (rule 22)."""

    tools: bytes | None
    choice: bytes | None
    serial: bool


@dataclass(slots=True)
class Known:
    """What holds W back: an open response, a closed one that is still known, or a request that waits for its response."""

    ident: str | int
    """Response id; of a nameless one a negative number, unique under its key."""
    first: int
    """Offset of its first record, or of the request before it."""
    base: int
    """Watermark before that record."""
    act: int
    """Watermark at its last record."""
    held: int
    """Offset from which it must be rebuilt, and with it W: `first`, or an earlier one that it depends on."""
    held_base: int
    """Watermark before the record there."""
    serial: int = 0
    """Its place among all that was ever known under its key."""
    open: Response | None = None
    pending: Pending | None = None
    terminal: bool = False
    """Closed, and its last record was a terminal event: it is known for `closed_memory` only."""
    aliases: dict[str, None] | tuple[()] = ()
    """Other ids that it went by (`response_id_rotates`): there may be thousands."""
    gone: bool = False
    """Forgotten; the timetable may still hold it."""
    due: int = 0
    """Derived: the time under which the timetable holds it."""

    def goes_by(self, ident: str | None) -> bool:
        """Whether this is its id, or another one that it went by."""
        return ident is not None and (ident == self.ident or ident in self.aliases)

    def until(self, bounds: Bounds) -> int:
        """Watermark at which it falls silent (open, request) or is forgotten (closed), in ms.

        A function of its last record and of the settings in force, never fixed when it closes (design section 7).
        """
        if self.open is not None or self.pending is not None:
            return self.act + bounds.stream_timeout_ms
        return self.act + bounds.closed_memory_ms + (0 if self.terminal else bounds.stream_timeout_ms)


@dataclass(slots=True)
class Stream:
    """What is known under one key."""

    key: bytes | None
    """None: a record without one, kept by nobody."""
    last: int
    """Watermark at its last record."""
    at: int
    """Offset of its last record: keys silent longest go first when there are too many."""
    open: Known | None = None
    closed: dict[str | int, Known] = NOTHING
    """The one with the latest record last: events without an id are its."""
    request: Known | None = None
    nameless: int = 0
    """Nameless responses so far."""
    count: int = 0
    """Of all that was ever known under it."""
    live: int = 0
    """Of all that is known under it."""
    epoch: int = 0
    """How often nothing was known any more."""
    floor: Known | None = None
    """Holds W for those with a serial up to its own, as long as one of them is known (see `Streams.hold`)."""
    held: int = 0
    """How many these are."""
    begun: bool = False
    """A response began under it: what begins from here on is no rest of one before W (only a rebuild asks)."""

    def latest_closed(self) -> Known:
        """The closed one with the latest record; there must be one."""
        return self.closed[next(reversed(self.closed))]


@dataclass(slots=True)
class Context:
    """The record at hand and where results go: one object a partition, filled anew for every record."""

    bounds: Bounds
    tally: Tally
    out: list[Candidate] = field(default_factory=list)
    tools: Shared[bytes] = field(default_factory=Shared)
    """Lists of tools, and values of tool_choice, as they were last said: responses that say the same share them."""
    names: Shared[str] = field(default_factory=Shared)
    """Names of models and tools and types of items, likewise."""
    lists: ToolLists = field(default_factory=ToolLists)
    """Lists of tools that were read: derived, and no part of the state."""
    watermark: int = 0
    """Ms, after this record."""
    base: int = 0
    """Ms, before this record."""
    heads: frozenset[int] = frozenset()
    heads_from: int = 0
    """Where a response may begin without `response.created` (see `offsets.Commit`): live, anywhere."""

    def headless(self, stream: Stream) -> bool:
        """Whether a response may begin without `response.created` at the record at hand."""
        return self.offset >= self.heads_from or self.offset in self.heads or stream.begun

    offset: int = NO_RECORD
    """Of this record; NO_RECORD in an idle move."""
    record: Any = None
    """Of it only timestamp and headers are read; None in an idle move."""
