"""Rules 22, 24, 28 to 31 and 34: requests, other forms of a record, bounds and tolerances, through a whole partition."""

from typing import Any

import pytest

from tests.core.deciding import ALERTS, LEEDS, PAY, YORK, decide, reasons, weather
from tests.factories import (
    WEATHER,
    Json,
    added,
    announced,
    call_output,
    created,
    delta,
    done,
    function_call,
    pieces,
    record,
    sse,
    terminal,
    text,
)

CALL = [created(), *pieces(0, weather())]


def request(**more: Any) -> Json:
    """A `response.create`."""
    return {"type": "response.create", "response": {"model": "m-1", **more}}


def test_parallel_calls_that_were_forbidden() -> None:
    """Rule 22: with `parallel_tool_calls: false` the second and later calls of the response are `not_allowed`."""
    events = [created(parallel_tool_calls=False), done(0, weather("c1")), done(1, weather("c2")), terminal(output=None)]
    assert reasons(events) == [("c1", "ok"), ("c2", "not_allowed")]


def test_a_request_serves_the_next_response_once() -> None:
    """Rule 22: `response.create` serves the next response under its key, once; what the response echoes takes its place."""
    first, second = [*CALL, terminal(output=None)], [created("resp_2"), done(0, weather()), terminal(response_id="resp_2")]
    asked = [request(tools=[ALERTS]), *first, *second]
    assert reasons(asked, tools="stream") == [("c1", "unknown_tool"), ("c1", "unknown_tool")]
    echoed = [created(tools=[WEATHER]), *CALL[1:], terminal(output=None)]
    assert reasons([request(tools=[ALERTS]), *echoed], tools="stream") == [("c1", "ok")]
    assert reasons([request(tools=[WEATHER]), *first, *second], tools="stream") == [("c1", "ok"), ("c1", "unknown_tool")]


def test_every_known_tool_choice_binds() -> None:
    """Rule 22: the request's tool_choice binds beside the echoed one, and later ones beside earlier ones."""
    ends = [*CALL[1:], terminal(output=None)]
    assert reasons([request(tool_choice="none"), created(tool_choice="auto"), *ends]) == [("c1", "not_allowed")]
    assert reasons([created(tool_choice="auto"), *CALL[1:], terminal(output=None, tool_choice="none")]) == [
        ("c1", "not_allowed")
    ]


def test_a_tool_declared_twice_must_be_satisfied_twice() -> None:
    """Rule 22: with `tools = "stream"` a call satisfies every declaration of its tool."""
    strict = {**WEATHER, "parameters": {**WEATHER["parameters"], "properties": {"city": {"const": "York"}}}}
    events = [created(tools=[WEATHER, strict]), done(0, weather()), done(1, weather("c2", YORK)), terminal(output=None)]
    assert reasons(events, tools="stream") == [("c1", "arguments_schema"), ("c2", "ok")]


@pytest.mark.parametrize(("choice", "reason"), [("wild", "ok"), ({"type": "web_search"}, "not_allowed")])
def test_other_choices(choice: Any, reason: str) -> None:
    """Rule 24: an unknown text forbids nothing; a forced hosted tool forbids every function."""
    assert reasons([created(tool_choice=choice), *CALL[1:], terminal(output=None)]) == [("c1", reason)]


def test_items_of_extensions() -> None:
    """Rule 28: an item type with a colon is `namespaced`; an unknown one with a call_id `not_function_call`, else counted."""
    items = [
        {"type": "acme:lookup", "call_id": "c1", "status": "completed"},
        {"type": "wild_call", "call_id": "c2", "status": "completed"},
        {"type": "wild_thing", "status": "completed"},
        {"type": "custom_tool_call", "call_id": "c3", "status": "completed"},
        {"type": "mcp_approval_request", "name": "fetch", "arguments": "{}"},
    ]
    expected = [("c1", "namespaced"), ("c2", "not_function_call"), ("c3", "not_function_call"), (None, "not_function_call")]
    events = [created(), *(done(place, item) for place, item in enumerate(items)), terminal(output=None)]
    assert reasons(events) == expected
    assert reasons([created(), terminal(output=items)]) == expected


def test_an_event_line_that_contradicts() -> None:
    """Rule 29: the JSON type counts; but a terminal event that is called otherwise did not end its response well."""
    other = sse([done(0, weather())]).replace("event: response.output_item.done", "event: response.in_progress")
    assert reasons([created(), other, terminal(output=None)]) == [("c1", "ok")]
    ended = sse([terminal(output=None)]).replace("event: response.completed", "event: response.failed")
    assert reasons([*CALL, ended]) == [("c1", "status")]


def test_journals() -> None:
    """Rule 30: every item is decided by itself; an output follows a completed call; a missing status is refused there too."""
    said: Json = {"role": "user", "content": "hello"}
    journal = text([said, weather("c1"), call_output("c1"), call_output("c2"), weather("c3", status=None), call_output("c3")])
    assert reasons([journal]) == [("c1", "ok"), ("c2", "identity"), ("c3", "status"), ("c3", "identity")]
    assert reasons([journal], tolerate=("status_absent",)) == [("c1", "ok"), ("c2", "identity"), ("c3", "ok")]
    assert reasons([journal, text([call_output("c1")])])[-1] == ("c1", "identity")


def test_bounds_over_and_at() -> None:
    """Rule 31: over, not at, a bound is `limit`: bytes of arguments, calls, bytes of a response."""
    events = [*CALL, terminal(output=None)]
    size = len(LEEDS)
    assert reasons(events, max_argument_bytes=size) == [("c1", "ok")]
    assert reasons(events, max_argument_bytes=size - 1) == [("c1", "limit")]
    three = [created(), *(done(n, weather(f"c{n}")) for n in range(3)), terminal(output=None)]
    assert reasons(three, max_calls=3) == [("c0", "ok"), ("c1", "ok"), ("c2", "ok")]
    assert sorted(reasons(three, max_calls=2)) == [("c0", "ok"), ("c1", "ok"), ("c2", "limit")]
    flood = [created(), done(0, weather()), announced(1, weather("c2")), *(delta(1, "x" * 1_000) for _ in range(9)), terminal()]
    assert reasons(flood, max_response_bytes=4_096) == [("c1", "limit"), ("c2", "limit")]


def test_a_pair_of_surrogates_counts_once() -> None:
    """Rule 31: a pair split between two deltas is one character of four bytes, and joined before it is compared."""
    hull = '{"city":"\U0001f600"}'
    halves = [delta(0, '{"city":"\ud83d'), delta(0, '\ude00"}')]
    events = [created(), announced(0, weather()), *halves, done(0, weather(arguments=hull)), terminal(output=None)]
    assert reasons(events, max_argument_bytes=len(hull.encode())) == [("c1", "ok")]
    assert reasons(events, max_argument_bytes=len(hull.encode()) - 1) == [("c1", "limit")]


def test_the_stream_that_is_silent_longest_goes() -> None:
    """Rule 31 and design section 4: past `max_streams` the key silent longest goes as a whole, its open calls as `limit`."""
    log = [record(n, done(0, weather(f"c{n}")), key=f"k{n}") for n in range(3)]
    assert reasons(log, max_streams=2) == [("c0", "limit")]


BLANK = function_call("c1", "list_alerts", "")
RENAMED = [*CALL, terminal(output=[weather("c2")])]
ROTATED = [created("a"), done(0, weather()), terminal(response_id="b", output=None)]
AGAIN = [
    created(),
    announced(0, weather()),
    delta(0, "{"),
    announced(0, weather()),
    delta(0, LEEDS),
    done(0, weather()),
    terminal(),
]


@pytest.mark.parametrize(
    ("name", "events", "before", "after"),
    [
        ("status_absent", [created(), done(0, weather(status=None)), terminal(output=None)], ("c1", "status"), ("c1", "ok")),
        ("empty_arguments", [created(), done(0, BLANK), terminal(output=None)], ("c1", "arguments_parse"), ("c1", "ok")),
        (
            "arguments_object",
            [
                created(),
                added(0, weather(arguments=LEEDS)),
                done(0, weather(arguments={"city": "Leeds"})),
                terminal(output=None),
            ],
            ("c1", "conflict"),
            ("c1", "ok"),
        ),
        ("call_id_renamed", RENAMED, ("c1", "conflict"), ("c2", "ok")),
        ("response_id_rotates", [*ROTATED, created("c")], ("c1", "status"), ("c1", "ok")),
        (
            "namespace_functions",
            [created(), done(0, weather(namespace="functions")), terminal(output=None)],
            ("c1", "unknown_tool"),
            ("c1", "ok"),
        ),
        ("added_again", AGAIN, ("c1", "conflict"), ("c1", "ok")),
    ],
)
def test_tolerances(name: str, events: list[Json], before: tuple[str, str], after: tuple[str, str]) -> None:
    """Rule 34: each tolerance is off by default; a decision names the ones that it needed."""
    assert reasons(events)[0] == before
    (decided,) = decide(events, tolerate=(name,))
    assert (decided["call_id"], decided["reason"]) == after
    assert decided["tolerated"] == [name]
    if name in ("empty_arguments", "arguments_object"):
        assert decided["normalised"] is True
        assert isinstance(decided["arguments"], str)


def test_a_renamed_call_never_takes_a_used_id() -> None:
    """Rule 34: `call_id_renamed` gives no call an id that another call of its response has."""
    events = [created(), done(0, weather("c1")), done(1, weather("c2", YORK))]
    listed = terminal(output=[weather("c2"), weather("c2", YORK)])
    assert reasons([*events, listed], tolerate=("call_id_renamed",)) == [("c1", "conflict"), ("c2", "ok")]


def test_nothing_is_repaired() -> None:
    """Rule 34: trailing tokens and re-encoded JSON are never tolerated."""
    every: tuple[str, ...] = (
        "added_again", "arguments_object", "call_id_renamed", "empty_arguments", "namespace_functions", "response_id_rotates",
        "status_absent",
    )  # fmt: skip
    for arguments in (LEEDS + "}", LEEDS[:-1], f'"{LEEDS}"', "null"):
        (decided,) = decide([created(), done(0, weather(arguments=arguments)), terminal(output=None)], tolerate=every)
        assert decided["decision"] == "rejected"
    assert reasons([created(), done(0, function_call("c1", PAY["name"], '{"invoice":7}')), terminal(output=None)])[0][1] != "ok"
