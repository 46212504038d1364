"""Options that commands share, and how settings are read for them."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from processor.app import Core
    from processor.config import Settings

ConfigOption = Annotated[
    Path | None,
    typer.Option("--config", "-c", metavar="FILE", envvar="CALLGATE_CONFIG", help="Settings, as TOML or YAML."),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", "-s", metavar="KEY=VALUE", help="One setting, above file and environment; may be repeated."),
]

WIDTH = 120
"""Columns of tables where no terminal says how many it has."""


def settings_from(config: Path | None, sets: list[str] | None) -> "Settings":
    """Read the settings; raises ConfigError."""
    from processor.config import load  # noqa: PLC0415 - only commands that need settings pay for them

    return load(config, os.environ, sets or ())


def kafka_settings_from(config: Path | None, sets: list[str] | None) -> "Settings":
    """Read the settings of a command that goes to the broker, its files included; raises ConfigError, Unusable."""
    from processor.adapters.kafka_client import ssl_context  # noqa: PLC0415 - as above

    settings = settings_from(config, sets)
    ssl_context(settings.kafka)
    return settings


def console(*, error: bool = False) -> "Console":
    """Make a terminal to write to, standard error or output; without colours where nobody looks."""
    from rich.console import Console  # noqa: PLC0415 - as above

    made = Console(stderr=error, highlight=False)
    if not made.is_terminal and "COLUMNS" not in os.environ:
        made.width = WIDTH
    return made


def core_from(settings: "Settings") -> "Core":
    """Put the core together, and warn on standard error of a folder without tools and of files in it that are not read."""
    from processor import app  # noqa: PLC0415 - as above
    from processor.adapters.schema_files import SUFFIXES, skipped_files  # noqa: PLC0415 - as above

    core = app.build_core(settings)
    if settings.tools != "stream":
        terminal = console(error=True)
        if not core.toolset.tools:
            terminal.print(f"Warning: no tools in {plain(settings.schemas)}: every call will be unknown_tool.", soft_wrap=True)
        for name in skipped_files(Path(settings.schemas)):
            ends = ", ".join(SUFFIXES)
            terminal.print(f"Warning: {plain(name)} is not read: files of tools end in {ends}.", soft_wrap=True)
    return core


def counted(number: int, what: str) -> str:
    """A number with its word, in the plural where it must be."""
    return f"{number} {what}{'s' * (number != 1)}"


def plain(text: str) -> str:
    """Make text from the wire safe to show: what is no character to look at becomes its escape, markup stays text.

    Names and ids may hold anything, terminal control sequences and lone surrogates included.
    """
    from rich.markup import escape  # noqa: PLC0415 - as above

    return escape("".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text))
