"""Whole batches are read exactly as the client reads single records: its own way, on the same log, is held against it."""

import asyncio
import gc
import weakref
from collections.abc import Awaitable, Callable
from typing import Any, Literal

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.consumer.fetcher import READ_COMMITTED, FetchResult, PartitionRecords
from aiokafka.consumer.subscription_state import SubscriptionState
from aiokafka.errors import CorruptRecordException
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.legacy_records import LegacyRecordBatchBuilder
from aiokafka.record.memory_records import MemoryRecords
from aiokafka.record.util import calc_crc32c
from aiokafka.structs import TopicPartition

from processor.adapters import batches
from tests.conftest import MakeTopic

HERE = TopicPartition("events", 0)
LAST_OFFSET_DELTA, CRC, BODY = 23, 17, 21
"""Places in the head of a batch: the delta of its last offset, its checksum, and where the summed part begins."""


async def write(producer: AIOKafkaProducer, topic: str, names: list[str]) -> None:
    """Write records as one batch."""
    batch = producer.create_batch()
    for name in names:
        batch.append(
            key=None if name.startswith("k") else name.encode(),
            value=None if name.startswith("t") else f"value of {name}".encode() * 20,
            timestamp=1_700_000_000_000 + len(name),
            headers=[("name", name.encode()), ("empty", b""), ("name", b"\xff")] if name.startswith("h") else [],
        )
    await (await producer.send_batch(batch, topic, partition=0))


async def mixed_log(bootstrap: str, topic: str) -> None:
    """Write batches of every codec, then interleaved transactions of two producers: aborted, committed, aborted at the end."""
    for codec in (None, "gzip", "snappy", "lz4", "zstd"):
        async with AIOKafkaProducer(bootstrap_servers=bootstrap, compression_type=codec) as producer:
            await write(producer, topic, [f"{letter}-{codec}-{n}" for n in range(3) for letter in "kth"])
    one = AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=f"{topic}-1", compression_type="lz4")
    two = AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=f"{topic}-2")
    async with one, two:
        for turn in range(3):
            for producer in (one, two):
                await producer.begin_transaction()
            await write(one, topic, [f"x-{turn}-{n}" for n in range(3)])
            await write(two, topic, [f"h-{turn}-{n}" for n in range(4)])
            await write(one, topic, [f"y-{turn}"])
            await (one.commit_transaction() if turn == 1 else one.abort_transaction())
            await write(two, topic, [f"z-{turn}-{n}" for n in range(2)])
            await (two.abort_transaction() if turn == 2 else two.commit_transaction())


async def reading(
    bootstrap: str, topic: str, work: Callable[[AIOKafkaConsumer, TopicPartition], Awaitable[Any]], **how: Any
) -> Any:
    """Do something with a consumer of the topic; `whole`: with whole batches."""
    whole = how.pop("whole")
    async with AIOKafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="none", fetch_max_wait_ms=5, **how) as consumer:
        where = TopicPartition(topic, 0)
        consumer.assign([where])
        if whole:
            assert batches.install(consumer)
        return await work(consumer, where)


async def read_from(consumer: AIOKafkaConsumer, where: TopicPartition, start: int, end: int) -> list[tuple[Any, ...]]:
    """Read from an offset until the position is at the end, in as many fetches as it takes."""
    consumer.seek(where, start)
    found: list[tuple[Any, ...]] = []
    while await consumer.position(where) < end:
        # Brief: where only aborted records are left, it waits to the end.
        for records in (await consumer.getmany(timeout_ms=20)).values():
            found += [(r.offset, r.timestamp, r.key, r.value, tuple(r.headers)) for r in records]
    assert await consumer.position(where) == end
    return found


@pytest.mark.kafka
@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
def test_the_same_records_as_the_client(bootstrap: str, make_topic: MakeTopic, isolation: str) -> None:
    """From each offset on (within batches, at markers), and with each cut by `max_poll_records`, nothing differs."""
    topic = make_topic("mixed")

    async def from_each(consumer: AIOKafkaConsumer, where: TopicPartition) -> list[Any]:
        end = (await consumer.end_offsets([where]))[where]
        return [await read_from(consumer, where, start, end) for start in range(end)]

    async def from_two(consumer: AIOKafkaConsumer, where: TopicPartition) -> list[Any]:
        end = (await consumer.end_offsets([where]))[where]
        return [await read_from(consumer, where, start, end) for start in (0, 4)]

    async def all_of_it() -> None:
        await mixed_log(bootstrap, topic)
        how = {"isolation_level": isolation}
        expected = await reading(bootstrap, topic, from_each, whole=False, **how)
        names = {key for _, _, key, _, _ in expected[0]}
        assert {b"x-1-0", b"z-0-1", b"h-1-3"} <= names
        assert (b"x-0-0" in names) == (b"z-2-1" in names) == (isolation == "read_uncommitted")
        assert await reading(bootstrap, topic, from_each, whole=True, **how) == expected
        for most in (1, 2, 5, 9, 10):
            cut = await reading(bootstrap, topic, from_two, whole=True, max_poll_records=most, **how)
            assert cut == [expected[0], expected[4]]

    asyncio.run(all_of_it())


@pytest.mark.kafka
def test_a_seek_in_the_middle_of_a_batch(bootstrap: str, make_topic: MakeTopic) -> None:
    """What waits of a batch that was cut is dropped by a seek back, forth, and to where the position is already."""
    topic = make_topic("seek")

    async def work(consumer: AIOKafkaConsumer, where: TopicPartition) -> None:
        async def offsets() -> list[int]:
            while not (found := await consumer.getmany(timeout_ms=500)):
                pass
            return [record.offset for record in found[where]]

        consumer.seek(where, 0)
        assert [await offsets(), await offsets()] == [[0, 1, 2], [3, 4, 5]]
        for start in (1, 7, 10, 0):
            consumer.seek(where, start)
            assert await offsets() == list(range(start, start + 3))
        consumer.seek(where, 3)
        consumer.pause(where)
        assert not await consumer.getmany(timeout_ms=100)
        consumer.resume(where)
        assert await offsets() == [3, 4, 5]

    async def all_of_it() -> None:
        async with AIOKafkaProducer(bootstrap_servers=bootstrap, compression_type="zstd") as producer:
            await write(producer, topic, [f"n-{n}" for n in range(20)])
        await reading(bootstrap, topic, work, whole=True, max_poll_records=3)

    asyncio.run(all_of_it())


def batch(first: int, count: int, *, after: int = 0, broken: bool = False) -> bytes:
    """Make a batch; `after`: offsets at its end whose records compaction has taken; `broken`: with a wrong checksum."""
    builder = DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, 1 << 20)
    for n in range(count):
        builder.append(n, 1_700_000_000_000, b"k", b"value %d" % (first + n), [])
    made = bytearray(builder.build())
    made[:8] = first.to_bytes(8, "big")
    made[LAST_OFFSET_DELTA : LAST_OFFSET_DELTA + 4] = (count - 1 + after).to_bytes(4, "big")
    total = calc_crc32c(bytes(made[BODY:])) ^ broken
    made[CRC : CRC + 4] = total.to_bytes(4, "big")
    return bytes(made)


def fetched(data: bytes, *, start: int = 0, deserializer: Any = None) -> tuple[Any, Any]:
    """Put bytes where the client's fetcher puts an answer; returns the results by partition and the partition's state."""
    subscription = SubscriptionState(loop=asyncio.get_running_loop())
    subscription.assign_from_user([HERE])
    assignment = subscription.subscription.assignment
    state = assignment.state_value(HERE)
    state.seek(start)
    unread = PartitionRecords(HERE, MemoryRecords(data), [], start, None, deserializer, True, READ_COMMITTED)
    results = batches._Results()
    results[HERE] = FetchResult(HERE, assignment=assignment, partition_records=unread, backoff=0)
    return results, state


@pytest.mark.parametrize("how", ["in whole batches", "one by one", "unread", "in part"])
def test_an_answer_is_let_go_at_once(how: str) -> None:
    """Without the garbage collector: an answer may have 50 MB, and few large records hardly ever call for it."""

    async def work() -> None:
        results, _ = fetched(batch(0, 3) + batch(3, 2))
        unread = weakref.ref(results[HERE]._partition_records)
        if how == "in whole batches":
            assert len(results[HERE].getall()) == 5
        elif how == "in part":
            assert len(results[HERE].getall(2)) == 2
        elif how == "one by one":
            assert [results[HERE].getone().offset for _ in range(5)] == [0, 1, 2, 3, 4]
            assert results[HERE].getone() is None
        del results[HERE]
        assert unread() is None

    gc.disable()
    try:
        asyncio.run(work())
    finally:
        gc.enable()


def test_a_broken_batch_fails_alone() -> None:
    """What is before it is handed on; the position stays before it, and nothing of it or after it comes out."""

    async def work() -> None:
        data = batch(0, 3) + batch(3, 2, broken=True) + batch(5, 2)
        results, state = fetched(data)
        assert [record.offset for record in results[HERE].getall()] == [0, 1, 2]
        assert state.position == 3
        assert not results[HERE].has_more()
        results, state = fetched(data[len(batch(0, 3)) :], start=3)
        with pytest.raises(CorruptRecordException):
            results[HERE].getall()
        assert state.position == 3
        assert not results[HERE].has_more()

    asyncio.run(work())


def test_compaction_leaves_no_gap_unpassed() -> None:
    """The last offset of a batch is in its head although its record is gone: else the same batch were fetched for ever."""

    async def work() -> None:
        results, state = fetched(batch(0, 3, after=4))
        assert [record.offset for record in results[HERE].getall(3)] == [0, 1, 2]
        assert state.position == 7
        results, state = fetched(batch(0, 3, after=4) + batch(7, 1), start=5)
        assert [record.offset for record in results[HERE].getall()] == [7]
        assert state.position == 8

    asyncio.run(work())


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [0, 1])
def test_old_formats(magic: Literal[0, 1], codec: int) -> None:
    """Message formats before Kafka 0.11 come out as the client's own records."""

    async def work() -> None:
        builder = LegacyRecordBatchBuilder(magic, codec, 1 << 20)
        for n in range(4):
            builder.append(n, 1_700_000_000_000 if magic else None, b"k", b"value %d" % n)
        data = bytearray(builder.build())
        if codec:
            # The broker gives the wrapper the offset of its last record.
            data[:8] = (3).to_bytes(8, "big")
        results, state = fetched(bytes(data), start=1)
        found = results[HERE].getall()
        assert [(record.offset, record.value, record.topic) for record in found] == [
            (n, b"value %d" % n, "events") for n in range(1, 4)
        ]
        assert state.position == 4

    asyncio.run(work())


def test_another_assignment_gets_nothing() -> None:
    """Partitions that were revoked: what is unread of them is let go, also what waits of a batch that was cut."""

    async def work() -> None:
        results, _ = fetched(batch(0, 5))
        result = results[HERE]
        assert len(result.getall(2)) == 2
        result._assignment._unassign()
        assert result.getall(2) == []
        assert not result.has_more()

    asyncio.run(work())


def test_what_is_not_as_expected_is_left_to_the_client() -> None:
    """A deserializer, or a client that has changed inside: its own way of reading, and no error."""

    async def work() -> None:
        results, state = fetched(batch(0, 3), deserializer=len)
        assert [record.value for record in results[HERE].getall(2)] == [7, 7]
        assert state.position == 2
        assert not isinstance(results[HERE].getall, batches._WholeBatches)

    asyncio.run(work())
    assert not batches.install(object())
