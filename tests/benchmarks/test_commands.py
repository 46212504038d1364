"""The commands that measure: what they sum up, and what they say of themselves."""

import importlib.util
import re
import sys
from collections import Counter
from pathlib import Path

import pytest

from benchmarks import everything, harness, latency, memory, spread
from benchmarks.stream import Shape
from benchmarks.workload import make

ROOT = Path(__file__).resolve().parents[2]


def test_a_section_names_its_command_without_what_only_one_machine_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who repeats it has another broker, and other places."""
    given = ["latency.py", "--bootstrap", "127.0.0.1:1", "--rates", "200", "--out", "somewhere", "--set", "a=b c"]
    monkeypatch.setattr(sys, "argv", given)
    assert harness.command_line("benchmarks.latency") == "python -m benchmarks.latency --rates 200 --set 'a=b c'"


def test_quantiles_are_values_that_were_measured() -> None:
    """The nearest rank, from below; of few values the highest ones are the greatest."""
    values = [float(number) for number in range(1, 1001)]
    assert [latency.quantile(values, share) for share in latency.QUANTILES] == [501.0, 991.0, 1000.0]
    assert latency.quantile([3.0, 1.0], 0.99) == 3.0


def test_latencies_are_held_against_both_floors() -> None:
    """The ratio is that of the 99th percentiles of the same repeat."""
    runs = {"floor-2": 0.1, "floor-2-20": 0.2, "callgate": 0.3}
    text = latency.table({(200, row): [latency.Found([seconds], 0.05)] for row, seconds in runs.items()})
    last = text.splitlines()[-1]
    assert last == (
        "| 200 | callgate, default settings | 1 | 300 (300 to 300) | 300 (300 to 300) | 300 (300 to 300) "
        "| 3.00 (3.00 to 3.00) | 1.50 (1.50 to 1.50) | 5 |"
    )


def test_traffic_over_many_streams_is_that_of_whole_streams() -> None:
    """Each stream's events come in order from the first one on, under a key of their own; where one ends another begins."""
    shapes = Counter(len(events) for events in memory.by_stream(make(Shape(events=10_000, open_streams=1))))
    traffic = spread.Traffic(5)
    seen: dict[bytes, list[bytes]] = {}
    for key, value in (*traffic.opened(), *traffic.more(2_000)):
        seen.setdefault(key, []).append(value)
    for key, values in seen.items():
        assert b'"type":"response.created"' in values[0]
        assert key in values[0]
        numbers = [int(found[1]) for value in values if (found := re.search(rb'"sequence_number":(\d+)', value))]
        assert numbers == list(range(len(values)))
    ended = [values for values in seen.values() if b'"type":"response.completed"' in values[-1]]
    assert ended
    assert {len(values) for values in ended} <= set(shapes)
    assert len(seen) - len([values for values in seen.values() if _over(values[-1])]) == 5


def _over(event: bytes) -> bool:
    return any(f'"type":"response.{end}"'.encode() in event for end in ("completed", "failed", "incomplete"))


def test_all_commands_are_there_and_on_the_page() -> None:
    """What `make bench-all` runs exists, and docs/performance.md tells of it."""
    page = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    for command in everything.COMMANDS.values():
        assert importlib.util.find_spec(command[0]) is not None
        assert f"python -m {command[0]}" in page
