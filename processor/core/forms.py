"""Which form a JSON value has, and its parts (design section 3, rules 26, 28 and 30).

Owns the recognition of forms and the making of parts from what the slow reader gave. It never reads bytes. A value is turned
into parts as a whole or refused as a whole.
"""

from collections.abc import Callable
from enum import Enum, auto
from typing import Any, TypeAlias

from processor.core.event_types import EVENT_TYPES, RESPONSE_CREATE
from processor.core.events import Event, Item, Journal, Part, Request, ResponseBody, WholeResponse
from processor.core.reasons import Cause
from processor.core.slow_json import NotReadableError, raw
from processor.core.vocabulary import ITEM_TYPES

Object: TypeAlias = dict[str, Any]
Unwrap: TypeAlias = Callable[[Object], list[Part]]
"""Reads a CloudEvents envelope; may raise NotReadableError."""

MAX_BATCHES = 8
"""Arrays in arrays. Nobody is known to send more than one; a bound of its own keeps the reader off the end of the stack."""

_EVENT_TRAITS = ("item_id", "content_index", "delta", "item", "response")
"""Fields, besides numbers, that an event of an unknown type is known by."""
_REQUEST_TRAITS = ("input", "previous_response_id", "conversation")


class Form(Enum):
    """What one JSON object is."""

    EVENT = auto()
    RESPONSE = auto()
    ITEM = auto()
    REQUEST = auto()
    ENVELOPE = auto()
    CHAT = auto()
    UNSURE = auto()
    """None of the others by itself; beside items in a journal it is one (rule 28: an unknown type without call_id)."""


def parts(value: Any, unwrap: Unwrap, level: int = 0) -> list[Part]:
    """Turn a JSON value into the parts of a record. An empty array is a batch with nothing in it.

    Raises NotReadableError: none of the forms, or one of its parts is not.
    """
    if isinstance(value, dict):
        return _object(value, unwrap)
    if not isinstance(value, list):
        raise NotReadableError(Cause.UNKNOWN_FORM, "neither a JSON object nor an array")
    if level == MAX_BATCHES:
        raise NotReadableError(Cause.TOO_DEEP, f"arrays in arrays deeper than {MAX_BATCHES}")
    forms = [form(member) if isinstance(member, dict) else None for member in value]
    if Form.CHAT in forms:
        raise NotReadableError(Cause.CHAT_COMPLETIONS, f"element {forms.index(Form.CHAT)} is of Chat Completions")
    if Form.ITEM in forms:
        for index, found in enumerate(forms):
            if found is not Form.ITEM and found is not Form.UNSURE:
                raise NotReadableError(Cause.UNKNOWN_FORM, f"element {index} is no item, others are")
        return [Journal([_item(member) for member in value], single=False)]
    found_parts: list[Part] = []
    for member in value:
        found_parts += parts(member, unwrap, level + 1)
    return found_parts


def form(value: Object) -> Form:
    """Recognise one JSON object."""
    if value.get("specversion") is not None:
        return Form.ENVELOPE
    name = value.get("type")
    if isinstance(name, str):
        if name in EVENT_TYPES:
            return Form.EVENT
        if name == RESPONSE_CREATE:
            return Form.REQUEST
    if value.get("object") == "response":
        return Form.RESPONSE
    if _is_chat(value):
        return Form.CHAT
    if isinstance(name, str):
        return _form_by_type(name, value)
    if value.get("call_id") is not None:
        return Form.ITEM
    if name is None and value.get("role") is not None and value.get("content") is not None:
        return Form.ITEM
    return Form.REQUEST if name is None and _is_request(value) else Form.UNSURE


def _form_by_type(name: str, value: Object) -> Form:
    """Recognise an object whose type is not a known event's."""
    if name in ITEM_TYPES:
        return Form.ITEM
    called = value.get("call_id") is not None
    if ":" in name:
        return Form.EVENT if value.get("sequence_number") is not None and not called else Form.ITEM
    if name.startswith("response.") or value.get("sequence_number") is not None or value.get("output_index") is not None:
        return Form.EVENT
    if called:
        return Form.ITEM
    return Form.EVENT if any(value.get(trait) is not None for trait in _EVENT_TRAITS) else Form.UNSURE


def _is_chat(value: Object) -> bool:
    """Chat Completions' objects, chunks and requests, and the messages of its history that carry calls or their results."""
    name = value.get("object")
    if isinstance(name, str) and name.startswith("chat.completion"):
        return True
    if isinstance(value.get("choices"), list) or isinstance(value.get("messages"), list):
        return True
    return bool(value.get("tool_calls")) or value.get("tool_call_id") is not None


def _is_request(value: Object) -> bool:
    """Recognise the HTTP body of a request by what it asks with: it has no type."""
    if value.get("object") is not None:
        return False
    if isinstance(value.get("prompt"), dict):
        return True
    named = value.get("model") is not None or value.get("tools") is not None
    return named and any(value.get(trait) is not None for trait in _REQUEST_TRAITS)


def _object(value: Object, unwrap: Unwrap) -> list[Part]:
    """Turn one JSON object into parts."""
    match form(value):
        case Form.EVENT:
            return [_event(value)]
        case Form.RESPONSE:
            return [WholeResponse(_body(value))]
        case Form.ITEM:
            return [Journal([_item(value)], single=True)]
        case Form.REQUEST:
            return [_request(value)]
        case Form.ENVELOPE:
            return unwrap(value)
        case Form.CHAT:
            raise NotReadableError(Cause.CHAT_COMPLETIONS, "a Chat Completions object")
        case Form.UNSURE:
            raise NotReadableError(Cause.UNKNOWN_FORM, "a JSON object of no known form")


def _event(value: Object) -> Event:
    """Make an event. One of an unknown or an extension's type decides nothing, so its item and response are not judged."""
    name = value["type"]
    known = name in EVENT_TYPES
    item, response = value.get("item"), value.get("response")
    if known:
        _expect_object(item, "item")
        _expect_object(response, "response")
    return Event(
        type=name,
        sequence_number=value.get("sequence_number"),
        output_index=value.get("output_index"),
        delta=value.get("delta"),
        arguments=value.get("arguments"),
        name=value.get("name"),
        call_id=value.get("call_id"),
        item=_item(item) if known and item is not None else None,
        response=_response(response, known=known),
    )


def _response(value: Any, *, known: bool) -> ResponseBody | None:
    """Make an event's response; of an event that decides nothing only the id counts (rule 27)."""
    if not isinstance(value, dict):
        return None
    return _body(value) if known else ResponseBody(id=value.get("id"))


def _body(value: Object) -> ResponseBody:
    """Make a response. An output that is no list is none; a member that is neither object nor null refuses the record."""
    output = value.get("output")
    items: list[Item | None] | None = None
    if isinstance(output, list):
        items = []
        for index, member in enumerate(output):
            _expect_object(member, f"output element {index}")
            items.append(None if member is None else _item(member))
    return ResponseBody(
        id=value.get("id"),
        status=value.get("status"),
        model=value.get("model"),
        output=items,
        tools=raw(value.get("tools")),
        tool_choice=raw(value.get("tool_choice")),
        parallel_tool_calls=value.get("parallel_tool_calls"),
    )


def _item(value: Object) -> Item:
    """Make an item, whatever its fields hold."""
    return Item(
        type=value.get("type"),
        id=value.get("id"),
        call_id=value.get("call_id"),
        name=value.get("name"),
        namespace=value.get("namespace"),
        arguments=value.get("arguments"),
        status=value.get("status"),
        role=value.get("role"),
        content=raw(value.get("content")),
        execution=value.get("execution"),
    )


def _request(value: Object) -> Request:
    """Make a request from a body, or from a message that has the body flat, in `response` or in `body`."""
    body = value
    for place in ("response", "body"):
        nested = value.get(place)
        if value.get("type") is None or nested is None:
            continue
        _expect_object(nested, place)
        # Two places could say two things, and the laxer one must not win by chance.
        if body is not value or any(value.get(name) is not None for name in ("tools", "tool_choice", "parallel_tool_calls")):
            raise NotReadableError(Cause.UNKNOWN_FORM, "a request that states its tools in two places")
        body = nested
    return Request(
        tools=raw(body.get("tools")),
        tool_choice=raw(body.get("tool_choice")),
        parallel_tool_calls=body.get("parallel_tool_calls"),
    )


def _expect_object(value: Any, what: str) -> None:
    """Refuse the record where a part of it is neither an object nor null."""
    if value is not None and not isinstance(value, dict):
        raise NotReadableError(Cause.UNKNOWN_FORM, f"{what} is neither an object nor null")
