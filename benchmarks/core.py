"""What the pure core costs, without Kafka: nanoseconds per event, and the ratio to msgspec decoding the same lines only.

Measures CPU time of its own process, stage after stage in each repeat, so that the machine's mood hits all alike. With
`--profile` py-spy samples the whole core, and the lines are listed on which the time goes.
"""

import argparse
import gc
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from benchmarks import sampling
from benchmarks.outputs import differences
from benchmarks.stream import Shape
from benchmarks.workload import Workload, from_reference, make
from processor.app import Core, compiler
from processor.core.decide import Outgoing
from processor.core.decode import decode
from processor.core.events import Event
from processor.core.offsets import Commit
from processor.core.registry import ToolFile, build
from processor.settings import Settings

CHUNK = 500
"""Records fed at once, as the worker does it."""


Stage: TypeAlias = "Callable[[list[Read]], object]"


class Read(msgspec.Struct, gc=False):
    """A record as it comes from Kafka."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]] = ()


def bare(records: list[Read]) -> None:
    """Decode every line with msgspec into the event struct, and drop it."""
    read = msgspec.json.Decoder(Event).decode
    for record in records:
        read(record.value or b"")


def decoding(records: list[Read]) -> None:
    """Decode every line with callgate's decode, and drop it."""
    for record in records:
        decode(record.value)


def whole(workload: Workload, *, check: bool = True) -> Stage:
    """The whole core: decode, assemble, gate, decide. Its decisions are compared with the oracle, after the clock was read."""
    settings = Settings()
    core = Core(settings, build([ToolFile("tools.json", None, workload.tools)], compiler(settings)))

    def run(records: list[Read]) -> list[Outgoing]:
        partition = core.partition("responses.events", 0)
        partition.resume(None, 0)
        decided: list[Outgoing] = []
        for start in range(0, len(records), CHUNK):
            partition.feed(records[start : start + CHUNK], 1_780_000_000_000)
            partition.reached(records[min(start + CHUNK, len(records)) - 1].offset + 1)
            decided += partition.take()
            partition.commit_point()
        return decided

    made = run(records_of(workload)) if check else []
    faults = differences([(one.route, one.value or b"") for one in made], workload.calls) if check else []
    if faults:
        raise SystemExit(f"{len(faults)} decisions are not those of the oracle:\n" + "\n".join(faults[:5]))
    return run


def rebuilding(workload: Workload) -> Stage:
    """A rebuild: the same records read again silently, as after a crash."""
    settings = Settings()
    core = Core(settings, build([ToolFile("tools.json", None, workload.tools)], compiler(settings)))

    def run(records: list[Read]) -> None:
        partition = core.partition("responses.events", 0)
        after = records[-1].offset + 1
        partition.resume(Commit(offset=0, position=after, watermark=0, moves=(), bounds=settings.bounds()), 0)
        for start in range(0, len(records), CHUNK):
            partition.feed(records[start : start + CHUNK], 1_780_000_000_000)
        partition.reached(after)

    return run


def records_of(workload: Workload) -> list[Read]:
    """The workload as one partition has it: 20 records each millisecond."""
    pairs = zip(workload.keys, workload.values, strict=True)
    return [Read(offset, 1_780_000_000_000 + offset // 20, key, value) for offset, (key, value) in enumerate(pairs)]


def measure(stages: dict[str, Stage], records: list[Read], repeats: int) -> None:
    """Print nanoseconds an event of each stage, and ratios to the first."""
    taken: dict[str, list[float]] = {name: [] for name in stages}
    for _ in range(repeats):
        for name, stage in stages.items():
            gc.collect()
            began = time.process_time()
            stage(records)
            taken[name].append(1e9 * (time.process_time() - began) / len(records))
    first = next(iter(taken.values()))
    for name, each in taken.items():
        ratios = [ours / theirs for ours, theirs in zip(each, first, strict=True)]
        print(
            f"{name:8} {statistics.median(each):7.0f} ns an event ({min(each):.0f} to {max(each):.0f}), "
            f"{statistics.median(ratios):.2f} times the first ({min(ratios):.2f} to {max(ratios):.2f})"
        )


def profile(command: Sequence[str]) -> None:
    """Run this program under py-spy, and list where the time goes."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "samples"
        record = sampling.spy("record", "--nonblocking", "--rate", str(sampling.RATE), "--format", "raw", "--output", str(out))
        subprocess.run([*record, "--", sys.executable, "-m", "benchmarks.core", *command], check=True)
        print(sampling.listing(out, only=("measure (benchmarks/core.py",)))


def arguments() -> Any:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=100_000, help="(default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=5, help="(default: %(default)s)")
    parser.add_argument("--open", type=int, default=64, help="streams open at a time (default: %(default)s)")
    parser.add_argument("--idle-tools", type=int, default=0, help="tools of 1 kB that responses echo and nobody calls")
    parser.add_argument("--workload", type=Path, metavar="DIR", help="take what ../shared/bench/gen.py wrote there")
    parser.add_argument(
        "--stages", default="msgspec,decode,core", help="which, comma-separated (default: %(default)s); rebuild"
    )
    parser.add_argument("--profile", action="store_true", help="sample the last of the stages with py-spy")
    return parser.parse_args()


def main() -> None:
    """Measure."""
    options = arguments()
    if options.profile:
        stage = options.stages.split(",")[-1]
        given = ["--stages", stage, "--events", str(options.events), "--open", str(options.open)]
        given += ["--idle-tools", str(options.idle_tools), "--repeats", str(options.repeats)]
        profile([*given, "--workload", str(options.workload)] if options.workload else given)
        return
    shape = Shape(events=options.events, open_streams=options.open, idle_tools=options.idle_tools)
    workload = from_reference(options.workload) if options.workload else make(shape)
    print(workload.summary())
    records = records_of(workload)
    made = {
        "msgspec": lambda: bare,
        "decode": lambda: decoding,
        "core": lambda: whole(workload),
        "rebuild": lambda: rebuilding(workload),
    }
    stages: dict[str, Stage] = {}
    for name in options.stages.split(","):
        stages[name] = made[name]()
    # What the workload itself holds is none of the core's business.
    gc.freeze()
    measure(stages, records, options.repeats)


if __name__ == "__main__":
    main()
