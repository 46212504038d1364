"""Bytes to parts: what one record's value says, or why it is a dead letter (design section 3, rules 26 to 29).

One typed decode is the fast path, for the common event and for a batch of them. Whatever it refuses or does not know goes to
the slow reader, which is the authority: the fast path may only ever say the same, sooner. Neither raises anything for any
bytes, or reads a clock; what is kept between records (`tool_lists`) never changes what is said of one.
"""

import binascii
from collections.abc import Sequence
from typing import Any

from msgspec import MsgspecError, json

from processor.core import forms, slow_json, sse
from processor.core.event_types import EVENT_TYPES, RESPONSE_FAILED, TERMINAL_TYPES
from processor.core.events import Decoded, Event, Glimpse, Item, Journal, Mislabelled, Part, Unreadable, WholeResponse
from processor.core.reasons import Cause
from processor.core.slow_json import MAX_DEPTH, NotReadableError
from processor.core.text import is_text
from processor.core.tool_lists import LEAST_BYTES, MARK, ToolLists

_BRACE, _BRACKET = b"{["
_SHALLOW_BYTES = 2 * MAX_DEPTH
"""A shorter text cannot be nested too deep."""
_BLANK = b" \t\r\n"
_DONE = b"[DONE]"
"""The end marker of an SSE stream: no JSON, and it says nothing."""
_NULL = b"null"

# Stateless, and made once: making one costs as much as a thousand decodes.
_decode_event = json.Decoder(Event).decode
_decode_events = json.Decoder(list[Event]).decode
_glimpse = json.Decoder(Glimpse).decode


def decode(value: bytes | None, lists: ToolLists | None = None) -> Decoded:
    """Read one record's value, whole or not at all (rule 26).

    The parts are in order; an empty list was readable and says nothing. Raw parts of an event alias `value`. `lists` are those
    read before: without them the same is said, at more cost.
    """
    if not value:
        return Unreadable(Cause.EMPTY, "no value")
    size = len(value)
    if value[0] == _BRACE:
        if size > LEAST_BYTES and lists is not None and (echo := _echo(value, lists)) is not None:
            return echo
        try:
            event = _decode_event(value)
        except (MsgspecError, RecursionError):
            return _slow(value)
        if event.item is None and event.response is None and size <= _SHALLOW_BYTES:
            if event.specversion is None and (event.arguments is None or type(event.arguments) is str):
                return event  # the common case has nothing left to look at
        elif (settled := _known(event, value)) is not None:
            if lists is not None and settled.response is not None and settled.response.tools is not None:
                lists.learn(settled.response.tools)
            return settled
    elif value[0] == _BRACKET:
        events = _fast_events(value)
        if events is not None:
            return events
    return _slow(value)


def glimpse(value: bytes) -> Glimpse | None:
    """Read no more of a record than which event it is. None says nothing; else `decode` says the same of the same value.

    What is skipped is held against the grammar of JSON by msgspec, but not looked at as text: that is done here.
    """
    try:
        event = _glimpse(value)
    except (MsgspecError, RecursionError):
        return None
    if not value.isascii() and not is_text(value):
        return None
    if event.specversion is not None or (len(value) > _SHALLOW_BYTES and slow_json.too_deep(value)):
        return None
    return event


def stream_id(key: bytes | None, headers: Sequence[tuple[str, bytes | None]], key_header: str, decoded: Decoded) -> str | None:
    """Name the stream: the record key; where it is null the configured header; else the first response id of the payload.

    None: the record names no stream (see `needs_stream`). Bytes that are not UTF-8 become lone surrogates, which no UTF-8 key
    has, so that two keys never fall together; whoever writes the text must escape them.
    """
    if key is not None:
        return key.decode("utf-8", "surrogateescape")
    if key_header:
        for name, header in reversed(headers):
            if name == key_header and header is not None:
                return header.decode("utf-8", "surrogateescape")
    if isinstance(decoded, Unreadable):
        return None
    for part in (decoded,) if isinstance(decoded, Event) else decoded:
        if isinstance(part, Event | WholeResponse) and part.response is not None:
            named = part.response.id
            if isinstance(named, str) and named:
                return named
    return None


def needs_stream(decoded: Event | list[Part]) -> bool:
    """Say whether a record without a stream id is a dead letter, `no_key` (rule 27).

    Items, journals and whole responses are decided by themselves; events and requests say nothing without their stream.
    """
    if isinstance(decoded, Event):
        return True
    return any(not isinstance(part, Journal | WholeResponse | Mislabelled) for part in decoded)


def _echo(value: bytes, lists: ToolLists) -> Event | None:
    """Read an event with the list of tools that it echoes cut out, else None: not refused, only not known here.

    Where MARK is read as the tools of its response it stands for the list that was there, and that was looked at before, at
    the same depth: the value is well-formed, no deeper than what is left of it, and says the same.
    """
    found = lists.cut(value)
    if found is None:
        return None
    rest, tools = found
    try:
        event = _decode_event(rest)
    except (MsgspecError, RecursionError):
        return None
    response = event.response
    if response is None or response.tools is None or bytes(response.tools) != MARK or _known(event, rest) is None:
        return None
    response.tools = tools
    return event


def _fast_event(value: bytes) -> Event | None:
    """Read an event of a known type, else None: not refused, only not known here."""
    try:
        event = _decode_event(value)
    except (MsgspecError, RecursionError):
        return None
    return _known(event, value)


def _known(event: Event, value: bytes) -> Event | None:
    """Whether the typed decoder may speak for an event: a known type, no envelope, not nested too deep."""
    if event.specversion is not None:
        return None
    if len(value) > _SHALLOW_BYTES and slow_json.too_deep(value):
        return None
    return _settled(event)


def _fast_events(value: bytes) -> Event | list[Part] | None:
    """Read a batch of events of known types, else None."""
    try:
        events = _decode_events(value)
    except (MsgspecError, RecursionError):
        return None
    for event in events:
        if event.specversion is not None:
            return None
        if _settled(event) is None:
            return None
    if len(value) > _SHALLOW_BYTES and slow_json.too_deep(value):
        return None
    return events[0] if len(events) == 1 else list[Part](events)


def _settled(event: Event) -> Event | None:
    """Finish the unparsed parts of an event: null becomes None, and what is no text makes the event one for the slow reader.

    The typed decoder looks at neither. In texts that it skips that is right (rule 26), but tools are read later. Arguments that
    are an object are the slow reader's as well: the typed one rounds their numbers and drops names that come twice (rule 31).
    """
    if type(event.arguments) is dict or (event.item is not None and not _settled_item(event.item)):
        return None
    response = event.response
    if response is None:
        return event
    for item in response.output or ():
        if item is not None and not _settled_item(item):
            return None
    if response.tools is not None:
        tools = bytes(response.tools)
        if not is_text(tools):
            return None
        response.tools = None if tools == _NULL else tools
    if response.tool_choice is not None:
        choice = bytes(response.tool_choice)
        if not is_text(choice):
            return None
        response.tool_choice = None if choice == _NULL else choice
    return event


def _settled_item(item: Item) -> bool:
    """Only the presence of an item's content counts; arguments that are an object are not settled."""
    content = item.content
    if content is not None and len(content) == len(_NULL) and bytes(content) == _NULL:
        item.content = None
    return type(item.arguments) is not dict


def _slow(value: bytes) -> Decoded:
    """Read a value with the slow reader alone."""
    try:
        found = _read(value, _unwrap)
    except NotReadableError as refusal:
        return Unreadable(refusal.cause, refusal.detail)
    except RecursionError:
        # Out of reach while MAX_DEPTH is small; a caller at the end of its stack still gets a value.
        return Unreadable(Cause.TOO_DEEP, "nested too deep")
    if len(found) == 1 and isinstance(found[0], Event):
        return found[0]
    return found


def _read(value: bytes, unwrap: forms.Unwrap) -> list[Part]:
    """Read JSON, Server-Sent Events or the end marker; raises NotReadableError."""
    text = value.strip(_BLANK)
    if not text:
        raise NotReadableError(Cause.EMPTY, "nothing but white space")
    if text == _DONE:
        return []
    if text[0] not in (_BRACE, _BRACKET) and sse.recognised(value):
        return _read_frames(value, unwrap)
    return forms.parts(slow_json.loads(value), unwrap)


def _read_frames(value: bytes, unwrap: forms.Unwrap) -> list[Part]:
    """Read every frame; raises NotReadableError."""
    found: list[Part] = []
    for number, frame in enumerate(sse.frames(value), 1):
        data = frame.data
        event = _fast_event(data) if data[0] == _BRACE else None
        if event is not None:
            inside: list[Part] = [event]
        elif data.strip(_BLANK) == _DONE:
            continue
        else:
            try:
                inside = forms.parts(slow_json.loads(data), unwrap)
            except NotReadableError as refusal:
                raise NotReadableError(refusal.cause, f"data of frame {number}: {refusal.detail}") from None
        if frame.label and _mislabelled(inside, frame.label.decode("utf-8", "replace")):
            found.append(Mislabelled())
        found += inside
    return found


def _mislabelled(inside: list[Part], label: str) -> bool:
    """Hold an `event:` line against the parts of its frame (rule 29).

    The JSON counts, but what ends a response well may only be called that: else the end becomes a failure, which releases
    nothing. A whole response has no type; a completed one may only come as `response.completed`, or under a name of the
    platform's own.
    """
    contradicted = False
    for part in inside:
        if isinstance(part, Event) and part.type != label:
            contradicted = True
            if part.type in TERMINAL_TYPES and part.type != "error":
                part.type = RESPONSE_FAILED
        elif isinstance(part, WholeResponse) and label in EVENT_TYPES and label != f"response.{part.response.status}":
            contradicted = True
            if part.response.status == "completed":
                part.response.status = "failed"
    return contradicted


def _unwrap(envelope: dict[str, Any]) -> list[Part]:
    """Read what a CloudEvents 1.0 structured envelope holds; raises NotReadableError."""
    if envelope["specversion"] != "1.0":
        raise NotReadableError(Cause.UNKNOWN_FORM, "CloudEvents of another version than 1.0")
    data, encoded = envelope.get("data"), envelope.get("data_base64")
    if (data is None) == (encoded is None):
        raise NotReadableError(Cause.UNKNOWN_FORM, "a CloudEvents envelope with not exactly one of data and data_base64")
    if isinstance(encoded, str):
        try:
            decoded = binascii.a2b_base64(encoded, strict_mode=True)
        except ValueError:
            raise NotReadableError(Cause.NOT_JSON, "data_base64 is not base64") from None
        return _read(decoded, _refuse_envelope)
    if isinstance(data, str):
        try:
            text = data.encode()
        except UnicodeEncodeError:
            raise NotReadableError(Cause.NOT_TEXT, "data has a lone surrogate outside its JSON") from None
        return _read(text, _refuse_envelope)
    return forms.parts(data, _refuse_envelope)


def _refuse_envelope(_envelope: dict[str, Any]) -> list[Part]:
    """Refuse an envelope inside an envelope: nobody sends it, and it would nest without end."""
    raise NotReadableError(Cause.UNKNOWN_FORM, "a CloudEvents envelope inside another")
