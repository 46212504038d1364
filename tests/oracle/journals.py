"""Rule 30: items that are judged by themselves."""

from collections.abc import Sequence

from tests.factories import Json
from tests.oracle.events import Event, Response
from tests.oracle.response import Reading
from tests.oracle.use import Token
from tests.oracle.values import Decision, Log, Sorted
from tests.oracle.verdict import judge


def journal(state: Log, items: Sequence[Json], key: str | None, token: Token, offset: int, *, single: bool) -> None:
    """Rule 30: each journal is judged by itself; a bare output has no journal to be judged in."""
    calls: dict[str, str] = {}
    completed: set[str] = set()
    for number, item in enumerate(items):
        place = (*token, number)
        if "type" not in item and "role" in item and "content" in item:
            continue
        if item.get("type") == "function_call_output":
            if item.get("call_id") not in completed and not single:
                line = Decision(offset, key, None, item.get("call_id"), "identity")
                state.lines.append(Sorted(place, line))
            continue
        event = Event(place, offset, {"type": "response.completed", "response": {"output": [item]}})
        alone = Response(key, None, offset, 0, [event])
        alone.ended_by, alone.ended_at = "completed", place
        reading = Reading(alone, "response", state.settings, lambda call, **k: judge(state.toolset, call, **k))
        reading.used = dict(calls)
        for verdict in reading.run():
            arguments = item.get("arguments") if verdict.reason == "ok" else None
            line = Decision(offset, key, None, verdict.call_id, verdict.reason, arguments)
            state.lines.append(Sorted(verdict.token, line))
            calls.setdefault(verdict.call_id or "", reading.used.get(verdict.call_id or "", ""))
            status_counts = item.get("status") == "completed" or (
                item.get("status") is None and "status_absent" in state.settings.tolerate
            )
            if item.get("type") == "function_call" and status_counts and verdict.call_id:
                completed.add(verdict.call_id)
