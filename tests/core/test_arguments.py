"""Arguments as I-JSON: what is read, what is refused, where and how fast a fault is found (rule 31)."""

import json
import math
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processor.core.arguments import compact, read
from processor.core.reasons import Reason
from processor.core.strict import Fault, read_strictly
from tests.core.readers import other_reader


def parse_fault(text: str) -> str:
    """Detail of the `arguments_parse` fault that both readers find."""
    found = read(text)
    assert isinstance(found, Fault), text[:80]
    assert found.reason is Reason.ARGUMENTS_PARSE
    assert found == read_strictly(text)
    return found.detail


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        '{"region":"apac"}',
        ' {"a" : [1, -2, 3.5, true, false, null, {"b": "c"}]}\r\n\t',
        '{"when":"10:30","url":"https://example.org/?a=b:c","{":"}"}',
        '{"a":{"x":1},"b":{"x":1}}',
        '"\\ud83d\\ude00 \\u00e9 \\n"',
        '"\ufdd0\uffff\U0010ffff"',
        "[1e2,1E+2,100,1.0,60.0,0.1,1.10,-0,-0.0,0e999,5e-324,1e23,100000000000000000000]",
        "[9007199254740992,9007199254740994,1.7976931348623157e308,0.30000000000000004]",
        "0.1000000000000000055511151231257827021181583404541015625",
    ],
)
def test_reads_i_json(text: str) -> None:
    """Rule 31: strict JSON is read as Python's own reader reads it, by the proof and by the strict reader alike."""
    expected = json.loads(text)
    assert read(text) == expected
    assert read_strictly(text) == expected


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ("", "the text ends where a value should be, at byte 0"),
        ("  ", "the text ends where a value should be, at byte 2"),
        ('{"a":1}x', "something after the value at byte 7"),
        ('{"a":1,}', "a member name expected at byte 7"),
        ("[1,]", "a value expected at byte 3"),
        ("[1 2]", "a comma or ] expected at byte 3"),
        ('{"a" 1}', "a colon expected at byte 5"),
        ("{'a':1}", "a member name expected at byte 1"),
        ('{"region":"ap', "the text ends inside a string, at byte 13"),
        ('"a\nb"', "a control character in a string at byte 2"),
        ('"\\x"', "a bad escape at byte 1"),
        ('{"é":tru}', "a value expected at byte 6"),
        ("NaN", "a value expected at byte 0"),
        ("[Infinity]", "a value expected at byte 1"),
        ("-Infinity", "a value expected at byte 0"),
        ("\ufeff{}", "a value expected at byte 0"),
        ("01", "something after the value at byte 1"),
        ('{"a":1,"a":1}', "a duplicate member name at byte 7"),
        ('{"a":1,"\\u0061":2}', "a duplicate member name at byte 7"),
        ('{"a":{"b":[{"c":1,"c":2}]}}', "a duplicate member name at byte 18"),
        ('{"a":":::","a":1}', "a duplicate member name at byte 11"),
        ('{"a":{"b":1},"a":{"b":1}}', "a duplicate member name at byte 13"),
        ('{"x":"\\ud800"}', "a lone surrogate escape in the string at byte 5"),
        ('{"\\udc00":1}', "a lone surrogate escape in the string at byte 1"),
        ('"\\ude00\\ud83d"', "a lone surrogate escape in the string at byte 0"),
        ('"\ud800"', "a lone surrogate at byte 1"),
        ('"\ud83d\\ude00"', "a lone surrogate at byte 1"),
    ],
)
def test_names_what_is_wrong_and_where(text: str, detail: str) -> None:
    """Rule 31: what is no I-JSON is refused with the kind of fault and its byte offset, never with a value."""
    assert parse_fault(text) == detail


@pytest.mark.parametrize(
    "number",
    [
        "9007199254740993",
        "-9007199254740993",
        "18446744073709551615",
        "9007199254740993.0",
        "9007199254740992.0000001",
        "0.99999999999999999999",
        "0.10000000000000000555",
        "1e400",
        "-1e400",
        "5e-400",
        "4.9e-324",
        "2e-324",
        "1.7976931348623159e308",
        "0." + "0" * 400 + "1",
        "1" * 5000,
        "1e" + "9" * 5000,
        "1e-" + "9" * 5000,
        "0." + "1" * 5000,
    ],
)
def test_refuses_numbers_that_a_double_does_not_carry(number: str) -> None:
    """Rule 31: a number survives only if it equals its double exactly or is the double's shortest form."""
    assert parse_fault(number) == "a number that a double does not carry at byte 0"
    assert parse_fault(f'{{"a":[{number}]}}') == "a number that a double does not carry at byte 6"
    assert parse_fault(f'{{"a":{number}}}') == "a number that a double does not carry at byte 5"


@given(
    st.decimals(allow_nan=False, allow_infinity=False)
    | st.floats(allow_nan=False, allow_infinity=False).map(Decimal)
    | st.integers(-(2**70), 2**70).map(Decimal)
)
def test_numbers_survive_by_the_letter_of_the_rule(number: Decimal) -> None:
    """Rule 31: the answer for any decimal is that of exact arithmetic."""
    text = str(number).replace("E", "e")
    double = float(number)
    survives = math.isfinite(double) and number in (Decimal(double), Decimal(repr(double)))
    assert isinstance(read(text), Fault) is not survives
    assert isinstance(read_strictly(text), Fault) is not survives


def test_bounds_are_over_not_at() -> None:
    """Rule 31: at the bound of bytes or depth a text is read, over it is `limit`, whatever else is wrong with it."""
    assert read('"éé"', max_bytes=6) == "éé"
    assert read('"éé"', max_bytes=5) == Fault(Reason.LIMIT, "6 bytes of arguments, the bound is 5")
    assert read("[[[]]]", max_depth=3) == [[[]]]
    assert read("[[[]]]", max_depth=2) == Fault(Reason.LIMIT, "nested deeper than 2 at byte 2")
    assert read('{"é[[[[":[{"{{{{":"[[["}]}', max_depth=3) == {"é[[[[": [{"{{{{": "[[["}]}
    assert read('{"é":[{"a":1}]}', max_depth=2) == Fault(Reason.LIMIT, "nested deeper than 2 at byte 7")
    assert read("[[[", max_depth=2) == Fault(Reason.LIMIT, "nested deeper than 2 at byte 2")
    assert read("\ud800" * 4, max_bytes=11) == Fault(Reason.LIMIT, "12 bytes of arguments, the bound is 11")
    flat = "[" + ",".join(["[]"] * 100) + "]"
    assert read(flat, max_depth=2) == [[]] * 100


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{" + ",".join(f'"k{i}":{i}' for i in range(100_000)) + "}", None),
        ("{" + ",".join(f'"k{i % 99_999}":{i}' for i in range(100_000)) + "}", Reason.ARGUMENTS_PARSE),
        ("[" * 500_000 + "]" * 500_000, Reason.LIMIT),
        ("[" * 10_000, Reason.LIMIT),
        ('{"a":' * 10_000 + "1" + "}" * 10_000, Reason.LIMIT),
        ('"' + "x" * 1_000_000 + '"', None),
        ('"' + "\\n" * 500_000 + '"', None),
        ('"' + "\\n" * 500_000, Reason.ARGUMENTS_PARSE),
        ('"\\' * 500_000, Reason.ARGUMENTS_PARSE),
        ("1" * 1_000_000, Reason.ARGUMENTS_PARSE),
        ("0." + "0" * 1_000_000 + "1", Reason.ARGUMENTS_PARSE),
        ("[" + ",".join(["0.30000000000000004"] * 50_000) + "]", None),
        ('"' + ":[{" * 300_000 + '"', None),
    ],
    ids=[
        "members",
        "duplicate",
        "deep",
        "unclosed",
        "objects",
        "string",
        "escapes",
        "cut",
        "backslashes",
        "digits",
        "zeros",
        "floats",
        "brackets",
    ],
)
def test_huge_texts_get_an_answer(text: str, reason: Reason | None) -> None:
    """Wide, deep and huge arguments are read or get a reason; nothing is raised."""
    found = read(text, max_bytes=2 << 20)
    assert (found.reason if isinstance(found, Fault) else None) is reason


def test_depth_may_be_far_over_the_default() -> None:
    """The strict reader keeps its own stack: depth costs memory only."""
    found = read("[" * 100_000 + "]" * 100_000, max_depth=100_000)
    depth = 0
    while found:
        found = found[0]
        depth += 1
    assert depth == 99_999


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(blacklist_categories=())),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=12,
)


MUTATIONS = st.lists(
    st.tuples(
        st.integers(0, 200),
        st.sampled_from(
            [
                '"',
                "\\",
                ",",
                ":",
                "{",
                "}",
                "[",
                "]",
                "0",
                "9",
                ".",
                "e",
                "-",
                " ",
                "\x01",
                "\ud800",
                "é",
                "a",
                '"a":1,',
                "\\ud800",
                "\\u0061",
            ]
        ),
        st.booleans(),
    ),
    max_size=4,
)


@given(JSON_VALUES, st.booleans(), st.booleans(), MUTATIONS)
def test_agrees_with_another_reader(value: Any, ascii_only: bool, spaced: bool, mutations: list[tuple[int, str, bool]]) -> None:
    """Python's reader with strict hooks reads alike what is read, and refuses what is refused; so does the strict reader."""
    text = json.dumps(value, ensure_ascii=ascii_only, separators=(", ", ": ") if spaced else (",", ":"))
    for place, piece, replace in mutations:
        at = place % (len(text) + 1)
        text = text[:at] + piece + text[at + replace :]
    try:
        expected: Any = [other_reader(text)]
    except (ValueError, RecursionError, ArithmeticError):
        expected = None
    found = read(text)
    strict = read_strictly(text)
    if expected is None:
        assert isinstance(found, Fault)
        assert isinstance(strict, Fault)
    else:
        assert [found] == expected
        assert repr(found) == repr(strict)


@given(st.text(st.characters(blacklist_categories=())))
def test_never_raises(text: str) -> None:
    """Any text at all gets a value or a reason."""
    found = read(text)
    assert isinstance(found, Fault) or found == json.loads(text)


def test_compact_text_of_objects() -> None:
    """Rule 34: `arguments_object` reads an object as its compact text; what JSON cannot say has none."""
    assert compact({"a": [1, 1.5, "é"], "b": None}) == '{"a":[1,1.5,"é"],"b":null}'
    assert compact({"a": math.inf}) is None
    assert compact({"a": [math.nan]}) is None
