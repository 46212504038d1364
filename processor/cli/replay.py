"""`callgate replay`: archived topics and files through the same core, to decisions and dead letters."""

import contextlib
import os
import stat
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer

from processor.cli.common import ConfigOption, SetOption, console, core_from, counted, settings_from

if TYPE_CHECKING:
    from rich.console import Console

    from processor.adapters.archive import Archive, ArchivedRecord
    from processor.adapters.replay import Report, Suggestions
    from processor.app import Core

EXAMPLES = """Examples:

* `callgate replay archive.jsonl.zst --decisions out.jsonl --dead-letters dead.jsonl`
* `kcat -C -e -J -t responses.events | callgate replay - --set tools=stream --decisions -`

Lines are those of `kcat -J` (`topic`, `partition`, `offset`, `ts`, `headers`, `key`, `payload`; what is missing is counted up,
`payload_base64` holds bytes that are no text), or plain events, which take the file's name as their key, or a raw
Server-Sent-Events text. `--suggest` reads everything once more for each tolerance that is not set, and says how many calls
each of them, by itself, would have let through. Exit code `0` when it ran, whatever was decided.
"""


def replay(
    files: Annotated[list[str], typer.Argument(metavar="FILE", help="Archives; `-` is standard input; .gz and .zst too.")],
    config: ConfigOption = None,
    sets: SetOption = None,
    decisions: Annotated[
        str | None, typer.Option("--decisions", "-d", metavar="OUT", help="File for the decisions, one a line; `-` is output.")
    ] = None,
    dead_letters: Annotated[
        str | None, typer.Option("--dead-letters", metavar="DL", help="File for the dead letters, one a line; `-` is output.")
    ] = None,
    keep_open: Annotated[
        bool, typer.Option("--keep-open", help="Leave open at the end what is open, instead of rejecting it with `timeout`.")
    ] = False,
    suggest: Annotated[
        bool, typer.Option("--suggest", help="Say which tolerances would have let calls through (takes several times as long).")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No summary.")] = False,
) -> None:
    """Send archived topics or files through the same core as `run`, and write what it decides."""
    from processor import garbage  # noqa: PLC0415 - start-up of the others stays quick
    from processor.adapters.archive import Archive  # noqa: PLC0415 - as above
    from processor.adapters.replay import Report, write  # noqa: PLC0415 - as above
    from processor.adapters.replay import replay as through  # noqa: PLC0415 - as above

    settings = settings_from(config, sets)
    core = core_from(settings)
    _keep_apart(files, decisions, dead_letters)
    garbage.calm()
    archive = Archive(settings.topics.events)
    report = Report()
    suggestions = _suggestions(core) if suggest else None
    began = time.monotonic()
    terminal = console(error=True)
    with (
        _output(decisions) as decided,
        _output(dead_letters) as dead,
        _progress(terminal, archive, files) as records,
    ):
        for outgoing in through(records, core.partition, _now_ms, keep_open=keep_open, suggestions=suggestions):
            for each in outgoing:
                report.add(each)
            write(outgoing, decided, dead)
    if not quiet:
        _summary(terminal, archive, report, time.monotonic() - began)
        _suggest(terminal, report, suggestions)


def _now_ms() -> int:
    return int(time.time() * 1000)


def _suggestions(core: "Core") -> "Suggestions":
    """Make one core for each tolerance that is not in force."""
    from processor.adapters.replay import Suggestions  # noqa: PLC0415 - as above
    from processor.core.limits import TOLERANCES  # noqa: PLC0415 - as above

    others = [name for name in TOLERANCES if name not in core.settings.tolerate]
    return Suggestions({name: core.tolerating((name,)).partition for name in others})


def _keep_apart(files: list[str], *outputs: str | None) -> None:
    """Refuse to write over what is read, or two outputs into one file."""
    names = [name for name in (*files, *outputs) if name not in {None, "-"}]
    written = [Path(str(name)).resolve() for name in outputs if name not in {None, "-"}]
    everything = [Path(str(name)).resolve() for name in names]
    for path in written:
        # Devices such as /dev/null may be named twice.
        if everything.count(path) > 1 and (not path.exists() or stat.S_ISREG(path.stat().st_mode)):
            raise typer.BadParameter(f"{path} is named twice: inputs and outputs must be different files.")


@contextlib.contextmanager
def _output(name: str | None) -> Iterator[IO[bytes] | None]:
    if name is None:
        yield None
    elif name == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
    else:
        with Path(name).open("wb") as file:
            yield file


@contextlib.contextmanager
def _progress(terminal: "Console", archive: "Archive", files: list[str]) -> Iterator[Iterator["ArchivedRecord"]]:
    """Read the files, with a bar where somebody looks."""

    def records() -> Iterator["ArchivedRecord"]:
        for name in files:
            yield from archive.read(name)

    if not terminal.is_terminal:
        yield records()
        return
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn, TransferSpeedColumn  # noqa: PLC0415

    sizes = [os.stat(name).st_size if name != "-" and Path(name).is_file() else None for name in files]  # noqa: PTH116
    total = None if None in sizes else sum(size or 0 for size in sizes)
    columns = ("replay", BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=terminal, transient=True) as progress:
        task = progress.add_task("replay", total=total)

        def shown() -> Iterator["ArchivedRecord"]:
            for number, record in enumerate(records()):
                if number % 256 == 0:
                    progress.update(task, completed=archive.compressed_bytes)
                yield record

        yield shown()


def _summary(terminal: "Console", archive: "Archive", report: "Report", seconds: float) -> None:
    from rich.table import Table  # noqa: PLC0415 - as above

    from processor.core.reasons import Cause, Reason  # noqa: PLC0415 - as above

    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(justify="right")
    table.add_column()
    table.add_column(style="dim")
    for reason in (Reason.OK, *(each for each in Reason if each is not Reason.OK)):
        if count := report.decisions[reason]:
            approved = reason is Reason.OK
            table.add_row(str(count), f"[{'green' if approved else 'red'}]{reason}[/]", str(reason.__doc__))
    for cause in Cause:
        if count := report.dead_letters[cause]:
            table.add_row(str(count), f"[yellow]dead letter: {cause}[/]", str(cause.__doc__))
    terminal.print(table)
    calls = report.decisions.total()
    approved_calls = report.decisions[Reason.OK]
    dead = report.dead_letters.total()
    terminal.print(
        f"{counted(archive.records, 'record')}, {counted(calls, 'call')}: {approved_calls} approved, "
        f"{calls - approved_calls} rejected; {counted(dead, 'dead letter')}; {seconds:.1f} s."
    )
    if archive.renumbered:
        terminal.print(
            f"[yellow]{counted(archive.renumbered, 'record')} had an offset that did not rise; it was counted up instead.[/]"
        )


def _suggest(terminal: "Console", report: "Report", suggestions: "Suggestions | None") -> None:
    """Say what tolerances would have let through; where nobody asked, tell those who look that they can."""
    from processor.core.reasons import Reason  # noqa: PLC0415 - as above

    rejected = report.decisions.total() - report.decisions[Reason.OK]
    if suggestions is None:
        if rejected and terminal.is_terminal:
            terminal.print("Add --suggest to see which tolerances would have let calls through.", style="dim")
        return
    found = suggestions.found()
    for each in found:
        lost = f", and reject {each.lost} that {'are' if each.lost > 1 else 'is'} approved now" if each.lost else ""
        terminal.print(f'{each.approved} would pass with [cyan]tolerate = \\["{each.tolerance}"][/]{lost}.', soft_wrap=True)
    if rejected and not found:
        terminal.print("No tolerance by itself would have let a call through.")
