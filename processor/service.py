"""The running processor: runner, metrics, health, log and signals of one process, put together in one place.

Owns the order of start and stop, and what a signal does. It decides nothing and touches no record.
"""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import cast

from processor import __version__, app, garbage
from processor.adapters import rights, topics
from processor.adapters.http import HttpServer
from processor.adapters.kafka_client import probe
from processor.adapters.offset_fetch import Reader
from processor.adapters.runner import Runner
from processor.adapters.schema_files import skipped_files
from processor.adapters.schema_watch import Reload, say_what_is_odd, state_of
from processor.core.pipeline import Partition
from processor.errors import Fatal
from processor.observe.emit import Emit
from processor.observe.health import Gauges, Status, live, ready
from processor.observe.logs import attach_library, open_log
from processor.observe.meters import Meters
from processor.observe.watch import TimedJudge, Watch
from processor.ports import Log
from processor.settings import Settings
from processor.workers import ORPHANED

ENDED_AT_ONCE = 130
"""Exit code after a second signal."""


@asynccontextmanager
async def open_reader(settings: Settings, log: Log) -> AsyncIterator[Reader]:
    """Reach a broker and read from it. Raises Unreachable, Refused, Fatal, Retryable."""
    await probe(settings.kafka)
    reader = Reader(settings.kafka, settings.group, log)
    await reader.start()
    try:
        yield reader
    finally:
        await reader.close()


class Service:
    """One processor."""

    def __init__(self, settings: Settings, tell_port: int | None = None) -> None:
        """Build everything; nothing runs yet. Raises BadRegistry, and Fatal under `python -O`.

        `tell_port`: a descriptor to which the port is written, and closed, as soon as it is listened on.
        """
        self._settings = settings
        self._tell_port = tell_port
        self._meters = Meters(__version__)
        log = open_log(settings.log.format, settings.log.level)
        self._log = Emit(log, self._meters)
        self._watch = Watch(self._meters)
        folder = Path(settings.schemas)
        seen = state_of(folder)
        self._core = app.build_core(settings)
        self._reload = Reload(
            folder,
            partial(app.load_registry, settings),
            self._core.gate.use,
            source=settings.tools,
            in_force=self._core.toolset.sha256,
            seen=seen,
            interval_ms=settings.reload_interval_ms,
            log=self._log,
            meters=self._meters,
        )
        self._judge = TimedJudge(self._core.judge, self._meters)
        self._meters.toolset(self._core.toolset.sha256, len(self._core.toolset.tools))
        self._runner = Runner(settings, self._partition, self._log, self._watch)
        self._gauges = Gauges(self._meters, settings.topics.events)
        self._signals = 0
        for library in ("aiokafka", "asyncio"):
            attach_library(log, library, lambda: self._runner.joined_once)

    async def run(self) -> int:
        """Work until a signal comes; returns the exit code. Raises Fatal and its kinds."""
        settings, log = self._settings, self._log
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._signalled)
        loop.add_signal_handler(ORPHANED, self._orphaned)
        loop.add_signal_handler(signal.SIGHUP, self._reload.ask)
        self._say_what_is_checked()
        async with open_reader(settings, log) as reader:
            await rights.require(reader, settings)
            findings = await topics.require(reader, settings)
        for finding in findings:
            log.warning("topic_unsafe", detail=finding.sentence)
        if self._signals:
            return 0
        server = HttpServer(
            settings.http.host, settings.http.port, exposition=self._exposition, live=self._live, ready=self._ready
        )
        port = await server.start()
        log.info("http_listening", host=settings.http.host, port=port)
        if self._tell_port is not None:
            with os.fdopen(self._tell_port, "w") as supervisor:
                supervisor.write(f"{port}\n")
        log.info("started", version=__version__, pid=os.getpid(), group=settings.group, delivery=settings.delivery)
        garbage.calm()
        # With the tools of the stream alone there is no folder to watch.
        watching = None if settings.tools == "stream" else loop.create_task(self._reload.run())
        try:
            await self._runner.run()
        except Fatal as fault:
            log.error("failed", cause=str(fault))  # noqa: TRY400 - a sentence, never a traceback
            raise
        finally:
            if watching is not None:
                watching.cancel()
            await server.close()
        log.info("stopped")
        return 0

    def _say_what_is_checked(self) -> None:
        toolset = self._core.toolset
        source = self._settings.tools
        read = {} if source == "stream" else {"folder": self._settings.schemas}
        self._log.info("toolset_loaded", toolset=toolset.sha256, tools=len(toolset.tools), source=source, **read)
        if self._settings.tools != "stream":
            path = Path(self._settings.schemas)
            say_what_is_odd(path, toolset, skipped_files(path), self._log)
        single = [tool.name for tool in toolset.tools if len(tool.engines) == 1]
        if self._settings.engine == "both" and single:
            self._log.info("one_engine_only", tools=single)
        if self._settings.delivery == "at_least_once":
            self._log.warning("delivery_weak")

    def _partition(self, topic: str, number: int) -> Partition:
        partition = Partition(topic, number, self._settings.bounds(), self._judge)
        self._watch.partitions[number] = partition
        return partition

    def _orphaned(self) -> None:
        self._signals = max(self._signals, 1)
        self._runner.stop()

    def _signalled(self) -> None:
        """Once: finish and leave. Twice: end at once, without a commit; the log is the state, so nothing is lost."""
        self._signals += 1
        if self._signals == 1:
            self._runner.stop()
            return
        self._log.warning("ended_at_once")
        # Not by cancelling: nothing may run any more that could wait, or begin to tidy up.
        os._exit(ENDED_AT_ONCE)

    # -- for scrapes

    def _status(self) -> Status:
        return cast("Status", self._runner.status())

    def _exposition(self) -> bytes:
        status = self._status()
        self._gauges.set(status)
        self._watch.set_gauges(set(status["partitions"]))
        self._meters.in_band(self._core.gate.in_band.hits, self._core.gate.in_band.misses)
        return self._meters.exposition()

    def _live(self) -> tuple[bool, dict[str, object]]:
        return live(self._status(), self._settings.stall_after_ms / 1000)

    def _ready(self) -> tuple[bool, dict[str, object]]:
        schemas = None if self._settings.tools == "stream" else self._reload.status()
        return ready(self._status(), stopping=self._signals > 0, schemas=schemas)


def run(settings: Settings, tell_port: int | None = None) -> int:
    """Run one processor in this process; returns the exit code. Raises Fatal and its kinds, Retryable, BadRegistry."""
    service = Service(settings, tell_port)
    try:
        import uvloop  # noqa: PLC0415 - not on every platform
    except ImportError:
        factory = asyncio.new_event_loop
    else:
        factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(service.run())
