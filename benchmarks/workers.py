"""Two worker processes against one, on two processors that they share with the broker.

Nothing is pinned apart: broker, harness and callgate run where the system puts them. What two workers win is therefore what the
broker leaves them. Throughput is wall time from the opening of the gate to the last decision, so this needs a quiet machine.
"""

import argparse
import statistics
import sys

import msgspec
from confluent_kafka import KafkaException

from benchmarks import harness, report, rows
from benchmarks.measure import MeasureError, Usage
from benchmarks.stream import Shape
from benchmarks.workload import make

EVENTS = 200_000
COUNTS = (1, 2)


def main() -> int:
    """Measure. 0: every run has a figure; 1: some have none."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.workers", description=__doc__)
    parser.add_argument("--events", type=int, default=EVENTS, help="records on the topic (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=3, help="(default: %(default)s)")
    parser.add_argument("--partitions", type=int, default=4, help="of every topic (default: %(default)s)")
    harness.add_options(parser)
    parser.set_defaults(core="0,1", broker_core="0,1")
    options = parser.parse_args()
    workload = make(Shape(events=options.events))
    found: dict[int, list[Usage]] = {count: [] for count in COUNTS}
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
            for count in COUNTS:
                own = msgspec.structs.replace(setting, extra=(f"workers={count}",))
                try:
                    usage = rows.measure(own, "callgate", repeat * len(COUNTS) + count)
                except (MeasureError, KafkaException) as error:
                    print(f"{count}: no figure, {error}", flush=True)
                    whole = False
                    continue
                found[count].append(usage)
                print(f"{count}: {setting.events / usage.wall_s:,.0f} events/s, {usage.cpu_s:.2f} s CPU", flush=True)
    lines = [
        "| workers | events/s | CPU per event, us | resident, MB | events/s to one worker | CPU per event to one worker |",
        "| ---: | --- | --- | ---: | --- | --- |",
    ]
    for count, runs in found.items():
        pairs = list(zip(runs, found[COUNTS[0]], strict=False))
        cells = [
            str(count),
            report.spread([setting.events / run.wall_s for run in runs], 0),
            report.spread([1e6 * run.cpu_s / setting.events for run in runs]),
            f"{statistics.median([run.peak_rss_mb for run in runs]):.0f}" if runs else "-",
            report.spread([one.wall_s / run.wall_s for run, one in pairs]),
            report.spread([run.cpu_s / one.cpu_s for run, one in pairs]),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    facts = f"Workload: {workload.summary()}. {options.partitions} partitions, everything on processors {options.core}."
    harness.publish(options, "workers", "Two workers against one", facts, "\n".join(lines))
    return 0 if whole else 1


if __name__ == "__main__":
    sys.exit(main())
