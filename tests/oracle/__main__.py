"""The long run of the differential test: `make oracle`, or `python -m tests.oracle`.

Holds the core against the oracle on fresh logs and says how far it is; the exit code is 1 where they differed on one. The tests
read the seeds from 0 on.
"""

import argparse
import os
import sys
import time

from tests.oracle.compare import hold, shrink, words
from tests.oracle.generate import case

LOGS = 400_000
"""More than a million streams."""
FIRST = 1_000_000
EVERY = 2_000
"""Logs between two lines of progress."""
SHOWN = 3


def main() -> int:
    """Read the logs; 1 where a decision differed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--logs",
        type=int,
        default=int(os.environ.get("CALLGATE_TEST_ORACLE_N", str(LOGS))),
        help="how many, or CALLGATE_TEST_ORACLE_N (default: %(default)s)",
    )
    parser.add_argument(
        "--first",
        type=int,
        default=int(os.environ.get("CALLGATE_TEST_ORACLE_FROM", str(FIRST))),
        help="the first one's seed, or CALLGATE_TEST_ORACLE_FROM (default: %(default)s)",
    )
    options = parser.parse_args()
    logs, first = options.logs, options.first
    streams = decisions = 0
    different: list[int] = []
    begun = time.monotonic()
    for read, seed in enumerate(range(first, first + logs), 1):
        found = hold(case(seed))
        streams += found.streams
        decisions += found.decisions
        if not found.alike:
            different.append(seed)
            if len(different) <= SHOWN:
                print(words(shrink(case(seed))), end="\n\n", flush=True)
        if read % EVERY == 0 or read == logs:
            speed = read / (time.monotonic() - begun)
            told = f"{read:,} of {logs:,} logs, {streams:,} streams, {decisions:,} decisions, {len(different)} logs differ"
            print(f"{told}, {speed:.0f} logs a second", flush=True)
    if different:
        again = f"python -m tests.oracle --logs 1 --first {different[0]}"
        print(f"Seeds of the logs that differ: {different[:20]}. To see one: {again}")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
