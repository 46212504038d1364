"""From the start of the process to the first decision that a committed reader has, against floor 1 and floor 2.

The topic is there and full; each row is started as a group of its own, which it has to join. Floor 1 is done with reading
all records, floor 2 with its first output. How fast a rebuild is, by the records that it reads, is measured by
`python -m benchmarks.recovery`.
"""

import argparse
import sys
import time

from confluent_kafka import KafkaException

from benchmarks import harness, report, rows
from benchmarks.latency import Reader
from benchmarks.load import Load, create, delete
from benchmarks.measure import MeasureError, Watched, cpu_seconds
from benchmarks.stream import Shape
from benchmarks.workload import make

EVENTS = 2_000
LIMIT_S = 60.0
MEANING = {
    "floor-1": "floor 1: its first records read",
    "floor-2": "floor 2: its first output readable",
    "callgate": "callgate: its first decision readable",
}


def measure(setting: rows.Setting, row: str, number: int) -> tuple[float, float]:
    """Wall and CPU seconds from the start to the first result. Raises MeasureError where there is none."""
    run = rows.Run(setting, row, number)
    process = reader = None
    try:
        if row == "callgate":
            options = rows.callgate_options(run)
            rows.callgate_topics(options)
            command, outputs = [sys.executable, "-m", "processor", "run", *options], run.outputs
        else:
            outputs = {"approved": run.outputs["approved"]}
            create(setting.bootstrap, [run.topic, outputs["approved"]], setting.partitions)
            more = ["--output", outputs["approved"], "--partitions", str(setting.partitions), "--per", str(setting.per)]
            command = rows.script("floor_read", run) if row == "floor-1" else [*rows.script("floor_transaction", run), *more]
        Load(setting.bootstrap, run.topic, setting.workload).open()
        reader = Reader(setting.bootstrap, outputs, setting.partitions)
        reader.take(1.0)
        began = time.monotonic()
        process = Watched(command, setting.core, run.log)
        while not (process.says("DONE") if row == "floor-1" else reader.read):
            if time.monotonic() - began > LIMIT_S:
                raise MeasureError(f"nothing came:\n{process.tail()}")
            if row == "floor-1":
                time.sleep(0.002)
            else:
                reader.take(0.05)
        taken = time.monotonic() - began, cpu_seconds(process.pid)
        process.stop()
        return taken
    finally:
        if process is not None:
            process.kill()
        if reader is not None:
            reader.close()
        delete(setting.bootstrap, run.topics())


def main() -> int:
    """Measure. 0: every run has a figure; 1: some have none."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.start", description=__doc__)
    parser.add_argument("--repeats", type=int, default=3, help="(default: %(default)s)")
    parser.add_argument("--partitions", type=int, default=4, help="of every topic (default: %(default)s)")
    harness.add_options(parser)
    options = parser.parse_args()
    workload = make(Shape(events=EVENTS))
    found: dict[str, list[tuple[float, float]]] = {row: [] for row in MEANING}
    whole = True
    with harness.started(options) as (bootstrap, folder):
        setting = rows.Setting(
            bootstrap=bootstrap,
            workload=workload,
            partitions=options.partitions,
            commit_ms=100,
            core=options.core,
            folder=folder,
        )
        for repeat in range(options.repeats):
            for row, each in found.items():
                try:
                    each.append(measure(setting, row, repeat))
                except (MeasureError, KafkaException) as error:
                    print(f"{row}: no figure, {error}", flush=True)
                    whole = False
                    continue
                print(f"{row}: {each[-1][0]:.2f} s, {each[-1][1]:.2f} s CPU", flush=True)
    lines = ["| row | wall, s | CPU, s | wall to floor 1 | CPU to floor 1 |", "| --- | --- | --- | --- | --- |"]
    for row, runs in found.items():
        cells = [MEANING[row], *(report.spread([run[part] for run in runs]) for part in (0, 1))]
        for part in (0, 1):
            pairs = zip(runs, found["floor-1"], strict=False)
            cells.append(report.spread([run[part] / floor[part] for run, floor in pairs]))
        lines.append(f"| {' | '.join(cells)} |")
    facts = f"{options.partitions} partitions, {len(workload.values):,} records, each time a new group; {options.repeats} runs."
    harness.publish(options, "start", "From the start to the first decision", facts, "\n".join(lines))
    return 0 if whole else 1


if __name__ == "__main__":
    sys.exit(main())
