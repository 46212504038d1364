"""Runs the benchmark: floors and callgate side by side on a real broker, and writes benchmarks/RESULTS.md.

`python -m benchmarks` is what `make bench` calls. `python -m benchmarks.core` measures the pure core without a broker.
"""

import argparse
import sys
from pathlib import Path

from confluent_kafka import KafkaException

from benchmarks import harness, report, rows, sampling
from benchmarks.measure import MeasureError, Usage
from benchmarks.stream import Shape
from benchmarks.workload import Workload, from_reference, make


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    shape = Shape()
    parser.add_argument("--events", type=int, default=shape.events, help="records on the topic (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=5, help="runs of each row, in rotated order (default: %(default)s)")
    parser.add_argument("--rows", default=",".join(rows.ROWS), help="which, comma-separated (default: %(default)s)")
    parser.add_argument("--reference", action="store_true", help="run the scripts of ../shared/bench beside ours")
    parser.add_argument("--workload", type=Path, metavar="DIR", help="take what ../shared/bench/gen.py wrote there")
    parser.add_argument("--seed", type=int, default=shape.seed)
    parser.add_argument("--open", type=int, default=shape.open_streams, help="streams open at a time (default: %(default)s)")
    parser.add_argument("--most-calls", type=int, default=shape.calls[1], help="calls a response (default: %(default)s)")
    parser.add_argument(
        "--bad", type=float, default=shape.faults[0], help="share that breaks its schema (default: %(default)s)"
    )
    parser.add_argument("--idle-tools", type=int, default=0, help="tools of 1 kB that responses echo and nobody calls")
    parser.add_argument("--partitions", type=int, default=4, help="of every topic (default: %(default)s)")
    parser.add_argument("--commit-ms", type=int, default=100, help="commit interval (default: %(default)s)")
    parser.add_argument("--set", action="append", default=[], metavar="K=V", help="a further setting of callgate")
    harness.add_options(parser)
    parser.add_argument("--title", help="section of the results to write (default: made of the settings)")
    parser.add_argument("--profile", action="store_true", help="sample each row with py-spy, and list where the time goes")
    options = parser.parse_args()
    known = rows.ROWS | rows.REFERENCE_ROWS
    options.rows = options.rows.split(",")
    if options.reference:
        if not rows.REFERENCE.is_dir():
            parser.error(f"{rows.REFERENCE} is not there")
        options.rows += [row for row in rows.REFERENCE_ROWS if row not in options.rows]
    for row in options.rows:
        if row not in known:
            parser.error(f"no row {row}; there are {', '.join(known)}")
    return options


def workload(options: argparse.Namespace) -> Workload:
    """Make or read the workload."""
    if options.workload:
        return from_reference(options.workload)
    faults = (options.bad, *Shape().faults[1:])
    return make(
        Shape(
            events=options.events,
            seed=options.seed,
            open_streams=options.open,
            calls=(1, options.most_calls),
            faults=faults,
            idle_tools=options.idle_tools,
        )
    )


def run(setting: rows.Setting, names: list[str], repeats: int) -> dict[str, list[Usage | None]]:
    """Run every row `repeats` times; the order rotates, so that no row always comes first or last."""
    results: dict[str, list[Usage | None]] = {name: [] for name in names}
    for repeat in range(repeats):
        turn = repeat % len(names)
        for name in names[turn:] + names[:turn]:
            try:
                usage = rows.measure(setting, name, repeat)
            except (MeasureError, KafkaException) as error:
                print(f"{name}: no figure, {error}", flush=True)
                results[name].append(None)
                continue
            results[name].append(usage)
            cpu_us = 1e6 * usage.cpu_s / setting.events
            print(f"{name}: {cpu_us:.2f} us CPU an event, {setting.events / usage.wall_s:,.0f} events/s", flush=True)
    return results


def main() -> int:
    """Run. 0: every run has a figure; 1: some have none. Raises SystemExit with 2 where there is no broker."""
    options = arguments()
    made = workload(options)
    print(made.summary(), flush=True)
    with harness.started(options) as (bootstrap, folder):
        setting = rows.Setting(
            bootstrap=bootstrap,
            workload=made,
            partitions=options.partitions,
            commit_ms=options.commit_ms,
            core=options.core,
            folder=folder,
            profile=options.profile,
            extra=tuple(options.set),
        )
        results = run(setting, options.rows, options.repeats)
        if options.profile:
            for samples in sorted(folder.glob("*.samples")):
                print(f"\n# {samples.stem}\n{sampling.listing(samples)}")
            return 0
    title = (
        options.title or f"{len(made.values):,} events, {options.partitions} partitions, commit every {options.commit_ms} ms"
    )
    command = harness.command_line("benchmarks")
    section = report.page(title, command, made.summary(), results, setting.events)
    report.write(options.out, section, title)
    print(section)
    return 0 if all(all(runs) for runs in results.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
