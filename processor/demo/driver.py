"""Runs the demo: a broker, topics, streams, `callgate run` as a process of its own, and what it decided.

Owns the order of things and the clean-up: whatever happens, the processor and the broker that it started are ended and their
folder is removed. It never touches topics that it did not make.
"""

import asyncio
import contextlib
import os
import secrets
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from processor.broker import Broker, BrokerUnavailable
from processor.config import load
from processor.demo import shown
from processor.demo.processor import Processor
from processor.demo.shown import Row
from processor.settings import Settings

if TYPE_CHECKING:
    from rich.console import Console

HERE = Path(__file__).parent
STREAMS = HERE / "streams"
TOOLS = HERE / "tools"
BOOTSTRAP = "CALLGATE_TEST_BOOTSTRAP"
PATIENCE_SECONDS = 40.0
PARTITIONS = 3
STREAM_TIMEOUT, CLOSED_MEMORY, IDLE_AFTER = "3s", "2s", "2s"
"""Short, so that the stream that falls silent is seen to do so; the defaults are 20 minutes, 2 minutes and 60 seconds."""


def run(terminal: "Console") -> int:
    """Run it; returns the exit code. Raises BrokerFailed, Fatal and its kinds."""
    began = time.monotonic()
    files = sorted(STREAMS.glob("*.jsonl"))
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="callgate-demo-")))
        try:
            bootstrap = os.environ.get(BOOTSTRAP) or stack.enter_context(_broker(terminal))
        except BrokerUnavailable as missing:
            terminal.print(f"[yellow]{missing}[/]", soft_wrap=True)
            terminal.print("Without a broker, the same streams go through `callgate replay`:\n", soft_wrap=True)
            rows = shown.replayed(files, load(sets=_sets("replay")))
            shown.table(terminal, rows)
            shown.closing(terminal, rows, files, time.monotonic() - began)
            return 0
        config = folder / "callgate.toml"
        run_id = f"callgate-demo-{secrets.token_hex(3)}"
        config.write_text(_toml(bootstrap, run_id))
        settings = load(config)
        rows = _through_kafka(terminal, settings, config, files)
    shown.table(terminal, rows)
    shown.closing(terminal, rows, files, time.monotonic() - began)
    expected = {row.identity for row in shown.replayed(files, load(sets=_sets("replay")))}
    got = [row.identity for row in rows]
    if set(got) == expected and len(got) == len(expected):
        terminal.print("Every call was decided exactly once, and as `callgate replay` decides it. Everything is stopped.")
        return 0
    terminal.print(f"[red]{len(expected - set(got))} decisions are missing, {len(got) - len(expected & set(got))} too many.[/]")
    return 1


@contextlib.contextmanager
def _broker(terminal: "Console") -> Iterator[str]:
    said = terminal.status("Starting Apache Kafka on this machine ...")
    with said:
        broker = Broker(note=said.update).start()
    try:
        terminal.print(f"[green]✓[/] Apache Kafka runs on {broker.bootstrap}, in a temporary folder")
        yield broker.bootstrap
    finally:
        broker.close()


def _sets(run_id: str) -> list[str]:
    return [f"group={run_id}", f"schemas={TOOLS}"]


def _toml(bootstrap: str, run_id: str) -> str:
    return f"""# Settings of this demo.
group = "{run_id}"
schemas = "{TOOLS}"
stream_timeout = "{STREAM_TIMEOUT}"
closed_memory = "{CLOSED_MEMORY}"
idle_after = "{IDLE_AFTER}"

[topics]
events = "{run_id}.events"
approved = "{run_id}.approved"
rejected = "{run_id}.rejected"
dead_letter = "{run_id}.dead-letter"
partitions = {PARTITIONS}
replication_factor = 1

[kafka]
bootstrap_servers = ["{bootstrap}"]

[http]
port = 0

[log]
format = "json"
"""


def _through_kafka(terminal: "Console", settings: Settings, config: Path, files: list[Path]) -> list[Row]:
    from processor.cli.topics import look  # noqa: PLC0415 - the Kafka client is only needed here
    from processor.demo import traffic  # noqa: PLC0415 - as above

    made, findings = asyncio.run(look(settings, create=True))
    terminal.print(f"[green]✓[/] topics made: {', '.join(made)}", soft_wrap=True)
    for finding in findings:
        terminal.print(f"[yellow]![/] {finding.sentence}", soft_wrap=True)
    try:
        with Processor(config) as processor:
            port = processor.wait_until_ready(PATIENCE_SECONDS)
            terminal.print(f"[green]✓[/] `callgate run` is process {processor.pid}, ready on http://127.0.0.1:{port}/readyz")
            count = asyncio.run(traffic.publish(settings, files))
            terminal.print(f"[green]✓[/] {count} records of {len(files)} streams published, interleaved")
            expected = len(shown.replayed(files, load(sets=_sets("replay"))))
            with terminal.status(f"Waiting for {expected} decisions; one stream falls silent and needs {STREAM_TIMEOUT} ..."):
                rows = asyncio.run(traffic.collect(settings, expected, PATIENCE_SECONDS))
            code = processor.stop()
            terminal.print(f"[green]✓[/] `callgate run` stopped cleanly (exit code {code})\n")
        return rows
    finally:
        if os.environ.get(BOOTSTRAP):
            asyncio.run(traffic.remove(settings, made))
