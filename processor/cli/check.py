"""`callgate check`: one item, journal, response or stream, decided for a person to read."""

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from processor.cli.common import ConfigOption, SetOption, console, core_from, plain, settings_from
from processor.cli.exits import Exit

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import Console

    from processor.adapters.inspect import Verdict
    from processor.core.engines import Schema

EXAMPLES = """Examples:

* `callgate check call.json`
* `pbpaste | callgate check --set tools=stream`
* `curl -N ... | callgate check --json`

Exit code `0` when everything is approved, `1` when something is rejected or cannot be read. Items that nobody executes
(messages, reasoning) are `not_function_call`; inside a journal or a response they leave the exit code alone.
"""


def check(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="An item, a journal, a response or a stream; `-` is input.")
    ] = "-",
    config: ConfigOption = None,
    sets: SetOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object an item, for programs.")] = False,
) -> None:
    """Decide an item, a journal, a whole response or a stream from a file or standard input."""
    from processor.adapters.inspect import inspect  # noqa: PLC0415 - start-up of the others stays quick
    from processor.core.limits import TOLERANCES  # noqa: PLC0415 - as above

    settings = settings_from(config, sets)
    core = core_from(settings)
    if file == "-" and sys.stdin.isatty():
        console(error=True).print("Reading standard input; end it with Ctrl-D.", style="dim")
    content = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    others = [name for name in TOLERANCES if name not in settings.tolerate]
    verdicts = inspect(content, lambda more: core.tolerating(more).partition("check", 0), others, int(time.time() * 1000))
    if as_json:
        _print_json(verdicts)
    else:
        tools = (*core.toolset.tools, *core.gate.in_band.compiled())
        _print(verdicts, console(), {tool.sha256: tool.schema for tool in tools})
    if any(each.counts and each.verdict in {"rejected", "unreadable"} for each in verdicts):
        raise typer.Exit(Exit.REJECTED)


def _print_json(verdicts: "list[Verdict]") -> None:
    from processor.core.json_text import encode  # noqa: PLC0415 - as above

    for verdict in verdicts:
        sys.stdout.buffer.write(encode(verdict) + b"\n")
    sys.stdout.buffer.flush()


def _print(verdicts: "list[Verdict]", terminal: "Console", schemas: "Mapping[str, Schema]") -> None:
    from processor.adapters.inspect import meaning  # noqa: PLC0415 - as above

    marks = {"approved": ("✓", "green"), "rejected": ("✗", "red"), "fine": ("✓", "green"), "unreadable": ("!", "yellow")}
    for verdict in verdicts:
        mark, colour = marks[verdict.verdict]
        if not verdict.counts:
            mark, colour = "·", "dim"
        what = " ".join(plain(part) for part in (verdict.name or verdict.type or "", verdict.call_id or "") if part)
        reason = "" if verdict.verdict in {"approved", "fine"} else f" [bold]{verdict.reason}[/]"
        terminal.print(f"[{colour}]{mark} {verdict.verdict}[/]{reason} {what}".rstrip(), soft_wrap=True)
        if verdict.verdict in {"rejected", "unreadable"} and verdict.counts and meaning(verdict):
            terminal.print(f"  {meaning(verdict)}", soft_wrap=True)
        if verdict.detail:
            terminal.print(f"  [dim]{plain(verdict.detail)}[/]", soft_wrap=True)
        for error in verdict.errors:
            schema = schemas.get((verdict.decision or {}).get("tool_schema", ""))
            terminal.print("  " + plain(_error(error, schema)), soft_wrap=True)
        if verdict.tolerance:
            terminal.print(f'  [cyan]tolerate = \\["{verdict.tolerance}"] would let it through.[/]', soft_wrap=True)
    if not verdicts:
        terminal.print("Nothing to decide: no item was found.")


def _error(error: dict[str, object], schema: "Schema | None") -> str:
    """Say one error as the feedback does, and where the schema asks for it."""
    import msgspec  # noqa: PLC0415 - as above

    from processor.core.engines import Flaw  # noqa: PLC0415 - as above
    from processor.core.feedback import place  # noqa: PLC0415 - as above

    flaw = msgspec.convert(error, Flaw)
    return place(flaw, schema) + (f" (schema: {flaw.schema})" if flaw.schema else "")
