"""`callgate schemas`: the registry as it is in force (`list`), as one file (`export`), and what is odd in it (`lint`)."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from processor.cli.common import ConfigOption, SetOption, console, counted, settings_from
from processor.cli.exits import Exit

app = typer.Typer(no_args_is_help=True, help="Look at the tool schemas of the registry.")

EXAMPLES = """Examples:

* `callgate schemas list --set schemas=schemas/tools`
* `callgate schemas list --json`

Exit code `5` when a file cannot be used; every fault is named with file, pointer and cause.
"""


@app.command("list", epilog=EXAMPLES)
def list_schemas(
    config: ConfigOption = None,
    sets: SetOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a tool, for programs.")] = False,
) -> None:
    """List the tools of the registry: name, schema, draft, and the validators that check them."""
    import msgspec  # noqa: PLC0415 - start-up of the others stays quick
    from rich.table import Table  # noqa: PLC0415 - as above

    from processor import app as composition  # noqa: PLC0415 - as above
    from processor.core.registry import listing  # noqa: PLC0415 - as above

    settings = settings_from(config, sets)
    toolset = composition.load_registry(settings)
    rows = listing(toolset)
    if as_json:
        for row in rows:
            sys.stdout.buffer.write(msgspec.json.encode(row) + b"\n")
        sys.stdout.buffer.flush()
        return
    table = Table(box=None, pad_edge=False)
    for title in ("namespace", "tool", "schema", "draft", "checked by", "file"):
        table.add_column(title)
    for row in rows:
        draft = row.draft.rstrip("#").rpartition("json-schema.org/")[2] or row.draft
        table.add_row(row.namespace or "", row.name, row.sha256[:12], draft, ", ".join(row.engines), row.file)
    terminal = console()
    if rows:
        terminal.print(table)
    terminal.print(f"{counted(len(rows), 'tool')} in {settings.schemas}, toolset {toolset.sha256[:12]}.")


EXPORT_EXAMPLES = """Examples:

* `callgate schemas export > tools.json`
* `jq '{model: "...", tools: .}' <(callgate schemas export)`

The list is the `tools` of a request, and may be a registry by itself: it has the same SHA-256.
"""


@app.command("export", epilog=EXPORT_EXAMPLES)
def export(config: ConfigOption = None, sets: SetOption = None) -> None:
    """Write the registry as one list of tools, in the form of the Responses API."""
    import msgspec  # noqa: PLC0415 - as above

    from processor import app as composition  # noqa: PLC0415 - as above
    from processor.adapters.schema_files import read_folder  # noqa: PLC0415 - as above
    from processor.core.registry import build, exported  # noqa: PLC0415 - as above

    settings = settings_from(config, sets)
    files, faults = read_folder(Path(settings.schemas))
    build(files, composition.compiler(settings), faults)
    sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(exported(files))) + b"\n")
    sys.stdout.buffer.flush()


class Form(StrEnum):
    """Forms of `lint`."""

    TEXT = "text"
    JSON = "json"
    SARIF = "sarif"


class FailOn(StrEnum):
    """Levels at which `lint` fails."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"
    NEVER = "never"


LINT_EXAMPLES = """Examples:

* `callgate schemas lint`
* `callgate schemas lint --fail-on warning --format sarif > lint.sarif`

Reports what cannot be used, misspelt members and files that are not read, patterns for backtracking engines, keywords that two
validators read differently (with a case that shows it), objects left open, branches that nothing can satisfy, and what strict
mode of the providers forbids. Exit code `10` when a finding is at or above `--fail-on`, else `0`.
"""


@app.command("lint", epilog=LINT_EXAMPLES)
def lint(
    config: ConfigOption = None,
    sets: SetOption = None,
    form: Annotated[Form, typer.Option("--format", "-f", help="For people, programs, or code scanning.")] = Form.TEXT,
    fail_on: Annotated[FailOn, typer.Option("--fail-on", help="The least level that fails.")] = FailOn.ERROR,
    cases: Annotated[int, typer.Option("--cases", min=0, help="Cases a schema on which validators are compared.")] = 300,
) -> None:
    """Find what is odd in the schemas: for people before a roll-out, and for CI."""
    from processor.adapters.schema_files import read_folder, skipped_files  # noqa: PLC0415 - as above
    from processor.lint import output  # noqa: PLC0415 - as above
    from processor.lint.findings import Level  # noqa: PLC0415 - as above
    from processor.lint.run import lint as find  # noqa: PLC0415 - as above

    settings = settings_from(config, sets)
    files, faults = read_folder(Path(settings.schemas))
    skipped = skipped_files(Path(settings.schemas))
    findings = find(files, faults, skipped, formats=settings.formats == "assertion", cases=cases)
    if form is Form.SARIF:
        written = output.sarif(findings, settings.schemas)
    else:
        written = output.as_json(findings) if form is Form.JSON else output.text(findings)
    sys.stdout.write(written)
    if fail_on is not FailOn.NEVER and any(each.level.rank >= Level(fail_on.value).rank for each in findings):
        raise typer.Exit(Exit.FINDINGS)
