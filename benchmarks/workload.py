"""A seeded workload: interleaved streams of the recorded shapes, and for every call what must be decided.

Owns how streams are interleaved, and reads the workload of the reference generator. Nothing here knows Kafka.
"""

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec

from benchmarks import tools
from benchmarks.stream import Expected, Shape, Stream


class Workload(msgspec.Struct):
    """Records in the order in which they are published, and the oracle."""

    keys: list[bytes]
    values: list[bytes]
    calls: dict[str, Expected]
    """By call_id, which is unique in the whole workload."""
    tools: list[dict[str, Any]]
    """For the registry, in the `tools` form of the Responses API."""
    streams: int

    def summary(self) -> str:
        """One line for people."""
        size = sum(map(len, self.values))
        count = len(self.values)
        reasons = ", ".join(f"{reason} {n:,}" for reason, n in Counter(c.reason for c in self.calls.values()).most_common())
        return (
            f"{count:,} events of {size / count:.0f} bytes, {count / self.streams:.1f} a response, "
            f"{len(self.calls):,} calls (one per {count / len(self.calls):.1f} events): {reasons}"
        )


def make(shape: Shape) -> Workload:
    """Make the workload: the same shape gives the same bytes."""
    rng = random.Random(shape.seed)
    idle_tools = tools.padded(shape.idle_tools, shape.idle_tool_bytes)
    encode = msgspec.json.Encoder().encode
    made = Workload([], [], {}, tools.declarations(sorted(tools.SCHEMAS)), 0)
    open_streams: list[tuple[bytes, list[bytes]]] = []
    planned = 0
    while True:
        while len(open_streams) < shape.open_streams and planned < shape.events:
            stream = Stream(rng, shape, made.streams, idle_tools)
            made.calls.update(stream.calls)
            made.streams += 1
            planned += len(stream.events)
            open_streams.append((stream.key.encode(), [encode(event) for event in reversed(stream.events)]))
        if not open_streams:
            return made
        place = rng.randrange(len(open_streams))
        key, events = open_streams[place]
        made.keys.append(key)
        made.values.append(events.pop())
        if not events:
            open_streams[place] = open_streams[-1]
            open_streams.pop()


_REFERENCE_REASONS = {
    None: "ok",
    "schema": "arguments_schema",
    "truncated": "status",
    "not_json": "arguments_parse",
    "unknown_tool": "unknown_tool",
    "mismatch": "conflict",
}


def from_reference(folder: Path) -> Workload:
    """Read what the reference generator wrote, with its oracle in callgate's words.

    Its verdicts are those of `release = "item"`: under `release = "response"` a failed response releases nothing.
    """
    made = Workload([], [], {}, [], 0)
    failed = set()
    with (folder / "workload.jsonl").open(encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            made.keys.append(record["key"].encode())
            made.values.append(record["value"].encode())
            if record["value"].startswith('{"type":"response.failed"'):
                failed.add(record["key"])
    expected = json.loads((folder / "expected.json").read_text(encoding="utf-8"))
    made.streams = expected["meta"]["streams"]
    for call_id, call in expected["calls"].items():
        reason = "status" if call["key"] in failed else _REFERENCE_REASONS[call["reason"]]
        made.calls[call_id] = Expected(call["key"], reason, call["name"], call["arguments"])
    listed = json.loads((folder / "tools.json").read_text(encoding="utf-8"))
    made.tools = [{"type": "function", "strict": True, **tool} for tool in listed]
    return made
