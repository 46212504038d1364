"""The loop: one fetch feeds all partitions, one task works on each, and all of them end in order.

Owns the task group, the clean stop and the status. It knows nothing of transactions or of what is decided.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Any

from aiokafka.structs import TopicPartition

from processor.adapters.hand import Room
from processor.adapters.offset_fetch import Reader
from processor.adapters.publish import PlainPublisher, TransactionalPublisher
from processor.adapters.source import Fetched, OutOfRange, Source
from processor.adapters.tenure import finish
from processor.adapters.worker import FIRST_PAUSE_SECONDS, LAST_PAUSE_SECONDS, Worker
from processor.core.pipeline import Partition
from processor.errors import Fatal, Retryable
from processor.ports import Clock, Hooks, Log, Publisher
from processor.settings import Settings

FETCH_TIMEOUT_MS = 200
"""How long one wait for records lasts: positions moved by markers alone are seen this often."""
LEAVE_SECONDS = 3.0
"""Part of the grace period kept back for leaving the group."""


class SystemClock:
    """The machine's clocks."""

    def wall_ms(self) -> int:
        """Milliseconds since the epoch."""
        return int(time.time() * 1000)

    def monotonic(self) -> float:
        """Seconds that never go back."""
        return time.monotonic()


class NoHooks:
    """Nobody watches."""

    def on_batch(self, partition: Partition) -> None:
        """Do nothing."""

    def on_commit(self, number: int, records: int, seconds: float) -> None:
        """Do nothing."""

    def on_failure(self, number: int, kind: str) -> None:
        """Do nothing."""

    def on_rebuilt(self, number: int, seconds: float) -> None:
        """Do nothing."""


class Runner:
    """One member of the group: reads, decides and publishes until it is stopped."""

    def __init__(
        self,
        settings: Settings,
        make_partition: Callable[[str, int], Partition],
        log: Log,
        hooks: Hooks | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Put one member together; nothing runs yet. Raises Fatal under `python -O`."""
        if not __debug__:
            raise Fatal("Python must not run with -O: the Kafka client's own checks of its state are assertions.")
        self._settings = settings
        self._make_partition = make_partition
        self._log = log
        self._hooks = hooks or NoHooks()
        self._clock = clock or SystemClock()
        self._room = Room(settings.kafka.max_buffered_bytes)
        self._source = Source(settings, self._changed, self._room)
        self._reader = Reader(settings.kafka, settings.group, log)
        self._workers: dict[int, Worker] = {}
        self._group: asyncio.TaskGroup | None = None
        self._stopped = asyncio.Event()
        self._main: asyncio.Task[Any] | None = None
        self._killed = False
        self._joined = False
        self._turned = self._clock.monotonic()
        """When the fetch loop last came round."""

    def stop(self) -> None:
        """Ask for a clean stop: finish or abort the transactions, leave the group, return from `run`."""
        self._stopped.set()

    def kill(self) -> None:
        """End at once, without a commit: `run` raises CancelledError. Nothing is lost, the log is the state."""
        self._killed = True
        if self._main is not None:
            self._main.cancel()

    async def run(self) -> None:
        """Work until stopped. Raises Fatal (ends the process) and, after `kill`, CancelledError."""
        self._main = asyncio.current_task()
        try:
            await self._reader.start()
            async with asyncio.TaskGroup() as group:
                self._group = group
                fetching = group.create_task(self._fetch())
                group.create_task(self._end(fetching))
        except* Fatal as faults:
            raise _first(faults) from None
        finally:
            if not self._killed:
                await finish(self._close())

    async def _end(self, fetching: asyncio.Task[None]) -> None:
        await self._stopped.wait()
        self._log.info("stopping")
        fetching.cancel()
        working = []
        for worker in self._workers.values():
            worker.stop()
            if worker.task is not None:
                working.append(worker.task)
        grace = max(self._settings.shutdown_grace_ms / 1000 - LEAVE_SECONDS, 0.1)
        if working:
            _, late = await asyncio.wait(working, timeout=grace)
            for task in late:
                task.cancel()

    async def _close(self) -> None:
        await self._source.close()
        await self._reader.close()
        self._joined = False

    # -- reading

    async def _fetch(self) -> None:
        """Feed the partitions' workers; a consumer that is beyond repair is made anew. Raises Fatal."""
        pause = FIRST_PAUSE_SECONDS
        while True:
            try:
                await self._source.start()
                self._joined = True
                pause = FIRST_PAUSE_SECONDS
                await self._read()
            except Retryable as fault:
                self._joined = False
                self._log.warning("joining_again", cause=str(fault), pause_s=pause)
                await self._source.close()
                await asyncio.sleep(pause)
                pause = min(pause * 2, LAST_PAUSE_SECONDS)

    async def _read(self) -> None:
        source, workers, clock = self._source, self._workers, self._clock
        while True:
            if self._room.full:
                await self._room.wait(FETCH_TIMEOUT_MS / 1000)
            fetched = Fetched([], {}) if self._room.full else await source.fetch(FETCH_TIMEOUT_MS)
            self._turned = clock.monotonic()
            for number, records, position in fetched.batches:
                workers[number].give(records, position)
            for number, fault in fetched.faults.items():
                if number in workers:
                    what = Retryable("The position is out of range.") if isinstance(fault, OutOfRange) else fault
                    workers[number].fail(what)
                else:
                    self._log.warning("fetch_failed", cause=str(fault))
                    await asyncio.sleep(FIRST_PAUSE_SECONDS)

    def _changed(self) -> None:
        """Hand a changed assignment on. Called from inside the group's callbacks: it only notes."""
        owned = self._source.owned
        self._room.partitions = max(len(owned), 1)
        for number in owned:
            # A member that stops may still be given partitions, by another that leaves: nobody would end their workers.
            if number not in self._workers and self._group is not None and not self._stopped.is_set():
                self._workers[number] = worker = Worker(
                    number,
                    self._settings,
                    self._source,
                    self._room,
                    self._reader,
                    self._make_partition,
                    self._publisher,
                    self._hooks,
                    self._clock,
                    self._log,
                )
                worker.task = self._group.create_task(worker.run())
        for number, worker in self._workers.items():
            worker.assign(owned.get(number))
            if self._source.settled and number not in owned:
                worker.forget()

    def _publisher(self, partition: TopicPartition) -> Publisher:
        if self._settings.delivery == "exactly_once":
            return TransactionalPublisher(self._settings, partition)
        return PlainPublisher(self._settings, partition, self._source)

    # -- for observers

    @property
    def joined_once(self) -> bool:
        """Whether the group has ever given this member its partitions, perhaps none."""
        return self._source._generation > 0

    def status(self) -> dict[str, Any]:
        """What health checks and gauges need; cheap enough for each scrape."""
        now = self._clock.monotonic()
        partitions = {}
        for number, worker in self._workers.items():
            if number in self._source.owned:
                partitions[number] = self._one(worker, now)
        return {
            "joined": self._joined and self._source.joined,
            "fetch_age_s": now - self._turned,
            "partitions": partitions,
            "ready": self._joined and self._source.joined and all(one["state"] == "live" for one in partitions.values()),
        }

    def _one(self, worker: Worker, now: float) -> dict[str, Any]:
        end = self._source.end(worker.number)
        if end is None:
            end = worker.end
        written, decided = worker.place or (None, None)
        committed = decided
        if worker.partition is not None:
            decided = worker.partition.position
        return {
            "state": worker.state,
            "why": worker.why,
            "position": decided,
            "committed_w": written,
            "committed_p": committed,
            "end": end,
            "lag_w": _lag(end, written),
            "lag_p": _lag(end, decided),
            "backlog": worker.backlog,
            "progress_age_s": now - worker.progressed,
        }


def _lag(end: int | None, offset: int | None) -> int | None:
    """Records between an offset and the end; None, and never 0, where either is not known, or the end is an old one."""
    return None if end is None or offset is None or end < offset else end - offset


def _first(group: BaseExceptionGroup[Any]) -> BaseException:
    fault: BaseException = group
    while isinstance(fault, BaseExceptionGroup):
        fault = fault.exceptions[0]
    return fault
