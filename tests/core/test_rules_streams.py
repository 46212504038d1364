"""Rules 10 to 17: responses under one key, sequence numbers, and how a response ends."""

import pytest

from tests import factories as make
from tests.core.deciding import ALERTS, LEEDS, YORK, decide, reasons, weather
from tests.factories import WEATHER, Json, added, announced, created, delta, done, numbered, pieces, response, terminal

CALL = [created(), *pieces(0, weather())]


def test_two_lists_of_tools_are_a_conflict() -> None:
    """Rule 10: two different non-empty lists of tools are a conflict; an empty one displaces nothing."""
    begun = [created(tools=[WEATHER]), done(0, weather())]
    turned = {name: WEATHER[name] for name in reversed(WEATHER)}
    assert reasons([*begun, terminal(tools=[turned])]) == [("c1", "ok")]
    assert reasons([*begun, terminal(tools=[])]) == [("c1", "ok")]
    assert reasons([*begun, terminal(tools=[ALERTS])]) == [("c1", "conflict")]
    assert reasons([*begun, terminal(tools=[WEATHER, ALERTS])]) == [("c1", "conflict")]


def test_created_again_starts_an_unnumbered_stream_again() -> None:
    """Rule 11: `response.created` for the open response starts its assembly again, where numbers do not sort it out."""
    assert reasons([*CALL[:3], *CALL, terminal()]) == [("c1", "ok")]
    first = numbered(CALL[:3])
    assert reasons([*first, *numbered(CALL), terminal()]) == [("c1", "ok")]


def test_a_repeat_equals_the_event_under_its_number() -> None:
    """Rule 12: a number seen before is a repeat where the event is the same; else the stream is unnumbered from there."""
    events = numbered([*CALL, terminal()])
    assert reasons([*events[:3], *events[1:]]) == [("c1", "ok")]
    other = {**delta(0, "x"), "sequence_number": 2}
    assert reasons([*events[:4], other, *events[4:]]) == [("c1", "conflict")]


def test_numbers_that_stand_still_say_nothing() -> None:
    """Rule 12: in a stream whose numbers stand still every event counts."""
    same = [{**event, "sequence_number": 0} for event in [created(), announced(0, weather()), delta(0, "x"), delta(0, "x")]]
    assert reasons([*same, done(0, weather(arguments="xx")), terminal()]) == [("c1", "arguments_parse")]


def test_texts_raise_the_number_and_are_never_compared() -> None:
    """Rule 12: events of other types raise the highest number; they are never compared."""
    text = {"type": "response.output_text.delta", "output_index": 0, "delta": "a", "sequence_number": 9}
    events = [*numbered(CALL), text, {**text, "delta": "b"}, {**terminal(), "sequence_number": 10}]
    assert reasons(events) == [("c1", "ok")]


@pytest.mark.parametrize("new", ["resp_2", "resp_0"])
def test_created_closes_what_is_open(new: str) -> None:
    """Rule 13: `response.created` closes another open response under its key, whether its own is new or known."""
    before = [created("resp_0"), terminal(response_id="resp_0")]
    assert reasons([*before, *CALL, created(new), terminal()]) == [("c1", "status")]


def test_a_replay_is_skipped_to_its_end() -> None:
    """Rule 13: the whole stream of a closed response, sent again, decides nothing new."""
    whole = [*CALL, terminal(output=[weather()])]
    assert reasons([*whole, *whole]) == [("c1", "ok")]
    failed = [*CALL, terminal("failed", output=None)]
    assert reasons([*failed, *whole]) == [("c1", "status")]


def test_any_record_of_a_known_response_renews_its_time() -> None:
    """Rule 13: what comes while nothing is open renews the known response, so a late terminal event decides nothing."""
    times: Json = {"stream_timeout_ms": 100, "closed_memory_ms": 50}
    ended = [*CALL, terminal("failed", output=None)]
    late = terminal(output=[weather()])
    log = [make.record(i, e, timestamp=1_000) for i, e in enumerate(ended)]
    between = make.record(6, {"type": "keepalive"}, timestamp=1_040)
    assert reasons([*log, between, make.record(7, late, timestamp=1_080)], **times) == [("c1", "status")]
    assert reasons([*log, make.record(7, late, timestamp=1_080)], **times) == [("c1", "status"), ("c1", "ok")]


def test_late_items_make_no_nameless_response() -> None:
    """Rule 14: after a close, item events are late while the response is known; with nothing known they begin one."""
    alone = [done(0, weather("c9")), terminal(output=None)]
    assert reasons([*CALL, terminal(), *alone]) == [("c1", "ok")]
    assert reasons(alone) == [("c9", "ok")]


def test_a_terminal_event_names_the_nameless_response() -> None:
    """Rule 15: a terminal event gives its name to the nameless response before it; `response.created` closes that one."""
    assert decide([done(0, weather()), terminal(response_id="resp_7", output=None)])[0]["response_id"] == "resp_7"
    assert reasons([done(0, weather()), created(), terminal()]) == [("c1", "status")]


def test_a_foreign_terminal_event() -> None:
    """Rule 15: a terminal event of another response closes nothing; where none is open it is decided from its own list."""
    foreign = terminal(response_id="resp_9", output=[weather("c9")])
    assert reasons([*CALL, foreign, terminal()]) == [("c1", "ok")]
    assert reasons([foreign]) == [("c9", "ok")]


@pytest.mark.parametrize(("status", "reason"), [("completed", "ok"), ("failed", "status"), ("cancelled", "status")])
def test_status_of_the_terminal_event(status: str, reason: str) -> None:
    """Rule 16: `response.completed` counts as what its `response.status` says."""
    assert reasons([*CALL, terminal(status=status, output=None)]) == [("c1", reason)]


@pytest.mark.parametrize(("status", "reason"), [("completed", "ok"), (None, "status"), ("in_progress", "status")])
def test_whole_response(status: str | None, reason: str) -> None:
    """Rule 16: a whole response without status, or not ended, gives `status`; with the open one's id it ends it."""
    whole = response("resp_1", status, output=[weather()])
    assert reasons([whole]) == [("c1", reason)]
    assert reasons([*CALL, whole, terminal()]) == [("c1", reason)]


def test_incomplete_cuts_off_the_last_item() -> None:
    """Rule 17: cut off are the item with the highest index and the last entry of the list; earlier calls are released."""
    events = [created(), done(0, weather("c1")), done(1, weather("c2", YORK))]
    assert reasons([*events, terminal("incomplete", output=None)]) == [("c1", "ok"), ("c2", "status")]
    listed = [weather("c1"), weather("c2", YORK), weather("c3", "{}")]
    assert reasons([*events, terminal("incomplete", output=listed)]) == [("c1", "ok"), ("c2", "status"), ("c3", "status")]
    text = {"type": "response.output_text.delta", "output_index": 2, "delta": "a"}
    assert reasons([*events, text, terminal("incomplete", output=None)]) == [("c1", "ok"), ("c2", "ok")]


@pytest.mark.parametrize("end", [terminal("failed"), terminal("cancelled"), {"type": "error", "message": "x"}])
def test_failed_and_cancelled_release_nothing(end: Json) -> None:
    """Rule 17: cancelled is failed; neither, nor an `error`, releases anything."""
    assert reasons([*CALL, end]) == [("c1", "status")]


def test_nameless_items_need_an_item() -> None:
    """Rules 1 and 14: `item: null` begins nothing."""
    assert reasons([added(0, None), terminal(output=[weather()])]) == [("c1", "ok")]
    assert reasons([delta(0, LEEDS), terminal(output=None)]) == [(None, "status")]
