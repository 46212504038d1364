"""The gate: order of the reasons, tool_choice, policy, modes, tolerances, toolsets of registry and stream (rules 22 to 34)."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from processor.core.candidate import AUTO
from processor.core.engines import FastEngine
from processor.core.gate import Gate, GateSettings, Verdict
from processor.core.reasons import Reason
from processor.core.toolsets import FixedToolset
from tests.core.calls import ARGUMENTS, PARAMETERS, REPORT, candidate, gate, registry


def reason(verdict: Verdict) -> str:
    """Its reason, and the one that enforce would have given where it is only observed."""
    return verdict.reason if verdict.would_reject is None else f"{verdict.reason} instead of {verdict.would_reject}"


def in_band(*tools: Any) -> bytes:
    """JSON text of a response's tools."""
    return json.dumps(tools).encode()


def test_a_good_call_is_approved() -> None:
    """A call that nothing is wrong with is `ok`, and says by what it was judged."""
    toolset = registry()
    verdict = gate(toolset).judge(candidate())
    assert verdict == Verdict(reason=Reason.OK, toolset=toolset.sha256, tools=toolset.tools)


FAULTY: dict[str, dict[str, Any]] = {
    "status": {"fault": Reason.STATUS, "detail": "cut off"},
    "not_allowed": {"tool_choices": (b'"none"',)},
    "unknown_tool": {"name": "other"},
    "arguments_type": {"arguments": {"region": "apac"}},
    "limit": {"arguments": '{"region":"' + "a" * 100 + '"'},
    "arguments_parse": {"arguments": '{"region":"apac"'},
    "arguments_schema": {"arguments": '{"region":"global"}'},
}
"""One fault for each reason, in order."""


@pytest.mark.parametrize("first", FAULTY)
def test_reasons_come_in_their_order(first: str) -> None:
    """Section 5: of several faults the first in the order of the table is the reason."""
    order = list(FAULTY)
    changes: dict[str, Any] = {}
    for name in reversed(order[order.index(first) :]):
        changes.update(FAULTY[name])
    verdict = gate(max_argument_bytes=100).judge(candidate(**changes))
    assert verdict.reason == first
    assert verdict.detail


def test_a_fault_of_assembly_stands() -> None:
    """What assembly found comes first, and the gate adds nothing."""
    verdict = gate().judge(candidate(fault=Reason.CONFLICT, detail="two names", tolerated=("status_absent",)))
    assert verdict == Verdict(reason=Reason.CONFLICT, detail="two names", tolerated=("status_absent",))


@pytest.mark.parametrize("value", ['"text"', "[]", "1", "null", "true"])
def test_a_value_that_is_no_object_is_arguments_schema(value: str) -> None:
    """Arguments are a JSON object, whatever the schema says."""
    free = registry({"type": "function", "name": "report", "parameters": {}})
    assert gate(free).judge(candidate(arguments=value)).reason is Reason.ARGUMENTS_SCHEMA


def test_a_schema_fault_names_places_and_no_values() -> None:
    """The errors point into arguments and schema; the detail holds no value."""
    verdict = gate().judge(candidate(arguments='{"region":"secret-value"}'))
    assert [(flaw.at, flaw.schema, flaw.keyword) for flaw in verdict.flaws] == [("/region", "/properties/region/enum", "enum")]
    assert "secret-value" not in repr(verdict.detail)


@pytest.mark.parametrize(
    ("choice", "allowed"),
    [
        ('"auto"', True),
        ('"required"', True),
        ('"none"', False),
        ('{"type":"none"}', False),
        ('{"type":"function","name":"report"}', True),
        ('{"type":"function","name":"other"}', False),
        ('{"type":"function","name":"report","namespace":"crm"}', False),
        ('{"type":"function"}', False),
        ('{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"report"}]}', True),
        ('{"type":"allowed_tools","mode":"required","tools":[{"type":"function","name":"other"}]}', False),
        ('{"type":"allowed_tools","mode":"auto","tools":[{"type":"mcp","server_label":"report"}]}', False),
        ('{"type":"allowed_tools","mode":"none","tools":[{"type":"function","name":"report"}]}', False),
        ('{"type":"allowed_tools","mode":"auto","tools":[]}', False),
        ('{"type":"allowed_tools"}', False),
        ('{"type":"custom","name":"report"}', False),
        ('{"type":"web_search_preview"}', False),
        ('{"type":"mcp","server_label":"x","name":"report"}', False),
    ],
)
def test_tool_choice_is_a_hard_limit(choice: str, *, allowed: bool) -> None:
    """Rules 22 and 24: what tool_choice forbids is `not_allowed`; a forced tool that is no function forbids every function."""
    verdict = gate().judge(candidate(tool_choices=(choice.encode(),)))
    assert verdict.reason is (Reason.OK if allowed else Reason.NOT_ALLOWED)
    assert verdict.unknown_choices == 0


@pytest.mark.parametrize("choice", ['"any"', '""', "7", "[]", '{"mode":"none"}', '{"type":7}', "{", '"\\ud800"', "[" * 5000])
def test_an_unknown_tool_choice_forbids_nothing(choice: str) -> None:
    """Rule 24: what nobody knows forbids nothing, and is counted each time."""
    judge = gate()
    for _ in range(2):
        verdict = judge.judge(candidate(tool_choices=(choice.encode(), b'"auto"')))
        assert verdict.reason is Reason.OK
        assert verdict.unknown_choices == 1


def test_all_known_tool_choices_bind() -> None:
    """Rule 22: a call must satisfy each of them."""
    report, other = b'{"type":"function","name":"report"}', b'{"type":"function","name":"other"}'
    assert gate().judge(candidate(tool_choices=(report, b'"auto"'))).reason is Reason.OK
    assert gate().judge(candidate(tool_choices=(report, other))).reason is Reason.NOT_ALLOWED


def test_second_calls_fall_to_parallel_tool_calls_false() -> None:
    """Rule 22: with `parallel_tool_calls: false` the first call of a response is allowed, later ones are not."""
    judge = gate()
    assert judge.judge(candidate(parallel=False, position=0)).reason is Reason.OK
    assert judge.judge(candidate(parallel=False, position=1)).reason is Reason.NOT_ALLOWED
    assert judge.judge(candidate(parallel=True, position=1)).reason is Reason.OK


@pytest.mark.parametrize(
    ("policy", "namespace", "name", "allowed"),
    [
        ({"deny": ("report",)}, None, "report", False),
        ({"deny": ("rep*",)}, None, "report", False),
        ({"deny": ("rep*",)}, "crm", "report", True),
        ({"deny": ("crm/*",)}, "crm", "report", False),
        ({"deny": ("*/report",)}, None, "report", True),
        ({"allow": ("*",)}, None, "report", True),
        ({"allow": ("*",)}, "crm", "report", False),
        ({"allow": ("crm/rep?rt",)}, "crm", "report", True),
        ({"allow": ("Report",)}, None, "report", False),
        ({"allow": ("report",), "deny": ("report",)}, None, "report", False),
    ],
)
def test_local_policy(policy: dict[str, Any], namespace: str | None, name: str, *, allowed: bool) -> None:
    """Allow and deny lists take patterns of (namespace, name), in which `*` never reaches across the slash."""
    tools = registry(REPORT, {"type": "namespace", "name": "crm", "tools": [REPORT]})
    verdict = gate(tools, **policy).judge(candidate(namespace=namespace, name=name))
    assert verdict.reason is (Reason.OK if allowed else Reason.NOT_ALLOWED)


def test_names_must_match_exactly() -> None:
    """Rule 25: (`namespace`, `name`) must match exactly."""
    tools = registry(REPORT, {"type": "namespace", "name": "crm", "tools": [{**REPORT, "name": "lead"}]})
    judge = gate(tools)
    assert judge.judge(candidate(namespace="crm", name="lead")).reason is Reason.OK
    for namespace, name in [(None, "lead"), ("crm", "report"), ("", "report"), ("report", "report"), (None, "Report")]:
        assert judge.judge(candidate(namespace=namespace, name=name)).reason is Reason.UNKNOWN_TOOL


@pytest.mark.parametrize("source", ["registry", "stream"])
def test_a_deferred_flat_tool_may_come_under_its_own_namespace(source: str) -> None:
    """Rule 25: with `defer_loading` a call whose namespace equals its name fits the flat tool, and its restrictions."""
    deferred = {**REPORT, "defer_loading": True}
    toolset = registry(deferred) if source == "registry" else None
    call: dict[str, Any] = {"namespace": "report", "tools": in_band(deferred)}

    def judged(more: dict[str, Any], **settings: Any) -> Reason:
        return gate(toolset, tools=source, **settings).judge(candidate(**call, **more)).reason

    assert judged({}) is Reason.OK
    assert judged({"arguments": "{}"}) is Reason.ARGUMENTS_SCHEMA
    assert judged({"tool_choices": (b'{"type":"function","name":"report"}',)}) is Reason.OK
    assert judged({"tool_choices": (b'{"type":"function","name":"other"}',)}) is Reason.NOT_ALLOWED
    assert judged({}, deny=("report",)) is Reason.NOT_ALLOWED
    assert judged({}, allow=("report",)) is Reason.OK


def test_tools_of_the_stream() -> None:
    """`tools = "stream"`: flat tools and those in namespaces, as the response echoes them."""
    judge = gate(tools="stream")
    tools = in_band({"type": "web_search"}, REPORT, {"type": "namespace", "name": "crm", "tools": [{**REPORT, "name": "lead"}]})
    assert judge.judge(candidate(tools=tools)).reason is Reason.OK
    assert judge.judge(candidate(tools=tools, namespace="crm", name="lead")).reason is Reason.OK
    assert judge.judge(candidate(tools=tools, name="web_search")).reason is Reason.UNKNOWN_TOOL
    assert judge.judge(candidate(tools=tools, arguments="{}")).reason is Reason.ARGUMENTS_SCHEMA
    assert judge.judge(candidate(tools=None)).reason is Reason.UNKNOWN_TOOL
    assert (judge.in_band.hits > 0, judge.in_band.misses) == (True, 1)


def test_a_tool_declared_twice_must_be_satisfied_twice() -> None:
    """Rule 22: the second declaration is no replacement of the first."""
    narrow = {**REPORT, "parameters": {"properties": {"region": {"const": "emea"}}}}
    judge = gate(tools="stream")
    for tools in (in_band(REPORT, narrow), in_band(narrow, REPORT)):
        assert judge.judge(candidate(tools=tools)).reason is Reason.ARGUMENTS_SCHEMA
        assert judge.judge(candidate(tools=tools, arguments='{"region":"emea"}')).reason is Reason.OK
        assert judge.judge(candidate(tools=tools, arguments='{"region":"emea","a":1}')).reason is Reason.ARGUMENTS_SCHEMA


def test_declarations_are_bounded_and_never_dropped_in_part() -> None:
    """A name with too many declarations is no tool at all: to leave one out would be to not satisfy it."""
    judge = gate(tools="stream")
    narrow = {**REPORT, "parameters": False}
    assert judge.judge(candidate(tools=in_band(*[REPORT] * 8))).reason is Reason.OK
    assert "declared over 8 times" in judge.judge(candidate(tools=in_band(*[REPORT] * 8, narrow))).detail
    many = [{"type": "function", "name": f"tool{number}"} for number in range(3000)]
    assert judge.judge(candidate(tools=in_band(REPORT, *many, narrow))).reason is Reason.ARGUMENTS_SCHEMA
    assert judge.judge(candidate(tools=in_band(*many, REPORT))).reason is Reason.UNKNOWN_TOOL


def test_both_sources_must_be_satisfied() -> None:
    """`tools = "both"`: the registry and what the response echoes."""
    judge = gate(tools="both")
    narrow = in_band({**REPORT, "parameters": {"properties": {"region": {"const": "emea"}}}})
    assert judge.judge(candidate(tools=narrow)).reason is Reason.ARGUMENTS_SCHEMA
    verdict = judge.judge(candidate(tools=narrow, arguments='{"region":"emea"}'))
    assert verdict.reason is Reason.OK
    assert len(verdict.tools) == 2
    assert judge.judge(candidate(tools=in_band())).detail.startswith("stream: ")
    assert judge.judge(candidate(tools=None)).reason is Reason.UNKNOWN_TOOL
    other = in_band({**REPORT, "name": "other"})
    assert judge.judge(candidate(tools=other, name="other")).detail.startswith("registry: ")


def doubled() -> dict[str, Any]:
    """2 kB of schema that would take seconds to validate against."""
    definitions: dict[str, Any] = {"d0": {}}
    for level in range(1, 31):
        definitions[f"d{level}"] = {"allOf": [{"$ref": f"#/$defs/d{level - 1}"}, {"$ref": f"#/$defs/d{level - 1}"}]}
    return {"$ref": "#/$defs/d30", "$defs": definitions}


def nested(levels: int) -> dict[str, Any]:
    """A deep schema."""
    schema: dict[str, Any] = {}
    for _ in range(levels):
        schema = {"not": schema}
    return schema


@pytest.mark.parametrize(
    ("schema", "cause"),
    [
        ({"type": "text"}, "/type"),
        ({"$ref": "#/nowhere"}, "/$ref"),
        ({"$ref": "https://127.0.0.1:9/"}, "/$ref"),
        ({"$schema": "urn:mine"}, "/$schema"),
        ({"pattern": "(?=x)"}, "backtracking"),
        ({"$ref": "#"}, "without descending"),
        (doubled(), "over 10000 schemas"),
        (nested(300), "nested deeper"),
        ({"enum": ["x" * 300_000]}, "bytes"),
        ("text", "object or a boolean"),
        ([], "object or a boolean"),
    ],
    ids=range(11),
)
def test_a_bad_in_band_schema_is_no_tool(schema: Any, cause: str) -> None:
    """Rule 23: it is `unknown_tool` with the cause, and the other tools of the response are unharmed."""
    judge = gate(tools="stream")
    tools = in_band({**REPORT, "name": "bad", "parameters": schema}, REPORT)
    for _ in range(2):
        verdict = judge.judge(candidate(tools=tools, name="bad"))
        assert verdict.reason is Reason.UNKNOWN_TOOL
        assert cause in verdict.detail
    assert judge.judge(candidate(tools=tools)).reason is Reason.OK


@pytest.mark.parametrize(
    "tools", [b"", b"{", b"{}", b'"x"', b"null", b"[7,null,[]]", b"[" * 100_000, b'["\\ud800"]', b"\xff", b"[NaN]"]
)
def test_tools_that_are_no_list_of_tools(tools: bytes) -> None:
    """Whatever stands for the tools, nothing is raised and nothing is approved."""
    assert gate(tools="stream").judge(candidate(tools=tools)).reason is Reason.UNKNOWN_TOOL


def test_a_list_over_the_bound_is_no_tools() -> None:
    """In-band tools are bounded in bytes."""
    tools = in_band(REPORT, {"type": "x", "pad": "x" * (1 << 20)})
    assert "over 1048576 bytes" in gate(tools="stream").judge(candidate(tools=tools)).detail


def test_a_tool_without_parameters_takes_none() -> None:
    """The API says that a function without `parameters` has an empty parameter list."""
    judge = gate(tools="stream")
    for tool in ({"type": "function", "name": "report"}, {"type": "function", "name": "report", "parameters": None}):
        assert judge.judge(candidate(tools=in_band(tool), arguments="{}")).reason is Reason.OK
        assert judge.judge(candidate(tools=in_band(tool))).reason is Reason.ARGUMENTS_SCHEMA


def test_strict_changes_no_decision() -> None:
    """Rule 22: `strict` is a promise of the provider, no rule of ours."""
    for strict in (True, False, None, "x"):
        tools = in_band({**REPORT, "strict": strict})
        assert gate(tools="stream").judge(candidate(tools=tools)).reason is Reason.OK


@pytest.mark.parametrize("settings", [{"mode": "observe"}, {"observe": ("report", "other")}])
@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "ok"),
        ({"tool_choices": (b'"none"',)}, "ok instead of not_allowed"),
        ({"name": "other"}, "ok instead of unknown_tool"),
        ({"arguments": '{"region":"global"}'}, "ok instead of arguments_schema"),
        ({"tool_choices": (b'"none"',), "arguments": '{"region":"global"}'}, "ok instead of not_allowed"),
        ({"arguments": "[]"}, "arguments_schema"),
        ({"arguments": {}}, "arguments_type"),
        ({"arguments": "{"}, "arguments_parse"),
        ({"arguments": "[" * 100}, "limit"),
        ({"fault": Reason.STATUS}, "status"),
        ({"name": "other", "arguments": "[]"}, "unknown_tool"),
        ({"name": "other", "arguments": None}, "unknown_tool"),
        ({"name": "other", "arguments": '{"a":1,"a":2}'}, "unknown_tool"),
        ({"tool_choices": (b'"none"',), "arguments": "{"}, "not_allowed"),
    ],
)
def test_observe_approves_only_what_can_be_executed(settings: dict[str, Any], changes: dict[str, Any], expected: str) -> None:
    """Section 5: observed are policy, toolset and schema; arguments that no executor could read are rejected there too."""
    assert reason(gate(**settings).judge(candidate(**changes))) == expected


def test_tools_that_are_not_observed_are_enforced() -> None:
    """The list of observed tools takes patterns, and leaves the others alone."""
    tools = registry(REPORT, {**REPORT, "name": "lead"})
    judge = gate(tools, observe=("le*",))
    assert judge.judge(candidate(arguments="{}")).reason is Reason.ARGUMENTS_SCHEMA
    assert reason(judge.judge(candidate(name="lead", arguments="{}"))) == "ok instead of arguments_schema"


@pytest.mark.parametrize(
    ("name", "changes", "without", "checked"),
    [
        ("empty_arguments", {"name": "free", "arguments": ""}, Reason.ARGUMENTS_PARSE, "{}"),
        ("arguments_object", {"arguments": {"region": "apac"}}, Reason.ARGUMENTS_TYPE, ARGUMENTS),
        ("namespace_functions", {"namespace": "functions"}, Reason.UNKNOWN_TOOL, None),
    ],
)
def test_tolerances(name: str, changes: dict[str, Any], without: Reason, checked: str | None) -> None:
    """Rule 34: off by default; where one was needed the verdict names it, and the text that was checked."""
    tools = registry(REPORT, {"type": "function", "name": "free", "parameters": {}})
    assert gate(tools).judge(candidate(**changes)).reason is without
    assert gate(tools).would_help(candidate(**changes)) == (name,)
    verdict = gate(tools, tolerate=(name,)).judge(candidate(**changes, tolerated=("status_absent",)))
    assert verdict.reason is Reason.OK
    assert verdict.tolerated == ("status_absent", name)
    assert verdict.arguments == checked
    assert verdict.normalised is (checked is not None)
    untouched = gate(tools, tolerate=(name,)).judge(candidate())
    assert (untouched.reason, untouched.tolerated, untouched.arguments) == (Reason.OK, (), None)


def test_tolerances_go_no_further_than_they_say() -> None:
    """Rule 34: other empty or wrong-typed arguments stay refused, and an exact namespace `functions` is not bent."""
    everything = gate(tolerate=("empty_arguments", "arguments_object", "namespace_functions"))
    for arguments in (" ", "null", None, [], 7, True, ["{}"], {"a": float("inf")}):
        assert everything.judge(candidate(arguments=arguments)).reason is not Reason.OK
    tools = registry({"type": "namespace", "name": "functions", "tools": [REPORT]})
    verdict = gate(tools, tolerate=("namespace_functions",)).judge(candidate(namespace="functions"))
    assert (verdict.reason, verdict.tolerated) == (Reason.OK, ())


def test_a_rejection_is_normalised_by_nothing() -> None:
    """Rule 34: arguments that are tolerated as an object and do not fit are rejected as they came."""
    verdict = gate(tolerate=("arguments_object",)).judge(candidate(arguments={}))
    assert (verdict.reason, verdict.tolerated) == (Reason.ARGUMENTS_SCHEMA, ("arguments_object",))
    assert not verdict.normalised


def test_a_disagreement_of_the_engines_is_a_rejection() -> None:
    """Section 6: `both` approves only what both accept; here the second engine is given a narrower schema."""
    both = registry(engine="both")
    assert both.tools[0].engines == ("jsonschema-rs", "fastjsonschema")
    assert gate(both, engine="both").judge(candidate()).reason is Reason.OK
    narrower = FastEngine().compile({"properties": {"region": {"const": "emea"}}})
    judge = gate(FixedToolset([replace(both.tools[0], second=narrower.is_valid)]), engine="both")
    assert judge.judge(candidate(arguments='{"region":"emea"}')).reason is Reason.OK
    verdict = judge.judge(candidate())
    assert verdict.reason is Reason.ARGUMENTS_SCHEMA
    assert verdict.disagreement
    assert "disagree" in verdict.detail


def test_another_registry_is_in_force_from_the_next_call_on() -> None:
    """A hot reload is one assignment; what was learned of the old toolset is forgotten with it."""
    judge = gate()
    assert judge.judge(candidate()).reason is Reason.OK
    assert judge.judge(candidate()).reason is Reason.OK
    narrower = registry({**REPORT, "parameters": {**PARAMETERS, "properties": {"region": {"const": "emea"}}}})
    judge.use(narrower)
    verdict = judge.judge(candidate())
    assert (verdict.reason, verdict.toolset) == (Reason.ARGUMENTS_SCHEMA, narrower.sha256)


@pytest.mark.parametrize(
    "changes",
    [
        {"tools": "file"},
        {"mode": "off"},
        {"engine": "x"},
        {"arguments": "x"},
        {"max_argument_depth": 0},
        {"max_argument_depth": 513},
        {"engine": "fastjsonschema", "tools": "stream"},
    ],
)
def test_settings_that_cannot_be(changes: dict[str, Any]) -> None:
    """Wrong settings are refused with a sentence; fastjsonschema alone never meets a schema of a stream."""
    with pytest.raises(ValueError, match=r"max_argument_depth|one of|needs"):
        GateSettings(**changes)


WEIRD: Any = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(st.characters(blacklist_categories=())), st.just("report"),
    st.lists(st.integers(), max_size=2), st.dictionaries(st.text(), st.integers(), max_size=2),
)  # fmt: skip
GATES = [
    gate(),
    gate(mode="observe", tolerate=("empty_arguments", "arguments_object", "namespace_functions")),
    gate(tools="stream", allow=("*",)),
    gate(tools="both", engine="both", deny=("x*",)),
]
CHOICES = st.sampled_from(
    [b'"auto"', b'"none"', b'{"type":"function","name":"report"}', b"x", b'{"type":"allowed_tools","tools":[7]}']
)


@given(
    judge=st.sampled_from(GATES),
    namespace=st.none() | WEIRD,
    name=st.just("report") | WEIRD,
    arguments=WEIRD | st.sampled_from([ARGUMENTS, '{"region":"x"}', "{}", ""]),
    tools=st.none() | st.binary(max_size=20) | st.just(in_band(REPORT)),
    choices=st.lists(CHOICES, max_size=2).map(tuple),
    parallel=st.booleans(),
    position=st.integers(0, 2),
)
def test_any_call_gets_a_verdict(judge: Gate, **changes: Any) -> None:
    """Nothing in a call makes the gate raise, and the short cut says what the ordered checks say."""
    changes["tool_choices"] = choices = changes.pop("choices")
    call = candidate(**changes, usual=choices == AUTO and changes["namespace"] is None and changes["parallel"])
    in_order = judge.judge_in_order(call)
    for _ in range(2):
        assert replace(judge.judge(call), plain=False, form=None) == in_order
    if in_order.reason is Reason.OK and in_order.would_reject is None:
        assert call.name == "report"
