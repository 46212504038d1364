"""Fuzzing of decode, assembly and gate together: any log at all, and what must hold for whatever comes out of it.

`CALLGATE_FUZZ_EXAMPLES` asks for more examples of each; `make fuzz` runs the coverage-guided target.
"""

import os
from collections import Counter

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from processor.core.limits import Bounds
from processor.core.reasons import Reason
from tests.factories import Json, Record, created, delta, done, function_call, pieces, records, terminal
from tests.fuzz import logs
from tests.fuzz.drive import Outcome, drive
from tests.fuzz.evidence import SCHEMAS, Wrong, check_approval
from tests.oracle.naive import decide
from tests.oracle.values import Settings
from tests.oracle.verdict import Toolset

EXAMPLES = int(os.environ.get("CALLGATE_FUZZ_EXAMPLES", "80"))
TOOLSET = Toolset("registry", SCHEMAS)

fuzz = settings(max_examples=EXAMPLES)


@fuzz
@given(logs.anything, logs.bounds)
def test_any_bytes(log: list[Record], bounds: Bounds) -> None:
    """Bad input: any bytes as records give decisions and dead letters, never an exception, within the bounds."""
    drive(log, bounds)


@fuzz
@given(logs.structured, logs.bounds)
def test_any_types(log: list[Record], bounds: Bounds) -> None:
    """Events, items and responses with fields of any type: approved implies the evidence."""
    drive(log, bounds)


@fuzz
@given(logs.mutated, logs.bounds)
def test_changed_streams(log: list[Record], bounds: Bounds) -> None:
    """Streams of real shapes, dropped, doubled, swapped, altered and cut: approved implies the evidence."""
    drive(log, bounds)


def approvals(outcome: Outcome) -> Counter[tuple[str | None, ...]]:
    """What was approved: key, response, call, text; where a tolerance made the text, without it."""
    return Counter(
        (body["stream"], body["response_id"], body["call_id"], None if body.get("normalised") else body["arguments"])
        for _, body in outcome.approved
    )


@fuzz
@given(logs.reordered, logs.reference_bounds)
def test_reference_approves_alike(log: list[Record], bounds: Bounds) -> None:
    """Records dropped, doubled, swapped and moved: the naive reference approves the same calls, and no others."""
    names = ("release", "stream_timeout_ms", "closed_memory_ms", "tolerate")
    ours = Settings(**{name: getattr(bounds, name) for name in names})
    expected = Counter(
        (line.stream, line.response_id, line.call_id, (line.arguments or None) if isinstance(line.arguments, str) else None)
        for line in decide(log, ours, TOOLSET, archive_ends=True)
        if line.reason == "ok"
    )
    assert approvals(drive(log, bounds)) == expected


def test_logs_reach_every_reason() -> None:
    """The fuzzing means something: what it draws gives approvals, dead letters and every reason."""
    seen: Counter[str] = Counter()

    @settings(max_examples=200, database=None, derandomize=True, phases=[Phase.generate], suppress_health_check=[*HealthCheck])
    @given(logs.structured | logs.mutated, logs.bounds)
    def draw(log: list[Record], bounds: Bounds) -> None:
        outcome = drive(log, bounds)
        seen.update(["ok"] * len(outcome.approved), dead=outcome.dead_letters)
        seen.update(body["reason"] for body in outcome.rejected)

    draw()
    assert set(seen) >= {*(reason.value for reason in Reason), "dead"} - {"not_allowed"}, seen


CALL = function_call(id="fc_1")
GOOD = [created(), *pieces(0, CALL), terminal(output=[CALL])]


def approval(**changes: object) -> Json:
    """A decision that is right about GOOD, but for these fields."""
    ((_, body),) = drive(records(GOOD), Bounds()).approved
    return {**body, **changes}


@pytest.mark.parametrize(
    ("body", "events"),
    [
        (approval(arguments='{"city":"Bergen"}'), GOOD),
        (approval(name="list_alerts"), GOOD),
        (approval(call_id="call_2"), GOOD),
        (approval(), [created(), *pieces(0, {**CALL, "status": "in_progress"}), terminal(output=[])]),
        (approval(), [created(), *pieces(0, CALL), terminal("failed", output=[CALL])]),
        (approval(), [created(), *pieces(0, CALL, ['{"city":"Bergen"}']), terminal(output=[CALL])]),
        (approval(), [created(), pieces(0, CALL)[0], delta(0, 5), *pieces(0, CALL)[2:], terminal(output=[CALL])]),
        (approval(), [created(), *pieces(0, {**CALL, "name": "refund_order"})[:1], done(0, CALL), terminal(output=[CALL])]),
        (approval(), [*GOOD[:3], {"type": "error"}, *GOOD[4:]]),
    ],
)
def test_evidence_refuses(body: Json, events: list[Json]) -> None:
    """The evidence is worth its name: an approval that its log does not bear out is found."""
    log = records(events)
    body = {**body, "source": {**body["source"], "first_offset": 1, "last_offset": len(log) - 1}}
    body["item"] = {**body["item"], "arguments": body["arguments"], "call_id": body["call_id"]}
    with pytest.raises(Wrong):
        check_approval(body, log, "response")
