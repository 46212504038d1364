"""What decode hands to assemble: plain values, fields as the wire has them.

Fields typed `Any` hold whatever JSON was there: judging a wrong-typed name or status is assembly's business, not a reading
error. Null and absent are the same (`None`), as rule 7 has it.
"""

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from msgspec import Raw, Struct

from processor.core.event_types import EVENT_TYPES
from processor.core.reasons import Cause

if TYPE_CHECKING:
    JsonText: TypeAlias = Raw | bytes | None
    """Unparsed JSON text; None where absent or null."""
else:
    # msgspec reads `Raw | None` as null only and refuses everything else, so it is told plain Raw; decode turns null to None.
    JsonText = Raw

if TYPE_CHECKING:
    EventType: TypeAlias = str
    """Name of an event; any text, where the slow reader made the event."""
else:
    # The typed decoder refuses other names, and hands over one string object a name: look-ups find its hash made.
    EventType = Literal[tuple(sorted(EVENT_TYPES))]


class Item(Struct, gc=False):
    """One element of a response's output, or of a journal."""

    type: Any = None
    id: Any = None
    call_id: Any = None
    name: Any = None
    namespace: Any = None
    arguments: Any = None
    status: Any = None
    role: Any = None
    """Only looked at in journals: untyped entries with role and content are messages (rule 30)."""
    content: JsonText = None
    """Presence only; never parsed."""
    execution: Any = None
    """Of a `tool_search_call`: who runs the search, `client` or `server`."""


class ResponseBody(Struct, gc=False):
    """The response object that lifecycle events carry."""

    id: Any = None
    status: Any = None
    model: Any = None
    output: list[Item | None] | None = None
    """None where absent, null or no list."""
    tools: JsonText = None
    """JSON text of the echoed tools, unparsed: most streams repeat the same bytes three times."""
    tool_choice: JsonText = None
    parallel_tool_calls: Any = None


class Event(Struct, gc=False):
    """One streaming event."""

    type: EventType
    sequence_number: Any = None
    """Rule 12; anything but an integer says nothing."""
    output_index: Any = None
    """Anything but an integer says nothing."""
    delta: Any = None
    arguments: Any = None
    name: Any = None
    call_id: Any = None
    item: Item | None = None
    response: ResponseBody | None = None
    specversion: Any = None
    """CloudEvents' mark: an envelope may have an event's type. Always None in what decode hands out."""


class Named(Struct, gc=False):
    """Of a lifecycle event's response no more than what names it."""

    id: Any = None
    output: "list[Skipped | None] | None" = None
    """A member that is neither object nor null makes the record a dead letter."""


class Skipped(Struct, gc=False):
    """An object, whatever is in it."""


class Glimpse(Struct, gc=False):
    """What a rebuild must know of an event before it knows whether it must read it."""

    type: EventType
    sequence_number: Any = None
    item: Skipped | None = None
    response: Named | None = None
    specversion: Any = None


class WholeResponse(Struct):
    """A record that is one whole response: `"object": "response"`."""

    response: ResponseBody


class Journal(Struct):
    """A record that is an item or an array of items, judged by itself (rule 30)."""

    items: list[Item]
    single: bool
    """A bare item: a lone output has no call before it to follow, and is only counted."""


class Request(Struct):
    """A `response.create` request: tools and tool_choice of the next response under its key (rule 22)."""

    tools: JsonText = None
    tool_choice: JsonText = None
    parallel_tool_calls: Any = None


class Mislabelled(Struct, frozen=True):
    """The next part came in an SSE frame whose `event:` line contradicts it (rule 29): to be counted, nothing else.

    What follows for the part is done already: a terminal event that is called otherwise arrives as `response.failed`.
    """


Part: TypeAlias = Event | WholeResponse | Journal | Request | Mislabelled


class Unreadable(Struct, frozen=True):
    """The record is a dead letter."""

    cause: Cause
    detail: str
    """For people: what was wrong and at which byte, never a value."""


Decoded: TypeAlias = Event | list[Part] | Unreadable
"""What one record's value says: one event (the common case, with no list around it), several parts, or nothing readable."""
