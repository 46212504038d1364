"""Sends any log through a partition with the real gate, record by record, and holds what comes out to what must be true.

Owns the harness that Hypothesis (`test_fuzz.py`) and the coverage-guided target (`fuzz/atheris_target.py`) share: no exception,
memory within the bounds, and the evidence for every approval.
"""

import json
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import msgspec

from processor.core.decide import Decider
from processor.core.gate import Gate, GateSettings
from processor.core.limits import Bounds
from processor.core.outgoing import Outgoing, Route
from processor.core.pipeline import Partition
from processor.core.registry import ToolFile, build
from processor.core.state import Response
from processor.core.toolsets import Compiler
from tests.factories import Json, Record
from tests.fuzz.evidence import SCHEMAS, check_approval, check_once

NOW_MS = 1_800_000_000_000
COMPILER = Compiler()
REGISTRY = build(
    [
        ToolFile(f"{name}.json", None, {"type": "function", "name": name, "parameters": schema})
        for name, schema in SCHEMAS.items()
    ],
    COMPILER,
)


@dataclass(frozen=True)
class Outcome:
    """What came out of a log."""

    approved: list[tuple[int, Json]]
    """(timestamp of the record that released it, decision)."""
    rejected: list[Json]
    dead_letters: int


def judge_for(bounds: Bounds) -> Decider:
    """The real gate with the registry of the demo."""
    settings = GateSettings(max_argument_bytes=bounds.max_argument_bytes, tolerate=bounds.tolerate)
    return Decider(Gate(settings, COMPILER, REGISTRY))


def drive(log: Sequence[Record], bounds: Bounds) -> Outcome:
    """Decide a log and check everything that must hold. Raises AssertionError, or what the core raises."""
    partition = Partition("responses.events", 0, bounds, judge_for(bounds))
    partition.resume(None, log[0].offset if log else 0)
    approved: list[tuple[int, Json]] = []
    rejected: list[Json] = []
    dead: set[int] = set()
    watermark = 0
    for record in [*log, None]:
        if record is None:
            partition.end_of_archive(NOW_MS)
        else:
            watermark = max(watermark, record.timestamp)
            partition.feed([record], NOW_MS)
        for outgoing in partition.take():
            if outgoing.route is Route.DEAD_LETTER:
                dead.add(int(dict(outgoing.headers)["callgate-offset"] or b""))
            else:
                body = body_of(outgoing)
                if outgoing.route is Route.APPROVED:
                    approved.append((watermark, body))
                else:
                    rejected.append(body)
        check_memory(partition, bounds)
        assert partition.commit_point().offset <= partition.position
    # Rule 26: nothing of a dead letter counts.
    read = [record for record in log if record.offset not in dead]
    for _, body in approved:
        check_approval(body, read, bounds.release)
    if bounds.max_streams >= MANY:  # a key that had to go is forgotten early
        check_once(approved, bounds.closed_memory_ms)
    return Outcome(approved, rejected, len(dead))


def body_of(outgoing: Outgoing) -> Json:
    """A decision, which is one line of JSON and says what its route and its headers say."""
    assert b"\n" not in (outgoing.value or b"")
    body: Json = json.loads(outgoing.value or b"")
    assert (body["decision"] == "approved") is (outgoing.route is Route.APPROVED)
    assert body["reason"] == outgoing.reason
    assert dict(outgoing.headers)["reason"] == outgoing.reason.encode()
    return body


MANY = 1000
SLACK_BYTES = 4096
"""What a response may hold beside what it counts: `test_memory.py` says of which fields, where they are long."""


def check_memory(partition: Partition, bounds: Bounds) -> None:
    """The bounds of section 4: keys a partition, bytes a response, in what is counted and in what is really held."""
    streams = partition._streams
    assert len(streams.by_key) <= bounds.max_streams
    for stream in streams.by_key.values():
        known = stream.open
        if known is None or known.open is None:
            continue
        response = known.open
        assert response.buffered_bytes <= bounds.max_response_bytes
        held = held_bytes(response)
        assert held <= bounds.max_response_bytes + SLACK_BYTES, f"{held} bytes are held, {response.buffered_bytes} are counted"


POINTER_BYTES = 8


def held_bytes(response: Response) -> int:
    """Bytes of every text, list and array that a response really holds, each object once, whatever it is held for."""
    seen: set[int] = set()
    size = 0
    left: list[Any] = [response]
    while left:
        value = left.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, str):
            size += len(value.encode("utf-8", "surrogatepass"))
        elif isinstance(value, bytes | msgspec.Raw):
            size += len(bytes(value))
        elif isinstance(value, dict):
            left += [*value, *value.values()]
        elif isinstance(value, array):
            size += len(value) * value.itemsize
        elif isinstance(value, list | tuple):
            size += len(value) * POINTER_BYTES
            left += value
        elif isinstance(value, msgspec.Struct):
            left += [getattr(value, name) for name in value.__struct_fields__]
        elif is_dataclass(value):
            left += [getattr(value, each.name) for each in fields(value) if each.name != "conflict"]
    return size
