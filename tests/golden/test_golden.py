"""What is known beforehand: the shipped streams and the field's published example, with the decisions written down by hand."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.factories import START_MS, Record
from tests.shared_data.reader import answer, lines

ROOT = Path(__file__).resolve().parents[2]
DEMO = ROOT / "processor" / "demo"
EXPECTED: dict[str, Any] = json.loads((Path(__file__).parent / "streams.json").read_text(encoding="utf-8"))
EXAMPLE = ROOT / "tests" / "fixtures"


def registry(folder: Path) -> list[tuple[str | None, dict[str, Any]]]:
    """Every tool of a folder."""
    return [(None, json.loads(path.read_text(encoding="utf-8"))) for path in sorted(folder.glob("*.json"))]


def shipped(name: str) -> list[Record]:
    """A shipped stream as records."""
    return [
        Record(i, row["ts"], row["key"].encode(), row["payload"].encode())
        for i, row in enumerate(lines(DEMO / "streams" / name))
    ]


def test_every_shipped_stream_has_its_decisions() -> None:
    """No stream is shipped without the decisions that it must give."""
    assert sorted(EXPECTED) == sorted(path.name for path in (DEMO / "streams").glob("*.jsonl"))


@pytest.mark.parametrize("release", ["response", "item"])
@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_shipped_stream(name: str, release: str) -> None:
    """A shipped stream gives the decisions that its README promises, in order."""
    got = answer(shipped(name), release=release, tools="registry", registry=registry(DEMO / "tools"))
    assert [list(d) for d in got.decisions] == EXPECTED[name][release]
    assert got.dead_letters == EXPECTED[name]["dead_letters"]


def test_readme_of_streams_tells_what_is_decided() -> None:
    """The table beside the shipped streams names every file, and every call with its reason."""
    rows = {
        row.split("|")[1].strip(" `"): row for row in (DEMO / "streams" / "README.md").read_text().splitlines() if "|" in row
    }
    for name, expected in EXPECTED.items():
        for call_id, reason in expected["response"]:
            assert f"`{call_id}`" in rows[name]
            assert reason in rows[name].split("|")[3]


@pytest.mark.parametrize("row", lines(EXAMPLE / "published_example.jsonl"), ids=lambda row: row["case"])
def test_published_example(row: dict[str, Any]) -> None:
    """The example that the field has published gives its published verdicts, item by item and journal by journal."""
    tools = registry(EXAMPLE / "published_example_tools")
    log = [Record(0, START_MS, b"example", row["payload"].encode())]
    got = answer(log, release="response", tools="registry", registry=tools)
    assert [list(d) for d in got.decisions] == row["expect"]
    assert got.dead_letters == 0
