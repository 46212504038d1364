"""What the demo shows, without a broker."""

import io

from rich.console import Console

from processor.config import load
from processor.demo import shown
from processor.demo.driver import STREAMS, TOOLS


def test_streams_without_a_call_are_accounted_for() -> None:
    """A stream that is in no row of the table is named below it, with why; all others are in the table."""
    files = sorted(STREAMS.glob("*.jsonl"))
    rows = shown.replayed(files, load(sets=[f"schemas={TOOLS}"]))
    out = io.StringIO()
    shown.closing(Console(file=out, width=200), rows, files, 1)
    assert [line.partition(" is not in the table")[0] for line in out.getvalue().splitlines() if "is not in" in line] == [
        "chat-1013-heartbeat"
    ]
    assert "it has no call, and only shows that time goes on" in out.getvalue()
