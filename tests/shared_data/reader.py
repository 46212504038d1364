"""Reads the recordings and cases that lie beside the repository, and drives the core with them.

The data is never copied into the repository; where it is absent the tests that need it are skipped.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from processor.core.decide import Decider, Route
from processor.core.gate import Gate, GateSettings
from processor.core.limits import Bounds
from processor.core.pipeline import Partition
from processor.core.registry import ToolFile, build
from processor.core.toolsets import EMPTY, Compiler
from tests.factories import Record

SHARED = Path(__file__).resolve().parents[3] / "shared"
NOW_MS = 1_800_000_000_000


@dataclass(frozen=True)
class Answer:
    """What came out for one log."""

    decisions: list[tuple[str | None, str]]
    """(call_id, reason), in order."""
    dead_letters: int


def answer(
    log: Sequence[Record],
    *,
    release: str,
    tools: str,
    registry: Iterable[tuple[str | None, dict[str, Any]]] = (),
    max_argument_bytes: int = 1 << 20,
) -> Answer:
    """Read a log with the real core and gate; what is open at its end has fallen silent. `registry`: (namespace, tool)."""
    files = [ToolFile(f"tool-{i}.json", namespace, tool) for i, (namespace, tool) in enumerate(registry)]
    compiler = Compiler()
    settings = GateSettings(tools=tools, max_argument_bytes=max_argument_bytes)
    judge = Decider(Gate(settings, compiler, build(files, compiler) if files else EMPTY))
    bounds = Bounds(release=release, max_argument_bytes=max_argument_bytes)
    partition = Partition("responses.events", 0, bounds, judge)
    partition.resume(None, 0)
    partition.feed(log, NOW_MS)
    partition.end_of_archive(NOW_MS)
    decisions, dead = [], 0
    for outgoing in partition.take():
        if outgoing.route is Route.DEAD_LETTER:
            dead += 1
        else:
            body = json.loads(outgoing.value or b"")
            decisions.append((body["call_id"], body["reason"]))
    return Answer(decisions, dead)


def lines(path: Path) -> list[dict[str, Any]]:
    """The JSON lines of a file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]
