"""`callgate schemas list`: the tools of the registry, as they are in force."""

import sys
from typing import Annotated

import typer

from processor.cli.common import ConfigOption, SetOption, console, settings_from

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
    terminal.print(f"{len(rows)} tools in {settings.schemas}, toolset {toolset.sha256[:12]}.")
