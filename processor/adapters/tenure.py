"""One assignment of one partition: rebuild, batches, idle moves and transactions, until it ends.

Owns the moments at which a transaction begins, and what goes into it. It never sends anything again: any failure ends the
tenure, and the worker takes the partition over anew.
"""

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from aiokafka.structs import TopicPartition

from processor.adapters.hand import stretches
from processor.adapters.takeover import Kept
from processor.core.offsets import Commit
from processor.core.outgoing import Outgoing
from processor.core.pipeline import Partition
from processor.ports import Publisher

if TYPE_CHECKING:
    from processor.adapters.worker import Worker

T = TypeVar("T")

CHUNK, CHUNK_BYTES = 500, 256 << 10
"""Records, and bytes of values, fed at a stretch before others get their turn: heartbeats are never blocked for longer."""
PENDING_RECORDS = 20_000
"""Decisions that may wait for the transaction before it; then nothing more is fed."""
SETTLE_SECONDS = 0.025
"""Pause after a commit: a transaction begun within some 20 ms of the last one's under the same id waits 20 to 28 ms more."""
SECONDS_A_RECORD = 0.000_15
"""The busier the partition, the longer a transaction collects: 25 ms when quiet, `commit_interval` above some 5,000/s."""
IDLE_AGAIN_SECONDS = 1.0
"""Pause before the end of the log is asked for again, where the partition was not at it."""
TICK_SECONDS = 1.0
"""The longest sleep: deadlines are looked at this often."""


async def finish(work: Coroutine[Any, Any, T]) -> T:
    """Run cleanup to its end, whoever cancels meanwhile; the cancellation is raised after it. `work` must bound itself."""
    task = asyncio.ensure_future(work)
    cancelled = False
    while not task.done():
        try:
            # Not `shield`: where the work fails, it would raise that here, and the cancellation would be forgotten.
            await asyncio.wait([task])
        except asyncio.CancelledError:
            cancelled = True
    if cancelled:
        if not task.cancelled():
            task.exception()  # read, or the event loop reports it as lost
        raise asyncio.CancelledError
    return task.result()


class Tenure:
    """One assignment of one partition."""

    def __init__(self, worker: "Worker", generation: int, partition: Partition, publisher: Publisher, began: float) -> None:
        self._worker = worker
        self._generation = generation
        self._partition = partition
        self._publisher = publisher
        self._began = began
        self._clock = worker._clock
        self._interval = worker._settings.commit_interval_ms / 1000
        self._progress_interval = worker._settings.progress_interval_ms / 1000
        self._idle_after = worker._settings.idle_after_ms / 1000
        now = self._clock.monotonic()
        self._pending: list[Outgoing] = []
        self._pending_since = now
        self._pending_bytes = self._publishing_bytes = 0
        self._publishing: asyncio.Task[BaseException | None] | None = None
        self._published: tuple[Commit, int, float] | None = None
        self._ended = 0.0
        self._fed = 0
        """Records since the last transaction began."""
        self._moved = True
        """Whether the commit point may differ from the acknowledged one."""
        self._quiet_since = now
        self._idle_at = 0.0

    async def work(self) -> Kept | None:
        """Work until the assignment changes or the process stops.

        Returns the state, where it is that of the last commit. Raises Retryable, Fenced, Poisoned, Fatal.
        """
        worker = self._worker
        try:
            while worker.owns(self._generation) and not worker._stopping:
                if worker._fault is not None:
                    raise worker._fault
                self._settle()
                if worker.state != "live" and not self._partition.rebuilding:
                    self._live()
                crowded = len(self._pending) >= PENDING_RECORDS or worker._hand.crowded
                if worker._hand and not crowded:
                    await self._feed()
                elif self._publishing is None:
                    await self._idle()
                wait = self._publish_if_due()
                if not worker._hand or crowded:
                    await worker._wait(wait)
            return await finish(self._last())
        finally:
            if self._publishing is not None:
                # Its own deadline bounds it, and its outcome matters no more: the next owner reads what was committed.
                await finish(_ended(self._publishing))
            worker._hand.publish(self._pending_bytes + self._publishing_bytes)

    async def _feed(self) -> None:
        worker, partition = self._worker, self._partition
        records, position = worker._hand.draw()
        if worker._paused and worker._hand.low:
            worker._paused = False
            worker._source.resume(worker.number)
        now_ms = self._clock.wall_ms()
        for number, (some, value_bytes) in enumerate(stretches(records, CHUNK, CHUNK_BYTES)):
            if number:
                await asyncio.sleep(0)
                if not worker.owns(self._generation):
                    return
            partition.feed(some, now_ms, value_bytes)
        worker._hand.fed()
        partition.reached(position)
        if not partition.rebuilding:
            self._collect()
        now = self._clock.monotonic()
        self._fed += len(records)
        self._moved = True
        if records:
            self._quiet_since = now
        worker.progressed = now
        worker._hooks.on_batch(partition)
        await asyncio.sleep(0)

    def _live(self) -> None:
        worker = self._worker
        worker.state = "live"
        seconds = self._clock.monotonic() - self._began
        worker._hooks.on_rebuilt(worker.number, seconds)
        # A state that was kept may see no record for long: its gauges are there at once.
        worker._hooks.on_batch(self._partition)
        worker._log.info("live", partition=worker.number, position=self._partition.position, seconds=round(seconds, 3))

    def _collect(self) -> None:
        if found := self._partition.take():
            if not self._pending:
                self._pending_since = self._clock.monotonic()
            self._pending.extend(found)
            self._pending_bytes += self._worker._hand.decide(found)

    # -- silence

    async def _idle(self) -> None:
        """Let the wall clock move the watermark: only where the partition was read to its end and has been quiet."""
        worker, partition = self._worker, self._partition
        now = self._clock.monotonic()
        if partition.rebuilding:
            # The position may be at P already, without a single record to read.
            partition.reached(partition.position)
            return
        if now - self._quiet_since < self._idle_after or now < self._idle_at:
            return
        due = partition.idle_due()
        wall_ms = self._clock.wall_ms()
        if due is None or wall_ms < due:
            return
        self._idle_at = now + IDLE_AGAIN_SECONDS
        # Asked after the clock was read: a record appended later than this end cannot be older than the move.
        end = await worker._reader.end(TopicPartition(partition.topic, partition.number))
        if worker._hand or not worker.owns(self._generation) or end != partition.position:
            return
        if partition.idle(wall_ms, wall_ms):
            self._idle_at = 0.0
            self._moved = True
            self._collect()
            worker._hooks.on_batch(partition)

    # -- transactions

    def _publish_if_due(self) -> float:
        """Begin a transaction if it is time; returns how long nothing is due, in seconds."""
        now = self._clock.monotonic()
        if self._publishing is not None or self._partition.rebuilding:
            return TICK_SECONDS
        if self._pending:
            gap = min(self._interval, SETTLE_SECONDS + self._fed * SECONDS_A_RECORD)
            wait = min(self._ended + gap, max(self._pending_since + self._interval, self._ended + SETTLE_SECONDS)) - now
            if wait <= 0:
                self._publish()
                return TICK_SECONDS
            return min(wait, TICK_SECONDS)
        if self._moved and now - self._ended >= self._progress_interval:
            self._moved = False
            if self._partition.commit_point() != self._worker.acknowledged:
                self._publish()
        return TICK_SECONDS

    def _publish(self) -> None:
        # State and outbox are of one moment: P moves past whole records only, with all their decisions.
        self._collect()
        outgoing, self._pending = self._pending, []
        self._publishing_bytes, self._pending_bytes = self._pending_bytes, 0
        commit = self._partition.commit_point()
        self._moved = False
        self._fed = 0
        self._published = commit, len(outgoing), self._clock.monotonic()
        self._publishing = task = asyncio.create_task(_caught(self._publisher.publish(outgoing, commit)))
        task.add_done_callback(lambda _: self._worker.wake())

    def _settle(self) -> None:
        """Take note of a transaction that ended. Raises what it failed with."""
        task = self._publishing
        if task is None or not task.done():
            return
        self._publishing = None
        self._worker._hand.publish(self._publishing_bytes)
        self._publishing_bytes = 0
        self._ended = now = self._clock.monotonic()
        fault = task.result()
        if fault is not None:
            raise fault
        assert self._published is not None  # noqa: S101 - set with the task
        commit, records, began = self._published
        self._worker.acknowledge(commit)
        self._worker._hooks.on_commit(self._worker.number, records, now - began)

    async def _last(self) -> Kept | None:
        """Publish what is decided, before a clean stop or a handover.

        Also where the partition was revoked: whoever has it next fences this producer first, so that the commit comes before
        the successor's read or not at all (the model's variant g is safe with the transactional id of the partition). A commit
        that is not fenced must not come so late.
        """
        if self._publishing is not None:
            await _ended(self._publishing)
            self._settle()
        if self._partition.rebuilding or not (self._publisher.fenced or self._worker.owns(self._generation)):
            return None
        self._collect()
        if self._pending or self._partition.commit_point() != self._worker.acknowledged:
            self._publish()
            assert self._publishing is not None  # noqa: S101 - just begun
            await _ended(self._publishing)
            self._settle()
        commit = self._worker.acknowledged
        return Kept(self._partition, commit) if commit is not None and self._publisher.fenced else None


async def _caught(work: Coroutine[Any, Any, None]) -> BaseException | None:
    try:
        await work
    except Exception as fault:  # noqa: BLE001 - handed to the worker as a value
        return fault
    return None


async def _ended(task: asyncio.Task[BaseException | None]) -> None:
    await asyncio.wait([task])
