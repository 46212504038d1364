"""Runs one case through the core and through the oracle, and shrinks a log on which they differ.

The core is driven through `processor.core.pipeline.Partition` alone, one record at a time, so that each decision is known to
fall at the right record.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from processor.core.candidate import Candidate
from processor.core.decide import Outgoing, Route
from processor.core.events import Unreadable
from processor.core.limits import Bounds
from processor.core.pipeline import Partition
from processor.core.ports import Judge
from processor.core.signals import Tally
from tests.oracle import naive
from tests.oracle.generate import Case
from tests.oracle.use import as_texts
from tests.oracle.values import DEAD, Decision
from tests.oracle.verdict import Toolset, judge

NOW_MS = 1_800_000_000_000
MANY = 6
"""From here on only the decisions that the other side does not have are shown."""


@dataclass(frozen=True)
class Outcome:
    """One log, read by both."""

    alike: bool
    """They made the same decisions at the same records, in the same order."""
    streams: int
    """Responses of which more than one event was read."""
    decisions: int


def bounds_of(case: Case) -> Bounds:
    """The case's settings as the core has them."""
    s = case.settings
    return Bounds(
        release=s.release,
        stream_timeout_ms=s.stream_timeout_ms,
        closed_memory_ms=s.closed_memory_ms,
        max_calls=s.max_calls,
        max_argument_bytes=s.max_argument_bytes,
        max_response_bytes=s.max_response_bytes,
        max_streams=s.max_streams,
        tolerate=s.tolerate,
        key_header=s.key_header,
    )


class NaiveJudge:
    """The oracle's gate behind the core's assembly: differences are then the assembly's."""

    def __init__(self, toolset: Toolset, bounds: Bounds) -> None:
        self.toolset = toolset
        self.bounds = bounds
        self.tally = Tally()

    def dead_letter(self, record: Any, unreadable: Unreadable, topic: str, partition: int) -> Outgoing:
        """Keep an unreadable record."""
        where = json.dumps([topic, partition, record.offset]).encode()
        return Outgoing(Route.DEAD_LETTER, record.key, where, [], str(unreadable.cause))

    def __call__(self, candidate: Candidate, topic: str, partition: int, now_ms: int) -> Outgoing:
        """Judge one call."""
        reason = str(candidate.fault) if candidate.fault is not None else self._gate(candidate)
        body = {
            "stream": candidate.stream,
            "response_id": candidate.response_id,
            "call_id": candidate.call_id,
            "reason": reason,
            "arguments": as_texts({"arguments": candidate.arguments})["arguments"],
            "source": [topic, partition, candidate.first_offset, candidate.last_offset],
            "decided_at": now_ms,
        }
        route = Route.APPROVED if reason == "ok" else Route.REJECTED
        return Outgoing(route, None, json.dumps(body).encode(), [], reason)

    def _gate(self, candidate: Candidate) -> str:
        tools = json.loads(candidate.tools) if candidate.tools is not None else None
        return judge(
            self.toolset,
            {"name": candidate.name, "namespace": candidate.namespace, "arguments": candidate.arguments},
            tools=tools,
            choices=[json.loads(choice) for choice in candidate.tool_choices],
            parallel=candidate.parallel,
            position=candidate.position,
            max_bytes=self.bounds.max_argument_bytes,
            tolerate=self.bounds.tolerate,
        )


def core_decisions(case: Case, judge: Judge) -> list[Decision]:
    """What the core decides on this log, record by record."""
    partition = Partition("responses.events", 0, bounds_of(case), judge)
    partition.resume(None, case.log[0].offset if case.log else 0)
    out: list[Decision] = []
    for place in range(len(case.log) + 1):
        here = case.log[place].offset if place < len(case.log) else (case.log[-1].offset + 1 if case.log else 0)
        partition.reached(here)
        for at, wall in case.idle:
            if at == place:
                partition.idle(wall, NOW_MS)
        if place < len(case.log):
            partition.feed([case.log[place]], NOW_MS)
        else:
            partition.end_of_archive(NOW_MS)
        out += [decision_of(outgoing, here) for outgoing in partition.take()]
    return out


def decision_of(outgoing: Outgoing, offset: int) -> Decision:
    """An encoded record back to what the oracle says."""
    if outgoing.route is Route.DEAD_LETTER:
        return Decision(offset, None, None, None, DEAD)
    body = json.loads(outgoing.value or b"")
    approved = outgoing.route is Route.APPROVED
    return Decision(
        offset, body["stream"], body["response_id"], body["call_id"], body["reason"], body["arguments"] if approved else None
    )


def oracle_decisions(case: Case) -> list[Decision]:
    """What the rules say on this log, as the oracle reads them."""
    return naive.decide(case.log, case.settings, case.toolset, case.idle, archive_ends=True)


def hold(case: Case, judge: Judge | None = None) -> Outcome:
    """Hold the core against the oracle on one log; a core that raises differs from everything."""
    read = naive.read_log(case.log, case.settings, case.toolset, case.idle, archive_ends=True)
    expected = naive.decisions(read)
    try:
        alike = core_decisions(case, judge or NaiveJudge(case.toolset, bounds_of(case))) == expected
    except Exception:  # noqa: BLE001 - any exception of the core is a difference, whatever it is
        alike = False
    return Outcome(alike, sum(len(response.events) > 1 for response in read.responses), len(expected))


def differs(case: Case, judge: Judge | None = None) -> bool:
    """Whether core and oracle decide otherwise."""
    return not hold(case, judge).alike


def shrink(case: Case) -> Case:
    """Fewer records and no idle moves, as long as the difference stays."""
    for size in (16, 8, 4, 2, 1, 1):
        place = 0
        while place < len(case.log):
            smaller = _without(case, place, size)
            if differs(smaller):
                case = smaller
            else:
                place += size
    bare = replace(case, idle=())
    return bare if differs(bare) else case


def _without(case: Case, place: int, size: int) -> Case:
    log = case.log[:place] + case.log[place + size :]
    idle = tuple((at if at <= place else max(place, at - size), wall) for at, wall in case.idle)
    return replace(case, log=log, idle=idle)


def words(case: Case) -> str:
    """A log for people, with both answers."""
    lines = [f"seed {case.seed}  {case.settings}  tools={case.toolset.mode}"]
    for place in range(len(case.log) + 1):
        lines += [f"      idle, wall clock {wall}" for at, wall in case.idle if at == place]
        if place < len(case.log):
            record = case.log[place]
            value = (record.value or b"").decode("utf-8", "backslashreplace")
            key = str([record.key, *record.headers])
            lines.append(f"  {record.offset:>3} t={record.timestamp} {key}: {_short(value)}")
    try:
        core: Sequence[object] = core_decisions(case, NaiveJudge(case.toolset, bounds_of(case)))
    except Exception as error:  # noqa: BLE001 - shown, not handled
        core = [f"{type(error).__name__}: {error}"]
    oracle = oracle_decisions(case)
    lines += [f"  core {i}:   {d}" for i, d in enumerate(core) if d not in oracle or len(core) < MANY]
    lines += [f"  oracle {i}: {d}" for i, d in enumerate(oracle) if d not in core or len(oracle) < MANY]
    return "\n".join(lines)


def _short(value: str) -> str:
    return value if len(value) <= 900 else f"{value[:400]} ... {len(value)} characters ... {value[-400:]}"
