"""The long run of the differential test: `make oracle`, or `python -m tests.oracle`.

Holds the core against the oracle on fresh logs and says how far it is; the exit code is 1 where they differed on one.
`CALLGATE_TEST_ORACLE_N` logs from the seed `CALLGATE_TEST_ORACLE_FROM` on; the tests read the seeds from 0 on.
"""

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
    logs = int(os.environ.get("CALLGATE_TEST_ORACLE_N", str(LOGS)))
    first = int(os.environ.get("CALLGATE_TEST_ORACLE_FROM", str(FIRST)))
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
        again = f"CALLGATE_TEST_ORACLE_N=1 CALLGATE_TEST_ORACLE_FROM={different[0]} make oracle"
        print(f"Seeds of the logs that differ: {different[:20]}. To see one: {again}")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
