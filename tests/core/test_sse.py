"""Server-Sent-Events text: lines, fields, frames and their labels (design section 3, form 2; rule 29)."""

import json

import pytest

from processor.core.decode import decode
from processor.core.events import Event, Mislabelled, Part, Unreadable, WholeResponse
from processor.core.reasons import Cause

KEEPALIVE = '{"type":"keepalive"}'
COMPLETED = '{"type":"response.completed","response":{"id":"r","status":"completed"}}'


def parts(text: str) -> list[Part]:
    """Decode text that can be read, always as a list."""
    decoded = decode(text.encode())
    assert not isinstance(decoded, Unreadable), decoded
    return [decoded] if isinstance(decoded, Event) else decoded


def types(text: str) -> list[str]:
    """Types of the events of a text that has only events."""
    found = []
    for part in parts(text):
        assert isinstance(part, Event)
        found.append(part.type)
    return found


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
def test_every_line_end_of_the_standard(end: str) -> None:
    """CR, LF and CRLF end lines alike, and a space after the colon is optional."""
    text = f": hello||event:keepalive|data:{KEEPALIVE}||event: keepalive|data: {KEEPALIVE}||"
    assert types(text.replace("|", end)) == ["keepalive", "keepalive"]


def test_fields_that_say_nothing_are_ignored() -> None:
    """Comments, id, retry and unknown fields, with and without colon, change nothing."""
    assert types(f"type: x\nid: 7\nretry: 10\nid\n:\nwhatever\ndata: {KEEPALIVE}\n\n") == ["keepalive"]


def test_data_lines_are_joined_by_newlines() -> None:
    """One JSON text may run over several data lines, split where a newline may stand."""
    assert types('data: {"type":\ndata:"keepalive"\ndata\ndata: }\n\n') == ["keepalive"]
    broken = decode(b'data: {"type":"keep\ndata: alive"}\n\n')
    assert isinstance(broken, Unreadable)
    assert broken.cause is Cause.NOT_JSON


def test_last_frame_may_run_to_the_end() -> None:
    """A frame cut off before its blank line is read; one cut off inside its JSON is a dead letter."""
    assert types(f"data: {KEEPALIVE}") == ["keepalive"]
    assert isinstance(decode(b'data: {"type":"keep'), Unreadable)


def test_byte_order_mark_before_the_first_line() -> None:
    """The standard takes one byte order mark off the start of a stream."""
    assert types(f"\ufeffdata: {KEEPALIVE}\n\n") == ["keepalive"]


@pytest.mark.parametrize(
    "text", ["data: [DONE]\n\n", "data:[DONE]", "[DONE]", " [DONE]\n", ": ping\n\n", "retry: 3\n", "data:\n\n"]
)
def test_what_says_nothing_is_read_and_empty(text: str) -> None:
    """End markers, comments and empty frames are no dead letters and have no parts."""
    assert decode(text.encode()) == []


def test_done_after_events_is_ignored() -> None:
    """The end marker may follow in the same record."""
    assert types(f"data: {KEEPALIVE}\n\ndata: [DONE]\n\n") == ["keepalive"]


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (f"data: {KEEPALIVE}data: {KEEPALIVE}\n\n", Cause.NOT_JSON),
        (f"data: {KEEPALIVE}{KEEPALIVE}\n\n", Cause.NOT_JSON),
        (f"data: {KEEPALIVE}\ndata: {KEEPALIVE}\n\n", Cause.NOT_JSON),
        (f"data: {KEEPALIVE}\n\ndata: nonsense\n\n", Cause.NOT_JSON),
        (f"data: data: {KEEPALIVE}\n\n", Cause.NOT_JSON),
        (f"{KEEPALIVE}\ndata: {KEEPALIVE}\n\n", Cause.NOT_JSON),
        ("id: 5\nname: foo\n", Cause.NOT_JSON),
        ('data: {"object":"chat.completion.chunk","choices":[]}\n\n', Cause.CHAT_COMPLETIONS),
        (f"data: {KEEPALIVE}\n\ndata: {{}}\n\n", Cause.UNKNOWN_FORM),
    ],
)
def test_one_bad_frame_refuses_the_record(text: str, cause: Cause) -> None:
    """Rule 26: frames run together, or one that cannot be read, make the whole record a dead letter."""
    decoded = decode(text.encode())
    assert isinstance(decoded, Unreadable)
    assert decoded.cause is cause


def test_any_form_fits_into_a_frame() -> None:
    """The data of a frame may be a whole response, a batch, or an envelope with frames of its own."""
    envelope = json.dumps({"specversion": "1.0", "type": "t", "data": f"data: {KEEPALIVE}\n\n"})
    found = parts(f'data: {{"object":"response"}}\n\ndata: [{KEEPALIVE},{KEEPALIVE}]\n\ndata: {envelope}\n\n')
    assert [type(part) for part in found] == [WholeResponse, Event, Event, Event]


@pytest.mark.parametrize("label", ["", "event:\n", "event: message\n", "event: response.completed\n"])
def test_fitting_labels_and_none_change_nothing(label: str) -> None:
    """A label that is absent, the standard's default, or the JSON type is no contradiction."""
    assert types(f"{label}data: {COMPLETED}\n\n") == ["response.completed"]


@pytest.mark.parametrize("label", ["response.failed", "response.created", "done", "response.completed "])
@pytest.mark.parametrize("name", ["response.completed", "response.incomplete"])
def test_mislabelled_end_did_not_end_well(label: str, name: str) -> None:
    """Rule 29: a terminal event that is called otherwise arrives as a failure, with a mark before it to be counted."""
    mark, event = parts(f"event: {label}\ndata: {COMPLETED.replace('response.completed', name)}\n\n")
    assert isinstance(mark, Mislabelled)
    assert isinstance(event, Event)
    assert event.type == "response.failed"


def test_mislabelled_event_keeps_its_type() -> None:
    """Rule 29: the JSON counts; elsewhere the contradiction is only marked."""
    mark, event = parts(f"event: response.failed\ndata: {KEEPALIVE}\n\n")
    assert isinstance(mark, Mislabelled)
    assert isinstance(event, Event)
    assert event.type == "keepalive"


def test_label_lasts_for_one_frame() -> None:
    """A label says nothing about the next frame, and a frame without data takes its label with it."""
    assert types(f"event: response.failed\n\ndata: {COMPLETED}\n\n") == ["response.completed"]
    assert types(f"event: keepalive\ndata: {KEEPALIVE}\n\ndata: {COMPLETED}\n\n") == ["keepalive", "response.completed"]


@pytest.mark.parametrize(
    ("label", "status"), [("response.failed", "failed"), ("response.completed", "completed"), ("x", "completed")]
)
def test_label_of_a_whole_response(label: str, status: str) -> None:
    """A completed response may only come under the name of its completion, or under a name of the platform's own."""
    whole = parts(f'event: {label}\ndata: {{"object":"response","status":"completed"}}\n\n')[-1]
    assert isinstance(whole, WholeResponse)
    assert whole.response.status == status
