"""Rules 1 to 9: which piece belongs to which call, and when pieces contradict."""

import pytest

from tests import factories as make
from tests.core.deciding import LEEDS, YORK, decide, reasons, weather
from tests.factories import Json, added, announced, arguments_done, created, delta, done, terminal


def test_done_belongs_to_the_open_item_with_its_call_id() -> None:
    """Rule 1: at an index, `done` goes to the open item with its call_id; `item: null` is ignored; the other never finishes."""
    events = [created(), announced(0, weather("c1")), announced(0, weather("c2")), done(0, weather("c1")), done(0, None)]
    assert reasons([*events, terminal("completed", output=None)]) == [("c1", "conflict"), ("c2", "status")]


def test_done_under_another_call_id_is_a_conflict() -> None:
    """Rule 1: a `done` with another call_id belongs to the latest open item of its index, which is then in conflict."""
    events = [created(), announced(0, weather("c1")), done(0, weather("c2")), terminal("completed", output=None)]
    assert reasons(events) == [("c1", "conflict")]


def test_an_announced_call_that_ends_as_a_repeat_keeps_its_decision() -> None:
    """Rules 1 and 6: an item announced under one call_id and finished as another call's repeat is decided under its own."""
    events = [created(), done(0, weather("c1")), announced(1, weather("c9")), done(1, weather("c1"))]
    assert reasons([*events, terminal("completed", output=None)]) == [("c1", "ok"), ("c9", "identity")]


def test_done_without_an_index_is_matched_by_call_id() -> None:
    """Rule 1: a `done` without an index finds its item by call_id."""
    events = [created(), announced(0, weather("c1")), delta(0, LEEDS), done(None, weather("c1")), terminal(output=[weather()])]
    assert reasons(events) == [("c1", "ok")]


@pytest.mark.parametrize("part", [None, 7, {"city": "Leeds"}])
def test_a_delta_that_is_no_string(part: object) -> None:
    """Rule 1: a delta that is no string puts its item in conflict."""
    events = [created(), announced(0, weather()), delta(0, part), done(0, weather()), terminal(output=None)]
    assert reasons(events) == [("c1", "conflict")]


def test_deltas_before_added_are_kept() -> None:
    """Rule 2: deltas that come before `added` are those of the item to come."""
    rest = [done(0, weather()), terminal(output=None)]
    assert reasons([created(), delta(0, LEEDS), announced(0, weather()), *rest]) == [("c1", "ok")]
    assert reasons([created(), delta(0, YORK), announced(0, weather()), *rest]) == [("c1", "conflict")]


def test_deltas_on_a_closed_index_are_late() -> None:
    """Rule 2: on a closed index deltas and `arguments.done` are ignored."""
    events = [created(), done(0, weather()), delta(0, "x"), arguments_done(0, YORK), terminal(output=None)]
    assert reasons(events) == [("c1", "ok")]


def test_added_on_an_open_index() -> None:
    """Rule 3: `added` on an open index puts both items in conflict; one that never finishes is `status`."""
    events = [created(), announced(0, weather("c1")), announced(0, weather("c2"))]
    assert reasons([*events, terminal(output=None)]) == [("c1", "status"), ("c2", "status")]
    finished = [done(0, weather("c2")), done(0, weather("c1")), terminal(output=None)]
    assert reasons([*events, *finished]) == [("c1", "conflict"), ("c2", "conflict")]


def test_nothing_is_decided_twice_for_one_call_id() -> None:
    """Rule 3: of two items with one call_id the one that never finishes gets no decision of its own."""
    events = [created(), announced(0, weather("c1")), announced(1, weather("c1")), done(1, weather("c1"))]
    assert reasons([*events, terminal(output=None)]) == [("c1", "ok")]
    assert reasons([*events[:3], terminal(output=None)]) == [("c1", "status")]


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ([weather("c1"), weather("c2", YORK)], [("c1", "ok"), ("c2", "ok")]),
        ([weather("c1")], [("c1", "ok")]),
        ([], [("c1", "ok")]),
        (None, [("c1", "ok")]),
        ([weather("c1", YORK)], [("c1", "conflict")]),
        ([weather("c1"), weather("c1", YORK)], [("c1", "ok"), ("c1", "identity")]),
        ([weather("c1"), weather("c1")], [("c1", "ok")]),
        ([weather("renamed")], [("c1", "conflict")]),
        ([weather("renamed", YORK)], [("c1", "ok"), ("renamed", "ok")]),
        ([weather(None)], [("c1", "ok")]),
        ([weather(None, YORK)], [("c1", "conflict")]),
        ([make.message(), weather(None)], [("c1", "ok")]),
    ],
)
def test_terminal_list(output: list[Json] | None, expected: list[tuple[str, str]]) -> None:
    """Rule 4: entries are matched by call_id, else by type and place; surplus, renamed and unannounced ones as it says."""
    assert reasons([created(), done(0, weather("c1")), terminal(output=output)]) == expected


def test_two_uses_must_each_agree_with_an_entry() -> None:
    """Rule 4: two streamed uses of one call_id must each agree with an entry of the terminal list."""
    events = [created(), done(0, weather("c1")), done(1, weather("c1", YORK))]
    assert reasons([*events, terminal(output=[weather("c1"), weather("c1", YORK)])]) == [("c1", "ok"), ("c1", "identity")]
    # The second use has no entry; the first one stands.
    assert reasons([*events, terminal(output=[weather("c1")])]) == [("c1", "ok"), ("c1", "identity")]
    # Neither is what the list says: the first is in conflict, and what comes under its call_id is late (rule 9).
    assert reasons([*events, terminal(output=[weather("c1", "{ }"), weather("c1", "[]")])]) == [("c1", "conflict")]


def test_a_listed_id_does_not_rename_another_call() -> None:
    """Rule 4: an unmatched entry with a call's name and arguments renames it, also where its call_id is another call's."""
    events = [created(), done(0, weather("c1")), done(1, weather("c2", YORK))]
    listed = [weather("c2"), weather("c2", YORK)]
    assert reasons([*events, terminal(output=listed)]) == [("c1", "conflict"), ("c2", "ok")]


def test_under_item_a_renamed_call_is_decided_once() -> None:
    """Rule 4: under `release = "item"` the renamed call was decided at `done`, and nothing follows."""
    events = [created(), done(0, weather("c1")), terminal(output=[weather("renamed")])]
    assert reasons(events, release="item") == [("c1", "ok")]


def test_an_item_that_was_never_identified() -> None:
    """Rule 5: deltas without an item are one `status` with null call_id."""
    assert reasons([created(), delta(0, '{"ci'), delta(0, 'ty"'), terminal(output=None)]) == [(None, "status")]


def test_published_under_the_first_call_id_seen() -> None:
    """Rule 6: a call is published under the first non-empty call_id seen for it."""
    blank = announced(0, weather(""))
    assert reasons([created(), blank, done(0, weather("c2")), terminal(output=None)]) == [("c2", "ok")]
    assert reasons([created(), announced(0, weather("c1")), done(0, weather("c2")), terminal(output=None)]) == [
        ("c1", "conflict")
    ]


@pytest.mark.parametrize("field", ["call_id", "name", "arguments"])
def test_the_final_piece_carries_all_by_itself(field: str) -> None:
    """Rule 7: call_id, name and arguments must be in the final piece; other pieces can only contradict it."""
    bare = {k: v for k, v in weather().items() if k != field}
    events = [created(), added(0, weather(status="in_progress")), delta(0, LEEDS), done(0, bare), terminal(output=[weather()])]
    assert reasons(events) == [("c1", "arguments_type" if field == "arguments" else "identity")]


@pytest.mark.parametrize("blank", [None, "", "{}"])
def test_placeholders_say_nothing(blank: str | None) -> None:
    """Rule 7: null, absent, `""` and `"{}"` before the final piece are no contradictions, nor are empty deltas."""
    events = [created(), added(0, weather(arguments=blank)), delta(0, ""), arguments_done(0, blank), done(0, weather())]
    assert reasons([*events, terminal(output=[weather(arguments=None)])]) == [("c1", "ok")]


@pytest.mark.parametrize(
    "piece",
    [
        added(0, weather(arguments=YORK)),
        added(0, weather(name="list_alerts")),
        added(0, weather(namespace="other")),
        added(0, weather(type="custom_tool_call")),
        delta(0, YORK),
        arguments_done(0, YORK),
        arguments_done(0, LEEDS, name="list_alerts"),
    ],
)
def test_a_piece_that_contradicts(piece: Json) -> None:
    """Rule 7: type, namespace, name, call_id and arguments of every piece are held against the final one."""
    assert reasons(
        [created(), piece, done(0, weather(namespace="x") if "item" in piece else weather()), terminal(output=None)]
    ) == [("c1", "conflict")]


def test_status_of_the_final_piece() -> None:
    """Rule 8: a missing status in `done` is `status` though the list supplies it; so is another one in any final piece."""
    absent, cut = weather(status=None), weather(status="incomplete")
    assert reasons([created(), done(0, absent), terminal(output=[weather()])]) == [("c1", "status")]
    assert reasons([created(), done(0, cut), terminal(output=[weather()])]) == [("c1", "status")]
    assert reasons([created(), done(0, weather()), terminal(output=[cut])]) == [("c1", "status")]


def test_done_again_is_one_decision() -> None:
    """Rule 8: a repeated `done` with the same content is the same decision, even where the first was refused for its status."""
    again = [done(0, weather()), done(3, weather())]
    assert reasons([created(), *again, terminal(output=[weather()])]) == [("c1", "ok")]
    assert reasons([created(), done(0, weather(status=None)), *again, terminal(output=None)]) == [("c1", "status")]


def test_what_a_repeat_closes_is_closed() -> None:
    """Rules 2, 8 and 17: an index that only a repeat finished takes no deltas, and is cut off as what it repeats."""
    events = [created(), done(0, weather()), done(1, weather()), delta(1, "{")]
    assert reasons([*events, terminal(output=None)]) == [("c1", "ok")]
    assert reasons([*events, terminal("incomplete", output=None)]) == [("c1", "status")]


def test_after_a_conflict_a_call_id_has_no_content() -> None:
    """Rule 9: what comes under the call_id of a call rejected for `conflict` is late, not `identity`."""
    events = [
        created(),
        announced(0, weather()),
        delta(0, YORK),
        done(0, weather()),
        done(1, weather()),
        done(2, weather("c1", YORK)),
    ]
    assert reasons([*events, terminal(output=None)]) == [("c1", "conflict")]


def test_ids_of_decisions_of_one_call_id() -> None:
    """Rules 8 and 32: the second, other use of a call_id has a decision id of its own."""
    first, second = decide([created(), done(0, weather()), done(1, weather(arguments=YORK)), terminal(output=None)])
    assert (first["reason"], second["reason"]) == ("ok", "identity")
    assert first["id"] != second["id"]
