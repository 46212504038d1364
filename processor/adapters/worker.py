"""One input partition at work: takeover, rebuild, batches, transactions, idle moves, in one task.

Owns the order of these for its partition and the moments at which a transaction begins. It never touches another partition, and
after any failure it goes back to the takeover: nothing is sent again, nothing goes on from memory.
"""

import asyncio
import contextlib
from collections.abc import Callable, Sequence

from aiokafka.structs import TopicPartition

from processor.adapters.hand import Hand, Room
from processor.adapters.offset_fetch import Reader
from processor.adapters.source import Source
from processor.adapters.takeover import Kept, Takeover
from processor.adapters.tenure import TICK_SECONDS, Tenure, finish
from processor.core.offsets import Commit
from processor.core.pipeline import Partition
from processor.core.ports import Record
from processor.core.state import NO_RECORD
from processor.errors import Fatal, Fenced, Poisoned, Retryable
from processor.ports import Clock, Hooks, Log, Publisher
from processor.settings import Settings

FIRST_PAUSE_SECONDS, LAST_PAUSE_SECONDS = 0.1, 2.0
"""Pauses between takeovers that fail."""


class Worker:
    """The task of one partition, for as long as the process runs; it sleeps while the partition is another member's."""

    def __init__(
        self,
        number: int,
        settings: Settings,
        source: Source,
        room: Room,
        reader: Reader,
        make_partition: Callable[[str, int], Partition],
        make_publisher: Callable[[TopicPartition], Publisher],
        hooks: Hooks,
        clock: Clock,
        log: Log,
    ) -> None:
        self.number = number
        self.state = "away"
        """`away`, `takeover`, `rebuilding`, `live` or `stopped`."""
        self.why = ""
        """Why it is stopped."""
        self.task: asyncio.Task[None] | None = None
        """What runs `run`."""
        self.partition: Partition | None = None
        self.acknowledged: Commit | None = None
        """The last commit that the broker has acknowledged."""
        self.end: int | None = None
        """End of the log as it was last asked for; the fetches know a later one while the partition is read."""
        self.progressed = clock.monotonic()
        """When P last moved on, or there was nothing to do."""
        self._settings = settings
        self._source = source
        self._reader = reader
        self._where = TopicPartition(settings.topics.events, number)
        self._takeover = Takeover(self._where, make_partition, reader, settings.offset_reset, log)
        self._kept: Kept | None = None
        self._last_read: int | None = None
        """Offset of the record that was read last; where the core raised, the one that it did not survive."""
        self._make_publisher = make_publisher
        self._hooks = hooks
        self._clock = clock
        self._log = log
        self._generation: int | None = None
        self._stopping = False
        self._hand = Hand(number, room)
        self._paused = False
        self._fault: Exception | None = None
        self._woken = False
        self._waiter: asyncio.Future[None] | None = None

    # -- told by the runner; none of these blocks

    def assign(self, generation: int | None) -> None:
        """Tell which assignment the partition belongs to; None: it is another member's. Records in hand are dropped."""
        if generation != self._generation:
            self._generation = generation
            self._hand.drop()
            self._paused = False
            self._fault = None
            if generation is not None and self.state == "stopped":
                self.state, self.why = "away", ""
            self.wake()

    def forget(self) -> None:
        """Tell that the partition is another member's for good: its state is let go."""
        self._kept = None
        self._takeover.place = self.end = None

    def give(self, records: Sequence[Record], position: int) -> None:
        """Hand over what was fetched, and the position after it."""
        self._hand.put(records, position)
        if self._hand.full and not self._paused:
            self._paused = True
            self._source.pause(self.number)
        self.wake()

    def fail(self, fault: Exception) -> None:
        """Tell that the partition cannot be read on."""
        self._fault = fault
        self.wake()

    def stop(self) -> None:
        """Finish: publish what is decided, and end."""
        self._stopping = True
        self.wake()
        if self.state == "takeover" and self.task is not None:
            # Nothing is decided yet, and a broker that is gone would hold it up for the whole grace period.
            self.task.cancel()

    def wake(self) -> None:
        """Look again."""
        self._woken = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def owns(self, generation: int) -> bool:
        """Whether the partition is still this member's, by the same assignment."""
        return self._generation == generation

    @property
    def place(self) -> tuple[int, int] | None:
        """W and P as far as known: committed by this member, or by another and read in the takeover."""
        return self._takeover.place

    def acknowledge(self, commit: Commit) -> None:
        """Note a commit that the broker has acknowledged."""
        self.acknowledged = commit
        self._takeover.place = commit.offset, commit.position

    @property
    def backlog(self) -> int:
        """Records in hand."""
        return self._hand.records

    # -- the task

    async def run(self) -> None:
        """Work until stopped. Raises Fatal."""
        pause = FIRST_PAUSE_SECONDS
        while not self._stopping:
            generation = self._generation
            if generation is None or self.state == "stopped":
                if generation is None:
                    self.state = "away"
                else:
                    await self._look_at_end()
                await self._wait(TICK_SECONDS)
                continue
            try:
                await self._own(generation)
                pause = FIRST_PAUSE_SECONDS
            except (Retryable, Fenced) as fault:
                self._hooks.on_failure(self.number, type(fault).__name__)
                event = "fenced" if isinstance(fault, Fenced) else "aborted"
                self._log.warning(event, partition=self.number, cause=str(fault), pause_s=pause)
                if self.state == "live":
                    pause = FIRST_PAUSE_SECONDS
                self.state = "takeover"
                await self._sleep(pause)
                pause = min(pause * 2, LAST_PAUSE_SECONDS)
            except Poisoned as fault:
                self._poison(str(fault), fault.offset)
            except Fatal:
                raise
            except Exception as fault:  # noqa: BLE001 - a fault of the core stops its partition, not the others
                # The message may quote what was read; the place may not.
                self._poison(f"{type(fault).__name__} in {_place(fault)}", self._last_read)
            finally:
                self._hand.drop()
                self._paused = False
        self.state = "away"

    def _poison(self, why: str, offset: int | None) -> None:
        self.state, self.why = "stopped", why
        self._hooks.on_failure(self.number, "Poisoned")
        # Without a record to blame (a refused transaction, a log that was cut) it is one of those from P on.
        written, position = self.place or (None, None)
        where = {"offset": offset, "committed_w": written, "committed_p": position}
        known = {name: value for name, value in where.items() if value is not None}
        self._log.error("partition_stopped", topic=self._where.topic, partition=self.number, **known, cause=why)

    async def _own(self, generation: int) -> None:
        """Take the partition over and work on it until the assignment changes, the process stops, or something fails."""
        began = self._clock.monotonic()
        self.state = "takeover"
        self._fault = None
        await self._look_at_end()
        # Right before the producer: nothing may come between the answer and the fencing.
        await self._source.confirm()
        if not self.owns(generation):
            # It is another member's by now, perhaps: its producer must not be fenced.
            return
        kept, self._kept = self._kept, None
        self._last_read = None
        publisher = self._make_publisher(self._where)
        try:
            start = await self._takeover.run(publisher, kept)
            self._hand.drop()
            if not self._source.begin(self.number, generation, start.offset):
                return
            self.partition, self.acknowledged = start.partition, start.acknowledged
            if start.acknowledged is not None:
                self.acknowledge(start.acknowledged)
            self.progressed = self._clock.monotonic()
            self.state = "rebuilding"
            self._kept = await Tenure(self, generation, start.partition, publisher, began).work()
        finally:
            if (end := self._source.end(self.number)) is not None:
                self.end = end
            self._source.halt(self.number)
            if self.partition is not None and (offset := self.partition._context.offset) != NO_RECORD:
                self._last_read = offset
            self.partition = None
            await finish(publisher.close())

    async def _look_at_end(self) -> None:
        """Ask for the end where nothing is fetched, taken over or stopped: the lag must grow while records wait."""
        # For a gauge only: whatever goes wrong, the old end stays.
        with contextlib.suppress(Exception):
            async with asyncio.timeout(LAST_PAUSE_SECONDS):
                self.end = await self._reader.end(self._where)

    async def _wait(self, seconds: float) -> None:
        """Sleep until woken, at most so long."""
        if not self._woken and seconds > 0:
            loop = asyncio.get_running_loop()
            self._waiter = waiter = loop.create_future()
            handle = loop.call_later(seconds, _ring, waiter)
            try:
                await waiter
            finally:
                handle.cancel()
                self._waiter = None
        self._woken = False

    async def _sleep(self, seconds: float) -> None:
        """Sleep so long, unless stopped or reassigned meanwhile."""
        loop = asyncio.get_running_loop()
        until, generation = loop.time() + seconds, self._generation
        while not self._stopping and self._generation == generation and (left := until - loop.time()) > 0:
            await self._wait(left)


def _ring(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


def _place(fault: BaseException) -> str:
    trace = fault.__traceback__
    if trace is None:
        return "an unknown place"
    while trace.tb_next is not None:
        trace = trace.tb_next
    return f"{trace.tb_frame.f_code.co_filename.rpartition('processor/')[2]}:{trace.tb_lineno}"
