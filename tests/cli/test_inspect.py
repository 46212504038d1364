"""Any content at all gets verdicts: nothing is lost between the core's decisions and what `check` shows."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from processor import app
from processor.adapters.inspect import inspect, meaning, records_of
from processor.config import load
from processor.core.limits import TOLERANCES
from processor.core.outgoing import Route
from processor.demo.driver import TOOLS

CORE = app.build_core(load(sets=[f"schemas={TOOLS}"]))

words = st.sampled_from(["", "call_1", "call_2", "get_weather", "completed", "in_progress", "{}", '{"city":"Rome"}', "\ud83d"])
values = st.one_of(
    st.none(), words, st.integers(-1, 2), st.booleans(), st.just({"city": "Rome"}), st.lists(st.none(), max_size=1)
)
types = st.sampled_from(
    ["function_call", "function_call_output", "message", "reasoning", "custom_tool_call", "x:y", "tool_search_call", "new_type"]
)
items = st.fixed_dictionaries(
    {"type": types | values},
    optional=dict.fromkeys(("id", "call_id", "name", "namespace", "arguments", "status", "role", "content", "output"), values),
)
contents = st.one_of(
    items,
    st.lists(items, max_size=4),
    st.builds(
        lambda output, status: {"object": "response", "id": "r", "status": status, "output": output},
        st.lists(items | st.none(), max_size=4),
        words,
    ),
    st.lists(
        st.builds(
            lambda item, index: {"type": "response.output_item.done", "output_index": index, "item": item},
            items,
            st.integers(0, 2),
        ),
        max_size=3,
    ),
)


def check(content: bytes) -> None:
    """Every decision and dead letter of the core is among the verdicts, and each has a meaning or a detail."""
    partition = CORE.partition("check", 0)
    partition.resume(None, 0)
    partition.feed(records_of(content), 0)
    partition.end_of_archive(0)
    expected = sorted((each.route != Route.APPROVED, each.reason) for each in partition.take())
    verdicts = inspect(content, lambda more: CORE.tolerating(more).partition("check", 0), TOLERANCES, 0)
    decided = [each for each in verdicts if each.counts]
    own = [each for each in decided if each.decision is None and each.verdict == "rejected"]
    found = sorted((each.verdict != "approved", each.reason) for each in decided if each not in own)
    assert found == expected
    assert all(meaning(each) or each.detail for each in verdicts)
    assert all(each.reason == "not_function_call" for each in own)


@given(contents)
def test_any_items(content: Any) -> None:
    """Items with fields of any type, alone, in journals, responses and events."""
    check(json.dumps(content).encode())


@given(st.binary(max_size=300))
def test_any_bytes(content: bytes) -> None:
    """Bad input: any bytes at all."""
    if not content.startswith((b"\x1f\x8b", b"\x28\xb5\x2f\xfd")):
        check(content)


@given(st.lists(items, min_size=1, max_size=5))
def test_every_item_of_a_journal_has_a_verdict(journal: list[dict[str, Any]]) -> None:
    """Rule 33: as many verdicts as items."""
    content = json.dumps(journal).encode()
    verdicts = inspect(content, lambda more: CORE.tolerating(more).partition("check", 0), (), 0)
    if [each.verdict for each in verdicts] != ["unreadable"]:
        assert len(verdicts) == len(journal)
