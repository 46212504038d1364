"""`callgate topics`: makes what is missing, checks what is there."""

import asyncio
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from processor.cli.common import ConfigOption, SetOption, console, kafka_settings_from
from processor.cli.exits import Exit

if TYPE_CHECKING:
    from processor.adapters.topics import Finding
    from processor.config import Settings

EXAMPLES = """Examples:

* `callgate topics --set kafka.bootstrap_servers=kafka:9092` makes the missing topics, then checks all
* `callgate topics check --config callgate.toml` only checks

Topics that are there are never altered. Exit code `4` when `run` would refuse to start.
"""

PROPAGATION_SECONDS = 5.0
"""How long a topic that was just made may take until every broker knows it."""


class What(StrEnum):
    """What to do with the topics."""

    CREATE = "create"
    CHECK = "check"


def topics(
    what: Annotated[What, typer.Argument(help="`create` what is missing, then check; or only `check`.")] = What.CREATE,
    config: ConfigOption = None,
    sets: SetOption = None,
) -> None:
    """Make the topics that are missing, and check those that are there."""
    settings = kafka_settings_from(config, sets)
    terminal = console()
    made, findings = asyncio.run(look(settings, create=what is What.CREATE))
    for name in made:
        terminal.print(f"[green]made[/] {name}")
    for finding in findings:
        label = "[red]wrong[/]" if finding.stops else "[yellow]unsafe[/]"
        terminal.print(f"{label} {finding.sentence}", soft_wrap=True)
    if any(finding.stops for finding in findings):
        raise typer.Exit(Exit.TOPICS)
    if not findings:
        terminal.print("All topics are as they must be.")


async def look(settings: "Settings", *, create: bool) -> "tuple[list[str], list[Finding]]":
    """Make what is missing where asked to, and say what is not as it must be. Raises Fatal and its kinds, Retryable."""
    from processor import service  # noqa: PLC0415 - start-up of the others stays quick
    from processor.adapters import rights  # noqa: PLC0415 - as above
    from processor.adapters import topics as adapter  # noqa: PLC0415 - as above
    from processor.observe.logs import open_log  # noqa: PLC0415 - as above

    async with service.open_reader(settings, open_log(settings.log.format, "error")) as reader:
        made = await adapter.create(reader, settings) if create else []
        loop = asyncio.get_running_loop()
        patience = loop.time() + PROPAGATION_SECONDS
        while True:
            findings = await adapter.check(reader, settings)
            if not made or loop.time() > patience or not any(finding.stops for finding in findings):
                # They may be another's to have: whoever makes the topics need not be whoever runs.
                lacking = [adapter.Finding(sentence, False) for sentence in await rights.missing(reader, settings)]
                return made, findings + lacking
            await asyncio.sleep(0.1)
