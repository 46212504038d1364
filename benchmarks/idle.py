"""What callgate costs while nothing comes: CPU time as a share of one core, no traffic at all.

Callgate (exactly once, metrics and logs on, default settings) and both floors by turns, each joined and settled, all their
partitions live, watched from outside for half a minute. With `--traffic` each topic first gets some finished responses, so that
partitions have offsets, known responses and deadlines.
"""

import argparse
import sys
import time

from confluent_kafka import KafkaException

from benchmarks import harness, report, rows
from benchmarks.load import Load, create, delete
from benchmarks.measure import MeasureError, Watched, cpu_seconds, peak_rss_mb
from benchmarks.stream import Shape
from benchmarks.workload import make

EVENTS = 6_400
"""Events that come before the silence."""
PAUSE_S = 8.0
"""From the last decision to the clock: the last commit that only moves on has been made by then."""

MEANING = {
    "floor-1": "floor 1: an aiokafka consumer in its group",
    "floor-2": "floor 2: and a transactional producer a partition",
    "callgate": "callgate, default settings",
}


def measure(setting: rows.Setting, row: str, number: int, seconds: float, *, traffic: bool) -> tuple[float, float]:
    """Share of a core in percent, and resident MB. Raises MeasureError where the process does not come up."""
    run = rows.Run(setting, row, number)
    process = None
    try:
        if row == "callgate":
            options = rows.callgate_options(run)
            rows.callgate_topics(options)
            command = [sys.executable, "-m", "processor", "run", *options]
        else:
            create(setting.bootstrap, [run.topic, run.outputs["approved"]], setting.partitions)
            more = ["--output", run.outputs["approved"], "--partitions", str(setting.partitions), "--per", str(setting.per)]
            command = rows.script("floor_read", run) if row == "floor-1" else [*rows.script("floor_transaction", run), *more]
        if traffic:
            Load(setting.bootstrap, run.topic, setting.workload).open()
        process = Watched(command, setting.core, run.log)
        process.wait_ready(run.joined)
        time.sleep(PAUSE_S)
        before, began = cpu_seconds(process.pid), time.monotonic()
        time.sleep(seconds)
        share = 100 * (cpu_seconds(process.pid) - before) / (time.monotonic() - began)
        memory = peak_rss_mb(process.pid)
        process.stop()
        return share, memory
    finally:
        if process is not None:
            process.kill()
        delete(setting.bootstrap, run.topics())


def main() -> int:
    """Measure. 0: every run has a figure; 1: some have none."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.idle", description=__doc__)
    parser.add_argument("--partitions", type=int, default=64, help="of every topic (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=30.0, help="that count (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=2, help="(default: %(default)s)")
    parser.add_argument("--rows", default=",".join(MEANING), help="(default: %(default)s)")
    parser.add_argument("--no-traffic", dest="traffic", action="store_false", help="nothing comes before the silence either")
    parser.add_argument("--set", action="append", default=[], metavar="K=V", help="a further setting of callgate")
    harness.add_options(parser)
    options = parser.parse_args()
    workload = make(Shape(events=EVENTS))
    names = options.rows.split(",")
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
    whole = True
    with harness.started(options) as (bootstrap, folder):
        setting = rows.Setting(
            bootstrap=bootstrap,
            workload=workload,
            partitions=options.partitions,
            commit_ms=100,
            core=options.core,
            folder=folder,
            extra=tuple(options.set),
        )
        for repeat in range(options.repeats):
            for row in names:
                try:
                    found[row].append(measure(setting, row, repeat, options.seconds, traffic=options.traffic))
                except (MeasureError, KafkaException) as error:
                    print(f"{row}: no figure, {error}", flush=True)
                    whole = False
                    continue
                print(f"{row}: {found[row][-1][0]:.2f} % of a core, {found[row][-1][1]:.0f} MB", flush=True)
    lines = ["| row | CPU, % of one core | resident, MB |", "| --- | --- | ---: |"]
    for row, runs in found.items():
        resident = report.spread([memory for _, memory in runs], 0)
        lines.append(f"| {MEANING[row]} | {report.spread([share for share, _ in runs])} | {resident} |")
    before = "after some finished responses" if options.traffic else "which has never had any"
    facts = f"{options.partitions} partitions, no traffic, {before}; {options.seconds:.0f} s each, {options.repeats} repeats."
    harness.publish(options, "idle", f"Idle, {options.partitions} partitions", facts, "\n".join(lines))
    return 0 if whole else 1


if __name__ == "__main__":
    sys.exit(main())
