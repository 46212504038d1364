"""`python -m tests.simulation`: many seeds, one, or the known-bad variants.

Owns progress, counts and the summary. It decides nothing about a run.
"""

import argparse
import gc
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from tests.simulation import run
from tests.simulation.mutations import MUTATIONS
from tests.simulation.world import World

AT_ONCE = 50
"""Seeds that are handed to a process at once."""
COLLECT_EVERY = 10
"""Seeds between two searches for garbage."""
EVERY_SECONDS = 10.0
"""Pause between two lines of progress."""


@dataclass
class Counts:
    """What some seeds came to."""

    seeds: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    events: Counter[str] = field(default_factory=Counter)
    decisions: int = 0
    virtual_seconds: float = 0.0
    failed: list[tuple[int, str]] = field(default_factory=list)

    def add(self, other: "Counts") -> None:
        """Add those of more seeds."""
        self.seeds += other.seeds
        self.faults += other.faults
        self.events += other.events
        self.decisions += other.decisions
        self.virtual_seconds += other.virtual_seconds
        self.failed += other.failed


def some(first: int, count: int) -> Counts:
    """Run some seeds, in this process."""
    counts = Counts()
    with run.prepared() as core:
        for seed in range(first, first + count):
            counts.seeds += 1
            if counts.seeds % COLLECT_EVERY == 0:
                gc.collect()
            world = World(seed, core)
            try:
                world.run()
            except Exception as fault:  # noqa: BLE001 - whatever it is, the seed is what matters
                counts.failed.append((seed, f"{type(fault).__name__}: {fault}"))
            counts.faults += world.trouble.counts
            counts.events += world.counts
            counts.decisions += world.decided
            counts.virtual_seconds += world.loop.now
    return counts


def portions(first: int, seeds: int, jobs: int) -> Iterator[Counts]:
    """Run all seeds, in so many processes."""
    parts = [(start, min(AT_ONCE, first + seeds - start)) for start in range(first, first + seeds, AT_ONCE)]
    if jobs == 1:
        yield from (some(*part) for part in parts)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(some, *zip(*parts, strict=True))


def many(first: int, seeds: int, jobs: int) -> int:
    """Run seeds with progress, then the summary; returns the exit code."""
    total, began = Counts(), time.monotonic()
    said = began
    for part in portions(first, seeds, jobs):
        total.add(part)
        for seed, why in part.failed:
            say(f"{why[:2000]}\n{run.describe(seed)}")
        now = time.monotonic()
        if now - said > EVERY_SECONDS:
            said = now
            left = (now - began) / total.seeds * (seeds - total.seeds)
            say(f"{total.seeds} of {seeds} seeds, {len(total.failed)} failed, {left:.0f} s left")
    say(f"faults: {_listed(total.faults)}")
    say(f"members: {_listed(total.events)}")
    seconds = time.monotonic() - began
    say(
        f"{total.seeds} seeds from {first}, {len(total.failed)} failed; {total.faults.total()} faults, "
        f"{total.decisions} decisions, {total.virtual_seconds / 3600:.1f} virtual hours in {seconds:.0f} s"
    )
    return int(bool(total.failed))


def one(seed: int) -> int:
    """Run one seed, saying everything that happens; returns the exit code."""
    with run.prepared() as core:
        try:
            World(seed, core, say).run()
        except Exception as fault:  # noqa: BLE001 - as above
            say(f"{type(fault).__name__}: {fault}\n{run.describe(seed)}")
            return 1
    say(f"seed {seed}: nothing lost, nothing twice")
    return 0


def mutations() -> int:
    """Look for each known-bad variant; one line of JSON: by letter, seeds that were run and what was found, if anything."""
    found: dict[str, Any] = {}
    with run.prepared() as core:
        for mutation in MUTATIONS:
            found[mutation.letter] = run.search(mutation, core)
    sys.stdout.write(json.dumps(found) + "\n")
    return 0


def say(text: str) -> None:
    """Write a line."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.most_common())


def main() -> int:
    """Read the command line and do it; returns the exit code."""
    if os.environ.get("PYTHONHASHSEED") != "0":
        # Sets of names are walked in the order of their hashes, which is part of what a seed means.
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, [sys.executable, "-m", "tests.simulation", *sys.argv[1:]])  # noqa: S606 - this program again
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--first", type=int, default=1, help="first seed")
    parser.add_argument("--seeds", type=int, default=2000, help="how many")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--seed", type=int, help="only this one, saying everything")
    parser.add_argument("--mutations", action="store_true", help="look for the known-bad variants of the protocol")
    asked = parser.parse_args()
    if asked.mutations:
        return mutations()
    return one(asked.seed) if asked.seed is not None else many(asked.first, asked.seeds, asked.jobs)


if __name__ == "__main__":
    sys.exit(main())
