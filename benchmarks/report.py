"""Turns the runs into the table of benchmarks/RESULTS.md.

Owns how figures are summed up: medians with least and most; a ratio is taken within each repeat, where the machine was in the
same mood, and summed up after.
"""

import importlib.metadata
import math
import os
import platform
import statistics
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.measure import Usage
from benchmarks.page import commit_hash

MEANING = {
    "floor-1": "floor 1: aiokafka `getmany`, records thrown away",
    "floor-2": "floor 2: bare transactional loop, no job",
    "callgate": "callgate: exactly once, all checks, metrics and logs on",
    "by-hand": "by hand: aiokafka, json, a dict, jsonschema; no recovery",
    "reference-floor-1": "reference script of floor 1",
    "reference-floor-2": "reference script of floor 2",
    "reference-by-hand": "reference script of by hand",
}

Results = Mapping[str, Sequence[Usage | None]]
"""Usage by row and repeat; None where the run failed."""


def spread(values: Sequence[float], digits: int = 2) -> str:
    """Median, with least and most in brackets."""
    if not values:
        return "-"
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def ratios(results: Results, row: str, floor: str) -> list[float]:
    """CPU of a row over that of a floor, in each repeat that has both."""
    pairs = zip(results[row], results.get(floor, []), strict=False)
    return [ours.cpu_s / theirs.cpu_s for ours, theirs in pairs if ours and theirs]


def table(results: Results, events: int) -> str:
    """One line a row."""
    lines = [
        "| row | CPU per event, us | ratio to floor 1 | ratio to floor 2 | events/s of wall time | peak RSS, MB | runs |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row, runs in results.items():
        good = [run for run in runs if run]
        cells = [
            MEANING.get(row, row),
            spread([1e6 * run.cpu_s / events for run in good]),
            spread(ratios(results, row, "floor-1")),
            spread(ratios(results, row, "floor-2")),
            f"{statistics.median([events / run.wall_s for run in good]):,.0f}" if good else "-",
            _size([run.peak_rss_mb for run in good if not math.isnan(run.peak_rss_mb)]),
            f"{len(good)} of {len(runs)}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _size(sizes: Sequence[float]) -> str:
    return f"{statistics.median(sizes):.0f}" if sizes else "-"


def machine() -> str:
    """Where it ran, in one line."""
    names = [line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line]
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in ("aiokafka", "msgspec", "jsonschema_rs"))
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    return (
        f"{names[0] if names else platform.machine()}, {os.cpu_count()} cores, Linux {platform.release()}, "
        f"Python {platform.python_version()}, {versions}; load average at the end {load}"
    )


def page(title: str, command: str, workload: str, results: Results, events: int) -> str:
    """One section of RESULTS.md: rows against floors."""
    return frame(title, command, f"Workload: {workload}.", table(results, events))


def frame(title: str, command: str, facts: str, body: str) -> str:
    """One section of RESULTS.md: how, when and where it was made, and what it found."""
    commit = commit_hash("processor", "benchmarks")
    return f"""## {title}

Made by `{command}` on {datetime.now(UTC):%Y-%m-%d %H:%M} UTC, commit {commit}.
{machine()}.
{facts.strip()}

{body.strip()}
"""


HEAD = """# Results of the benchmarks

Medians, least and most in brackets. CPU is user and system time of the row's process by the operating system's clock, from the
moment at which the records can be read until everything is done (`benchmarks/measure.py` says it exactly). Ratios are taken
within each repeat. Callgate's decisions were compared with the oracle in every run that counts. The reference scripts stamp
themselves: CPU at exit less CPU at the first event. Wall time is no measure on a shared machine; it is shown to give an idea.

"""


def write(path: Path, section: str, title: str) -> None:
    """Put a section into RESULTS.md, in place of the one with its title."""
    old = path.read_text(encoding="utf-8") if path.exists() else HEAD
    head, *sections = old.split("\n## ")
    kept = [text for text in sections if not text.startswith(title + "\n")]
    body = "\n## ".join([HEAD.rstrip() + "\n" if head else head, *[text.rstrip() + "\n" for text in kept], section[3:]])
    path.write_text(body, encoding="utf-8")
