"""The decision record: its fields, id, headers and bounds, and that any call can be written (design section 2, rule 32)."""

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from processor.core.candidate import Candidate
from processor.core.decide import Decider, Outgoing, Route
from processor.core.events import Unreadable
from processor.core.reasons import Cause, Reason
from processor.core.signals import Tally
from tests.core.calls import ARGUMENTS, candidate, gate, registry
from tests.factories import Record

SCHEMAS = Path(__file__).resolve().parents[2] / "schemas"
NOW_MS = 1_790_000_000_999


def contract(name: str) -> jsonschema_rs.Validator:
    """One of the shipped contracts."""
    return jsonschema_rs.validator_for(json.loads((SCHEMAS / "topics" / f"{name}.json").read_text()), offline=True)


DECISION = contract("decision")
DECISION_HEADERS = contract("decision-headers")
DEAD_LETTER_HEADERS = contract("dead-letter-headers")


def decide(call: Candidate, decider: Decider | None = None, **settings: Any) -> tuple[dict[str, Any], Outgoing]:
    """The decision of a call, as a consumer reads it; it keeps the contracts, always."""
    outgoing = (decider or Decider(gate(**settings)))(call, "responses.events", 3, NOW_MS)
    assert outgoing.value is not None
    value = json.loads(outgoing.value)
    DECISION.validate(value)
    headers = {name: (content or b"").decode() for name, content in outgoing.headers}
    DECISION_HEADERS.validate(headers)
    assert headers["decision"] == value["decision"] == outgoing.route
    assert headers["reason"] == value["reason"] == outgoing.reason
    return value, outgoing


def test_an_approval_has_these_fields() -> None:
    """Section 2: everything an executor needs, the arguments unchanged, and the item ready to be sent back."""
    toolset = registry()
    value, outgoing = decide(candidate(namespace=None, traceparent=b"00-ab", tracestate=b"x=1"), Decider(gate(toolset)))
    identifier = value.pop("id")
    assert len(identifier) == 64
    assert value == {
        "decision": "approved",
        "reason": "ok",
        "call_id": "call_1",
        "name": "report",
        "stream": "stream-1",
        "response_id": "resp_1",
        "toolset": toolset.sha256,
        "arguments": ARGUMENTS,
        "item": {
            "type": "function_call",
            "id": "fc_1",
            "call_id": "call_1",
            "name": "report",
            "arguments": ARGUMENTS,
            "status": "completed",
        },
        "model": "model-1",
        "tool_schema": toolset.tools[0].sha256,
        "source": {"topic": "responses.events", "partition": 3, "first_offset": 3, "last_offset": 9},
        "event_time": "2026-09-21T14:13:20.123Z",
        "decided_at": "2026-09-21T14:13:20.999Z",
    }
    assert outgoing.key == b"stream-1"
    assert outgoing.headers == [
        ("decision", b"approved"),
        ("reason", b"ok"),
        ("call_id", b"call_1"),
        ("name", b"report"),
        ("content-type", b"application/json"),
        ("traceparent", b"00-ab"),
        ("tracestate", b"x=1"),
    ]


def test_a_rejection_tells_the_model_what_to_correct() -> None:
    """Section 2: errors by pointer, and a ready `function_call_output` without argument values."""
    value, outgoing = decide(candidate(arguments='{"region":"secret"}'))
    assert outgoing.route is Route.REJECTED
    assert value["errors"] == [{"at": "/region", "schema": "/properties/region/enum", "keyword": "enum"}]
    feedback = value["feedback"]
    assert (feedback["type"], feedback["call_id"]) == ("function_call_output", "call_1")
    assert 'at /region: must be one of "apac", "emea", "amer".' in feedback["output"]
    assert "secret" not in json.dumps(value)


@pytest.mark.parametrize("reason", [reason for reason in Reason if reason.stage == "assemble"] + [Reason.LIMIT])
def test_no_feedback_for_what_the_model_did_not_do(reason: Reason) -> None:
    """A call that was not complete, or whose pieces disagree, has nothing that a model could correct."""
    value, _ = decide(candidate(fault=reason, detail="why"))
    assert (value["reason"], value["detail"]) == (reason, "why")
    assert "feedback" not in value
    assert value["toolset"] is None


@pytest.mark.parametrize(
    ("policy", "arguments", "written"),
    [
        ("omit", "{", None),
        ("hash", "{", "sha256:021fb596db81e6d02bf3d2586ee3981fe519f275c0ac9ca76bbcf2ebb4097d96"),
        ("include", "{", "{"),
        ("omit", {"a": 1}, None),
        ("hash", {"a": 1}, "sha256:015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862"),
        ("include", {"a": 1}, {"a": 1}),
        ("include", {"a": float("inf")}, None),
        ("hash", None, None),
    ],
)
def test_arguments_of_a_rejection_follow_the_policy(policy: str, arguments: Any, written: Any) -> None:
    """Section 2: a rejection omits, hashes or includes its arguments, by setting."""
    value, _ = decide(candidate(arguments=arguments), arguments=policy)
    assert value.get("arguments") == written
    assert decide(candidate(), arguments=policy)[0]["arguments"] == ARGUMENTS


def identifier(**changes: Any) -> str:
    """Decision id of a call."""
    found: str = decide(candidate(**changes))[0]["id"]
    return found


def test_the_id_is_of_the_call_not_of_its_place_or_content() -> None:
    """Rule 32: stream, response and call_id make the id; offsets, times, content and verdict do not."""
    same = identifier()
    assert identifier(first_offset=70, last_offset=90, event_time=1, arguments="{", name="other", output_index=5) == same
    assert identifier(fault=Reason.TIMEOUT) == same
    different = [
        identifier(**changes)
        for changes in (
            {},
            {"stream": "stream-2"},
            {"stream": None},
            {"response_id": "resp_2"},
            {"call_id": "call_2"},
            {"call_id": None, "fault": Reason.IDENTITY},
            {"call_id": None, "output_index": 1, "fault": Reason.IDENTITY},
            {"call_id": "0"},
            {"salt": "x"},
            {"response_id": None},
            {"response_id": None, "name": "other"},
            {"response_id": None, "arguments": "{}"},
            {"response_id": None, "arguments": {"a": 1}},
        )
    ]
    assert len(set(different)) == len(different)
    assert identifier(call_id="", fault=Reason.IDENTITY) == identifier(call_id=None, fault=Reason.IDENTITY)


def test_observed_and_tolerated_calls_say_so() -> None:
    """`would_reject`, `tolerated` and `normalised` are there where they are true, and counted."""
    decider = Decider(gate(mode="observe", tolerate=("arguments_object",)))
    decider.tally = Tally()
    call = candidate(arguments={"region": "global"}, tolerated=("status_absent",), tool_choices=(b'"any"',))
    value, _ = decide(call, decider)
    assert value["would_reject"] == "arguments_schema"
    assert value["tolerated"] == ["status_absent", "arguments_object"]
    assert value["normalised"] is True
    assert value["arguments"] == value["item"]["arguments"] == '{"region":"global"}'
    assert value["errors"][0]["at"] == "/region"
    assert decider.tally == Tally(
        would_reject=Tally().would_reject + type(Tally().would_reject)(["arguments_schema"]),
        tolerated=type(Tally().tolerated)(["arguments_object"]),
        unknown_tool_choice=1,
    )


def test_an_approval_that_does_not_fit_is_limit() -> None:
    """Section 7: everything that is decided can be published."""
    free = registry({"type": "function", "name": "report", "parameters": {}})
    long = json.dumps({"text": '"' * 5000})
    bound = 30_000
    value, outgoing = decide(candidate(arguments=long), Decider(gate(free, max_decision_bytes=bound)))
    assert value["reason"] == "limit"
    assert len(outgoing.value or b"") < bound
    assert value["feedback"]["output"]
    assert decide(candidate(arguments=long), Decider(gate(free)))[0]["reason"] == "ok"


@pytest.mark.parametrize(
    "large",
    [
        {"traceparent": b"x" * 5_000},
        {"tracestate": b"x" * 5_000},
        {"stream": "x" * 4_000},
        {"arguments": ARGUMENTS + " " * 6_000},
    ],
    ids=["traceparent", "tracestate", "stream", "arguments"],
)
def test_the_bound_holds_for_plain_approvals_too(large: dict[str, Any]) -> None:
    """Key and headers count as well, also where a call of the same tool has passed before."""
    decider = Decider(gate(max_decision_bytes=8_000))
    assert decide(candidate(), decider)[0]["reason"] == "ok"
    assert decide(candidate(), decider)[0]["reason"] == "ok"
    assert decide(candidate(**large), decider)[0]["reason"] == "limit"


def test_a_rejection_is_cut_until_it_fits() -> None:
    """A rejection can always be published: what can be done without goes first."""
    call = candidate(name="n" * 50_000, call_id="c" * 50_000, arguments="\x01" * 50_000)
    value, outgoing = decide(call, arguments="include", max_rejection_bytes=100_000)
    assert (value["reason"], len(value["name"])) == ("unknown_tool", 512)
    size = len(outgoing.value or b"") + sum(len(name) + len(content or b"") for name, content in outgoing.headers)
    assert size < 100_000


def test_the_key_is_the_bytes_that_were_read() -> None:
    """A key that is no UTF-8 comes back byte for byte."""
    _, outgoing = decide(candidate(stream=b"a\xff\xc3".decode("utf-8", "surrogateescape")))
    assert outgoing.key == b"a\xff\xc3"


def test_times_that_no_calendar_has() -> None:
    """Kafka's -1 and timestamps beyond the year 9999 are null."""
    for timestamp in (-1, -(2**63), 253_402_300_800_000, 2**63 - 1):
        assert decide(candidate(event_time=timestamp))[0]["event_time"] is None
    assert decide(candidate(event_time=0))[0]["event_time"] == "1970-01-01T00:00:00.000Z"
    assert decide(candidate(event_time=253_402_300_799_999))[0]["event_time"] == "9999-12-31T23:59:59.999Z"


def test_a_dead_letter_is_the_record_with_its_cause() -> None:
    """Section 2: bytes and headers as read, and why and where in headers."""
    record = Record(17, 1_790_000_000_000, b"\xff", b"\x00\xfe", [("a", b"1"), ("a", None)])
    outgoing = Decider(gate()).dead_letter(record, Unreadable(Cause.NOT_TEXT, "at byte 0 \ud800"), "in", 2)
    assert (outgoing.route, outgoing.key, outgoing.value, outgoing.reason) == (
        Route.DEAD_LETTER,
        b"\xff",
        b"\x00\xfe",
        "not_text",
    )
    assert outgoing.headers[:2] == [("a", b"1"), ("a", None)]
    added = {name: (content or b"").decode() for name, content in outgoing.headers[2:]}
    DEAD_LETTER_HEADERS.validate(added)
    assert (added["callgate-topic"], added["callgate-partition"], added["callgate-offset"]) == ("in", "2", "17")


def test_the_asyncapi_document_names_the_contracts() -> None:
    """The document's references lead to shipped files, and its topics are the defaults."""
    document = yaml.safe_load((SCHEMAS / "asyncapi.yaml").read_text())
    topics = {channel["address"] for channel in document["channels"].values()}
    assert topics == {"responses.events", "toolcalls.approved", "toolcalls.rejected", "toolcalls.dead-letter"}
    references = [word.strip() for word in (SCHEMAS / "asyncapi.yaml").read_text().split("$ref:")[1:]]
    files = {reference.split()[0] for reference in references if reference.startswith("topics/")}
    assert files == {f"topics/{path.name}" for path in (SCHEMAS / "topics").glob("*.json")}


ANY_TEXT = st.text(st.characters(blacklist_categories=()))
ANYTHING: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY_TEXT, inner, max_size=3),
    max_leaves=5,
)
POLICIES = {policy: Decider(gate(arguments=policy, tolerate=("arguments_object",))) for policy in ("omit", "hash", "include")}


@given(
    policy=st.sampled_from(list(POLICIES)),
    stream=st.none() | ANY_TEXT,
    response_id=st.none() | ANY_TEXT,
    model=st.none() | ANY_TEXT,
    call_id=ANY_TEXT,
    name=ANYTHING | st.just("report"),
    namespace=ANYTHING,
    arguments=ANYTHING | st.just(ARGUMENTS),
    item_id=ANYTHING,
    detail=ANY_TEXT,
    fault=st.sampled_from([None, None, Reason.STATUS, Reason.NAMESPACED]),
    event_time=st.integers(-(2**63), 2**63 - 1),
)
def test_any_call_can_be_written(policy: str, **changes: Any) -> None:
    """Whatever is in a call: the decision is JSON and keeps its contract, and nothing is raised."""
    if not changes["call_id"]:
        changes["fault"] = Reason.IDENTITY
    call = candidate(**changes)
    outgoing = POLICIES[policy](call, "responses.events", 3, NOW_MS)
    value = json.loads(outgoing.value or b"")
    assert value["call_id"] == changes["call_id"]
    assert value["stream"] == changes["stream"]
    if not any("\ud800" <= mark <= "\udfff" for mark in json.dumps(value, ensure_ascii=False)):
        DECISION.validate(value)


@given(
    call_id=st.text(min_size=1, max_size=20),
    response_id=st.none() | st.text(max_size=20),
    stream=st.none() | st.text(max_size=20),
    model=st.none() | st.text(max_size=10),
    item_id=st.none() | st.text(max_size=10) | st.just({"no": "text"}),
    salt=st.sampled_from(["", "x"]),
    namespace=st.none() | st.just("crm"),
    name=st.text(min_size=1, max_size=10) | st.just('%"{}'),
    note=st.text(max_size=30),
    traceparent=st.none() | st.just(b"00-ab"),
    event_time=st.sampled_from([NOW_MS, -1]),
)
def test_a_plain_approval_is_the_same_record(note: str, **changes: Any) -> None:
    """The approval that is written at once is, to the byte, the one that is made of all its fields."""
    tool = {"type": "function", "name": changes["name"], "parameters": {"properties": {"note": {"type": "string"}}}}
    decider = Decider(gate(registry(tool, namespace=changes["namespace"])))
    call = candidate(**changes, arguments=json.dumps({"note": note}, ensure_ascii=len(note) % 2 == 0))
    first, second = (decider(call, "responses.events", 3, NOW_MS) for _ in range(2))
    assert first.reason == "ok"
    assert (first.route, first.key, first.value, first.headers) == (second.route, second.key, second.value, second.headers)
    plain = decider.gate.judge(call)
    assert plain.plain
    whole = decider.write(call, plain, "responses.events", 3, NOW_MS)
    assert second == whole
