"""`callgate redrive` on the command line, without a broker: what may be asked for, and what is said where it may not."""

from datetime import UTC, datetime

import pytest
import typer

from processor.cli.exits import Exit
from processor.cli.redrive import _instant, _offsets
from tests.cli.command import callgate


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--cause", "boredom"], "`boredom` is no cause; there are empty, not_text,"),
        (["--since", "yesterday"], "`yesterday` is neither a time span"),
        (["--until", "12"], "neither a time span"),
        (["--offsets", "9-1", "--partition", "0"], "ends before it begins"),
        (["--offsets", "x", "--partition", "0"], "is not FIRST-LAST"),
        (["--offsets", "-", "--partition", "0"], "is not FIRST-LAST"),
        (["--offsets", "1-2"], "needs one"),
        (["--offsets", "1-2", "--partition", "0", "--partition", "1"], "needs one"),
        (["--limit", "0"], "--limit"),
        (["--rate", "-1"], "--rate"),
        (["--max-attempts", "0"], "--max-attempts"),
    ],
)
def test_what_may_not_be_asked_for(arguments: list[str], said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One sentence, and the exit code of a wrong command line; no broker is asked."""
    monkeypatch.setenv("COLUMNS", "300")
    ended = callgate("redrive", *arguments)
    assert ended.code == Exit.USAGE
    assert said in " ".join(ended.err.split())
    assert "Traceback" not in ended.err


def test_no_broker() -> None:
    """Where nobody answers it ends like every command does."""
    ended = callgate("redrive", "--set", "kafka.bootstrap_servers=127.0.0.1:1")
    assert ended.code == Exit.UNREACHABLE


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("7", (7, 7)),
        ("7-9", (7, 9)),
        ("7-", (7, None)),
        ("-9", (None, 9)),
        (None, (None, None)),
    ],
)
def test_ranges(text: str | None, expected: tuple[int | None, int | None]) -> None:
    """Both ends are included, and each may be left out."""
    assert _offsets(text) == expected


def test_times() -> None:
    """A date, a time with and without a zone, or a time span back from now."""
    assert _instant("2026-04-24") == _instant("2026-04-24T00:00") == _instant("2026-04-24T02:00+02:00")
    assert _instant("2026-04-24T00:00:01.5Z") == int(datetime(2026, 4, 24, 0, 0, 1, 500_000, UTC).timestamp() * 1000)
    now = datetime.now(UTC).timestamp() * 1000
    found = _instant("2h")
    assert found is not None
    assert now - 7_200_000 - 1 <= found <= datetime.now(UTC).timestamp() * 1000 - 7_200_000 + 1
    assert _instant(None) is None
    with pytest.raises(typer.BadParameter):
        _instant("soon")
