"""The benchmark's workload: what it claims about itself holds."""

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from benchmarks import tools
from benchmarks.outputs import differences
from benchmarks.report import spread, write
from benchmarks.stream import FAULTS, Expected, Shape
from benchmarks.workload import Workload, make


@pytest.fixture(scope="module")
def workload() -> Workload:
    """A small workload of the default shape."""
    return make(Shape(events=20_000))


def test_the_same_seed_makes_the_same_bytes() -> None:
    """Two runs can only be compared if they read the same records."""
    shape = Shape(events=2_000)
    assert make(shape).values == make(shape).values
    assert make(shape).values != make(Shape(events=2_000, seed=2)).values


def test_the_oracle_agrees_with_an_independent_validator(workload: Workload) -> None:
    """Arguments called good fit their schema, and those called bad do not: how they were made is what they are."""
    validators = {name: Draft202012Validator(schema) for name, schema in tools.SCHEMAS.items()}
    seen = set()
    for call in workload.calls.values():
        seen.add(call.reason)
        if call.reason in {"ok", "arguments_schema"}:
            assert validators[call.name].is_valid(json.loads(call.arguments)) == (call.reason == "ok"), call
    assert seen == {"ok", "status", *FAULTS}


def test_the_shape_is_that_of_the_issue(workload: Workload) -> None:
    """About 370 bytes an event, 40 or so events a response, and calls from 1 to 4."""
    events = len(workload.values)
    assert 350 < sum(map(len, workload.values)) / events < 390
    assert 35 < events / workload.streams < 45
    by_stream: dict[str, int] = {}
    for call in workload.calls.values():
        by_stream[call.key] = by_stream.get(call.key, 0) + 1
    assert set(by_stream.values()) == {1, 2, 3, 4}
    assert len(by_stream) == workload.streams


def test_events_of_a_stream_stay_in_order_among_others(workload: Workload) -> None:
    """Streams are interleaved, and each keeps its own order."""
    numbers: dict[bytes, int] = {}
    changes = 0
    before = b""
    for key, value in zip(workload.keys, workload.values, strict=True):
        event = json.loads(value)
        assert event["sequence_number"] == numbers.get(key, 0)
        numbers[key] = event["sequence_number"] + 1
        changes += key != before
        before = key
    assert changes > len(workload.keys) * 0.9


def test_a_section_of_the_results_is_replaced_by_its_title(tmp_path: Path) -> None:
    """Running a benchmark again replaces its own section and no other."""
    file = tmp_path / "RESULTS.md"
    write(file, "## one\n\nold figures\n", "one")
    write(file, "## two\n\nother\n", "two")
    write(file, "## one\n\nsecond\n", "one")
    text = file.read_text()
    assert text.count("## one") == 1
    assert "old figures" not in text
    assert text.index("other") < text.index("second")
    assert text.startswith("# Results")
    assert spread([1.0, 3.0, 2.0]) == "2.00 (1.00 to 3.00)"


def test_every_kind_of_wrong_output_is_found() -> None:
    """A row with a missing, repeated, wrong or foreign decision does not count."""
    calls = {
        "c1": Expected("k", "ok", "pay", '{"a":1}'),
        "c2": Expected("k", "status", "pay", "{}"),
    }
    good = [
        ("approved", b'{"decision":"approved","reason":"ok","call_id":"c1","name":"pay","arguments":"{\\"a\\":1}"}'),
        ("rejected", b'{"decision":"rejected","reason":"status","call_id":"c2","name":"pay"}'),
    ]
    assert differences(good, calls) == []
    assert differences(good[:1], calls) == ["c2: not decided"]
    assert differences([*good, good[0]], calls) == ["c1: decided twice"]
    assert len(differences([("rejected", good[0][1]), good[1]], calls)) == 1
    assert len(differences([good[0], (good[1][0], good[1][1].replace(b"status", b"conflict"))], calls)) == 1
    assert len(differences([(good[0][0], good[0][1].replace(b"1}", b"2}")), good[1]], calls)) == 1
    assert len(differences([*good, ("dead-letter", b"?")], calls)) == 1
    assert len(differences([*good, (good[0][0], good[0][1].replace(b"c1", b"c9"))], calls)) == 1
