"""Decode: the forms of a record's value and their parts, one by one (design section 3, rules 26 to 30)."""

import base64
import json
from typing import Any

import pytest
from msgspec import Raw

from processor.core.decode import decode, needs_stream, stream_id
from processor.core.event_types import EVENT_TYPES, TERMINAL_TYPES
from processor.core.events import Decoded, Event, Item, Journal, JsonText, Part, Request, Unreadable, WholeResponse
from processor.core.forms import MAX_BATCHES
from processor.core.reasons import Cause
from processor.core.slow_json import MAX_DEPTH, too_deep
from processor.core.vocabulary import ITEM_TYPES, Kind, item_kind, item_label, journal_kind

CALL: dict[str, Any] = {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{}", "status": "completed"}
OUTPUT = {"type": "function_call_output", "call_id": "call_1", "output": "sunny"}
DONE = {"type": "response.output_item.done", "output_index": 0, "item": CALL}
CHUNK = {"object": "chat.completion.chunk", "choices": []}
TOOLS = [{"type": "function", "name": "f", "parameters": {}}]


def read(value: object) -> Decoded:
    """Decode a value written as JSON."""
    return decode(json.dumps(value).encode())


def one(decoded: Decoded) -> Event:
    """Expect exactly one event, with no list around it."""
    assert isinstance(decoded, Event)
    return decoded


def only(decoded: Decoded) -> Part:
    """Expect a list of exactly one part."""
    assert isinstance(decoded, list)
    [part] = decoded
    return part


def cause(decoded: Decoded) -> Cause:
    """Expect a dead letter, and say why it is one."""
    assert isinstance(decoded, Unreadable), decoded
    return decoded.cause


def text(raw: JsonText) -> Any:
    """Read an unparsed part."""
    assert raw is not None
    return json.loads(bytes(raw))


def test_event_is_read_field_by_field() -> None:
    """An event hands over what decisions are made from, and nothing around it."""
    event = one(read({**DONE, "sequence_number": 3, "item_id": "fc_1"}))
    assert (event.type, event.sequence_number, event.output_index) == ("response.output_item.done", 3, 0)
    assert event.item == Item(type="function_call", call_id="call_1", name="f", arguments="{}", status="completed")
    assert event.response is None


def test_null_and_absent_are_the_same() -> None:
    """Rule 7: null says what absent says, in unparsed parts and in items too."""
    body = {"tools": None, "tool_choice": None, "output": [None, {"type": "message", "content": None}]}
    event = one(read({"type": "response.completed", "item": None, "response": body}))
    assert event.item is None
    assert event.response is not None
    assert (event.response.tools, event.response.tool_choice) == (None, None)
    assert event.response.output == [None, Item(type="message")]


def test_tools_stay_unparsed() -> None:
    """The tools of a response are handed over as the bytes that came."""
    value = b'{"type":"response.created","response":{"id":"r","tools":[ {"name":"f"} ],"tool_choice":"auto"}}'
    event = one(decode(value))
    assert event.response is not None
    assert bytes(event.response.tools or b"") == b'[ {"name":"f"} ]'
    assert text(event.response.tool_choice) == "auto"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, Cause.EMPTY),
        (b"", Cause.EMPTY),
        (b" \r\n", Cause.EMPTY),
        (b"\xff\xfe{}", Cause.NOT_TEXT),
        ('{"type":"keepalive"}'.encode("utf-16-le"), Cause.NOT_JSON),
        (b'\xef\xbb\xbf{"type":"keepalive"}', Cause.NOT_JSON),
        (b'{"type":"keepalive","delta":"\xff"}', Cause.NOT_TEXT),
        (b'{"type":"response.created","response":{"tools":["\xff"]}}', Cause.NOT_TEXT),
        (b'{"type":"keepalive","delta":NaN}', Cause.NOT_JSON),
        (b'{"type":"keepalive","x":-Infinity}', Cause.NOT_JSON),
        (b'{"type":"keepalive","delta":"a\nb"}', Cause.NOT_JSON),
        (b'{"type":"keepalive"}{"type":"keepalive"}', Cause.NOT_JSON),
        (b'{"type":"keepalive"}\n{"type":"keepalive"}', Cause.NOT_JSON),
        (b'{"type":"keepalive"', Cause.NOT_JSON),
        (b"plain words", Cause.NOT_JSON),
        (b"true", Cause.UNKNOWN_FORM),
        (b'"{}"', Cause.UNKNOWN_FORM),
        (b"{}", Cause.UNKNOWN_FORM),
        (b'{"type":"user_signed_up","user":5}', Cause.UNKNOWN_FORM),
        (b'{"type":"response.output_item.done","item":5}', Cause.UNKNOWN_FORM),
        (b'{"type":"response.completed","response":"r"}', Cause.UNKNOWN_FORM),
        (b'{"type":"response.completed","response":{"output":[5]}}', Cause.UNKNOWN_FORM),
        (b"[1]", Cause.UNKNOWN_FORM),
        (b"[null]", Cause.UNKNOWN_FORM),
    ],
)
def test_dead_letters(value: bytes | None, expected: Cause) -> None:
    """Rules 26 and 27: what cannot be read as a whole is a dead letter with the right cause."""
    assert cause(decode(value)) is expected


def test_detail_names_the_byte_and_no_value() -> None:
    """The detail says where the fault is, in bytes, and quotes nothing."""
    decoded = decode('{"type":"é","secret" "hush"}'.encode())
    assert decoded == Unreadable(Cause.NOT_JSON, "Expecting ':' delimiter at byte 22")


def test_output_that_is_no_list_is_none() -> None:
    """A placeholder in the place of output says nothing."""
    placeholders: list[object] = [None, 5, "", {}]
    for placeholder in placeholders:
        event = one(read({"type": "response.completed", "response": {"output": placeholder}}))
        assert event.response is not None
        assert event.response.output is None


def test_last_of_two_equal_names_wins() -> None:
    """Rule 27: in the outer JSON the last of two equal names counts, by whichever reader."""
    fast = one(decode(b'{"type":"keepalive","delta":"a","delta":"b"}'))
    slow = one(decode(b'{"type":"keepalive","type":"keepalive","item":5,"item":{"id":"x","id":"\\ud800"}}'))
    assert fast.delta == "b"
    assert slow.item == Item(id="\ud800")


def test_lone_surrogates_are_kept() -> None:
    """Half a surrogate pair in a delta is kept (its other half may come), and survives in tools as an escape."""
    event = one(decode(b'{"type":"response.function_call_arguments.delta","delta":"\\ud83d"}'))
    assert event.delta == "\ud83d"
    created = one(decode(b'{"type":"response.created","response":{"tools":["\\ud83d"],"tool_choice":1e999}}'))
    assert created.response is not None
    assert bytes(created.response.tools or b"") == b'["\\ud83d"]'
    assert bytes(created.response.tool_choice or b"") == b"1e999"


def test_numbers_of_any_size_are_safe() -> None:
    """A number that no double holds is read, stays a number, and is written back as it came."""
    digits = "9" * 6_000
    event = one(decode(b'{"type":"keepalive","sequence_number":%s,"delta":-1e999}' % digits.encode()))
    assert event.sequence_number == float("inf")
    assert event.delta == float("-inf")
    request = only(decode(b'{"type":"response.create","tools":[{"a":[%s,-1e999,{"\\ud800":null}]}]}' % digits.encode()))
    assert isinstance(request, Request)
    assert bytes(request.tools or b"") == b'[{"a":[%s,-1e999,{"\\ud800":null}]}]' % digits.encode()


@pytest.mark.parametrize("depth", [MAX_DEPTH - 1, MAX_DEPTH, 2_000, 200_000])
@pytest.mark.parametrize("field", ["x", "delta"])
def test_depth_has_one_bound_in_both_readers(depth: int, field: str) -> None:
    """Nesting is judged by the bytes alone, in skipped parts and kept ones, and the deepest text does no harm."""
    for opening, closing in (("[", "]"), ('{"\\"[":1," ":', "}")):
        nested = opening * depth + "1" + closing * depth
        decoded = decode(f'{{"type":"keepalive","{field}":{nested}}}'.encode())
        if depth < MAX_DEPTH:
            assert isinstance(decoded, Event)
        else:
            assert cause(decoded) is Cause.TOO_DEEP


def test_wide_is_not_deep() -> None:
    """Many brackets, also in strings and after escapes, are not depth."""
    wide = [{"a": [{"b": {}}], "[[[{{{": '\\"[[[\\'} for _ in range(1_000)]
    assert not too_deep(json.dumps(wide).encode())
    assert isinstance(read({"type": "response.created", "response": {"tools": wide}}), Event)


def test_known_types_are_events_and_terminal_ones_are_known() -> None:
    """Every event type of the vocabulary is read as an event, and no item type is one."""
    for name in EVENT_TYPES:
        assert one(read({"type": name})).type == name
    assert TERMINAL_TYPES < EVENT_TYPES
    assert not EVENT_TYPES & ITEM_TYPES


@pytest.mark.parametrize(
    "value",
    [
        {"type": "response.brand_new.delta", "call_id": "c"},
        {"type": "ping", "sequence_number": 4},
        {"type": "thinking", "item_id": "x", "item": 5, "response": 7},
        {"type": "acme:trace", "sequence_number": 4, "item": 5},
    ],
)
def test_unknown_events_are_events_that_decide_nothing(value: dict[str, Any]) -> None:
    """Rules 26 and 28: events of unknown or extension types are read, and their item and response are not judged."""
    event = one(read(value))
    assert (event.type, event.item, event.response) == (value["type"], None, None)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (CALL, Kind.CALL),
        (OUTPUT, Kind.OUTPUT),
        ({"type": "message", "role": "user", "content": "hi"}, Kind.COUNTED),
        ({"type": "program", "call_id": "c"}, Kind.COUNTED),
        ({"type": "custom_tool_call"}, Kind.ACTION),
        ({"type": "shell_call", "call_id": "c"}, Kind.ACTION),
        ({"type": "tool_search_call", "call_id": "c", "execution": "client"}, Kind.ACTION),
        ({"type": "tool_search_call", "call_id": None, "execution": "server"}, Kind.COUNTED),
        ({"type": "tool_search_call", "call_id": "c", "execution": "server"}, Kind.COUNTED),
        ({"type": "tool_search_call", "execution": "client"}, Kind.ACTION),
        ({"type": "tool_search_call", "call_id": "c"}, Kind.ACTION),
        ({"type": "future_call", "call_id": "c"}, Kind.ACTION),
        ({"type": "openai:web_search_call", "id": "x"}, Kind.NAMESPACED),
        ({"type": "acme:call", "sequence_number": 1, "call_id": "c"}, Kind.NAMESPACED),
        ({"call_id": "c", "name": "f"}, Kind.NAMESPACED),
        ({"type": 5, "call_id": "c"}, Kind.NAMESPACED),
        ({"type": "", "call_id": "c"}, Kind.NAMESPACED),
        ({"role": "user", "content": "hi"}, Kind.COUNTED),
    ],
)
def test_single_items_and_their_kinds(value: dict[str, Any], kind: Kind) -> None:
    """Rules 28 and 30: a lone item is a journal of one, and its type says what it means."""
    journal = only(read(value))
    assert isinstance(journal, Journal)
    assert journal.single
    assert journal_kind(journal.items[0]) is kind


def test_untyped_messages_are_messages_in_journals_only() -> None:
    """Rule 30: outside a journal an item without a type is a provider's extension."""
    assert item_kind(Item(role="user", content=Raw(b'"hi"'))) is Kind.NAMESPACED


def test_labels_are_a_closed_list() -> None:
    """What is counted by type never takes a name from the wire."""
    assert [item_label(Item(type=name)) for name in ("reasoning", "a:b", "new", 5, None)] == [
        "reasoning",
        "extension",
        "unknown",
        "unknown",
        "unknown",
    ]


def test_array_of_items_is_one_journal() -> None:
    """Form 5: an array of items is judged as one, and an unknown type without call_id is one of them (rule 28)."""
    journal = only(read([CALL, OUTPUT, {"type": "future_note"}, {"role": "user", "content": "hi"}]))
    assert isinstance(journal, Journal)
    assert not journal.single
    assert [item.type for item in journal.items] == ["function_call", "function_call_output", "future_note", None]


def test_array_of_events_is_a_batch() -> None:
    """Form 3: a batch gives its events in order, of unknown types too, in arrays of arrays too."""
    for batch in ([{"type": "keepalive"}, DONE], [{"type": "ping", "item_id": "x"}, DONE], [[{"type": "keepalive"}], [[DONE]]]):
        decoded = read(batch)
        assert isinstance(decoded, list)
        assert [type(part) for part in decoded] == [Event, Event]
    assert one(read([DONE])).output_index == 0
    assert read([]) == []


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ([CALL, DONE], Cause.UNKNOWN_FORM),
        ([CALL, [DONE]], Cause.UNKNOWN_FORM),
        ([CALL, None], Cause.UNKNOWN_FORM),
        ([{"type": "future_note"}], Cause.UNKNOWN_FORM),
        ([DONE, {"type": "future_note"}], Cause.UNKNOWN_FORM),
        ([CALL, CHUNK], Cause.CHAT_COMPLETIONS),
        ([DONE, CHUNK], Cause.CHAT_COMPLETIONS),
        ([CALL, {"role": "tool", "tool_call_id": "call_1", "content": "x"}], Cause.CHAT_COMPLETIONS),
        ({"type": "message", "role": "assistant", "tool_calls": [{"id": "call_1"}]}, Cause.CHAT_COMPLETIONS),
        (CHUNK, Cause.CHAT_COMPLETIONS),
        ({"object": "chat.completion", "choices": [{}]}, Cause.CHAT_COMPLETIONS),
        ({"model": "m", "messages": [{"role": "user", "content": "hi"}], "tools": []}, Cause.CHAT_COMPLETIONS),
        ({"specversion": "1.0", "type": "x", "data": CHUNK}, Cause.CHAT_COMPLETIONS),
    ],
)
def test_mixed_envelopes_are_seen(value: object, expected: Cause) -> None:
    """Rule 26: one part that does not belong makes the whole record a dead letter; Chat Completions has its own cause."""
    assert cause(read(value)) is expected


def test_arrays_in_arrays_have_a_bound() -> None:
    """Arrays of arrays end somewhere, well before the stack does."""
    value: object = DONE
    for _ in range(MAX_BATCHES):
        value = [value]
    assert isinstance(read(value), Event)
    assert cause(read([value])) is Cause.TOO_DEEP


def test_whole_response() -> None:
    """Form 4: an object that says `response` is one, with its items."""
    whole = only(read({"object": "response", "id": "r", "status": "completed", "output": [CALL, None], "tools": TOOLS}))
    assert isinstance(whole, WholeResponse)
    assert whole.response.output is not None
    assert whole.response.output[0] == Item(**CALL)
    assert whole.response.output[1] is None
    assert text(whole.response.tools) == TOOLS
    assert cause(read({"object": "response", "output": [CALL, 5]})) is Cause.UNKNOWN_FORM


@pytest.mark.parametrize(
    "value",
    [
        {"type": "response.create", "tools": TOOLS, "tool_choice": "none", "parallel_tool_calls": False},
        {"type": "response.create", "response": {"tools": TOOLS, "tool_choice": "none", "parallel_tool_calls": False}},
        {"type": "response.create", "body": {"tools": TOOLS, "tool_choice": "none", "parallel_tool_calls": False}},
        {"model": "m", "input": "hi", "tools": TOOLS, "tool_choice": "none", "parallel_tool_calls": False},
        {"prompt": {"id": "pmpt_1"}, "tools": TOOLS, "tool_choice": "none", "parallel_tool_calls": False},
        {"model": "m", "previous_response_id": "r", "tools": TOOLS, "tool_choice": "none", "parallel_tool_calls": False},
    ],
)
def test_requests(value: dict[str, Any]) -> None:
    """Form 6: a request brings tools, tool_choice and parallel_tool_calls, flat or nested, as a message or as an HTTP body."""
    request = only(read(value))
    assert isinstance(request, Request)
    assert text(request.tools) == TOOLS
    assert text(request.tool_choice) == "none"
    assert request.parallel_tool_calls is False


def test_request_that_states_its_tools_twice_is_refused() -> None:
    """Of two places the laxer one must not win by chance."""
    body = {"tools": TOOLS}
    assert cause(read({"type": "response.create", "tools": [], "response": body})) is Cause.UNKNOWN_FORM
    assert cause(read({"type": "response.create", "body": body, "response": body})) is Cause.UNKNOWN_FORM
    assert cause(read({"type": "response.create", "response": 5})) is Cause.UNKNOWN_FORM


@pytest.mark.parametrize(
    "data",
    [
        {"data": DONE},
        {"data": [DONE]},
        {"data": json.dumps(DONE)},
        {"data": f"event: response.output_item.done\ndata: {json.dumps(DONE)}\n\n"},
        {"data_base64": base64.b64encode(json.dumps(DONE).encode()).decode()},
    ],
)
@pytest.mark.parametrize("name", ["com.example.event", "response.completed"])
def test_cloud_events(data: dict[str, Any], name: str) -> None:
    """Form 7: any form inside an envelope, as JSON, text or base64; the envelope's own type is never taken for an event's."""
    envelope = {"specversion": "1.0", "id": "1", "source": "/a", "type": name, **data}
    assert one(read(envelope)).type == "response.output_item.done"
    batch = read([envelope, envelope])
    assert isinstance(batch, list)
    assert [type(part) for part in batch] == [Event, Event]


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"data": None},
        {"data": DONE, "data_base64": "e30="},
        {"data": 5},
        {"data_base64": 5},
        {"data_base64": "e30"},
        {"data": "words"},
        {"data": "\ud800"},
        {"data": {"specversion": "1.0", "data": DONE}},
        {"data": DONE, "specversion": "0.3"},
        {"data": DONE, "specversion": 1},
    ],
)
def test_cloud_events_that_cannot_be_read(data: dict[str, Any]) -> None:
    """An envelope of another version, with no data, with two, or with another envelope in it is a dead letter."""
    cause(read({"specversion": "1.0", "id": "1", "source": "/a", "type": "t", **data}))


def test_stream_is_named_by_key_then_header_then_response() -> None:
    """Design section 3: the record key, else the configured header, else the payload's response id."""
    decoded = read([{"type": "keepalive"}, {"type": "response.created", "response": {"id": "resp_1"}}])
    headers = [("stream", b"first"), ("stream", b"last"), ("stream", None), ("other", b"x")]
    assert stream_id(b"key", headers, "stream", decoded) == "key"
    assert stream_id(b"", headers, "stream", decoded) == ""
    assert stream_id(None, headers, "stream", decoded) == "last"
    assert stream_id(None, headers, "", decoded) == "resp_1"
    assert stream_id(None, [], "stream", read({"type": "acme:x", "sequence_number": 1, "response": {"id": "r"}})) == "r"
    assert stream_id(None, [], "", read({"object": "response", "id": "resp_2"})) == "resp_2"
    for response_id in (None, "", 5):
        assert stream_id(None, [], "", read({"type": "response.created", "response": {"id": response_id}})) is None
    assert stream_id(None, [], "", decode(b"x")) is None


def test_distinct_keys_are_distinct_streams() -> None:
    """Any bytes can be a key, and no two of them fall together."""
    keys = [b"\xff", b"\\xff", "\udcff".encode("utf-8", "surrogatepass"), b"\xff\xfe", b"\xc3\xbf", b""]
    assert len({stream_id(key, [], "", []) for key in keys}) == len(keys)


@pytest.mark.parametrize(
    ("value", "needed"),
    [
        ({"type": "keepalive"}, True),
        ([DONE, DONE], True),
        ({"type": "response.create"}, True),
        (CALL, False),
        ([CALL], False),
        ({"object": "response"}, False),
        ([], False),
    ],
)
def test_who_needs_a_stream(value: object, needed: bool) -> None:
    """Rule 27: events need a stream, and so do requests; items, journals and whole responses are decided by themselves."""
    decoded = read(value)
    assert not isinstance(decoded, Unreadable)
    assert needs_stream(decoded) is needed
