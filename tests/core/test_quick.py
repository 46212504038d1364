"""The quick approval: what assembly calls usual is usual, and the short cut says what the ordered checks say."""

from typing import Any

import pytest
from msgspec.structs import replace

from processor.core.candidate import AUTO, Candidate
from processor.core.decide import Decider
from processor.core.gate import Gate, GateSettings
from processor.core.outgoing import Outgoing
from processor.core.pipeline import Partition
from processor.core.reasons import Reason
from processor.settings import Settings
from tests import factories as make
from tests.core.calls import candidate, gate, registry
from tests.core.deciding import weather


class Watching(Decider):
    """A judge that keeps the calls that it was handed."""

    def __init__(self) -> None:
        super().__init__(Gate(GateSettings()))
        self.calls: list[Candidate] = []

    def __call__(self, candidate: Candidate, topic: str, partition: int, now_ms: int) -> Outgoing:
        """Keep it, and judge it."""
        self.calls.append(candidate)
        return super().__call__(candidate, topic, partition, now_ms)


def assembled(items: list[make.Json], *, tolerate: tuple[str, ...] = (), **response: Any) -> list[Candidate]:
    """The calls of one response, as assembly hands them to the gate."""
    watching = Watching()
    partition = Partition("responses.events", 0, Settings(tolerate=tolerate).bounds(), watching)
    partition.resume(None, 0)
    partition.feed(make.records(make.whole_stream(items, **response)), now_ms=0)
    return watching.calls


def test_the_common_call_is_usual() -> None:
    """A good call of a flat tool, under the tool_choice that nearly every response echoes, has the quick path."""
    (call,) = assembled([weather("c1")], tool_choice="auto")
    assert call.usual
    assert call.tool_choices == AUTO


@pytest.mark.parametrize(
    ("item", "response"),
    [
        (weather("c1"), {"tool_choice": "none"}),
        (weather("c1"), {"tool_choice": "required"}),
        (weather("c1"), {"tool_choice": {"type": "function", "name": "other"}}),
        (weather("c1"), {}),
        (weather("c1"), {"tool_choice": "auto", "parallel_tool_calls": False}),
        (weather("c1", namespace="crm"), {"tool_choice": "auto"}),
        (weather("c1", status="incomplete"), {"tool_choice": "auto"}),
        ({**weather("c1"), "status": None}, {"tool_choice": "auto", "tolerate": ("status_absent",)}),
        (weather("c1"), {"tool_choice": "auto", "kind": "failed"}),
    ],
)
def test_what_else_can_be_wrong_is_not_usual(item: make.Json, response: dict[str, Any]) -> None:
    """Rules 8, 22, 34: a call that something of its response, or of assembly, may speak against has the ordered checks."""
    calls = assembled([item], **response)
    assert calls
    assert not any(call.usual for call in calls)


@pytest.mark.parametrize("schema", [{"type": "string"}, {"type": "number"}])
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"v":%s}', Reason.OK),
        ('{ "v" : %s }', Reason.OK),
        ('{"v":%s,"w":":"}', Reason.OK),
        ('{"v":%s,"v":%s}', Reason.ARGUMENTS_PARSE),
        ('{"v":%s,"w":{"x":1,"x":1}}', Reason.ARGUMENTS_PARSE),
        ('{"v":%s,"w":1e400}', Reason.ARGUMENTS_PARSE),
        ('{"v":%s,"w":9007199254740993}', Reason.ARGUMENTS_PARSE),
        ('{"v":%s,"w":"\\ud800"}', Reason.ARGUMENTS_PARSE),
        ('{"v":%s,"w":[[[[[[[1]]]]]]]}', Reason.LIMIT),
        ('{"v":[%s]}', Reason.ARGUMENTS_SCHEMA),
        ("[%s]", Reason.ARGUMENTS_SCHEMA),
    ],
)
def test_the_second_call_is_judged_like_the_first(schema: make.Json, text: str, reason: Reason) -> None:
    """Rule 31: what one call has shown takes no check away from the next, for tools with numbers and without."""
    value = '"x"' if schema["type"] == "string" else "1.5"
    tool = {"type": "function", "name": "report", "parameters": {"properties": {"v": schema}}}
    judge = gate(registry(tool), max_argument_depth=7)
    usual: dict[str, Any] = {"tool_choices": AUTO, "usual": True}
    assert judge.judge(candidate(arguments=f'{{"v":{value}}}', **usual)).reason is Reason.OK
    call = candidate(arguments=text.replace("%s", value), **usual)
    assert judge.judge(call).reason is reason
    assert replace(judge.judge(call), plain=False, form=None) == judge.judge_in_order(call)


def test_another_registry_takes_what_was_shown_along() -> None:
    """A call is judged by one toolset from end to end: what was shown under the one before counts no more."""
    judge = gate()
    call = candidate(tool_choices=AUTO, usual=True)
    assert judge.judge(call).reason is Reason.OK
    before = judge.judge
    narrow = {"type": "object", "properties": {"region": {"const": "emea"}}}
    judge.use(registry({"type": "function", "name": "report", "parameters": narrow}))
    assert judge.judge(call).reason is Reason.ARGUMENTS_SCHEMA
    assert before(call).toolset != judge.registry.sha256
    judge.use(registry({"type": "function", "name": "other", "parameters": {}}))
    assert judge.judge(call).reason is Reason.UNKNOWN_TOOL
