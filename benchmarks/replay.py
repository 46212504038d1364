"""`callgate replay` of a file against decoding the same lines with msgspec and dropping them.

Each row is a process of its own, measured by its CPU time at exit, less that of the same process on a file of one line: the
start is no part of it. The lines are those of `kcat -J`. Decisions are written to a file, and held against the oracle.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec

from benchmarks import harness, report
from benchmarks.measure import MeasureError
from benchmarks.outputs import differences
from benchmarks.stream import Shape
from benchmarks.workload import Workload, make
from processor.core.events import Event

EVENTS = 200_000

MEANING = {
    "lines": "decode the lines with msgspec, drop them",
    "values": "decode the lines, and the events in them as callgate needs them; drop both",
    "callgate": "`callgate replay --decisions FILE`",
}


class Line(msgspec.Struct, gc=False):
    """What the second floor reads of a line."""

    key: str
    payload: str
    ts: int
    offset: int
    partition: int


def child(row: str, file: Path) -> None:
    """Run a floor."""
    with file.open("rb") as lines:
        if row == "lines":
            decode = msgspec.json.Decoder().decode
            for line in lines:
                decode(line)
            return
        outer, inner = msgspec.json.Decoder(Line).decode, msgspec.json.Decoder(Event).decode
        for line in lines:
            inner(outer(line).payload)


def write(workload: Workload, file: Path, count: int) -> None:
    """Write the first records as kcat would."""
    with file.open("wb") as lines:
        for offset, (key, value) in enumerate(zip(workload.keys[:count], workload.values[:count], strict=True)):
            line = {"topic": "responses.events", "partition": 0, "offset": offset, "tstype": "create"}
            line |= {"ts": 1_780_000_000_000 + offset // 20, "broker": 1, "key": key.decode(), "payload": value.decode()}
            lines.write(msgspec.json.encode(line) + b"\n")


def cpu_s(command: list[str], core: str) -> float:
    """CPU time of a process. Raises MeasureError where it fails."""
    process = subprocess.Popen(["taskset", "-c", core, *command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    said = process.stderr.read()
    process.stderr.close()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise MeasureError(said.decode(errors="replace"))
    return used.ru_utime + used.ru_stime


def commands(folder: Path, file: Path) -> dict[str, list[str]]:
    """The rows."""
    floors = {row: [sys.executable, "-m", "benchmarks.replay", "--child", row, str(file)] for row in ("lines", "values")}
    out = str(folder / f"{file.stem}-decisions")
    replay = [
        sys.executable,
        "-m",
        "processor",
        "replay",
        str(file),
        "--decisions",
        out,
        "--set",
        f"schemas={folder / 'tools'}",
    ]
    return {**floors, "callgate": replay}


def check(workload: Workload, decisions: Path) -> None:
    """Hold the decisions against the oracle. Raises MeasureError."""
    words = {"approved": "approved", "rejected": "rejected"}
    found = [(words[msgspec.json.decode(line)["decision"]], line) for line in decisions.read_bytes().splitlines()]
    faults = differences(found, workload.calls)
    if faults:
        raise MeasureError(f"{len(faults)} decisions are not those of the oracle:\n" + "\n".join(faults[:5]))


def main() -> int:
    """Measure, print, and write the section."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.replay", description=__doc__)
    parser.add_argument("--events", type=int, default=EVENTS, help="(default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=3, help="(default: %(default)s)")
    parser.add_argument("--idle-tools", type=int, default=0, help="tools of 1 kB that responses echo and nobody calls")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    harness.add_options(parser, broker=False)
    options = parser.parse_args()
    if options.child:
        child(options.child[0], Path(options.child[1]))
        return 0
    workload = make(Shape(events=options.events, idle_tools=options.idle_tools))
    count = len(workload.values)
    found: dict[str, list[float]] = {row: [] for row in MEANING}
    with tempfile.TemporaryDirectory(prefix="callgate-bench-") as temporary:
        folder = Path(temporary)
        (folder / "tools").mkdir()
        (folder / "tools" / "tools.json").write_bytes(msgspec.json.encode(workload.tools))
        full, one = folder / "full.jsonl", folder / "one.jsonl"
        write(workload, full, count)
        write(workload, one, 1)
        for repeat in range(options.repeats):
            for row, command in commands(folder, full).items():
                alone = cpu_s(commands(folder, one)[row], options.core)
                found[row].append(1e6 * (cpu_s(command, options.core) - alone) / count)
                print(f"{row}: {found[row][-1]:.2f} us a line", flush=True)
            if not repeat:
                check(workload, folder / "full-decisions")
    lines = ["| row | CPU per line, us | ratio to the first | ratio to the second |", "| --- | --- | --- | --- |"]
    for row, each in found.items():
        ratios = [report.spread([a / b for a, b in zip(each, found[floor], strict=True)]) for floor in ("lines", "values")]
        lines.append(f"| {MEANING[row]} | {report.spread(each)} | {' | '.join(ratios)} |")
    title = "Replay of a file" + (f", {options.idle_tools} idle tools" if options.idle_tools else "")
    harness.publish(options, "replay", title, f"Workload: {workload.summary()}.", "\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
