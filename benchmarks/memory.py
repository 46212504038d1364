"""What the core holds in memory: bytes of an open stream beyond its own, many open streams, many toolsets that came in-band.

Each figure comes from a process of its own that grows by the load alone: its resident size before and after, by the operating
system, with whatever the allocator wastes. A stream's own bytes are those that must be kept: its key, ids and names, the deltas
of its calls and final pieces; not the JSON around them, no text or reasoning, and not the echoed tools, which streams share.
"""

import argparse
import gc
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec

from benchmarks import harness, tools
from benchmarks.core import CHUNK, Read
from benchmarks.stream import Shape
from benchmarks.workload import Workload, make
from processor.app import Core, compiler
from processor.core.registry import ToolFile, build
from processor.settings import Settings

STREAMS = 100_000
TOOLSETS = 1_000
TOOLS_A_SET = 5
NOW_MS = 1_780_000_000_000
RECORDS_A_MS = 50
"""So many have the same timestamp."""


class Case(NamedTuple):
    """One thing to measure: name for the command line, what it is, the count of things whose size it tells."""

    meaning: str
    share: float
    """How far its streams have come: share of their events."""
    shape: Shape = Shape(events=10_000, open_streams=1)
    settings: Mapping[str, Any] = MappingProxyType({})


CASES = {
    "created": Case("only `response.created` was read", 0.0),
    "call": Case("one call under way, half of its deltas", 0.5, Shape(events=10_000, open_streams=1, text=0, calls=(1, 1))),
    "half": Case("half of all events: text, reasoning, calls done and under way", 0.5),
    "half-both": Case("the same, also checked against its own tools (`tools = both`)", 0.5, settings={"tools": "both"}),
    "known": Case("closed, and still known", 1.0),
}


class Figure(NamedTuple):
    """What one process showed."""

    bytes_each: float
    """Growth of the resident size, for each stream or toolset."""
    own_bytes: float
    """Of these what must be kept."""
    resident_mb: float
    """Of the whole process at the end."""


def resident() -> int:
    """Resident bytes of this process."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) << 10
    raise AssertionError("no VmRSS")


def child(case: str, count: int) -> Figure:
    """Measure one case in this process."""
    # Some of everything first: modules, validators and caches are no part of a stream.
    chosen = CASES.get(case, Case("", 0.0, settings={"tools": "stream"}))
    workload = make(chosen.shape)
    # The default is 100,000 keys, and some have come before: nothing is to be evicted.
    settings = Settings(max_streams=10 * STREAMS, **chosen.settings)
    core = Core(settings, build([ToolFile("tools.json", None, workload.tools)], compiler(settings)))
    partition = core.partition("responses.events", 0)
    partition.resume(None, 0)
    offset = 0

    def feed(pairs: Iterator[tuple[bytes, bytes]]) -> None:
        nonlocal offset
        batch: list[Read] = []
        for key, value in pairs:
            # A timestamp object of its own for each, as the client makes them; at a pace at which nothing expires.
            batch.append(Read(offset, NOW_MS + offset // RECORDS_A_MS, key, value))
            offset += 1
            if len(batch) == CHUNK:
                partition.feed(batch, NOW_MS)
                partition.take()
                batch = []
        partition.feed(batch, NOW_MS)
        partition.take()

    def loaded() -> Iterator[tuple[bytes, bytes]]:
        yield from toolsets(count) if case == "toolsets" else streams(workload, case, count)

    feed(zip(workload.keys, workload.values, strict=True))
    gc.collect()
    gc.freeze()
    before = resident()
    feed(loaded())
    gc.collect()
    after = resident()
    kept = 0.0 if case == "toolsets" else own_bytes(workload, case)
    return Figure((after - before) / count, kept, after / (1 << 20))


def by_stream(workload: Workload) -> list[list[bytes]]:
    """Events of each stream of a workload."""
    found: dict[bytes, list[bytes]] = {}
    for key, value in zip(workload.keys, workload.values, strict=True):
        found.setdefault(key, []).append(value)
    return list(found.values())


def streams(workload: Workload, case: str, count: int) -> Iterator[tuple[bytes, bytes]]:
    """Beginnings of so many streams, each under names of its own of the same length."""
    shapes = by_stream(workload)
    for number in range(count):
        events = shapes[number % len(shapes)]
        old = msgspec.json.decode(events[0])["response"]["id"].encode()
        key = b"resp_%048d" % number
        for event in events[: length(case, events)]:
            yield key, event.replace(old, key)


def length(case: str, events: list[bytes]) -> int:
    """How many of its events a stream of this case has had."""
    return max(int(len(events) * CASES[case].share), 1)


def own_bytes(workload: Workload, case: str) -> float:
    """Bytes that must be kept of a stream: the mean over the shapes."""
    if case == "known":
        return 2 * len(b"resp_%048d" % 0)
    total, shapes = 0, by_stream(workload)
    for events in shapes:
        first = msgspec.json.decode(events[0])["response"]
        total += 2 * len(first["id"]) + len(first["model"])
        for event in map(msgspec.json.decode, events[: length(case, events)]):
            item = event.get("item") or {}
            total += len(event.get("delta", "")) if event["type"] == "response.function_call_arguments.delta" else 0
            if item.get("type") == "function_call":
                total += sum(len(item[name]) for name in ("id", "call_id", "name", "arguments"))
    return total / len(shapes)


def toolsets(count: int) -> Iterator[tuple[bytes, bytes]]:
    """Whole responses, each with a toolset of its own, and one call."""
    for number in range(count):
        declared = []
        for place in range(TOOLS_A_SET):
            name = sorted(tools.SCHEMAS)[place % len(tools.SCHEMAS)]
            schema = json.loads(json.dumps(tools.SCHEMAS[name])) | {"description": f"set {number}, tool {place}"}
            declared.append({"type": "function", "name": f"{name}_{place}", "parameters": schema, "strict": True})
        key = b"resp_%048d" % number
        call = {"id": f"fc_{number}", "type": "function_call", "status": "completed", "call_id": f"call_{number}"}
        output = [call | {"name": declared[0]["name"], "arguments": "{}"}]
        body = {"object": "response", "id": key.decode(), "status": "completed", "tools": declared, "output": output}
        yield key, msgspec.json.encode(body)


def measured(case: str, count: int) -> Figure:
    """Measure one case in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.memory", "--child", case, str(count)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return Figure(*json.loads(said.splitlines()[-1]))


def main() -> int:
    """Measure, print, and write the section."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory", description=__doc__)
    parser.add_argument("--streams", type=int, default=STREAMS, help="open at once (default: %(default)s)")
    parser.add_argument("--toolsets", type=int, default=TOOLSETS, help="that came in-band (default: %(default)s)")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    harness.add_options(parser, broker=False)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(child(options.child[0], int(options.child[1]))))
        return 0
    lines = [
        "| case | bytes each | of these its own | beyond its own | resident at the end, MB |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for case, (meaning, *_) in CASES.items():
        each, own, whole = measured(case, options.streams)
        lines.append(
            f"| {options.streams:,} streams: {meaning} | {each:,.0f} | {own:,.0f} | {each - own:,.0f} | {whole:,.0f} |"
        )
        print(lines[-1], flush=True)
    each, _, whole = measured("toolsets", options.toolsets)
    what = f"{options.toolsets:,} toolsets of {TOOLS_A_SET} tools that came in-band, each used once"
    lines.append(f"| {what} | {each:,.0f} | - | - | {whole:,.0f} |")
    facts = (
        "Growth of the resident size of a process of its own in which one partition reads the streams, no Kafka client in it."
    )
    harness.publish(options, "memory", "Memory", facts, "\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
