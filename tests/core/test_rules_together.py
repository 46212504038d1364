"""Where several faults meet in one response: each of these was once read otherwise by the core or by `tests/oracle`."""

from typing import Any

from tests import factories as make
from tests.core.deciding import ALERTS, LEEDS, PAY, YORK, reasons, weather
from tests.factories import announced, created, delta, done, terminal


def test_only_streamed_items_have_an_order_to_be_cut_off_in() -> None:
    """Rule 17: where the terminal event alone tells of the items, its last entry was cut off, and no other."""
    listed: list[Any] = [weather("c1"), weather("c2", YORK)]
    assert reasons([terminal("incomplete", output=listed)]) == [("c1", "ok"), ("c2", "status")]
    assert reasons([terminal("incomplete", output=[*listed, make.message()])]) == [("c1", "ok"), ("c2", "ok")]
    # Streamed without an index: of those the latest was cut off, and the last entry of the list.
    unplaced = [created(), done(None, weather("c3", '{"city":"Bath"}')), done(None, weather("c4", '{"city":"Hull"}'))]
    assert reasons([*unplaced, terminal("incomplete", output=listed)]) == [
        ("c3", "ok"),
        ("c4", "status"),
        ("c1", "ok"),
        ("c2", "status"),
    ]


def test_two_lists_of_tools_leave_a_call_id_without_content() -> None:
    """Rules 9 and 10: what comes under a call_id that was rejected because two lists of tools were echoed is late."""
    clash = [created(tools=[ALERTS]), {"type": "response.in_progress", "response": make.response(tools=[PAY])}]
    events = [*clash, done(0, weather("c1")), done(1, weather("c1", YORK)), terminal(output=None)]
    for release in ("item", "response"):
        assert reasons(events, release=release) == [("c1", "conflict")]


def test_two_lists_of_tools_come_too_late_for_a_call_that_is_decided() -> None:
    """Rules 4, 9 and 10: a call that was not rejected for `conflict` keeps its content: a surplus entry is `identity`."""
    listed = [weather("c1"), weather("c1", YORK)]
    events = [created(tools=[ALERTS]), done(0, weather("c1")), terminal(output=listed, tools=[PAY])]
    assert reasons(events, release="item") == [("c1", "ok"), ("c1", "identity")]
    assert reasons(events) == [("c1", "conflict")]


def test_two_items_under_one_id_that_end_under_others() -> None:
    """Rules 1, 3, 6 and 9: both are in conflict under their first call_id, and it is decided once."""
    events = [created(), announced(0, weather("c1")), announced(1, weather("c1"))]
    ends = [done(0, weather("c2")), done(1, weather("c3", YORK)), terminal(output=None)]
    for release in ("item", "response"):
        assert reasons([*events, *ends], release=release) == [("c1", "conflict")]


def test_a_call_listed_twice_may_be_another_that_was_renamed() -> None:
    """Rule 4: a second entry with the same content is another call's where that has its name and arguments, and no entry."""
    twice = terminal(output=[weather("c1"), weather("c1")])
    assert reasons([created(), done(0, weather("c1")), done(1, weather("c2")), twice]) == [("c1", "ok"), ("c2", "conflict")]
    assert reasons([created(), done(0, weather("c1")), done(1, weather("c2", YORK)), twice]) == [("c1", "ok"), ("c2", "ok")]
    nameless = [created(), announced(0, weather(), call_id=None), delta(0, LEEDS), done(None, weather("c1"))]
    assert reasons([*nameless, twice]) == [("c1", "ok")]


def test_an_entry_agrees_with_a_final_piece() -> None:
    """Rules 4 and 7: an entry is of the use whose final piece it agrees with, also where an earlier piece contradicted that."""
    events = [
        created(),
        announced(0, weather("c1")),
        announced(1, weather("c1", name="pay_invoice")),
        done(None, weather("c1")),
    ]
    bare = {**make.function_call(None, "pay_invoice", "{}")}
    assert reasons([*events, terminal(output=[weather("c1"), bare])]) == [("c1", "conflict"), (None, "identity")]


def test_a_limited_call_takes_no_entry_from_a_finished_one() -> None:
    """Rules 4 and 18: the final piece of a limited call is late, so that the entry with its content is the finished call's."""
    events = [created(), announced(1, weather("c2")), done(0, weather("c1")), delta(1, " " * 40), done(1, weather("c1"))]
    listed = terminal(output=[weather("c1"), weather("c2")])
    assert reasons([*events, listed], max_argument_bytes=20) == [("c2", "limit"), ("c1", "ok")]


def test_a_placeholder_names_no_request() -> None:
    """Rules 4 and 7: an open call without a call_id is known again by its arguments; before the final piece `"{}"` is none."""
    empty = weather("", "{}", name="list_alerts")
    events = [created(), announced(0, empty), make.arguments_done(0, "{}")]
    listed = terminal(output=[{**empty, "call_id": "c1"}])
    assert reasons([*events, listed]) == [("", "status"), ("c1", "ok")]
    assert reasons([*events, delta(0, "{}"), listed]) == [("c1", "ok")]


def test_a_journal_that_uses_a_call_id_twice() -> None:
    """Rules 9 and 30: another call under a call_id of its journal is `identity`; nothing in a journal is in conflict."""
    assert reasons([[weather("c1"), weather("c1", YORK), weather("c1")]]) == [("c1", "ok"), ("c1", "identity")]


def test_a_call_that_is_listed_twice_is_cut_off_by_its_last_entry() -> None:
    """Rules 3, 8 and 17: the last entry repeats a finished call, also where an open item with its call_id takes that entry."""
    events = [created(), done(0, weather("c1")), announced(1, weather("c1"))]
    listed = [weather("c1"), weather("c2", YORK), weather("c1")]
    assert reasons([*events, terminal("incomplete", output=listed)]) == [("c1", "status"), ("c2", "ok")]
    assert reasons([terminal("incomplete", output=listed)]) == [("c1", "status"), ("c2", "ok")]


def test_only_the_first_use_of_a_call_id_can_leave_it_without_content() -> None:
    """Rules 4 and 9: a second use is `identity` also where its pieces disagree, and what comes after it is not late."""
    events = [created(), delta(1, YORK), done(0, weather("c1")), done(1, weather("c1", "{ }"))]
    assert reasons([*events, terminal(output=None)]) == [("c1", "identity"), ("c1", "ok")]
    third = done(2, weather("c1", "[]"))
    assert reasons([*events, third, terminal(output=None)]) == [("c1", "identity"), ("c1", "ok"), ("c1", "identity")]
    listed = [weather("c1"), weather("c1", "{ }"), weather("c1", "[]")]
    assert reasons([*events, terminal(output=listed)]) == [("c1", "identity"), ("c1", "ok"), ("c1", "identity")]


def test_items_without_a_call_id_are_not_told_apart_by_one() -> None:
    """Rules 7 and 9: without a call_id a call is `identity`, not `conflict`; another one at its index does not repeat it."""
    events = [created(), delta(0, YORK), done(0, weather(None)), done(0, weather(None)), done(0, weather(None, "[]"))]
    assert reasons([*events, terminal(output=None)]) == [(None, "identity"), (None, "identity")]


def test_a_delta_names_no_call_id() -> None:
    """Rules 2 and 18: a call_id in a delta says nothing, also not of a limited call."""
    events = [created(), announced(0, weather("c1")), delta(0, " " * 40), {**delta(0, "x"), "call_id": "c2"}]
    assert reasons([*events, terminal(output=[weather("c2", "{}")])], max_argument_bytes=20) == [
        ("c1", "limit"),
        ("c2", "arguments_schema"),
    ]


def test_an_open_call_is_decided_though_its_call_id_only_contradicted_another() -> None:
    """Rules 3 and 6: what never finishes is `status`, unless something is decided under the id that it is published under."""
    events = [created(), announced(0, weather("c1")), announced(1, weather("c2")), done(1, weather("c1"))]
    assert reasons([*events, terminal(output=None)]) == [("c1", "status"), ("c2", "conflict")]
    # Finished, it is late: that c1 is two calls was a contradiction (rule 9).
    assert reasons([*events, done(0, weather("c1")), terminal(output=None)]) == [("c2", "conflict")]
    events = [created(), announced(0, weather("c1")), announced(1, weather("c2")), delta(1, " " * 40), done(1, weather("c1"))]
    assert reasons([*events, terminal(output=None)], max_argument_bytes=20) == [("c2", "limit"), ("c1", "status")]
    assert reasons([*events, delta(0, " " * 40), terminal(output=None)], max_argument_bytes=20) == [
        ("c2", "limit"),
        ("c1", "limit"),
    ]


def test_entries_that_agree_are_given_first() -> None:
    """Rule 4: a finished call whose pieces gave it two call_ids is listed under the one of its final piece."""
    events = [created(), announced(0, weather("c1")), make.arguments_done(0, LEEDS, call_id="c2"), done(None, weather("c1"))]
    listed = [weather("c2", YORK), weather("c1")]
    assert reasons([*events, terminal(output=listed)]) == [("c1", "conflict"), ("c2", "ok")]


def test_a_repeat_is_no_call_of_a_response_that_starts_again() -> None:
    """Rules 11 and 22: what only repeated a call before an unnumbered stream was sent again has no place before that call."""
    head = created(parallel_tool_calls=False)
    events = [head, done(0, weather()), announced(0, weather()), done(0, weather()), head, done(0, weather())]
    assert reasons([*events, terminal(output=None)]) == [("c1", "ok")]


def test_what_a_repeat_without_an_index_closes_is_closed() -> None:
    """Rules 1, 8 and 17: a `done` without an index closes the index of its item, which is cut off as what it repeats."""
    events = [created(), done(0, weather()), announced(1, weather()), done(None, weather())]
    assert reasons([*events, terminal("incomplete", output=None)]) == [("c1", "status")]


def test_what_is_decided_keeps_its_content() -> None:
    """Rules 4, 9 and 18: an entry that contradicts a call decided at its `done` takes no content from it."""
    events = [created(), done(0, weather()), terminal(output=[weather(arguments=""), weather("c1", YORK)])]
    assert reasons(events, release="item") == [("c1", "ok"), ("c1", "identity")]
    assert reasons(events) == [("c1", "conflict")]


def test_a_call_that_starts_again_keeps_its_name() -> None:
    """Rule 34: `added_again` lets the arguments of a call begin again; under another name it is in conflict."""
    events = [created(), announced(0, weather(name="list_alerts")), delta(0, YORK), announced(0, weather()), done(0, weather())]
    assert reasons([*events, terminal(output=None)], tolerate=["added_again"]) == [("c1", "conflict")]
    assert reasons([created(), *events[3:4], *events[2:], terminal(output=None)], tolerate=["added_again"]) == [("c1", "ok")]


def test_what_is_late_is_not_counted_as_a_call() -> None:
    """Rules 4, 9 and 18: an entry that is late, for the call_id of a limited call, is not one call too many."""
    events = [created(), done(0, weather("c1")), announced(1, weather("c1", name="")), done(1, weather("c2", YORK))]
    listed = [weather("c1"), weather("c2", YORK)]
    assert reasons([*events, terminal(output=listed)], max_calls=1) == [("c1", "ok")]


def test_the_entry_of_a_late_call_is_its_own() -> None:
    """Rules 4 and 9: a call that is late for its first call_id is listed under its other one: that is no call of its own."""
    events = [created(), announced(0, weather("c1")), delta(0, YORK), done(0, weather("c1")), announced(1, weather("c1"))]
    listed = terminal(output=[weather("c2", "{ }")])
    for release in ("item", "response"):
        assert reasons([*events, done(1, weather("c2", "{ }")), listed], release=release) == [("c1", "conflict")]


def test_a_renamed_call_must_agree_with_its_entry() -> None:
    """Rules 7 and 34: where the entry is the final piece of a renamed call, what was streamed is held against it."""
    events = [
        created(),
        announced(0, weather("c1")),
        delta(0, "x"),
        make.arguments_done(0, LEEDS),
        terminal(output=[weather("r1")]),
    ]
    assert reasons(events, tolerate=["call_id_renamed"]) == [("r1", "conflict")]
    assert reasons([*events[:2], *events[3:]], tolerate=["call_id_renamed"]) == [("r1", "ok")]


def test_late_pieces_name_a_limited_call_only_where_nothing_has() -> None:
    """Rules 2, 6 and 18: what comes for a limited call is late; a call_id that it tells binds where there was none so far."""
    late = [make.arguments_done(0, LEEDS, call_id="c2"), terminal(output=[weather("c2", "{ }")])]
    named = [created(), announced(0, weather("c1")), delta(0, " " * 40)]
    assert reasons([*named, *late], max_argument_bytes=20) == [("c1", "limit"), ("c2", "arguments_schema")]
    assert reasons([created(), delta(0, " " * 40), *late], max_argument_bytes=20) == [(None, "limit")]


def test_an_index_is_open_while_any_item_there_is() -> None:
    """Rule 3: of two items at one index one has finished; the index is still open, and a third one is in conflict too."""
    two = [created(), announced(0, weather("c1")), announced(0, weather("c2")), done(0, weather("c2"))]
    three = [announced(0, weather("c3")), done(0, weather("c3"))]
    for release in ("item", "response"):
        decided = dict(reasons([*two, *three, terminal(output=None)], release=release))
        assert decided == {"c1": "status", "c2": "conflict", "c3": "conflict"}
    # Where nothing is open any more, another may begin.
    decided = dict(reasons([*two, done(0, weather("c1")), *three, terminal(output=None)]))
    assert decided == {"c1": "conflict", "c2": "conflict", "c3": "ok"}


def test_an_unnamed_call_that_is_listed_as_another() -> None:
    """Rules 4 and 8: an open call without a call_id whose entry repeats any use of a call_id is that use."""
    events = [created(), done(0, weather("c1")), announced(1, weather(""), name="list_alerts"), delta(1, "{ }")]
    other = weather("c1", "{ }", name="list_alerts")
    listed = terminal(output=[weather("c1"), other, other])
    assert reasons([*events, done(None, other), listed], release="item") == [("c1", "ok"), ("c1", "identity")]


def test_another_use_of_the_id_of_a_renamed_call() -> None:
    """Rules 4 and 34: a surplus entry under the id that a renamed call was given is `identity`."""
    events = [created(), announced(0, weather("c1")), make.arguments_done(0, LEEDS)]
    listed = terminal(output=[weather("r1"), weather("r1", YORK)])
    assert reasons([*events, listed], tolerate=["call_id_renamed"]) == [("r1", "ok"), ("r1", "identity")]


def test_arguments_of_what_is_no_function_call_are_not_compared() -> None:
    """Rules 7 and 9: what is refused for its type is in no conflict over arguments; another use of its id is `identity`."""
    events = [created(), delta(0, "x"), done(0, weather("c1", type="custom_tool_call")), done(1, weather("c1"))]
    assert reasons([*events, terminal(output=None)]) == [("c1", "not_function_call"), ("c1", "identity")]


def test_a_repeat_is_not_the_latest_item_of_its_index() -> None:
    """Rules 8 and 17: of several items at the highest index the latest was cut off; an earlier one's repeat changes nothing."""
    events = [created(), done(1, weather("c1")), done(1, weather("c2")), done(1, weather("c1"))]
    assert reasons([*events, terminal("incomplete", output=None)]) == [("c1", "ok"), ("c2", "status")]


def test_a_limited_call_is_decided_once_also_under_an_id_that_was_used() -> None:
    """Rules 3 and 18: a call is limited under an id that contradicted another; what is open under it is not decided too."""
    events = [created(), announced(0, weather("c1")), done(0, weather("c2")), announced(1, weather("c2"))]
    again = announced(2, weather("c2"))
    decided = reasons([*events, again, terminal(output=None)], max_calls=2)
    assert decided == [("c2", "limit"), ("c1", "conflict")]
    decided = reasons([*events, delta(1, " " * 40), terminal(output=None)], max_argument_bytes=20)
    assert decided == [("c2", "limit"), ("c1", "conflict")]


def test_the_namespace_functions_is_a_namespace_beside_another() -> None:
    """Rules 7 and 34: `namespace_functions` makes no piece with that namespace agree with one that has another."""
    events = [created(), announced(0, weather(namespace="functions")), done(0, weather(namespace="other"))]
    assert reasons([*events, terminal(output=None)], tolerate=["namespace_functions"]) == [("c1", "conflict")]
    assert reasons([*events[:2], done(0, weather()), terminal(output=None)], tolerate=["namespace_functions"]) == [("c1", "ok")]


def test_an_item_that_only_the_list_calls_a_call() -> None:
    """Rules 19 and 31: it is counted where it was announced, before calls that only the list tells of."""
    events = [created(), announced(0, weather("c1", type="acme:call"))]
    listed = terminal(output=[weather("c2"), weather("c1")])
    assert reasons([*events, listed], max_calls=1) == [("c2", "limit"), ("c1", "conflict")]


def test_few_calls_allowed_do_not_make_another_use_of_an_id_late() -> None:
    """Rule 9: each use of a call_id with other content is decided, however few function calls a response may have."""
    custom = {"type": "custom_tool_call", "call_id": "c1", "name": "sql", "input": "select 1", "status": "completed"}
    listed: list[Any] = [custom, weather("c1"), {**custom, "name": "shell"}]
    expected = [("c1", "not_function_call"), ("c1", "identity"), ("c1", "not_function_call")]
    assert reasons([terminal(output=listed)], max_calls=1) == expected
