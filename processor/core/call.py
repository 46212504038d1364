"""One item of a response as plain data: which pieces told of it, and what they said.

Owns the shape only: `assemble` fills it, `agree` compares, `settle` ends it. There are as many as there are items in all open
responses, so that what few of them need is kept apart.
"""

from dataclasses import dataclass, replace
from typing import Any

from processor.core.events import Item
from processor.core.machine import State
from processor.core.text import filled, join
from processor.core.vocabulary import Kind


@dataclass(slots=True, frozen=True)
class Rare:
    """What few calls have where records carry no trace: the others share one, and are six fields smaller."""

    other_ids: list[str] | tuple[()] = ()
    """Every call_id but the first, in order: it is in conflict, or renamed."""
    listed_status: Any = None
    """A status other than completed that the terminal event lists for it."""
    renamed: str | None = None
    """The call_id under which the terminal event lists it, where that is tolerated."""
    tolerated: tuple[str, ...] = ()
    traceparent: bytes | None = None
    tracestate: bytes | None = None
    text: Any = None
    """Derived: of the final piece's arguments, where they are an object and were compared (see `agree.final_content`)."""


USUAL = Rare()


@dataclass(slots=True)
class Call:
    """One item of a response and what its pieces said so far."""

    state: State
    index: int | None
    kind: Kind
    first: int
    """Offset of the first record that told of it."""
    position: int = 0
    """Place among the function calls of its response."""
    type: Any = None
    namespace: Any = None
    name: Any = None
    arguments: Any = None
    """First non-empty value that a piece before the final one claimed, each."""
    call_id: str | None = None
    """The first non-empty one that was seen; empty: only that was."""
    joined: str = ""
    """Its deltas in one, of a long text all but those that are loose: an object for each would cost more than it says."""
    loose: list[str] | None = None
    """Of a long text those that are not joined yet."""
    delta_bytes: int = 0
    final: Item | None = None
    """The final piece: of `done`, else of the terminal event."""
    conflict: str = ""
    """Which pieces disagree; empty: none."""
    reused: bool = False
    """Its call_id was used before in this response for something else."""
    absorbed: bool = False
    """It repeats another call and needs no decision of its own."""
    rare: Rare = USUAL

    def note(self, **said: Any) -> None:
        """Say something of what is rare."""
        self.rare = replace(self.rare, **said)

    def goes_by(self, call_id: Any) -> bool:
        """Whether a piece said that this is its call_id."""
        return filled(call_id) and (call_id == self.call_id or call_id in self.rare.other_ids)

    def call_ids(self) -> list[str]:
        """All of them but an empty one, in order."""
        return [self.call_id, *self.rare.other_ids] if self.call_id else []

    def streamed(self) -> str:
        """All of its deltas as one text; empty once the final piece came."""
        return self.joined if self.loose is None and self.joined.isascii() else join([self.joined, *(self.loose or ())])

    def let_go(self) -> None:
        """Forget its deltas."""
        self.joined, self.loose = "", None
