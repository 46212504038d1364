"""What judging by schemas of a stream may cost: bounded by an estimate, for every kind of costly schema (design section 6)."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.effort import kinds, parts_at_the_bound
from processor.core.effort import Effort, size_of
from processor.core.engines import SchemaFault
from processor.core.gate import Gate
from processor.core.patterns import states
from processor.core.reasons import Reason
from processor.core.schema_walk import TooLarge
from processor.core.toolsets import Compiler
from processor.core.verdict import Verdict
from tests.core.calls import candidate, gate, registry

BOUND_MS = 100
"""A tenth of the default, so that what is judged within it takes no time here."""
KINDS = {kind.name: kind for kind in kinds()}


def tool(schema: Any) -> dict[str, Any]:
    """The function `report` with these parameters."""
    return {"type": "function", "name": "report", "parameters": schema}


def judged(judge: Gate, schema: Any, arguments: str) -> Verdict:
    """The verdict on a call of a tool that its response brings along."""
    return judge.judge(candidate(tools=json.dumps([tool(schema)]).encode(), arguments=arguments, tool_choices=(b'"auto"',)))


@pytest.mark.parametrize("name", KINDS)
def test_a_costly_call_is_limit(name: str) -> None:
    """Design section 6: what may take too long is `limit`, unjudged, and half of it is judged; values stay unsaid."""
    kind = KINDS[name]
    judge = gate(tools="stream", max_in_band_effort_ms=BOUND_MS, max_argument_bytes=1 << 24)
    parts = parts_at_the_bound(kind, BOUND_MS * 1_000_000)
    within = judged(judge, kind.schema, json.dumps(kind.arguments(parts)))
    assert within.reason in {Reason.OK, Reason.ARGUMENTS_SCHEMA}
    for _ in range(2):
        over = judged(judge, kind.schema, json.dumps(kind.arguments(2 * parts)))
        assert over.reason is Reason.LIMIT
        assert over.detail.startswith("judging it may take ")
        assert over.detail.endswith(f" ms, the bound is {BOUND_MS}")


def test_nested_unevaluated_doubles_with_each_level() -> None:
    """A schema of 2 kB that would take a billion years is refused for any arguments."""
    schema: dict[str, Any] = {}
    for level in range(40):
        schema = {"anyOf": [schema, {"properties": {f"p{level}": True}}], "unevaluatedProperties": True}
    assert judged(gate(tools="stream"), schema, "{}").reason is Reason.LIMIT


def test_the_registry_is_trusted() -> None:
    """The same schema in the registry is judged: whoever put it there has looked at it, or was warned by the lint."""
    schema = {"properties": {"a": {"items": {"anyOf": [{"const": f"x{n}"} for n in range(500)] + [True]}}}}
    text = json.dumps({"a": [1] * 2000})
    small: dict[str, Any] = {"max_in_band_effort_ms": 10}
    assert judged(gate(tools="stream", **small), schema, text).reason is Reason.LIMIT
    assert gate(registry(tool(schema)), **small).judge(candidate(arguments=text)).reason is Reason.OK
    both = gate(registry(tool({})), tools="both", **small)
    assert judged(both, schema, text).reason is Reason.LIMIT
    assert judged(both, schema, '{"a":[1]}').reason is Reason.OK


@pytest.mark.parametrize(
    ("arguments", "settings", "reason"),
    [
        ('{"a":[1', {}, Reason.ARGUMENTS_PARSE),
        ("[1]", {}, Reason.ARGUMENTS_SCHEMA),
        ('{"a":[1]}', {}, Reason.LIMIT),
        ('{"a":[1]}', {"mode": "observe"}, Reason.LIMIT),
        ('{"a":[1]}', {"deny": ("report",), "mode": "observe"}, Reason.NOT_ALLOWED),
    ],
)
def test_cost_comes_with_the_value(arguments: str, settings: dict[str, Any], reason: Reason) -> None:
    """Only what would be judged has a cost: no cost without a value, and observing forgives none, as with every `limit`."""
    schema = {"properties": {"a": {"items": {"enum": [n + 0.5 for n in range(9000)]}}}}
    verdict = judged(gate(tools="stream", max_in_band_effort_ms=1, **settings), schema, arguments)
    assert verdict.reason is reason
    assert verdict.would_reject is None


def test_each_declaration_counts() -> None:
    """Rule 22: a tool declared twice is judged twice, and that is what it costs."""
    schema = {"properties": {"a": {"items": {"enum": [n + 0.5 for n in range(1000)]}}}}
    effort_ms = Effort(schema).of({"a": [1]}) // 1_000_000 + 1
    judge = gate(tools="stream", max_in_band_effort_ms=effort_ms)
    for declared, reason in ((1, Reason.ARGUMENTS_SCHEMA), (3, Reason.LIMIT)):
        call = candidate(tools=json.dumps([tool(schema)] * declared).encode(), arguments='{"a":[1]}')
        assert judge.judge(call).reason is reason


@pytest.mark.parametrize(
    ("pattern", "at_least"),
    [("abc", 3), ("a{1000}", 1000), ("(a{100}b){100}", 10_000), (r"\p{L}{100}", 5_000), ("[^a]{50}", 50), ("(a|b){2,9}", 18)],
)
def test_states_write_repetitions_out(pattern: str, at_least: int) -> None:
    """A pattern is as large as the machine that it becomes, at the least; and not ten times as large."""
    assert at_least <= states(pattern) <= 10 * at_least


@pytest.mark.parametrize("pattern", [r"(\p{L}{50}){20}", "a{20001}", "a{" + "9" * 5000 + "}", "((a{300}){300}){300}"])
def test_patterns_that_take_long_to_compile_are_no_tool(pattern: str) -> None:
    """Rule 23: an in-band schema over its bounds is no tool, with the cause in the detail."""
    verdict = judged(gate(tools="stream"), {"properties": {"a": {"pattern": pattern}}}, "{}")
    assert verdict.reason is Reason.UNKNOWN_TOOL
    assert "states in its patterns" in verdict.detail


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=3) | st.just("a"), inner, max_size=4),
    max_leaves=20,
)


EFFORTS = [Effort(kind.schema) for kind in KINDS.values()]


@given(effort=st.sampled_from(EFFORTS), value=st.dictionaries(st.just("a") | st.text(max_size=3), JSON, max_size=4))
def test_no_text_of_its_size_can_cost_more(effort: Effort, value: dict[str, Any]) -> None:
    """The quick bound, by characters, is never below the count of the parts: what it lets pass needs no count."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    assert effort.of(value) <= effort.most_a_char * len(text)


def test_every_part_is_counted() -> None:
    """Parts by kind: whole numbers up to 2^53, others of ordinary size, others far from it; text in names and values."""
    value = {"ab": [1, -(2**53), 0.5, 1e21, 5e-324, -1e300, 2**70, 10**40, True, None, 0.0], "c": {"d": "eé"}}
    assert size_of(value) == (15, 6, 2, 4, 3)


WORDS = st.sampled_from(
    ["type", "enum", "const", "properties", "items", "anyOf", "pattern", "patternProperties", "minimum", "$ref", "$defs",
     "uniqueItems", "dependentRequired", "unevaluatedProperties", "#", "#/$defs/a", "a", "(", "[", "{2}", "string"]
)  # fmt: skip
SCHEMAS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | WORDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=15,
)


@given(SCHEMAS)
def test_any_schema_has_an_effort_or_a_fault(schema: Any) -> None:
    """Rule 23: whatever arrives as a schema is a tool with its cost, or a fault; nothing else is raised."""
    try:
        made = Compiler().tool(None, "report", schema, trusted=False)
    except (SchemaFault, TooLarge):
        return
    assert made.effort is not None
    assert made.effort.of({"a": [1, "x"]}) > 0
