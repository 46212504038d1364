"""`callgate replay`: the file contract of design section 10, over the shipped streams and over what others recorded."""

import gzip
import io
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processor import app
from processor.adapters.archive import Archive
from processor.adapters.replay import replay as through
from processor.adapters.replay import write
from processor.config import load
from tests.cli.command import callgate

TESTS = Path(__file__).parents[1]
STREAMS = TESTS.parent / "processor" / "demo" / "streams"
TOOLS = f"schemas={STREAMS.parent / 'tools'}"
GOLDEN = json.loads((TESTS / "golden" / "streams.json").read_text())
SHARED = TESTS.parents[1] / "shared"
Lines = list[dict[str, Any]]
CORE = app.build_core(load(sets=[TOOLS]))


def replay(tmp_path: Path, *arguments: str, stdin: bytes = b"") -> tuple[Lines, Lines]:
    """Decisions and dead letters of a run that ended well."""
    decisions, dead = tmp_path / "decisions.jsonl", tmp_path / "dead.jsonl"
    ended = callgate("replay", *arguments, "--decisions", str(decisions), "--dead-letters", str(dead), "--quiet", stdin=stdin)
    assert (ended.code, ended.out, ended.err) == (0, "", "")
    found = [[json.loads(line) for line in path.read_bytes().splitlines()] for path in (decisions, dead)]
    return found[0], found[1]


def reasons(decisions: Lines) -> list[list[str | None]]:
    """Call ids and reasons, in order."""
    return [[each["call_id"], each["reason"]] for each in decisions]


@pytest.mark.parametrize("name", sorted(GOLDEN))
@pytest.mark.parametrize("release", ["response", "item"])
def test_shipped_streams(tmp_path: Path, name: str, release: str) -> None:
    """Each shipped stream is decided as its page says, under both release rules."""
    decisions, dead = replay(tmp_path, str(STREAMS / name), "--set", TOOLS, "--set", f"release={release}")
    assert reasons(decisions) == GOLDEN[name][release]
    assert len(dead) == GOLDEN[name]["dead_letters"]


def test_all_at_once_in_order(tmp_path: Path) -> None:
    """Several files are one archive: everything is decided, in the order of the files, under rising offsets."""
    names = sorted(GOLDEN)
    decisions, dead = replay(tmp_path, *(str(STREAMS / name) for name in names), "--set", TOOLS)
    expected = Counter((call, reason) for name in names for call, reason in GOLDEN[name]["response"])
    assert Counter((each["call_id"], each["reason"]) for each in decisions) == expected
    assert len(dead) == sum(each["dead_letters"] for each in GOLDEN.values())


def test_compressed_and_standard_input(tmp_path: Path) -> None:
    """The same lines decide the same, compressed or on standard input."""
    content = (STREAMS / "parallel-calls.jsonl").read_bytes()
    packed = tmp_path / "a.jsonl.gz"
    packed.write_bytes(gzip.compress(content))
    plain = reasons(replay(tmp_path, str(STREAMS / "parallel-calls.jsonl"), "--set", TOOLS)[0])
    assert reasons(replay(tmp_path, str(packed), "--set", TOOLS)[0]) == plain
    assert reasons(replay(tmp_path, "-", "--set", TOOLS, stdin=content)[0]) == plain


def test_keep_open(tmp_path: Path) -> None:
    """At the end what is open has fallen silent for good; `--keep-open` leaves it."""
    half = b"".join((STREAMS / "parallel-calls.jsonl").read_bytes().splitlines(keepends=True)[:-1])
    ended, _ = replay(tmp_path, "-", "--set", TOOLS, stdin=half)
    assert [each["reason"] for each in ended] == ["timeout", "timeout"]
    assert replay(tmp_path, "-", "--set", TOOLS, "--keep-open", stdin=half) == ([], [])


def test_partitions_are_apart(tmp_path: Path) -> None:
    """Each partition of an archive has a state of its own; `source` says where a call was read."""
    lines = [json.loads(line) for line in (STREAMS / "parallel-calls.jsonl").read_text().splitlines()]
    both = [
        line | {"topic": "t", "partition": number, "offset": 100 + at} for at, line in enumerate(lines) for number in (4, 9)
    ]
    content = "\n".join(map(json.dumps, both)).encode()
    decisions, _ = replay(tmp_path, "-", "--set", TOOLS, stdin=content)
    assert len(decisions) == 4
    assert {(each["source"]["topic"], each["source"]["partition"]) for each in decisions} == {("t", 4), ("t", 9)}
    assert {each["source"]["last_offset"] for each in decisions} <= set(range(100, 100 + len(lines)))


def test_dead_letters_can_be_replayed(tmp_path: Path) -> None:
    """A dead letter's line holds the bytes as read and where they were; replayed, it is the same dead letter."""
    line = {"topic": "t", "partition": 3, "offset": 8, "ts": 77, "headers": ["h", "v"], "key": "k", "payload_base64": "/w=="}
    _, (dead,) = replay(tmp_path, "-", "--set", TOOLS, stdin=json.dumps(line).encode())
    assert {name: dead[name] for name in ("topic", "partition", "offset", "ts", "key", "payload_base64")} == {
        name: line[name] for name in ("topic", "partition", "offset", "ts", "key", "payload_base64")
    }
    assert dead["cause"] == "not_text"
    assert dead["headers"][:2] == ["h", "v"]
    _, (again,) = replay(tmp_path, "-", "--set", TOOLS, stdin=json.dumps(dead).encode())
    assert (again["cause"], again["payload_base64"]) == ("not_text", "/w==")


def test_decisions_on_output(tmp_path: Path) -> None:
    """`-` writes to standard output, and the summary goes to standard error."""
    ended = callgate("replay", str(STREAMS / "conflict.jsonl"), "--set", TOOLS, "--decisions", "-")
    assert ended.code == 0
    assert [json.loads(line)["reason"] for line in ended.out.splitlines()] == ["conflict"]
    assert "1 call: 0 approved, 1 rejected" in ended.err
    assert list(tmp_path.iterdir()) == []


def test_output_never_overwrites_input(tmp_path: Path) -> None:
    """Naming an input as output is refused before anything is written."""
    path = tmp_path / "a.jsonl"
    path.write_text("{}")
    ended = callgate("replay", str(path), "--set", "tools=stream", "--decisions", str(path))
    assert ended.code == 2
    assert path.read_text() == "{}"


@pytest.mark.parametrize(
    "file",
    sorted((SHARED / "streams").glob("*.jsonl")) or [pytest.param(None, marks=pytest.mark.skip("no ../shared"))],
    ids=str,
)
def test_recorded_streams(tmp_path: Path, file: Path) -> None:
    """Every recorded stream goes through, and no event of it is a dead letter."""
    if file.name == "manifest.jsonl":
        return
    _, dead = replay(tmp_path, str(file), "--set", "tools=stream")
    assert dead == []


header_names = st.sampled_from(["h", "\ud83d", "callgate-topic", "callgate-offset", "callgate-partition", "traceparent"])
lines = st.fixed_dictionaries(
    {"payload": st.sampled_from(["x", "", None, "\ud83d", '{"type":"error"}', '[{"type":"function_call"}]', '{"choices":[]}'])},
    optional={
        "key": st.sampled_from(["k", None, "\ud83d", 5]),
        "topic": st.sampled_from(["t", "\ud83d", "", 5]),
        "partition": st.integers(-1, 2),
        "offset": st.integers(-5, 50),
        "ts": st.integers(-5, 10**17),
        "headers": st.lists(st.one_of(header_names, st.none(), st.text(max_size=3)), max_size=4),
    },
)


@given(st.lists(lines, max_size=8))
def test_any_lines(archive: list[dict[str, Any]]) -> None:
    """Bad input: whatever an archive's lines hold, everything that comes out is a line of JSON of its own."""
    records = Archive("in", io.BytesIO(b"".join(json.dumps(line).encode() + b"\n" for line in archive))).read("-")
    decisions, dead = io.BytesIO(), io.BytesIO()
    count = 0
    for outgoing in through(records, CORE.partition, lambda: 0):
        write(outgoing, decisions, dead)
        count += len(outgoing)
    written = decisions.getvalue().splitlines() + dead.getvalue().splitlines()
    assert len(written) == count
    assert all(isinstance(json.loads(line), dict) for line in written)
