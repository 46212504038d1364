"""A chaos run on a real broker: `python -m tests.chaos` is what `make chaos` calls. Exit code 1: something was not reached.

A full run (no --share) writes its report to docs/reliability.md.
"""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.page import put
from tests.chaos import report
from tests.chaos.faults import FAULTS
from tests.chaos.overtaken import overtaken
from tests.chaos.run import chaos

FULL = dict(zip(FAULTS, (42, 16, 8, 16, 16, 10, 20, 20, 8, 10, 22, 10, 5, 5, 6), strict=True))
"""How often each fault comes in a full run, in the order of FAULTS."""
ROLLS = 4
"""Rolling restarts of four members in a full run."""


def main() -> int:
    """Run, print and write the report."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--seed", type=int, default=int(time.time()) % 100_000, help="of load and faults (default: the time)")
    parser.add_argument("--share", type=float, default=1.0, help="of a full run's faults, for a shorter one")
    parser.add_argument("--only", action="append", metavar="WORD", help="only faults with this word in their name")
    parser.add_argument("--per-second", type=float, default=400.0, help="records of the load (default: %(default)s)")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the members' logs there")
    options = parser.parse_args()
    full = options.share == 1.0 and not options.only
    plan = {
        kind: max(1, round(times * options.share))
        for kind, times in FULL.items()
        if not options.only or any(word in kind for word in options.only)
    }
    rolls = 0 if options.only else max(1, round(ROLLS * options.share))
    os.environ.setdefault("CALLGATE_TEST_PATIENCE", "150")
    with tempfile.TemporaryDirectory(prefix="callgate-chaos-") as temporary:
        folder = options.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        say(f"Seed {options.seed}: {sum(plan.values()) + 4 * rolls} faults. Logs: {folder}")
        result = chaos(folder, options.seed, plan, say, rolls=rolls, per_second=options.per_second)
        for again in range(0 if options.only else 2):
            place = folder / f"overtaken-{again}"
            place.mkdir()
            result.overtaken.append(overtaken(place, options.seed + again, say))
    command = "make chaos" if full else "python -m tests.chaos " + " ".join(sys.argv[1:])
    text = report.render(result, command, full=full)
    say(f"\n{text}\n{result.verdict}")
    if full:
        put(text, "chaos")
    bad = report.failures(result, full=full)
    for line in bad:
        say(f"NOT REACHED {line}")
    return 1 if bad else 0


def say(line: str) -> None:
    """Show a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
