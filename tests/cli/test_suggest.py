"""`callgate replay --suggest`: which tolerance would have let how many calls through (rule 34)."""

import json
from pathlib import Path

import pytest

from processor import app
from processor.adapters.archive import Archive
from processor.adapters.replay import Suggestions
from processor.adapters.replay import replay as through
from processor.config import load
from processor.core.limits import TOLERANCES
from processor.core.outgoing import Route
from tests.cli.command import callgate
from tests.factories import created, function_call, pieces, terminal, text
from tests.quirks import TOOLS, Quirk, listing

QUIRKS = listing()
FILES = [str(quirk.fixture) for quirk in QUIRKS]
CORE = app.build_core(load(sets=[f"schemas={TOOLS}"]))


def approvals(core: app.Core) -> set[str]:
    """Ids of what a core approves of all fixtures together."""
    archive = Archive("responses.events")
    records = (record for name in FILES for record in archive.read(name))
    out = [each for run in through(records, core.partition, lambda: 0) for each in run if each.route is Route.APPROVED]
    return {json.loads(each.value or b"")["id"] for each in out}


def test_counts_are_those_of_a_replay_with_the_tolerance() -> None:
    """What is suggested for an archive is what a replay with that tolerance approves more, and less."""
    archive = Archive("responses.events")
    suggestions = Suggestions({name: CORE.tolerating((name,)).partition for name in TOLERANCES})
    records = (record for name in FILES for record in archive.read(name))
    for _ in through(records, CORE.partition, lambda: 0, suggestions=suggestions):
        pass
    plain = approvals(CORE)
    found = {each.tolerance: (each.approved, each.lost) for each in suggestions.found()}
    expected = {}
    for name in TOLERANCES:
        tolerant = approvals(CORE.tolerating((name,)))
        expected[name] = len(tolerant - plain), len(plain - tolerant)
    assert found == expected
    assert all(approved for approved, _ in found.values())


@pytest.mark.parametrize("quirk", [quirk for quirk in QUIRKS if quirk.tolerance], ids=lambda quirk: quirk.name)
def test_summary_names_the_tolerance(quirk: Quirk) -> None:
    """The summary names the one tolerance that would have let a fixture's call through."""
    ended = callgate("replay", str(quirk.fixture), "--set", f"schemas={TOOLS}", "--suggest")
    assert ended.code == 0
    assert f'1 would pass with tolerate = ["{quirk.tolerance}"].' in ended.err
    assert ended.err.count("would pass") == 1


def test_none_is_said_where_none_helps() -> None:
    """Where no tolerance helps the summary says so; a tolerance in force is not suggested; unasked, nothing is said."""
    conflict = next(str(quirk.fixture) for quirk in QUIRKS if quirk.name == "arguments_twice")
    absent = next(str(quirk.fixture) for quirk in QUIRKS if quirk.name == "status_absent")
    ended = callgate("replay", conflict, "--set", f"schemas={TOOLS}", "--suggest")
    assert "No tolerance by itself would have let a call through." in ended.err
    ended = callgate("replay", absent, "--set", f"schemas={TOOLS}", "--set", "tolerate=status_absent", "--suggest")
    assert "tolera" not in ended.err
    ended = callgate("replay", absent, "--set", f"schemas={TOOLS}")
    assert "tolera" not in ended.err


def test_what_would_be_lost_is_said(tmp_path: Path) -> None:
    """Rule 34, `response_id_rotates`: where it would let a foreign event end a response, that is said beside its gain."""
    call = function_call()
    rotating = [created("a"), *pieces(0, call), terminal("completed", "b", [call])]
    ended_by_another = [created("c"), *pieces(0, call), terminal("failed", "x", []), terminal("completed", "c", [call])]
    rows = [{"key": "one", "payload": text(e)} for e in rotating] + [
        {"key": "two", "payload": text(e)} for e in ended_by_another
    ]
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows))
    ended = callgate("replay", str(path), "--set", f"schemas={TOOLS}", "--suggest")
    assert '1 would pass with tolerate = ["response_id_rotates"], and reject 1 that is approved now.' in ended.err
