"""The report of a chaos run, as Markdown.

Owns the bounds and what a run must reach. It measures nothing.
"""

import os
import platform
import statistics

from benchmarks.page import commit_hash
from tests.chaos.arena import SESSION_SECONDS
from tests.chaos.faults import FAULTS
from tests.chaos.overtaken import Overtaken
from tests.chaos.run import LEAVES, ROLLING, Outcome, Result

LEAST_COUNTED = 200
"""Faults that a full run must count."""
BOUNDS = {
    LEAVES: 3.0,
    ROLLING: 3.0,
    "member killed (SIGKILL)": SESSION_SECONDS + 3.0,
    "broker restarted": 5.0,
    "broker killed in mid-transaction": 5.0,
}
"""Bounds of the median pause, in seconds: after SIGTERM, after SIGKILL (session time-out and 3 s), from the broker's return."""


def failures(result: Result, *, full: bool) -> list[str]:
    """What the run did not reach; `full`: bounds and number of faults count too."""
    found = [] if result.verdict is not None and result.verdict.clean else [f"verdict: {result.verdict}"]
    found += [f"somebody had to be replaced after {text.splitlines()[0]}" for text in result.stuck]
    found += [f"retention: {one.verdict}" for one in result.overtaken if not one.verdict.clean]
    if not full:
        return found
    if result.counted < LEAST_COUNTED:
        found.append(f"only {result.counted} faults count")
    for kind, bound in BOUNDS.items():
        pauses = _pauses(result, kind)
        if pauses and statistics.median(pauses) > bound:
            found.append(f"{kind}: median pause {statistics.median(pauses):.2f} s, bound {bound:.1f} s")
    return found


def render(result: Result, command: str, *, full: bool) -> str:
    """Make the report."""
    verdict = result.verdict
    assert verdict is not None
    bad = failures(result, full=full)
    held = " Every bound is held." if full and not bad else ""
    counts = f"lost {len(verdict.lost)}, twice {len(verdict.twice)}, wrong {len(verdict.wrong)}"
    read_back = f"{verdict.decided:,} decisions and {verdict.dead_letters:,} dead letters read back"
    commit = commit_hash("processor", "tests/chaos", "tests/e2e")
    load = f", load {os.getloadavg()[2]:.0f}"
    lines = [
        f"`{command}`, seed {result.seed}, commit {commit}, Python {platform.python_version()}, {os.cpu_count()} CPUs{load}:",
        f"{result.seconds / 60:.0f} minutes, {result.records:,} records of load, {read_back}.",
        "",
        f"**{result.counted} faults counted: {counts}.**{held}",
        "",
        "| fault | done | counted | pause, median (s) | worst (s) | bound of the median (s) |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for kind in [*FAULTS, ROLLING]:
        outcomes = [one for one in result.outcomes if one.kind == kind]
        if outcomes:
            lines.append(_row(kind, outcomes, _pauses(result, kind)))
    rolls = [one for one in result.outcomes if one.kind == ROLLING]
    if rolls:
        lines += ["", "The rolling restart by partition, 4 members on 4 partitions, one after the other:", ""]
        lines += ["| partition | restarts | pause, median (s) | worst (s) |", "| ---: | ---: | ---: | ---: |"]
        for number, pauses in enumerate(zip(*(one.pauses for one in rolls), strict=True)):
            lines.append(f"| {number} | {len(pauses)} | {statistics.median(pauses):.2f} | {max(pauses):.2f} |")
    if result.overtaken:
        lines += _retention(result.overtaken)
    if bad:
        lines += ["", "Not reached: " + "; ".join(bad) + "."]
    return "\n".join(lines) + "\n"


def _retention(runs: list[Overtaken]) -> list[str]:
    verdicts = [one.verdict for one in runs]
    lost, twice, wrong = (sum(len(getattr(one, name)) for one in verdicts) for name in ("lost", "twice", "wrong"))
    given_up, again, unseen = (sum(getattr(one, name) for one in runs) for name in ("given_up", "again", "unseen"))
    return [
        "",
        f"Retention overtakes W while no member runs, {2 * len(runs)} partitions (`tests/chaos/overtaken.py`): each stopped",
        "and said why, the others went on, and nothing was published until `offset_reset` was set. Then, of the calls whose",
        f"records were all there, lost {lost}, twice {twice}, wrong {wrong}. Of {given_up} calls with deleted records {again}",
        f"were decided again, and {unseen} approved by what was left of them though the whole would have been rejected.",
    ]


def _row(kind: str, outcomes: list[Outcome], pauses: list[float]) -> str:
    median, worst = (f"{statistics.median(pauses):.2f}", f"{max(pauses):.2f}") if pauses else ("", "")
    bound = f"{BOUNDS[kind]:.1f}" if kind in BOUNDS else ""
    return f"| {kind} | {len(outcomes)} | {sum(one.counted for one in outcomes)} | {median} | {worst} | {bound} |"


def _pauses(result: Result, kind: str) -> list[float]:
    return [pause for one in result.outcomes if one.kind == kind and one.counted for pause in one.pauses]
