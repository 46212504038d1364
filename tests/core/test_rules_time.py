"""Rules 18 to 21, 32 and 35: when a decision is made, in which order, and what it says of its records."""

import pytest

from tests import factories as make
from tests.core.deciding import LEEDS, YORK, decide, partition, published, reasons, weather
from tests.factories import Json, Record, announced, created, delta, done, pieces, record, response, terminal

TIMES: Json = {"stream_timeout_ms": 100, "closed_memory_ms": 50}
CALL = [created(), *pieces(0, weather())]


def at(timestamp: int, value: object, key: str = "stream-1", offset: int | None = None) -> Record:
    """A record of this time; its offset is the time where none is given."""
    return record(timestamp if offset is None else offset, value, key=key, timestamp=timestamp)  # type: ignore[arg-type]


def test_reasons_are_computed_when_the_call_is_released() -> None:
    """Rule 18: under `response` at the end, in the order of the table; under `item` at `done`."""
    events = [created(), done(0, weather()), done(0, weather()), terminal("failed", output=None)]
    assert reasons(events) == [("c1", "status")]
    assert reasons(events, release="item") == [("c1", "ok")]


@pytest.mark.parametrize("release", ["response", "item"])
def test_a_bound_is_hit_at_once(release: str) -> None:
    """Rule 18: a bound hit while deltas are collected is `limit`, at once and before any other reason; the rest is late."""
    events = [created(), announced(0, weather(namespace="other")), delta(0, LEEDS)]
    assert reasons(events, release=release, max_argument_bytes=10) == [("c1", "limit")]
    rest = [done(0, weather()), terminal(output=[weather()])]
    assert reasons([*events, *rest], release=release, max_argument_bytes=10) == [("c1", "limit")]
    two = [created(), announced(0, weather()), announced(1, weather("c2"))]
    assert reasons(two, release=release, max_calls=1) == [("c2", "limit")]


def test_a_bound_never_decides_a_finished_call_twice() -> None:
    """Rules 3 and 18: a second use of a finished call's id that passes a bound changes nothing."""
    events = [created(), done(0, weather()), announced(1, weather()), terminal(output=[weather()])]
    assert reasons(events, max_calls=1) == [("c1", "ok")]
    assert reasons(events, max_calls=1, release="item") == [("c1", "ok")]


def test_order_of_decisions() -> None:
    """Rule 19: by first appearance, then by place in the terminal list; under `item` in the order of the `done` events."""
    events = [
        created(),
        announced(0, weather("c1")),
        announced(1, weather("c2")),
        done(1, weather("c2")),
        done(0, weather("c1")),
    ]
    ended = [*events, terminal(output=[weather("c3", YORK), weather("c1"), weather("c2")])]
    assert [call_id for call_id, _ in reasons(ended)] == ["c1", "c2", "c3"]
    assert [call_id for call_id, _ in reasons(ended, release="item")] == ["c2", "c1", "c3"]


def test_silence_leaves_open_calls_as_timeout() -> None:
    """Rule 20: calls of a silent stream are `timeout`, those with an explicit other status are `status`."""
    events = [
        created(),
        announced(0, weather("c1")),
        done(1, weather("c2")),
        done(2, weather("c3", status=None)),
        done(3, weather("c4", status="incomplete")),
    ]
    expected = [("c1", "timeout"), ("c2", "timeout"), ("c3", "timeout"), ("c4", "status")]
    assert reasons(events, silence=True) == expected


def test_silence_is_measured_to_the_last_record() -> None:
    """Rule 20: exactly `stream_timeout` is silence; any event of the key resets it, a whole response or a journal does not."""
    begun = [at(1_000, created()), at(1_001, done(0, weather()))]
    end = at(1_101, terminal(output=None))
    assert reasons([*begun, at(1_100, terminal(output=None))], **TIMES) == [("c1", "ok")]
    assert reasons([*begun, end], **TIMES) == [("c1", "timeout")]
    assert reasons([*begun, at(1_050, {"type": "keepalive"}), end], **TIMES) == [("c1", "ok")]
    assert reasons([*begun, at(1_050, make.message()), end], **TIMES) == [("c1", "timeout")]
    assert reasons([*begun, at(1_050, response("other", "completed", output=[])), end], **TIMES) == [("c1", "timeout")]


def test_the_watermark_expires_before_the_record_is_read() -> None:
    """Rule 20: for each record the watermark moves, what is silent expires by first offset, then the record is read."""
    log = [
        at(1_000, done(0, weather("c1")), "k1"),
        at(1_001, done(0, weather("c2")), "k2"),
        at(1_000, {"type": "keepalive"}, "k1", offset=1_002),
        at(1_200, {"type": "response.completed", "response": response("r", "completed", output=[weather("c3")])}, "k3"),
    ]
    assert reasons(log, **TIMES) == [("c1", "timeout"), ("c2", "timeout"), ("c3", "ok")]


def test_a_closed_response_is_forgotten_at_its_moment() -> None:
    """Rule 20: after `closed_memory` without a record the same call is a new one."""
    first = [at(1_000, done(0, weather())), at(1_001, terminal(output=None))]
    again = [at(1_051, done(0, weather())), at(1_052, terminal(output=None))]
    sooner = [at(1_050, done(0, weather())), at(1_050, terminal(output=None), offset=1_051)]
    assert reasons([*first, *again], **TIMES) == [("c1", "ok"), ("c1", "ok")]
    assert reasons([*first, *sooner], **TIMES) == [("c1", "ok")]


def test_dead_letters_advance_the_watermark() -> None:
    """Rule 21: a dead letter advances the watermark and resets no stream."""
    begun = [at(1_000, done(0, weather()))]
    lines = reasons([*begun, at(1_050, b"not json"), at(1_100, b"\xff")], **TIMES)
    assert [line for line in lines if line[0]] == [("c1", "timeout")]


def test_a_late_record_keeps_its_own_time() -> None:
    """Rules 20 and 35: a record with an old timestamp moves no watermark; `event_time` is that of the releasing record."""
    log = [at(1_000, done(0, weather())), at(900, terminal(output=None), offset=1_001)]
    assert decide(log, **TIMES)[0]["event_time"] == decide([at(900, done(0, weather()))], release="item")[0]["event_time"]


def test_source_and_traceparent() -> None:
    """Rule 35: `source` spans the call's first and releasing record; `traceparent` is that of the finishing record."""
    events = [created(), announced(0, weather()), done(0, weather()), terminal(output=None)]
    log = [record(n, event, headers=[("traceparent", b"00-%d" % n)]) for n, event in enumerate(events)]
    for records, parent in ((log, b"00-2"), ([*log[:2], log[3]], b"00-3")):
        at_work = partition()
        at_work.feed(records, now_ms=0)
        (out,) = at_work.take()
        assert dict(out.headers)["traceparent"] == parent
        (decided,) = published([out])
        assert (decided["source"]["first_offset"], decided["source"]["last_offset"]) == (1, 3)


def test_a_later_verdict_has_the_same_id() -> None:
    """Rule 32: a second verdict on a call carries the id of the first, whatever it says and wherever it is read."""
    (first,) = decide([*CALL, terminal("failed", output=None)])
    (second,) = decide([record(100, event) for event in [*CALL, terminal()]])
    (other,) = decide([*CALL[1:], terminal(response_id="resp_2", output=None)])
    assert (first["reason"], second["reason"], other["reason"]) == ("status", "ok", "ok")
    assert first["id"] == second["id"] != other["id"]
