"""Decode under any bytes: it never raises, and its two readers never say different things (rules 26 and 27)."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw, Struct, structs

from processor.core import decode as subject
from processor.core.decode import decode, glimpse, needs_stream, stream_id
from processor.core.event_types import EVENT_TYPES
from processor.core.events import Decoded, Event, Unreadable
from processor.core.reasons import Cause
from processor.core.responses import ident_of

SUITE = Path(__file__).parents[3] / "shared" / "suites" / "json-parsing" / "test_parsing"

NAMES = st.sampled_from(
    [
        "type", "sequence_number", "output_index", "delta", "arguments", "name", "call_id", "item", "response", "id", "status",
        "model", "output", "tools", "tool_choice", "parallel_tool_calls", "content", "role", "namespace", "execution", "object",
        "specversion", "data", "data_base64", "input", "messages", "choices", "d\\u0065lta", "x", "\\ud800", "", "\\u0000",
    ]
)  # fmt: skip
"""Names as JSON text spells them, escapes and all."""
TYPES = st.sampled_from(
    ["response.create", "function_call", "function_call_output", "message", "a:b", "new", *sorted(EVENT_TYPES)]
)  # fmt: skip
SCALARS = st.one_of(
    st.sampled_from(
        [
            "null",
            "true",
            "0",
            "-0",
            "-0.0",
            "1.0",
            "1e2",
            "1E-400",
            "1e999",
            "18446744073709551616",
            "9007199254740993",
            "01",
            "NaN",
            "-Infinity",
            "nul",
            '"1.0"',
            '"response"',
            '""',
            '"\\ud83d"',
            '"\\ud83d\\ude00"',
            '"a\\u0000b"',
            '"\\q"',
            '"é"',
            '"\x7f"',
            '"\n"',
            '"response.completed"',
        ]
    ),
    st.integers().map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.text(max_size=8).map(lambda value: json.dumps(value, ensure_ascii=False)),
    TYPES.map(json.dumps),
)
BLANKS = st.sampled_from(["", "", "", " ", "\n", "\t", "\r"])


def written_objects(values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Objects as text: names repeat, values have any type, and there is blank space in odd places."""
    members = st.lists(st.tuples(BLANKS, NAMES, BLANKS, values), max_size=6)
    return members.map(lambda found: "{" + ",".join(f'{a}"{name}"{b}:{value}{a}' for a, name, b, value in found) + "}")


def written_arrays(values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Arrays as text."""
    return st.lists(values, max_size=4).map(lambda found: "[" + ",".join(found) + "]")


VALUES = st.recursive(SCALARS, lambda inner: written_objects(inner) | written_arrays(inner), max_leaves=12)
EVENTS = st.tuples(TYPES, written_objects(VALUES)).map(
    lambda found: f'{{"type":"{found[0]}"' + ("," if len(found[1]) > 2 else "") + found[1][1:]
)
RECORDS = st.one_of(EVENTS, EVENTS, VALUES, written_arrays(EVENTS))


def plain(value: object) -> object:
    """Turn parts into what can be compared: unparsed text is read, since its two spellings may differ."""
    if isinstance(value, Raw | bytes):
        return ("raw", json.loads(bytes(value)))
    if isinstance(value, Struct):
        return type(value).__name__, {name: plain(field) for name, field in structs.asdict(value).items()}
    if isinstance(value, list):
        return [plain(member) for member in value]
    return value


def same(one: object, other: object) -> bool:
    """Compare so that 1 is not 1.0 and 0.0 is not -0.0."""
    return repr(plain(one)) == repr(plain(other))


def fast(value: bytes) -> Decoded | None:
    """What the fast path alone says."""
    if value[:1] == b"[":
        return subject._fast_events(value)
    return subject._fast_event(value)


def check(value: bytes) -> None:
    """Whatever the bytes are: one of the three answers, a stream id or none, and no difference between the readers."""
    decoded = decode(value)
    assert isinstance(decoded, Event | list | Unreadable)
    assert isinstance(stream_id(None, [], "", decoded), str | None)
    if not isinstance(decoded, Unreadable):
        needs_stream(decoded)
    if (seen := glimpse(value)) is not None:
        assert type(decoded) is Event, value
        assert same([seen.type, seen.sequence_number], [decoded.type, decoded.sequence_number]), value
        assert ident_of(seen.response) == ident_of(decoded.response), value
    early = fast(value)
    if early is None:
        return
    late = subject._slow(value)
    if isinstance(late, Unreadable):
        # Rule 26: what is skipped need not be UTF-8.
        assert late.cause is Cause.NOT_TEXT
        assert not value.isascii()
    else:
        assert same(early, late), value


@given(st.binary(max_size=64))
def test_any_bytes(value: bytes) -> None:
    """Any bytes at all give an answer."""
    check(value)


@given(RECORDS)
def test_any_json(text: str) -> None:
    """JSON that looks like the forms, with everything wrong that can be: both readers agree wherever both accept."""
    check(text.encode())


@given(st.lists(st.one_of(EVENTS, VALUES, st.text(max_size=8)), max_size=3), st.sampled_from(["\n", "\r\n", "\r"]), TYPES)
def test_any_frames(datas: list[str], end: str, label: str) -> None:
    """Server-Sent Events around anything give an answer."""
    check("".join(f"event: {label}{end}data: {data}{end}{end}" for data in datas).encode())


@given(RECORDS, st.booleans())
def test_any_envelope(text: str, encoded: bool) -> None:
    """CloudEvents around anything read as what is inside, unless that is an envelope itself."""
    inside = decode(text.encode())
    member: dict[str, Any] = {"data_base64": base64.b64encode(text.encode()).decode()} if encoded else {"data": text}
    outside = decode(json.dumps({"specversion": "1.0", **member}).encode())
    if isinstance(outside, Unreadable) or isinstance(inside, Unreadable):
        assert isinstance(outside, Unreadable)
    else:
        assert same(inside, outside)


@given(RECORDS, st.data())
def test_damaged_json(text: str, data: st.DataObject) -> None:
    """A byte changed, dropped or doubled somewhere: an answer, and the same one from both readers."""
    value = bytearray(text.encode())
    place = data.draw(st.integers(0, len(value) - 1))
    value[place : place + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=2))
    check(bytes(value))


@pytest.mark.parametrize("name", sorted(EVENT_TYPES))
def test_fast_path_is_not_asleep(name: str) -> None:
    """The comparison means something: a well-formed event of a known type is read by the fast path, alone and in a batch."""
    item = {"type": "message", "content": [{"text": "hi"}]}
    event = {"type": name, "sequence_number": 1, "item": item, "response": {"id": "r", "output": [item], "tools": []}}
    assert isinstance(fast(json.dumps(event).encode()), Event)
    assert glimpse(json.dumps(event).encode()) is not None
    assert isinstance(fast(json.dumps([event, event]).encode()), list)


@pytest.mark.skipif(not SUITE.is_dir(), reason="../shared is not here")
@pytest.mark.parametrize(
    "place",
    ['{"type":"keepalive","delta":|}', '{"type":"keepalive","x":|}', '{"type":"response.created","response":{"tools":|}}', "|"],
)
def test_json_test_suite(place: str) -> None:
    """On JSONTestSuite, kept, skipped, unparsed or by itself: both readers agree, and what must be refused is."""
    before, after = place.encode().split(b"|")
    for file in sorted(SUITE.iterdir()):
        value = before + file.read_bytes() + after
        check(value)
        readable = not isinstance(decode(value), Unreadable)
        if after:
            assert readable or not file.name.startswith("y_"), file.name
            assert not readable or not file.name.startswith("n_"), file.name
