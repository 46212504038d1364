"""What commands with a broker share: their options, the broker itself, and a section of the results for their table."""

import argparse
import contextlib
import os
import shlex
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks import report
from processor.broker.errors import BrokerFailed, BrokerUnavailable
from processor.broker.server import Broker

HERE = Path(__file__).resolve().parent


def add_options(parser: argparse.ArgumentParser, *, broker: bool = True) -> None:
    """Add what every command of this folder takes."""
    parser.add_argument("--core", default="0", help="processor of the measured process, or `0,1` (default: %(default)s)")
    parser.add_argument("--broker-core", default="1", help="of broker and harness (default: %(default)s)")
    if broker:
        parser.add_argument("--bootstrap", help="a broker that is there already (default: one is started, and stopped)")
        parser.add_argument("--logs", type=Path, help="keep the rows' logs there")
    parser.add_argument("--out", type=Path, default=HERE / "RESULTS.md", help="(default: %(default)s)")


@contextlib.contextmanager
def started(options: argparse.Namespace) -> Iterator[tuple[str, Path]]:
    """Address of the broker that is used, and a folder for logs and settings. Raises SystemExit where there is no broker."""
    os.sched_setaffinity(0, set(map(int, options.broker_core.split(","))))
    with tempfile.TemporaryDirectory(prefix="callgate-bench-") as temporary:
        folder = options.logs or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        if options.bootstrap:
            yield options.bootstrap, folder.resolve()
            return
        try:
            with Broker(heap_mb=1024, cpus=options.broker_core, note=print) as broker:
                yield broker.bootstrap, folder.resolve()
        except (BrokerFailed, BrokerUnavailable) as error:
            print(error, file=sys.stderr)
            raise SystemExit(2) from None


def command_line(module: str) -> str:
    """What was typed, without where a broker was and where results go: whoever repeats it has others."""
    words, given = ["python", "-m", module], iter(sys.argv[1:])
    for word in given:
        if word in {"--bootstrap", "--out", "--logs"}:
            next(given, None)
        else:
            words.append(word)
    return shlex.join(words)


def publish(options: argparse.Namespace, module: str, title: str, facts: str, table: str) -> None:
    """Print a section, and write it into the results."""
    command = command_line(f"benchmarks.{module}")
    section = report.frame(title, command, facts, table)
    report.write(options.out, section, title)
    print(f"\n{section}")
