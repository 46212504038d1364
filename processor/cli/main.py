"""The command `callgate`: its sub-commands, and what happens when one fails.

Owns the command line. Start-up stays quick: each command imports what it needs when it runs.
"""

import os
import sys
from typing import Annotated, Any

import typer
import typer.core

from processor.cli import check, demo, redrive, replay, run, schemas, topics
from processor.cli.exits import Exit, report

CODES = "\n".join(f"* `{code.value}` {code.__doc__}" for code in Exit)


class _Group(typer.core.TyperGroup):
    """The commands; a closed pipe is caught here, before the library makes an exit code of its own of it."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            # Python flushes at its exit, and must not complain there.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(Exit.PIPE)


app = typer.Typer(
    name="callgate",
    cls=_Group,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
    help="A guard for the tool calls of LLM agents: reads the streaming events of their responses from Kafka, rebuilds every "
    "function call, checks it, and publishes it as approved or as rejected with its reason, exactly once.",
    epilog=f"Exit codes:\n\n{CODES}",
)


def _version(value: bool) -> None:
    if value:
        from processor import __version__  # noqa: PLC0415 - asked for rarely

        typer.echo(f"callgate {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", "-V", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


app.command("check", epilog=check.EXAMPLES)(check.check)
app.command("replay", epilog=replay.EXAMPLES)(replay.replay)
app.command("run", epilog=run.EXAMPLES)(run.run)
app.command("topics", epilog=topics.EXAMPLES)(topics.topics)
app.command("redrive", epilog=redrive.EXAMPLES)(redrive.redrive)
app.command("demo", epilog=demo.EXAMPLES)(demo.demo)
app.add_typer(schemas.app, name="schemas")


def main() -> None:
    """Run the command line and exit; every failure is a sentence and a documented exit code."""
    try:
        app(prog_name="callgate")
    except (Exception, KeyboardInterrupt) as fault:  # noqa: BLE001 - the one place where everything ends
        sys.exit(report(fault))
