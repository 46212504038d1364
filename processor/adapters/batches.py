"""Fetched record batches to lists of records, a whole batch at a time.

Owns one step of reading: from the client's unread batches of a partition to records in order, and the position after them.
It never decides what is fetched, where a partition begins, or what a record means.

The client makes a generator step, a method call and a frozen dataclass for every record. Measured for the step from fetched
bytes to records of 370 bytes, without network and loop: 1.6 us of processor time an event in its way, 0.9 in this one; the
whole processor takes about 13. Its compiled record has all that the core reads of one (offset, timestamp, key, value, headers),
so it is handed on as it is.

Only the consumer that is given to `install` reads so, by a `getall` on each of its own fetch results; no class of the client is
changed. What the client checks of a batch is checked here too, in its order: the CRC, what aborted transactions wrote, control
batches, the offset from which the fetch asked. What is not as it was in aiokafka 0.14 (an attribute that is missing, a
deserializer) is left to the client's own way, and so are single-record reads and the message formats
before Kafka 0.11.
"""

import weakref
from collections import OrderedDict
from typing import Any

from aiokafka import errors
from aiokafka.consumer.fetcher import READ_COMMITTED, FetchResult
from aiokafka.record.default_records import DefaultRecordBatch

from processor.adapters.hand import Room, size_of, value_bytes

RESULT = ("_topic_partition", "_partition_records", "_assignment", "check_assignment", "has_more", "getall")
UNREAD = (
    "_records",
    "_check_crcs",
    "_isolation_level",
    "_aborted_producers",
    "_consume_aborted_up_to",
    "_contains_abort_marker",
    "_consumer_record",
    "next_fetch_offset",
    "_records_iterator",
    "_unpack_records",
)
BATCH = (
    "compression_type",
    "validate_crc",
    "base_offset",
    "next_offset",
    "producer_id",
    "is_control_batch",
    "is_transactional",
    "__iter__",
)
"""What is used of the client's own objects; all must be there."""
NO_LIMIT = 1 << 60
UNREAD_SECONDS = 60.0
"""How long the client may wait with the next fetch for what is unread of the last one."""


class NameUnreadable(Exception):
    """A record has a header whose name is not UTF-8: the client's reader gives up its whole batch, each time anew."""

    def __init__(self, number: int) -> None:
        super().__init__("The name of a record's header is not UTF-8.")
        self.number = number
        """The partition."""


def install(consumer: Any, room: Room | None = None) -> bool:
    """Let a consumer that has not read yet do it so; False where its fetcher is not as expected: it reads in its own way."""
    fetcher: Any = getattr(consumer, "_fetcher", None)
    results = getattr(fetcher, "_records", None)
    if type(results) is not OrderedDict or not all(hasattr(DefaultRecordBatch, name) for name in BATCH):
        return False
    fetcher._records = _Results(results, room)
    return True


class _Results(OrderedDict[Any, Any]):
    """The fetcher's unread results by partition: those that come in are given a reader of whole batches."""

    def __init__(self, results: Any = (), room: Room | None = None) -> None:
        super().__init__(results)
        self._room = room or Room(NO_LIMIT)

    def __setitem__(self, where: Any, result: Any) -> None:
        if type(result) is FetchResult and _as_expected(result):
            result.getall = _WholeBatches(result, self._room)  # type: ignore[method-assign]
            # Else the client would ask for the other partitions after 0.1 s, each time with another answer in memory.
            result._backoff = UNREAD_SECONDS
            result._partition_records._records_iterator = _OneByOne(result._partition_records)
        super().__setitem__(where, result)


class _OneByOne:
    """In place of the client's own iterator over single records, made only when it is asked for.

    That one is a generator, and a circle from the start: an answer that is read in whole batches, or let go unread, would
    stay in memory until the garbage collector comes by. With few large records it hardly ever does: 400 MB were seen.
    """

    def __init__(self, unread: Any) -> None:
        self._unread = weakref.ref(unread)

    def __next__(self) -> Any:
        unread: Any = self._unread()
        unread._records_iterator = unread._unpack_records()
        return next(unread._records_iterator)


def _as_expected(result: Any) -> bool:
    """Whether a result, and what is unread in it, has all that is used here, and hands on what it reads as it is."""
    unread = getattr(result, "_partition_records", None)
    return (
        all(hasattr(result, name) for name in RESULT)
        and all(hasattr(unread, name) for name in UNREAD)
        and getattr(unread, "_key_deserializer", result) is None
        and getattr(unread, "_value_deserializer", result) is None
    )


class _WholeBatches:
    """In place of `FetchResult.getall` of one result."""

    def __init__(self, result: Any, room: Room) -> None:
        self._room = room
        # Weak: the result holds this object, and a circle would keep megabytes until the garbage collector comes by.
        self._result = weakref.ref(result)
        self._bytes = result._partition_records._records.size_in_bytes()
        """Bytes that are unread of the answer, as they came."""
        self._waiting: list[Any] = []
        """Records of a batch that was cut by `max_records`; the client's position is before them."""
        self._after = 0
        """The position after them."""
        self._size = value_bytes
        """How they are measured: what is not compressed is counted with keys and headers at the end, as it came."""

    def __call__(self, max_records: int | None = None) -> list[Any]:
        """Return the next records, and move the client's position past them. Raises NameUnreadable, CorruptRecordException."""
        result: Any = self._result()
        # A seek, a pause or a rebalance meanwhile: `check_assignment` lets go of what is unread, and it is fetched anew.
        if result is None or not result.has_more() or not result.check_assignment(result._topic_partition):
            return []
        if self._room.full:
            return []
        unread = result._partition_records
        most = NO_LIMIT if max_records is None else max_records
        found, self._waiting = self._waiting, []
        room, count = self._room, self._size(found)
        position = self._after if found else unread.next_fetch_offset
        try:
            while len(found) < most and unread._records.has_next() and count < room.share:
                batch = unread._records.next_batch()
                if not _skipped(unread, batch):
                    records = _from(unread, batch, position)
                    plain = type(batch) is DefaultRecordBatch and not batch.compression_type
                    self._size = value_bytes if plain else size_of
                    count += self._size(records)
                    found += records
                # The last offset of a batch stays in its head where compaction has taken the record.
                position = max(position, batch.next_offset)
        except Exception as fault:
            # The rest is fetched anew from the position, which is before the batch that failed: it fails again, alone.
            result._partition_records = None
            if not found:
                if isinstance(fault, UnicodeDecodeError):
                    raise NameUnreadable(result._topic_partition.partition) from None
                raise
        if len(found) > most:
            self._waiting, self._after = found[most:], position
            del found[most:]
            position = found[-1].offset + 1
            count -= self._size(self._waiting)
        elif not unread._records.has_next():
            result._partition_records = None
            # Keys and headers too: what is not compressed is in hand as large as it came.
            count = max(count, self._bytes)
        self._bytes = max(self._bytes - count, 0)
        if found:
            room.note_read(result._topic_partition.partition, count)
        unread.next_fetch_offset = position
        result._assignment.state_value(result._topic_partition).consumed_to(position)
        return found


def _skipped(unread: Any, batch: Any) -> bool:
    """Whether a batch has no records for a reader: markers, and what an aborted transaction wrote.

    Raises CorruptRecordException where it is not as it was sent.
    """
    if unread._check_crcs and not batch.validate_crc():
        raise errors.CorruptRecordException(f"Invalid CRC - {unread._tp}")
    if unread._isolation_level == READ_COMMITTED and batch.producer_id is not None:
        unread._consume_aborted_up_to(batch.base_offset)
        if batch.is_control_batch:
            if unread._contains_abort_marker(batch):
                unread._aborted_producers.discard(batch.producer_id)
        elif batch.is_transactional and batch.producer_id in unread._aborted_producers:
            return True
    return bool(batch.is_control_batch)


def _from(unread: Any, batch: Any, offset: int) -> list[Any]:
    """Records of a batch from an offset on: a fetch may begin in the middle of one."""
    records = list(batch)
    if records and records[0].offset < offset:
        records = [record for record in records if record.offset >= offset]
    if type(batch) is not DefaultRecordBatch:
        # An old format, from old brokers only: its records lack what ours have.
        return [unread._consumer_record(unread._tp, record) for record in records]
    return records
