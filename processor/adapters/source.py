"""The consumer of the input topic: membership in the group, fetching, and where each partition is read.

Owns the rebalance callbacks, which only note what changed and pause what was assigned: no heartbeat runs inside them and the
client swallows their exceptions, so work in them would be lost or would cost the membership. It never commits by itself, and
hands out nothing of a partition that was not begun at an offset of our choosing.
"""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener
from aiokafka import errors as kafka
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokafka.structs import OffsetAndMetadata, TopicPartition

from processor.adapters import answers, batches, odd_names
from processor.adapters.hand import Room
from processor.adapters.kafka_client import client_options, patient, translate
from processor.adapters.offset_fetch import confirm_membership
from processor.core.ports import Record
from processor.errors import Fatal, Poisoned, Retryable
from processor.settings import Settings

SCAN_SECONDS = 0.1
"""How often positions are looked at where nothing was fetched: transaction markers move them without a record."""
CLOSE_SECONDS = 5.0
"""How long leaving the group may take."""

FAULTS = (kafka.KafkaError, kafka.ConsumerStoppedError, OSError, AssertionError, RuntimeError, ValueError, LookupError)
"""What the consumer raises: its own assertions and decoding errors too, time-outs (an OSError), connections not found."""


class Fetched(NamedTuple):
    """What one fetch brought."""

    batches: list[tuple[int, Sequence[Record], int]]
    """Partition, its records in order (perhaps none), and the position after them: markers leave gaps behind the last one."""
    faults: dict[int, Exception]
    """Partitions that cannot be read on, and why: Retryable, Poisoned, or OutOfRange."""


class OutOfRange(Exception):
    """The position that was asked for is not in the log any more, or not yet."""


class _Notes(ConsumerRebalanceListener):
    """Callbacks of the group: they note, and pause; nothing else."""

    def __init__(self, source: "Source") -> None:
        self._source = source

    def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
        self._source.note_revoked(revoked)

    def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        self._source.note_assigned(assigned)


class Source:
    """Reads the partitions of one topic that the group gives to this member."""

    def __init__(self, settings: Settings, on_change: Callable[[], None], room: Room | None = None) -> None:
        """`on_change` is called from inside the rebalance callbacks, after `owned` has changed: it must only note, too."""
        self._settings = settings
        self._topic = settings.topics.events
        self._room = room or Room(settings.kafka.max_buffered_bytes)
        self._on_change = on_change
        self._consumer: Any = None
        self._generation = 0
        self.owned: dict[int, int] = {}
        """Partitions of this member, each with the number of the assignment that brought it: it grows with every one."""
        self.settled = False
        """Whether `owned` is what the group has agreed on, and not what is left in a rebalance."""
        self._handed: dict[int, int] = {}
        """Partitions that were begun, each with the position up to which records were handed out."""
        self._broken: BaseException | None = None
        self._scanned = 0.0

    async def start(self) -> None:
        """Join the group. Raises Retryable, Fatal."""
        kafka_settings = self._settings.kafka
        # The assignor keeps its memory on the class: a class of its own keeps two consumers of one process apart. Sticky,
        # because each partition that changes hands is rebuilt.
        assignor = type("Sticky", (StickyPartitionAssignor,), {})
        self._consumer = AIOKafkaConsumer(
            **client_options(kafka_settings),
            group_id=self._settings.group,
            enable_auto_commit=False,
            auto_offset_reset="none",
            isolation_level="read_committed",
            partition_assignment_strategy=(assignor,),
            session_timeout_ms=kafka_settings.session_timeout_ms,
            heartbeat_interval_ms=kafka_settings.heartbeat_interval_ms,
            rebalance_timeout_ms=kafka_settings.rebalance_timeout_ms,
            retry_backoff_ms=max(kafka_settings.retry_backoff_ms, 100),
            fetch_max_bytes=kafka_settings.fetch_max_bytes,
            fetch_max_wait_ms=kafka_settings.fetch_max_wait_ms,
            max_partition_fetch_bytes=kafka_settings.max_partition_fetch_bytes,
            max_poll_records=kafka_settings.max_poll_records,
        )
        patient(self._consumer._client)
        answers.install(self._consumer._client)
        self._consumer.subscribe([self._topic], listener=_Notes(self))
        try:
            await self._consumer.start()
        except FAULTS as fault:
            raise translate(fault, "Joining the group failed") from fault
        batches.install(self._consumer, self._room)

    async def close(self) -> None:
        """Leave the group, within a few seconds. Never raises."""
        if self._consumer is None:
            return
        consumer, self._consumer = self._consumer, None
        self._lose()
        stopping = asyncio.ensure_future(consumer.stop())
        await asyncio.wait([stopping], timeout=CLOSE_SECONDS)
        if not stopping.done():
            stopping.cancel()
            await asyncio.wait([stopping], timeout=CLOSE_SECONDS)
        with contextlib.suppress(asyncio.CancelledError, *FAULTS):
            stopping.result()

    # -- the group

    @property
    def joined(self) -> bool:
        """Whether the group has given this member its partitions, perhaps none."""
        return self._consumer is not None and self._generation > 0 and not self._consumer._subscription.reassignment_in_progress

    def note_revoked(self, revoked: set[TopicPartition]) -> None:
        """Note that partitions are taken away. For the callback only."""
        del revoked  # eager: always all of them
        self._lose()

    def note_assigned(self, assigned: set[TopicPartition]) -> None:
        """Pause what was assigned and note it. For the callback only; an exception is kept for `fetch`."""
        try:
            # Without the pause a pending fetch returns records from the committed offset before anybody could seek
            # (8 of 8 observed; with it 0 of 8).
            self._consumer.pause(*assigned)
            for partition in assigned:
                # Any place: without one the client asks for the committed offset, over and over where there is none.
                self._consumer.seek(partition, 0)
            self._lose()
            self._generation += 1
            self.owned = {partition.partition: self._generation for partition in assigned}
            self.settled = True
            self._on_change()
            # No more than a partition may hold: most of it would be fetched again after each pause.
            most = min(self._settings.kafka.max_partition_fetch_bytes, self._room.share)
            self._consumer._fetcher._max_partition_fetch_bytes = most
        except BaseException as fault:
            # The client would swallow it, and would read on from the wrong place.
            self._broken = fault
            raise

    def _lose(self) -> None:
        self._handed.clear()
        self.owned = {}
        self.settled = False
        self._on_change()

    async def confirm(self) -> None:
        """Ask the group's coordinator whether this member still belongs. Raises Fenced where it does not.

        A member that was paused past its session still believes in its partitions: it must not fence their new owner.
        """
        if self._consumer is None:
            raise Retryable("The consumer is being made anew.")
        try:
            await confirm_membership(self._consumer._coordinator)
        except FAULTS as fault:
            raise translate(fault, "Asking the group's coordinator failed") from fault

    # -- reading

    def begin(self, number: int, generation: int, offset: int) -> bool:
        """Read a partition from an offset on; False where it is no longer this assignment's."""
        if self._consumer is None or self.owned.get(number) != generation:
            return False
        partition = TopicPartition(self._topic, number)
        self._consumer.seek(partition, offset)
        self._handed[number] = offset
        self._consumer.resume(partition)
        return True

    def halt(self, number: int) -> None:
        """Hand out nothing more of a partition until it is begun again."""
        if self._handed.pop(number, None) is not None and self._consumer is not None:
            self._consumer.pause(TopicPartition(self._topic, number))

    def pause(self, number: int) -> None:
        """Fetch nothing of a partition for now; its place is kept."""
        if number in self._handed:
            self._consumer.pause(TopicPartition(self._topic, number))

    def resume(self, number: int) -> None:
        """Fetch again."""
        if number in self._handed:
            self._consumer.resume(TopicPartition(self._topic, number))

    def end(self, number: int) -> int | None:
        """End of the log as the last fetch saw it, None where there was none yet: for lags, not for silence."""
        if number not in self._handed:
            return None
        highwater = self._consumer.highwater(TopicPartition(self._topic, number))
        return int(highwater) if highwater is not None else None

    async def fetch(self, timeout_ms: int) -> Fetched:
        """Wait for records of any partition. Blocks during a rebalance, however long it takes; may be cancelled.

        Raises Retryable where the consumer must be made anew, and Fatal.
        """
        if self._broken is not None:
            raise Retryable("A rebalance callback failed.") from self._broken
        consumer = self._consumer
        try:
            found = await consumer.getmany(timeout_ms=timeout_ms)
        except batches.NameUnreadable as fault:
            return await self._read_oddly(fault.number)
        except FAULTS as fault:
            return self._failed(fault)
        handed = self._handed
        fetched: list[tuple[int, Sequence[Record], int]] = []
        for partition, records in found.items():
            number = partition.partition
            # Not begun: only possible where the pause failed, and the seek to come sets the place right.
            if number in handed:
                position = handed[number] = await consumer.position(partition)
                fetched.append((number, records, position))
        if (now := asyncio.get_running_loop().time()) - self._scanned >= SCAN_SECONDS:
            self._scanned = now
            for number, before in list(handed.items()):
                position = await consumer.position(TopicPartition(self._topic, number))
                if position != before:
                    handed[number] = position
                    fetched.append((number, (), position))
        return Fetched(fetched, {})

    def _failed(self, fault: BaseException) -> Fetched:
        """Sort out whom a failed fetch concerns."""
        doing = "Reading the input failed"
        argument: Any = fault.args[0] if fault.args else None
        if isinstance(fault, kafka.OffsetOutOfRangeError):
            return Fetched(
                [], {p.partition: OutOfRange(offset) for p, offset in argument.items() if p.partition in self._handed}
            )
        if isinstance(fault, kafka.NoOffsetForPartitionError):
            # The client looked for the committed offset before we seeked: of no interest.
            return Fetched([], {})
        if isinstance(fault, kafka.RecordTooLargeError):
            # The client has already stepped over the record: going on would skip it silently.
            _, where, offset, *_ = fault.args
            too_large = Poisoned("A record is larger than `kafka.max_partition_fetch_bytes`.", offset)
            return Fetched([], {where.partition: too_large})
        if isinstance(fault, kafka.UnsupportedCodecError):
            raise Fatal(f"{doing}: the library for its compression is not installed ({fault}).") from fault
        coordinator = self._consumer._coordinator
        tasks = [coordinator._coordination_task, self._consumer._fetcher.error_future]
        # These end at an answer that the client does not expect (even "no coordinator"), and then fail every fetch.
        helpers = coordinator._heartbeat_task, coordinator._commit_refresh_task
        tasks += [task for task in helpers if task and task.done() and not task.cancelled() and task.exception()]
        if any(task.done() for task in tasks):
            raise translate(fault, doing) from fault
        ours = translate(fault, doing)
        if isinstance(ours, Fatal):
            raise ours from fault
        self._go_back()
        return Fetched([], {-1: Retryable(str(ours))})

    async def _read_oddly(self, number: int) -> Fetched:
        """Read on where a header's name is no text."""
        self._go_back()
        where = TopicPartition(self._topic, number)
        offset = self._handed.get(number)
        if offset is None:
            return Fetched([], {})
        try:
            records, position = await odd_names.read(self._consumer, where, offset)
        except FAULTS as fault:
            return self._failed(fault)
        # A rebalance meanwhile: it is another's, or will be begun anew.
        if self._handed.get(number) != offset:
            return Fetched([], {})
        self._consumer.seek(where, position)
        self._handed[number] = position
        return Fetched([(number, records, position)], {})

    def _go_back(self) -> None:
        """After an exception what the same fetch had of other partitions is lost: all go back to what was handed out."""
        for number, position in self._handed.items():
            self._consumer.seek(TopicPartition(self._topic, number), position)

    async def commit(self, number: int, offset: int, metadata: str) -> None:
        """Commit as a member of the group: for `at_least_once` only, it is not fenced. Raises aiokafka's errors."""
        await self._consumer.commit({TopicPartition(self._topic, number): OffsetAndMetadata(offset, metadata)})
