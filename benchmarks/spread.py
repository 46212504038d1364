"""What an event costs the core where very many streams are open, its events spread over all of them at random.

The same traffic once over few open streams and once over many: streams of the usual shapes at every stage of their life, the
next event of any of them, and a new one where one ends. Each figure is CPU time of a process of its own, set up as `run` sets
itself up for Python's garbage collector; few and many by turns, so that the ratio is one of neighbours in time.
"""

import argparse
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator

import msgspec

from benchmarks import harness, report
from benchmarks.core import CHUNK, Read
from benchmarks.memory import by_stream
from benchmarks.stream import Shape
from benchmarks.workload import make
from processor import garbage
from processor.app import Core, compiler
from processor.core.pipeline import Partition
from processor.core.registry import ToolFile, build
from processor.settings import Settings

FEW, MANY = 100, 100_000
EVENTS = 200_000
"""Events that are timed."""
AT_ONCE = 50_000
"""Of which so many are made, and then timed: they are not all held in memory."""
NOW_MS = 1_780_000_000_000
HUGE_PAGES = {"PYTHONMALLOC": "malloc", "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
"""Memory by glibc instead of Python's own arenas, in pages of 2 MB: dearer for each object, and fewer waits for far ones."""


class Traffic:
    """Events of so many open streams, the next one of any of them."""

    def __init__(self, count: int) -> None:
        self._rng = random.Random(count)
        workload = make(Shape(events=10_000, open_streams=1))
        self.tools = workload.tools
        self._shapes = by_stream(workload)
        self._names = [msgspec.json.decode(events[0])["response"]["id"].encode() for events in self._shapes]
        self._begun = 0
        self._streams = [self._begin() for _ in range(count)]
        """Key, shape, and events that were had."""

    def _begin(self) -> tuple[bytes, int, int]:
        self._begun += 1
        return b"resp_%048d" % self._begun, self._rng.randrange(len(self._shapes)), 0

    def _event(self, stream: tuple[bytes, int, int]) -> tuple[bytes, bytes]:
        key, shape, had = stream
        return key, self._shapes[shape][had].replace(self._names[shape], key)

    def opened(self) -> Iterator[tuple[bytes, bytes]]:
        """Bring every stream to some stage of its life."""
        for place, (key, shape, _) in enumerate(self._streams):
            until = self._rng.randrange(1, len(self._shapes[shape]))
            for had in range(until):
                yield self._event((key, shape, had))
            self._streams[place] = key, shape, until

    def more(self, count: int) -> Iterator[tuple[bytes, bytes]]:
        """So many events of any of them."""
        streams = self._streams
        for _ in range(count):
            place = self._rng.randrange(len(streams))
            key, shape, had = streams[place]
            yield self._event(streams[place])
            streams[place] = (key, shape, had + 1) if had + 1 < len(self._shapes[shape]) else self._begin()


def child(count: int, events: int) -> float:
    """Nanoseconds an event with so many streams open."""
    traffic = Traffic(count)
    # The default is 100,000 keys, closed ones included: streams would be evicted, and that is another cost.
    settings = Settings(max_streams=10 * MANY)
    core = Core(settings, build([ToolFile("tools.json", None, traffic.tools)], compiler(settings)))
    partition = core.partition("responses.events", 0)
    partition.resume(None, 0)
    garbage.calm()
    offset = feed(partition, traffic.opened(), 0)[0]
    taken = 0.0
    for _ in range(0, events, AT_ONCE):
        offset, spent = feed(partition, traffic.more(AT_ONCE), offset)
        taken += spent
    return 1e9 * taken / (AT_ONCE * len(range(0, events, AT_ONCE)))


def feed(partition: Partition, pairs: Iterator[tuple[bytes, bytes]], offset: int) -> tuple[int, float]:
    """Feed in chunks, as the worker does it; returns the offset to come, and CPU seconds without the making of events."""
    spent = 0.0
    while True:
        batches: list[list[Read]] = []
        while len(batches) < AT_ONCE // CHUNK:
            batch = [Read(offset + place, NOW_MS, key, value) for place, (key, value) in zip(range(CHUNK), pairs, strict=False)]
            offset += len(batch)
            if not batch:
                break
            batches.append(batch)
        began = time.process_time()
        for batch in batches:
            partition.feed(batch, NOW_MS)
            partition.reached(batch[-1].offset + 1)
            partition.take()
            partition.commit_point()
        spent += time.process_time() - began
        if len(batches) < AT_ONCE // CHUNK:
            return offset, spent


def main() -> int:
    """Measure, print, and write the section."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spread", description=__doc__)
    parser.add_argument("--few", type=int, default=FEW, help="streams open at once (default: %(default)s)")
    parser.add_argument("--many", type=int, default=MANY, help="streams open at once (default: %(default)s)")
    parser.add_argument("--events", type=int, default=EVENTS, help="that are timed (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=3, help="(default: %(default)s)")
    parser.add_argument("--child", type=int, help=argparse.SUPPRESS)
    harness.add_options(parser, broker=False)
    options = parser.parse_args()
    if options.child:
        print(child(options.child, options.events))
        return 0
    rows = {
        f"{options.few:,}": (options.few, False),
        f"{options.many:,}": (options.many, False),
        f"{options.few:,}, huge pages": (options.few, True),
        f"{options.many:,}, huge pages": (options.many, True),
    }
    found: dict[str, list[float]] = {row: [] for row in rows}
    for _ in range(options.repeats):
        for row, (count, huge) in rows.items():
            command = ["taskset", "-c", options.core, sys.executable, "-m", "benchmarks.spread", "--child", str(count)]
            command += ["--events", str(options.events)]
            environment = os.environ | HUGE_PAGES if huge else None
            done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
            found[row].append(float(done.stdout))
            print(f"{row} open: {found[row][-1]:.0f} ns an event", flush=True)
    lines = ["| streams open | CPU per event of the core, ns | ratio |", "| ---: | --- | --- |"]
    for row, each in found.items():
        ratios = [ours / few for ours, few in zip(each, found[f"{options.few:,}"], strict=True)]
        lines.append(f"| {row} | {report.spread(each, 0)} | {report.spread(ratios)} |")
    facts = f"{options.events:,} events, the pure core, one partition; {options.repeats} repeats."
    harness.publish(options, "spread", "Many open streams", facts, "\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
