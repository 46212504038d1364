"""How many machine instructions the pure core takes for an event, counted by valgrind, so that a busy machine does not matter.

Two runs over more and fewer events of one workload are subtracted, so that start-up does not count. Good for comparing two
versions of the code; it knows nothing of caches, so that nanoseconds are measured by `benchmarks.core`.
"""

import argparse
import os
import pickle
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.core import bare, decoding, records_of, whole
from benchmarks.gate import cases, sides
from benchmarks.stream import Shape
from benchmarks.workload import Workload, make

FEW, MANY = 4_000, 10_000
"""Records of the two runs."""
GATE = ("floor", "gate", "decision")
"""Stages for a call of the median size, by itself: parsing and validating it, judging it, writing its decision."""


def run(file: Path, stage: str, count: int) -> None:
    """Run one stage over the first records of a workload, or so many times (the child's side)."""
    if stage in GATE:
        side = dict(zip(GATE, sides(cases()[1]), strict=True))[stage]
        for _ in range(count):
            side()
        return
    workload: Workload = pickle.loads(file.read_bytes())  # noqa: S301 - written by the parent, a moment ago
    records = records_of(workload)[:count]
    {"msgspec": bare, "decode": decoding, "core": whole(workload, check=False)}[stage](records)


def counted(file: Path, stage: str, count: int) -> int:
    """Instructions of a process that runs one stage."""
    valgrind = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null", sys.executable]
    child = ["-m", "benchmarks.instructions", "--child", str(file), stage, str(count)]
    fixed = os.environ | {"PYTHONHASHSEED": "0"}
    done = subprocess.run([*valgrind, *child], capture_output=True, text=True, check=True, env=fixed)
    found = re.search(r"I +refs: +([0-9,]+)", done.stderr)
    if found is None:
        raise SystemExit(f"valgrind said nothing of instructions:\n{done.stderr}")
    return int(found[1].replace(",", ""))


def main() -> None:
    """Count."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--stages",
        default="msgspec,decode,core",
        help="which, comma-separated (default: %(default)s); floor,gate,decision: of one call",
    )
    parser.add_argument("--idle-tools", type=int, default=0, help="tools of 1 kB that responses echo and nobody calls")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        file, stage, count = options.child
        run(Path(file), stage, int(count))
        return
    if shutil.which("valgrind") is None:
        raise SystemExit("valgrind was not found")
    workload = make(Shape(events=MANY, open_streams=32, idle_tools=options.idle_tools))
    first = 0.0
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "workload"
        file.write_bytes(pickle.dumps(workload))
        for stage in options.stages.split(","):
            each = (counted(file, stage, MANY) - counted(file, stage, FEW)) / (MANY - FEW)
            first = first or each
            one = "a call" if stage in GATE else "an event"
            print(f"{stage:8} {each:8,.0f} instructions {one}, {each / first:.2f} times the first", flush=True)


if __name__ == "__main__":
    main()
