"""The suites that others wrote, where they are: JSON Schema's through the engine port, JSONTestSuite through the reader."""

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from processor.core.arguments import read
from processor.core.engines import FastEngine, RustEngine, SchemaFault, Validator
from processor.core.schema_walk import DRAFTS
from processor.core.strict import Fault

SUITES = Path(__file__).resolve().parents[2] / "shared" / "suites"
pytestmark = pytest.mark.skipif(not SUITES.is_dir(), reason="the suites are not here")

CASES = {"draft4": 618, "draft6": 839, "draft7": 927, "draft2019-09": 1259, "draft2020-12": 1299}
"""Required cases by draft, so that none can go missing."""
SERVED = "http://localhost:1234/"

REFUSED_BY_SECOND = {
    "draft4": {"items", "id", "$ref", "patternProperties", "multipleOf", "pattern", "enum"},
    "draft6": {"items", "$id", "$ref", "patternProperties", "multipleOf", "pattern", "enum"},
    "draft7": {"items", "$id", "$ref", "patternProperties", "multipleOf", "pattern", "enum"},
    "draft2019-09": {
        "items", "$id", "$ref", "patternProperties", "multipleOf", "pattern", "enum", "unevaluatedProperties",
        "unevaluatedItems", "minContains", "maxContains", "dependentSchemas", "dependentRequired", "additionalItems",
        "contentMediaType", "contentEncoding", "$recursiveRef", "an unknown $schema",
    },
    "draft2020-12": {
        "$id", "$ref", "patternProperties", "multipleOf", "pattern", "enum", "unevaluatedProperties", "unevaluatedItems",
        "minContains", "maxContains", "dependentSchemas", "dependentRequired", "prefixItems", "contentMediaType",
        "contentEncoding", "$dynamicRef", "an unknown $schema",
    },
}  # fmt: skip
"""Keywords for which fastjsonschema is not used, as the suite meets them: a change of the table shows here."""


def served(uri: str) -> Any:
    """Serve the suite's remote schemas from its folder."""
    assert uri.startswith(SERVED), uri
    return json.loads((SUITES / "json-schema" / "remotes" / uri.removeprefix(SERVED)).read_text())


@cache
def groups(draft: str) -> tuple[tuple[str, Any, tuple[tuple[str, Any, bool], ...]], ...]:
    """Schemas of a draft with their cases; `$schema` is written where the schema can say it and does not."""
    identifier = next(uri for uri, name in DRAFTS.items() if name == draft)
    found = []
    for path in sorted((SUITES / "json-schema" / "tests" / draft).glob("*.json")):
        for group in json.loads(path.read_text()):
            schema = group["schema"]
            if isinstance(schema, dict) and "$schema" not in schema:
                schema = {"$schema": identifier, **schema}
            cases = tuple((case["description"], case["data"], case["valid"]) for case in group["tests"])
            found.append((f"{path.name}: {group['description']}", schema, cases))
    return tuple(found)


def compiled(draft: str, *, second: bool) -> Iterator[tuple[str, Validator | SchemaFault, tuple[tuple[str, Any, bool], ...]]]:
    """Each schema of a draft, compiled or refused."""
    engine = FastEngine() if second else RustEngine(remotes=served)
    for name, schema, cases in groups(draft):
        try:
            yield name, engine.compile(schema), cases
        except SchemaFault as fault:
            yield name, fault, cases


@pytest.mark.parametrize("draft", CASES)
def test_the_deciding_engine_passes_all(draft: str) -> None:
    """Section 6: every required case through the gate's own engine port."""
    wrong, ran = [], 0
    for name, checked, cases in compiled(draft, second=False):
        for case, value, valid in cases:
            ran += 1
            if isinstance(checked, SchemaFault) or checked.is_valid(value) is not valid:
                wrong.append(f"{name}: {case}")
            elif not valid and not checked.flaws(value):
                wrong.append(f"{name}: {case}: no error is named")
    assert wrong == []
    assert ran == CASES[draft]


@pytest.mark.parametrize("draft", CASES)
def test_the_second_engine_is_right_about_all_that_it_takes(draft: str) -> None:
    """Section 6: no wrong acceptance and, on schemas that are not refused, no wrong rejection; refusals by keyword."""
    wrong, refused, ran = [], set(), 0
    for name, checked, cases in compiled(draft, second=True):
        if isinstance(checked, SchemaFault):
            assert "is not proven to honour" in checked.cause
            refused.add(checked.cause.removeprefix("fastjsonschema is not proven to honour ").rsplit(" in ", 1)[0])
            continue
        for case, value, valid in cases:
            ran += 1
            if checked.is_valid(value) is not valid:
                wrong.append(f"{name}: {case}")
    assert wrong == []
    assert refused == REFUSED_BY_SECOND[draft]
    assert ran > CASES[draft] // 2


@pytest.mark.parametrize("draft", CASES)
def test_both_engines_agree(draft: str) -> None:
    """Section 6: with `both`, no wrong acceptance, and no wrong rejection on schemas that are not refused."""
    disagreements = []
    pairs = zip(compiled(draft, second=False), compiled(draft, second=True), strict=True)
    for (name, first, cases), (_, second, _) in pairs:
        if isinstance(first, SchemaFault) or isinstance(second, SchemaFault):
            continue
        disagreements += [f"{name}: {case}" for case, value, _ in cases if first.is_valid(value) is not second.is_valid(value)]
    assert disagreements == []


NOT_I_JSON = {"y_object_duplicated_key.json", "y_object_duplicated_key_and_value.json"}
"""Valid JSON that I-JSON refuses: duplicate names."""

UP_TO_US = {
    "i_number_double_huge_neg_exp.json": "a number that a double does not carry",
    "i_number_huge_exp.json": "a number that a double does not carry",
    "i_number_neg_int_huge_exp.json": "a number that a double does not carry",
    "i_number_pos_double_huge_exp.json": "a number that a double does not carry",
    "i_number_real_neg_overflow.json": "a number that a double does not carry",
    "i_number_real_pos_overflow.json": "a number that a double does not carry",
    "i_number_real_underflow.json": "a number that a double does not carry",
    "i_number_too_big_neg_int.json": "a number that a double does not carry",
    "i_number_too_big_pos_int.json": "read: 100000000000000000000 is a double",
    "i_number_very_big_negative_int.json": "a number that a double does not carry",
    "i_object_key_lone_2nd_surrogate.json": "a lone surrogate",
    "i_string_1st_surrogate_but_2nd_missing.json": "a lone surrogate",
    "i_string_1st_valid_surrogate_2nd_invalid.json": "a lone surrogate",
    "i_string_UTF-16LE_with_BOM.json": "not UTF-8",
    "i_string_UTF-8_invalid_sequence.json": "not UTF-8",
    "i_string_UTF8_surrogate_U+D800.json": "not UTF-8",
    "i_string_incomplete_surrogate_and_escape_valid.json": "a lone surrogate",
    "i_string_incomplete_surrogate_pair.json": "a lone surrogate",
    "i_string_incomplete_surrogates_escape_valid.json": "a lone surrogate",
    "i_string_invalid_lonely_surrogate.json": "a lone surrogate",
    "i_string_invalid_surrogate.json": "a lone surrogate",
    "i_string_invalid_utf-8.json": "not UTF-8",
    "i_string_inverted_surrogates_U+1D11E.json": "a lone surrogate",
    "i_string_iso_latin_1.json": "not UTF-8",
    "i_string_lone_second_surrogate.json": "a lone surrogate",
    "i_string_lone_utf8_continuation_byte.json": "not UTF-8",
    "i_string_not_in_unicode_range.json": "not UTF-8",
    "i_string_overlong_sequence_2_bytes.json": "not UTF-8",
    "i_string_overlong_sequence_6_bytes.json": "not UTF-8",
    "i_string_overlong_sequence_6_bytes_null.json": "not UTF-8",
    "i_string_truncated-utf-8.json": "not UTF-8",
    "i_string_utf16BE_no_BOM.json": "not UTF-8",
    "i_string_utf16LE_no_BOM.json": "not UTF-8",
    "i_structure_500_nested_arrays.json": "nested deeper than 64",
    "i_structure_UTF-8_BOM_empty_object.json": "a value expected",
}
"""What JSON leaves to the parser, decided: bytes that are no UTF-8 never get as far as an arguments string."""


def outcome(path: Path) -> str:
    """What the reader makes of a file: `read`, or what is wrong with it."""
    try:
        text = path.read_bytes().decode()
    except UnicodeDecodeError:
        return "not UTF-8"
    found = read(text)
    return found.detail if isinstance(found, Fault) else "read"


def parsing_files(prefix: str) -> list[Path]:
    """Files of JSONTestSuite."""
    return sorted((SUITES / "json-parsing" / "test_parsing").glob(f"{prefix}_*.json"))


def test_every_valid_text_is_read_that_i_json_allows() -> None:
    """JSONTestSuite: `y_` files are read, but for duplicate names."""
    files = parsing_files("y")
    assert len(files) == 95
    assert {path.name for path in files if outcome(path) != "read"} == NOT_I_JSON


def test_every_invalid_text_is_refused() -> None:
    """JSONTestSuite: `n_` files are refused."""
    files = parsing_files("n")
    assert len(files) == 188
    assert [path.name for path in files if outcome(path) == "read"] == []


def test_what_json_leaves_open_is_decided() -> None:
    """JSONTestSuite: `i_` files are decided as the table says."""
    files = parsing_files("i")
    assert {path.name for path in files} == UP_TO_US.keys()
    for path in files:
        assert outcome(path).startswith(UP_TO_US[path.name].split(":")[0]), path.name
