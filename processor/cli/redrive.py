"""`callgate redrive`: dead letters back to the input, after a fix."""

import asyncio
import contextlib
import logging
import re
import signal
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from processor.cli.common import ConfigOption, SetOption, console, counted, kafka_settings_from

if TYPE_CHECKING:
    from rich.console import Console

    from processor.adapters.redrive import Plan
    from processor.config import Settings

EXAMPLES = """Examples:

* `callgate redrive --config callgate.toml --dry-run` counts what is there, by cause, and moves nothing
* `callgate redrive --config callgate.toml --cause not_json --since 2h --rate 100`
* `callgate redrive --config callgate.toml --partition 3 --offsets 1200-1250 --limit 1`

Each letter moves once: records and the note of what was moved are one transaction. Ended in the middle, run it again, with the
same choice or another; letters that were left can be moved later. The group `GROUP-redrive` holds what was moved; a broker
forgets a group that has been quiet for `offsets.retention.minutes` (7 days by default): after that, narrow the choice by
`--since`.

A record goes back to the partition that it was read from, behind everything that is there: it is read as if it came now. Whole
responses, journals and items are decided as ever. A single event comes too late for its response: once that is forgotten
(`closed_memory` after its end) it begins another one, whose call ends as `timeout`. Times are those of the records, not of
their dead letters.
"""


def _instant(text: str | None) -> int | None:
    """`2h` ago, or an ISO 8601 date or time (UTC where it names no zone), in milliseconds since the epoch."""
    from processor.values import duration  # noqa: PLC0415 - start-up of the others stays quick

    if text is None:
        return None
    with contextlib.suppress(ValueError):
        ago: int = duration(0).parse(text)
        return int((datetime.now(UTC) - timedelta(milliseconds=ago)).timestamp() * 1000)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(
            f"`{text}` is neither a time span back from now (`90s`, `2h`, `3d`) nor a time such as 2026-04-24T12:00Z."
        ) from None
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def _offsets(text: str | None) -> tuple[int | None, int | None]:
    """`10-20`, `10-`, `-20` or `10`: first and last offset, both included."""
    if text is None:
        return None, None
    found = re.fullmatch(r"([0-9]{0,18})(-?)([0-9]{0,18})", text.strip())
    if found is None or not (found[1] or found[3]):
        raise typer.BadParameter(f"`{text}` is not FIRST-LAST, FIRST- or -LAST.")
    first = int(found[1]) if found[1] else None
    last = int(found[3]) if found[3] else None
    if not found[2]:
        last = first
    if first is not None and last is not None and last < first:
        raise typer.BadParameter(f"`{text}` ends before it begins.")
    return first, last


def _causes(names: list[str] | None) -> frozenset[str]:
    from processor.core.reasons import Cause  # noqa: PLC0415 - as above

    known = [cause.value for cause in Cause]
    if wrong := [name for name in names or () if name not in known]:
        raise typer.BadParameter(f"`{wrong[0]}` is no cause; there are {', '.join(known)}.")
    return frozenset(names or ())


def redrive(
    config: ConfigOption = None,
    sets: SetOption = None,
    cause: Annotated[list[str] | None, typer.Option("--cause", help="Only letters with this cause; may be repeated.")] = None,
    since: Annotated[
        str | None,
        typer.Option(
            "--since", metavar="TIME", help="Only records from this time on: `2h` (back from now), or a date or time."
        ),
    ] = None,
    until: Annotated[str | None, typer.Option("--until", metavar="TIME", help="Only records before this time.")] = None,
    partition: Annotated[
        list[int] | None, typer.Option("--partition", min=0, help="Only this partition; may be repeated.")
    ] = None,
    offsets: Annotated[
        str | None,
        typer.Option(
            "--offsets", metavar="FIRST-LAST", help="Only these offsets of the dead-letter topic, with one `--partition`."
        ),
    ] = None,
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="Stop after so many.")] = None,
    rate: Annotated[float, typer.Option("--rate", min=0.0, help="Records a second; 0: as fast as it goes.")] = 0.0,
    max_attempts: Annotated[
        int, typer.Option("--max-attempts", min=1, help="Leave a record that has been redriven so often and came back.")
    ] = 3,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count what would move, and move nothing.")] = False,
) -> None:
    """Move dead letters back to the input topic, each once, after what made them unreadable was fixed."""
    from processor.adapters.redrive import Plan  # noqa: PLC0415 - as above
    from processor.core.redrive import Choice  # noqa: PLC0415 - as above

    first, last = _offsets(offsets)
    if offsets is not None and len(set(partition or ())) != 1:
        raise typer.BadParameter("`--offsets` needs one `--partition`: each partition counts its own offsets.")
    causes, since_ms, until_ms = _causes(cause), _instant(since), _instant(until)
    settings = kafka_settings_from(config, sets)

    def choice(partitions: int) -> Choice:
        return Choice(settings.topics.events, partitions, causes, since_ms, until_ms, first, last, max_attempts)

    def make_plan(partitions: int) -> Plan:
        return Plan(choice(partitions), frozenset(partition or ()), limit, rate, dry_run)

    with _quiet():
        asyncio.run(_run(settings, make_plan))


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """What fails is said in a sentence of ours; the libraries' own would come beside it, some of them after the end."""
    libraries = [logging.getLogger(name) for name in ("aiokafka", "asyncio")]
    levels = [library.level for library in libraries]
    for library in libraries:
        library.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for library, level in zip(libraries, levels, strict=True):
            library.setLevel(level)


async def _run(settings: "Settings", make_plan: "Callable[[int], Plan]") -> None:
    from processor import service  # noqa: PLC0415 - start-up of the others stays quick
    from processor.adapters.redrive import Redrive, settings_for  # noqa: PLC0415 - as above
    from processor.observe.logs import open_log  # noqa: PLC0415 - as above

    # SIGTERM ends it as Ctrl-C does: after the transaction in hand, with the count of what was moved.
    task = asyncio.current_task()
    terminated = False

    def terminate() -> None:
        nonlocal terminated
        terminated = True
        if task is not None:
            task.cancel()

    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, terminate)
    plans: list[Plan] = []

    def remember(partitions: int) -> "Plan":
        plans.append(make_plan(partitions))
        return plans[0]

    own = settings_for(settings)
    try:
        async with service.open_reader(own, open_log(settings.log.format, "error")) as reader:
            with _progress(console(error=True)) as (started, seen):
                await Redrive(own, reader, started=started, seen=seen).run(remember)
    except asyncio.CancelledError:
        if terminated:
            raise KeyboardInterrupt from None
        raise
    finally:
        for plan in plans:
            show(console(), plan)


@contextlib.contextmanager
def _progress(terminal: "Console") -> "Iterator[tuple[Callable[[int], None], Callable[[int], None]]]":
    """A bar on standard error, where somebody looks: what is told when it is known how much there is, and of each step."""
    if not terminal.is_terminal:
        yield (lambda _: None), (lambda _: None)
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn  # noqa: PLC0415 - as above

    with Progress("redrive", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), console=terminal, transient=True) as bar:
        task = bar.add_task("redrive", total=None)
        yield (lambda total: bar.update(task, total=total)), (lambda more: bar.advance(task, more))


def show(terminal: "Console", plan: "Plan") -> None:
    """Say what moved, or would, and what was left, by cause and why."""
    from rich.table import Table  # noqa: PLC0415 - as above

    from processor.cli.common import plain  # noqa: PLC0415 - as above
    from processor.core.redrive import Fate  # noqa: PLC0415 - as above

    columns = [fate for fate in Fate if fate is Fate.MOVES or any(each is fate for _, each in plan.fates)]
    names = {Fate.MOVES: "would move" if plan.dry else "moved"}
    causes = sorted({cause for cause, _ in plan.fates})
    if causes:
        table = Table(box=None, pad_edge=False)
        table.add_column("cause")
        for fate in columns:
            table.add_column(names.get(fate, fate.value), justify="right")
        for cause in causes:
            counts = [plan.fates[cause, fate] for fate in columns]
            table.add_row(plain(cause) or "unknown", *(str(count) if count else "" for count in counts))
        terminal.print(table)
        for fate in columns[1:]:
            terminal.print(f"[dim]{fate.value}: {fate.__doc__}[/]", soft_wrap=True)
    if plan.held_back:
        held = ", ".join(map(str, sorted(plan.held_back)))
        terminal.print(f"The end of partition {held} is in a transaction that is still open: run it again.", soft_wrap=True)
    left = sum(count for (_, fate), count in plan.fates.items() if fate not in {Fate.MOVES, Fate.MOVED_BEFORE})
    verb = "would move" if plan.dry else "moved"
    terminal.print(f"{counted(plan.moved, 'dead letter')} {verb}, {left} left.", soft_wrap=True)
