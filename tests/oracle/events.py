"""Events of one response, and which of them count (rules 11 and 12).

Owns what a response is to the oracle: its events with their places in the log, and how it ended.
"""

import json
from dataclasses import dataclass, field

from tests.factories import Json
from tests.oracle.use import COMPARED, Token

ITEM_EVENTS = (
    "response.output_item.added",
    "response.output_item.done",
    "response.function_call_arguments.delta",
    "response.function_call_arguments.done",
)
LIFECYCLE = ("response.created", "response.queued", "response.in_progress")
TERMINAL = ("response.completed", "response.incomplete", "response.failed", "response.cancelled")


@dataclass
class Event:
    """One event, with where it was read."""

    token: Token
    offset: int
    data: Json
    mislabelled: bool = False
    """Its SSE `event:` says something else than its JSON type (rule 29)."""


@dataclass
class Response:
    """One response: what its stream said, and how it ended."""

    key: str | None
    rid: str | None
    first_offset: int
    last: int
    """Watermark at its last record, in ms."""
    events: list[Event] = field(default_factory=list)
    request: Json | None = None
    """The `response.create` that it answers."""
    ended_by: str = ""
    """`completed`, `incomplete`, `failed`, `superseded`, `timeout`, `limit`; empty while open."""
    ended_at: Token = ()
    last_was_terminal: bool = False
    aliases: list[str] = field(default_factory=list)
    """Other ids that it went by (`response_id_rotates`)."""
    named_at: Token = ()
    """Where a nameless response got its name from its terminal event (rule 15)."""

    def is_named(self, rid: object) -> bool:
        """Whether this is one of its ids."""
        return rid is not None and (rid == self.rid or rid in self.aliases)

    def name_at(self, token: Token) -> str | None:
        """Its id as far as it was known there."""
        return self.rid if token >= self.named_at else None


def counted(events: list[Event]) -> list[Event]:
    """Those that are no repeats; a `created` that starts its response again is marked."""
    kept: list[Event] = []
    seen: dict[int, str] = {}
    highest: int | None = None
    unnumbered = False
    for event in events:
        data = event.data
        kind = data["type"]
        number = data.get("sequence_number")
        if isinstance(number, int) and not unnumbered:
            compared = kind in ITEM_EVENTS or kind in LIFECYCLE or kind in TERMINAL or kind == "error"
            if highest is None or number > highest:
                highest = number
                if compared:
                    seen[number] = _signature(data)
            elif compared:
                if seen.get(number) == _signature(data):
                    if kind in LIFECYCLE:  # what it says of tools and limits is known all the same (rule 22)
                        kept.append(event)
                    continue
                unnumbered = True
        # A created for the response that is open starts an unnumbered one again.
        if kind == "response.created" and kept and (unnumbered or highest is None):
            event.data = {**data, "again": True}
        kept.append(event)
    return kept


def _signature(data: Json) -> str:
    item = data.get("item")
    if isinstance(item, dict):
        item = [item.get(name) for name in (*COMPARED, "status")]
    said = [data.get(name) for name in ("type", "output_index", "delta", "arguments", "name", "call_id")]
    return json.dumps([said, item])
