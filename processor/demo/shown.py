"""What people see of decisions: rows, the table, the closing summary."""

import json
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from processor import app
from processor.adapters.archive import Archive
from processor.adapters.replay import replay
from processor.cli.common import plain
from processor.core.outgoing import Route
from processor.settings import Settings

if TYPE_CHECKING:
    from rich.console import Console

WIDE = 110
"""Columns from which the stream and the why find room."""

HEARTBEAT = "-heartbeat"
"""Ends the key of a shipped stream that only says that it is alive."""


class Row(NamedTuple):
    """One decision or dead letter."""

    outcome: str
    """`approved`, `rejected` or `dead letter`."""
    reason: str
    stream: str
    call_id: str
    name: str
    detail: str

    @classmethod
    def of_decision(cls, value: bytes | None) -> Self:
        """Read a decision."""
        found: dict[str, Any] = json.loads(value or b"{}")
        texts = {name: str(found.get(name) or "") for name in ("stream", "call_id", "name", "detail")}
        detail = texts["detail"] if found["decision"] == "rejected" else _shorten(str(found.get("arguments") or ""))
        return cls(found["decision"], found["reason"], texts["stream"], texts["call_id"], texts["name"], detail)

    @classmethod
    def of_dead_letter(cls, key: bytes | None, headers: Sequence[tuple[str, bytes | None]]) -> Self:
        """Read a dead letter."""
        found = {name: (value or b"").decode("utf-8", "replace") for name, value in headers}
        stream = (key or b"").decode("utf-8", "replace")
        return cls("dead letter", found.get("callgate-cause", ""), stream, "", "", found.get("callgate-detail", ""))

    @property
    def identity(self) -> tuple[str, str, str, str]:
        """What must be the same however it was decided."""
        return self.outcome, self.reason, self.stream, self.call_id


def replayed(files: list[Path], settings: Settings) -> list[Row]:
    """What the core decides of the files, without a broker."""
    core = app.build_core(settings)
    rows = []
    for file in files:
        records = Archive(settings.topics.events).read(str(file))
        for outgoing in replay(records, core.partition, lambda: int(time.time() * 1000)):
            rows += [
                Row.of_dead_letter(each.key, each.headers) if each.route is Route.DEAD_LETTER else Row.of_decision(each.value)
                for each in outgoing
            ]
    return rows


def table(terminal: "Console", rows: list[Row]) -> None:
    """Show them, stream by stream."""
    from rich.table import Table  # noqa: PLC0415 - slow, and not needed by tests of rows

    wide = terminal.width >= WIDE
    made = Table(title="What callgate decided", title_justify="left", header_style="bold")
    for heading in (*(("stream",) if wide else ()), "call", "tool", "decision", "reason"):
        made.add_column(heading, no_wrap=True)
    if wide:
        made.add_column("arguments, or why not", overflow="fold")
    looks = {"approved": ("green", "✓"), "rejected": ("red", "✗"), "dead letter": ("yellow", "!")}
    last = ""
    for row in sorted(rows, key=lambda row: (row.stream, row.call_id)):
        colour, mark = looks[row.outcome]
        cells = [plain(row.call_id), plain(row.name), f"[{colour}]{mark} {row.outcome}[/]", f"[{colour}]{row.reason}[/]"]
        if wide:
            cells = ["" if row.stream == last else plain(row.stream), *cells, plain(row.detail)]
        last = row.stream
        made.add_row(*cells)
    terminal.print(made)


def closing(terminal: "Console", rows: list[Row], files: list[Path], seconds: float) -> None:
    """Say it in one sentence."""
    outcomes = Counter(row.outcome for row in rows)
    terminal.print(
        f"\n{len(files)} streams: [green]{outcomes['approved']} calls approved[/], [red]{outcomes['rejected']} rejected[/], "
        f"[yellow]{outcomes['dead letter']} dead letter{'s' * (outcomes['dead letter'] != 1)}[/], in {seconds:.0f} seconds."
    )
    for stream in sorted(_streams(files) - {row.stream for row in rows}):
        why = ", and only shows that time goes on while another one is silent" if stream.endswith(HEARTBEAT) else ""
        terminal.print(f"{plain(stream)} is not in the table: it has no call{why}.", soft_wrap=True)


def _streams(files: list[Path]) -> set[str]:
    """Keys of all records."""
    records = (record for file in files for record in Archive("demo").read(str(file)))
    return {(record.key or b"").decode("utf-8", "replace") for record in records}


def _shorten(text: str, most: int = 60) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
