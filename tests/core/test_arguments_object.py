"""The tolerance `arguments_object`: an object of arguments is judged as it was written, in every form (rules 31, 34)."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processor.core.arguments import compact, read
from processor.core.as_written import is_plain
from processor.core.slow_json import loads
from processor.core.strict import Fault
from tests import factories as make
from tests.core.deciding import decide, weather

TOLERATED = ("arguments_object",)
MARK = '"@@"'
NUMBER = "a number that a double does not carry"
WRONG = {
    "a float with too many digits": ('{"city":"Leeds","n":0.1000000000000000055}', NUMBER),
    "an integer over 2^53": ('{"city":"Leeds","n":9007199254740993}', NUMBER),
    "an integer over 64 bits": ('{"city":"Leeds","n":18446744073709551617}', NUMBER),
    "an integer that nobody reads": ('{"city":"Leeds","n":%s}' % ("9" * 5000), NUMBER),
    "an exponent that overflows": ('{"city":"Leeds","n":1e400}', NUMBER),
    "an exponent that rounds": ('{"city":"Leeds","n":123456789012345678e3}', NUMBER),
    "underflow to zero": ('{"city":"Leeds","n":[1e-400]}', NUMBER),
    "underflow that rounds": ('{"city":"Leeds","n":4e-324}', NUMBER),
    "a name twice": ('{"city":"York","city":"Leeds"}', "a duplicate member name"),
    "a name twice, escaped": ('{"city":"York","c\\u0069ty":"Leeds"}', "a duplicate member name"),
    "a name twice, inside": ('{"city":"Leeds","n":[{"a":1,"a":1}]}', "a duplicate member name"),
    "a lone surrogate": ('{"city":"\\ud800"}', "a lone surrogate"),
}
"""Objects that another reader may read otherwise, and what is wrong with them."""


def put(value: Any, text: str) -> str:
    """JSON text of a value, with the text of an object in the place of its mark."""
    return json.dumps(value, separators=(",", ":")).replace(MARK, text)


def events(text: str) -> list[str]:
    """A response whose call has an object for arguments in each piece that may have one."""
    item = weather("c1", "@@")
    pieces = [make.announced(0, item), make.arguments_done(0, "@@"), make.done(0, item)]
    return [put(one, text) for one in (make.created(), *pieces, make.terminal(output=[item]))]


FORMS = {
    "events": events,
    "batch": lambda text: ["[" + ",".join(events(text)) + "]"],
    "frames": lambda text: ["".join(f"data: {event}\n\n" for event in events(text))],
    "whole response": lambda text: [put(make.response(status="completed", output=[weather("c1", "@@")]), text)],
    "only in the terminal event": lambda text: [put(make.terminal(output=[weather("c1", "@@")]), text)],
    "item": lambda text: [put(weather("c1", "@@"), text)],
    "journal": lambda text: [put([weather("c1", "@@")], text)],
    "envelope": lambda text: [put({"specversion": "1.0", "data": make.terminal(output=[weather("c1", "@@")])}, text)],
    "a name with an escape": lambda text: [put(weather("c1", "@@"), text).replace('"arguments"', '"argument\\u0073"')],
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("wrong", WRONG)
def test_what_others_may_read_otherwise_is_refused(wrong: str, form: str) -> None:
    """Rule 31: what the outer parser would round or drop is `arguments_parse`, as it is in a string."""
    text, detail = WRONG[wrong]
    (decision,) = decide(FORMS[form](text), tolerate=TOLERATED)
    assert decision["reason"] == "arguments_parse"
    assert decision["detail"].startswith(detail)


@pytest.mark.parametrize("form", FORMS)
def test_what_all_read_alike_is_approved(form: str) -> None:
    """Rule 34: an object is read as its compact text, which is published."""
    (decision,) = decide(FORMS[form]('{ "city" : "Leeds: é" }'), tolerate=TOLERATED)
    assert (decision["reason"], decision["arguments"], decision["normalised"]) == ("ok", '{"city":"Leeds: é"}', True)


@pytest.mark.parametrize("wrong", WRONG)
def test_without_the_tolerance_it_is_no_string(wrong: str) -> None:
    """Whatever is in it, an object is `arguments_type`; `include` publishes it as it was written."""
    text, _ = WRONG[wrong]
    one = put(weather("c1", "@@"), text)
    decisions = [decide([one], arguments=policy)[0] for policy in ("omit", "hash", "include")]
    assert {decision["reason"] for decision in decisions} == {"arguments_type"}
    kept = decisions[-1]["arguments"]
    if isinstance(kept, str):
        assert kept == text.replace("\\u0069", "i")
    else:
        assert kept == json.loads(text)


def test_pieces_are_held_together_as_they_were_written() -> None:
    """Rule 7: an earlier piece that says more than a double carries contradicts the final one."""
    item = weather("c1", {"city": "Leeds"})
    log = [make.created(), make.announced(0, item), put(make.arguments_done(0, "@@"), '{"city":"York","city":"Leeds"}')]
    (decision,) = decide([*log, make.done(0, item), make.terminal(output=[item])], tolerate=TOLERATED)
    assert decision["reason"] == "conflict"


NUMBERS = st.from_regex(r"-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?", fullmatch=True)
TEXTS = st.recursive(
    NUMBERS | st.sampled_from(["true", "null", '"x"', '"\\ud83d\\ude00"']),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda parts: "[" + ",".join(parts) + "]")
        | st.lists(st.tuples(st.sampled_from(["a", "b", "c"]), inner), max_size=3).map(
            lambda parts: "{" + ",".join(f'"{name}":{part}' for name, part in parts) + "}"
        )
    ),
    max_leaves=8,
)


@given(TEXTS)
def test_an_object_is_judged_like_its_text(text: str) -> None:
    """Reading the text, and reading what the outer reader made of it, come to the same: a value, or a fault of one kind."""
    value = loads(text.encode())
    again = compact(value)
    assert again is not None
    first, second = read(text), read(again)
    if isinstance(first, Fault):
        assert isinstance(second, Fault)
        assert second.detail.partition(" at byte")[0] == first.detail.partition(" at byte")[0]
    else:
        assert is_plain(value)
        assert second == first


@pytest.mark.parametrize(
    ("finished", "listed"),
    [
        ('{"n":1}', '{"n":true}'),
        ('{"n":1}', '{"n":1.0}'),
        ('{"n":2}', '{"n":1,"n":2}'),
        ('{"n":0.1}', '{"n":0.10000000000000000001}'),
    ],
)
def test_objects_with_equal_values_and_other_texts_are_in_conflict(finished: str, listed: str) -> None:
    """Rules 7 and 34: an object is its compact text; Python holds 1, 1.0 and true for equal, an executor may not."""
    for one, other in ((finished, listed), (listed, finished)):
        told = [put(make.created(), ""), put(make.done(0, weather("c1", "@@")), one)]
        told.append(put(make.terminal(output=[weather("c1", "@@")]), other))
        assert [d["reason"] for d in decide(told, tolerate=TOLERATED)] == ["conflict"]


@pytest.mark.parametrize(("one", "other"), [('{"n":2}', '{"n":1,"n":2}'), ('{"n":0.1}', '{"n":0.10000000000000000001}')])
def test_objects_that_are_written_otherwise_are_no_repeats(one: str, other: str) -> None:
    """Rule 12: under one sequence number the second event counts, where its object is not written as the first one's."""
    item = weather("c1", "@@")
    told = [put(make.created(), "")]
    told += [put(make.done(0, item) | {"sequence_number": 7}, text) for text in (one, other)]
    told.append(put(make.terminal(output=None), ""))
    assert "identity" in [d["reason"] for d in decide(told, tolerate=TOLERATED)]
