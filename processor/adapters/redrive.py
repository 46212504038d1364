"""`callgate redrive`: dead letters back to the input topic, each once.

Owns the order, which is that of a takeover: a partition's producer is initialised, which fences an earlier redrive and settles
what that left; then what was moved is read from the last commit. A transaction has the records and the commit: killed anywhere,
the next redrive goes on there, and two of them never move one letter twice. It judges no letter by itself.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from aiokafka import AIOKafkaConsumer
from aiokafka.structs import TopicPartition

from processor.adapters import topics
from processor.adapters.kafka_client import client_options, patient, translate
from processor.adapters.offset_fetch import Reader
from processor.adapters.publish import TransactionalPublisher
from processor.adapters.put_back import send, too_large
from processor.adapters.source import FAULTS
from processor.adapters.tenure import finish
from processor.core.outgoing import Route
from processor.core.redrive import Choice, DeadLetter, Fate, Moved, judge, read
from processor.errors import Fatal, Fenced, Poisoned, Retryable, Unfit
from processor.settings import BROKER_DEFAULT_BYTES, Settings

RECORDS = 500
"""Records of one transaction: whoever reads the input waits while it is open."""
BYTES = 1 << 20
"""Bytes of keys and values after which it is ended."""
TRANSACTION_TIMEOUT_MS = 20_000
"""After a SIGKILL the input's readers wait so long, at most: no reason to let it be the minute of a processor."""
PACE_SECONDS = 0.5
"""With a rate, a transaction has what may be moved in this time."""
OPEN_SECONDS = 5.0
"""What a transaction that is still open holds back is no dead letter yet: longer than this it is not waited for."""
STARTS = 4
"""How often a partition's producer is asked for."""
RUN_AGAIN = "Run it again: it goes on where it stopped, nothing is lost or moved twice"


@dataclass
class Plan:
    """What is asked for, and what came of it so far."""

    choice: Choice
    only: frozenset[int] = frozenset()
    """Partitions of the dead-letter topic; empty: all."""
    limit: int | None = None
    """Letters to move at most."""
    rate: float = 0.0
    """Letters a second; 0: as fast as it goes."""
    dry: bool = False
    """Only count."""
    fates: Counter[tuple[str, Fate]] = field(default_factory=Counter)
    """By cause and fate; letters without a cause have an empty one."""
    held_back: list[int] = field(default_factory=list)
    """Partitions whose end is in a transaction that is still open, and was not looked at."""
    moved: int = 0
    """Letters moved, each in a transaction that was committed; in a dry run those that would be."""


def settings_for(settings: Settings) -> Settings:
    """Settings of the redrive: a group of its own beside the processor's, and shorter transactions."""
    timeout = min(settings.kafka.transaction_timeout_ms, TRANSACTION_TIMEOUT_MS)
    return replace(settings, group=f"{settings.group}-redrive", kafka=replace(settings.kafka, transaction_timeout_ms=timeout))


class Redrive:
    """One run."""

    def __init__(
        self, settings: Settings, reader: Reader, *, started: Callable[[int], None], seen: Callable[[int], None]
    ) -> None:
        """Take settings of `settings_for` and a reader of its group.

        `started` is told how many offsets there are to look at, `seen` how many more were looked at.
        """
        self._settings = settings
        self._reader = reader
        self._started = started
        self._seen = seen
        self._room = -1
        self._consumer: Any = None
        self._begun = 0.0
        self._shown = 0
        """Offset of the partition at work up to which progress was told."""

    async def run(self, make_plan: Callable[[int], Plan]) -> Plan:
        """Look at every letter, and move those that are chosen; the plan is made for this many partitions of the input.

        Raises Unfit, Fatal, Retryable, Poisoned.
        """
        names = self._settings.topics
        there = await topics.describe(self._reader, (names.events, names.dead_letter))
        if missing := [name for name in (names.events, names.dead_letter) if name not in there]:
            raise Unfit(*(f"Topic `{name}` is missing." for name in missing))
        self._room = there[names.events].number("max.message.bytes")
        plan = make_plan(there[names.events].partitions)
        count = there[names.dead_letter].partitions
        if wrong := sorted(number for number in plan.only if number >= count):
            raise Fatal(f"Topic `{names.dead_letter}` has no partition {wrong[0]}: it has {count}, from 0 on.")
        numbers = sorted(plan.only) or range(count)
        self._begun = asyncio.get_running_loop().time()
        try:
            await self._open()
            where = [TopicPartition(names.dead_letter, number) for number in numbers]
            ends = {one: await self._reader.ends(one) for one in where}
            self._started(sum(end - start for start, end in ends.values()))
            for one, (start, end) in ends.items():
                if plan.limit is None or plan.moved < plan.limit:
                    await self._partition(one, start, end, plan)
        except FAULTS as fault:
            raise translate(fault, "Reading the dead letters failed") from fault
        finally:
            if self._consumer is not None:
                await finish(self._consumer.stop())
        return plan

    async def _open(self) -> None:
        kafka = self._settings.kafka
        self._consumer = AIOKafkaConsumer(
            **client_options(kafka),
            group_id=None,
            auto_offset_reset="none",
            isolation_level="read_committed",
            fetch_max_bytes=kafka.fetch_max_bytes,
            max_partition_fetch_bytes=kafka.max_partition_fetch_bytes,
            max_poll_records=RECORDS,
        )
        patient(self._consumer._client)
        await self._consumer.start()

    async def _partition(self, where: TopicPartition, start: int, end: int, plan: Plan) -> None:
        if start < end:
            work = _Partition(self._settings, self._reader, where, plan, self._room)
            try:
                await self._through(work, start, end, plan)
            except Fenced as fault:
                raise Fatal(
                    f"What was in hand of {where.topic}-{where.partition} may not have moved: the transaction was lost, or "
                    f"another redrive has taken over ({str(fault).rstrip('.')}). {RUN_AGAIN}."
                ) from fault
            except Poisoned as fault:
                raise Fatal(
                    f"The input topic refuses a record of {where.topic}-{where.partition}: {fault} Leave it out (`--offsets`)."
                ) from fault
            finally:
                await finish(work.close())

    async def _through(self, work: "_Partition", start: int, end: int, plan: Plan) -> None:
        consumer, where = self._consumer, work.where
        position = max(start, await work.begin())
        self._shown = start
        self._show(min(position, end))
        consumer.assign([where])
        consumer.seek(where, position)
        clock = asyncio.get_running_loop().time
        patience = clock() + OPEN_SECONDS
        while position < end:
            for records in (await consumer.getmany(timeout_ms=200)).values():
                for record in records:
                    if record.offset < end and await work.take(record):
                        self._show(work.position)
                        await self._pace(plan)
                    if plan.limit is not None and plan.moved + len(work.waiting) >= plan.limit:
                        await work.move()
                        self._show(work.position)
                        return
            if await work.move():
                await self._pace(plan)
            before, position = position, await consumer.position(where)
            self._show(min(position, end))
            if position > before:
                patience = clock() + OPEN_SECONDS
            elif clock() > patience and position >= (await consumer.end_offsets([where]))[where]:
                plan.held_back.append(where.partition)
                return

    def _show(self, position: int) -> None:
        self._seen(position - self._shown)
        self._shown = position

    async def _pace(self, plan: Plan) -> None:
        """Wait between two transactions, never inside one."""
        if plan.rate and not plan.dry:
            due = self._begun + plan.moved / plan.rate
            await asyncio.sleep(max(due - asyncio.get_running_loop().time(), 0.0))


class _Partition:
    """One partition of the dead-letter topic: what was moved of it, and what waits for the next transaction."""

    def __init__(
        self,
        settings: Settings,
        reader: Reader,
        where: TopicPartition,
        plan: Plan,
        room: int,
    ) -> None:
        self.where = where
        self.waiting: list[DeadLetter] = []
        """Letters for the next transaction."""
        self._settings = settings
        self._reader = reader
        self._plan = plan
        self._room = room if room >= 0 else BROKER_DEFAULT_BYTES
        self._most = RECORDS if not plan.rate else max(1, min(RECORDS, int(plan.rate * PACE_SECONDS)))
        self._publisher: TransactionalPublisher | None = None
        self._moved = Moved(0)
        self.position = 0
        """Offset after the last letter that was looked at."""
        self._bytes = 0

    async def begin(self) -> int:
        """Take the partition over, unless it is only counted, and read what was moved of it; returns where to begin."""
        if not self._plan.dry:
            await self._take_over()
        committed = await self._reader.committed(self.where)
        first, _ = await self._reader.ends(self.where)
        self._moved = Moved.decode(*committed) if committed is not None else Moved(first)
        # What the topic holds no more is done with.
        self._moved.add(self._moved.offset, max(first, self._moved.offset))
        self.position = self._moved.offset
        return self.position

    async def _take_over(self) -> None:
        """Initialise the producer; a broker that is busy is asked again, since nothing has begun yet."""
        events = dict.fromkeys(Route, self._settings.topics.events)
        for left in reversed(range(STARTS)):
            self._publisher = TransactionalPublisher(self._settings, self.where, events)
            try:
                await self._publisher.start()
            except Retryable:
                await self.close()
                if not left:
                    raise
            else:
                return

    async def take(self, record: Any) -> bool:
        """Look at one record; True where a transaction was made of what waited."""
        plan, offset = self._plan, record.offset
        letter = read(record)
        fate = judge(letter, offset, plan.choice)
        if offset in self._moved:
            fate = Fate.MOVED_BEFORE
        elif letter is not None and fate is Fate.MOVES and too_large(letter, self._settings, self._room):
            fate = Fate.TOO_LARGE
        if fate is not Fate.MOVES or letter is None:
            plan.fates[letter.cause if letter else "", fate] += 1
            self.position = offset + 1
            return False
        # Markers before it go with it: they are no letters, and would leave gaps.
        self._moved.add(self.position, offset + 1)
        self.position = offset + 1
        self.waiting.append(letter)
        self._bytes += len(letter.key or b"") + len(letter.value or b"")
        return await self.move() if len(self.waiting) >= self._most or self._bytes >= BYTES else False

    async def move(self) -> bool:
        """Put what waits back, in one transaction; False where nothing does. Raises Fatal, Fenced, Poisoned."""
        letters, self.waiting, self._bytes = self.waiting, [], 0
        if not letters:
            return False
        if not self._plan.dry:
            metadata = self._moved.encode()
            if metadata is None:
                raise Fatal(
                    f"Too many dead letters were left between those that moved of {self.where.topic}-{self.where.partition}: "
                    "what was moved does not fit into a commit any more. Move those that are left first (all causes), or set "
                    f"the offset of group `{self._settings.group}` behind those that should stay."
                )
            # To its end, whoever cancels: it is bounded, and its outcome must be known.
            await finish(self._transact(letters, metadata))
        else:
            self._count(letters)
        return True

    def _count(self, letters: Sequence[DeadLetter]) -> None:
        self._plan.fates.update((letter.cause, Fate.MOVES) for letter in letters)
        self._plan.moved += len(letters)

    async def _transact(self, letters: Sequence[DeadLetter], metadata: str) -> None:
        publisher = self._publisher
        assert publisher is not None  # noqa: S101 - made by `begin`
        sending = partial(send, publisher, self._settings, letters, self._room)
        await publisher.transact(sending, self._moved.offset, metadata)
        self._count(letters)

    async def close(self) -> None:
        """Let go of the producer."""
        publisher, self._publisher = self._publisher, None
        if publisher is not None:
            await publisher.close()
