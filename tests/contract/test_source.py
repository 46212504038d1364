"""The consumer on a real broker: nothing is handed out before the seek, nothing is skipped after an error."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.codec import zstd_encode
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.memory_records import MemoryRecords
from aiokafka.record.util import calc_crc32c

from processor.adapters.offset_fetch import Reader
from processor.adapters.source import OutOfRange, Source
from processor.errors import Fenced, Retryable
from processor.settings import Settings
from tests.conftest import MakeTopic
from tests.contract.kit import Lines, commit_at, input_partition, make_settings, produce, started, with_reader


async def with_source(settings: Settings, work: Callable[[Source], Awaitable[Any]]) -> Any:
    """Do something as a member of the group."""
    source = Source(settings, lambda: None)
    try:
        await source.start()
        return await work(source)
    finally:
        await source.close()


async def offsets(source: Source, count: int) -> list[int]:
    """Offsets of the next records."""
    found: list[int] = []
    while len(found) < count:
        fetched = await source.fetch(200)
        assert not fetched.faults
        found += [record.offset for _, records, _ in fetched.batches for record in records]
    return found


@pytest.mark.parametrize("attempt", range(4))
def test_nothing_is_read_before_the_seek(bootstrap: str, make_topic: MakeTopic, attempt: int) -> None:
    """Section 7: without a pause inside the callback a pending fetch brings records from the committed offset (8 of 8)."""
    del attempt
    settings = make_settings(bootstrap, make_topic)

    async def work(source: Source) -> None:
        early = [await source.fetch(100) for _ in range(5)]
        assert all(not fetched.batches for fetched in early)
        assert source.begin(0, source.owned[0], 7)
        assert await offsets(source, 3) == [7, 8, 9]

    async def all_of_it() -> None:
        await produce(bootstrap, settings.topics.events, [b"%d" % n for n in range(10)])
        publisher = await started(settings)
        await publisher.publish([], commit_at(2))
        await publisher.close()
        await with_source(settings, work)

    asyncio.run(all_of_it())


def test_a_stale_assignment_cannot_begin(bootstrap: str, make_topic: MakeTopic) -> None:
    """A takeover that ends after the partition was assigned anew is not allowed to read."""
    settings = make_settings(bootstrap, make_topic)

    async def work(source: Source) -> None:
        assert not source.begin(0, source.owned[0] - 1, 0)
        assert not source.begin(5, source.owned[0], 0)

    asyncio.run(with_source(settings, work))


def test_a_failing_callback_is_not_swallowed(bootstrap: str, make_topic: MakeTopic) -> None:
    """Section 7: the client swallows exceptions of the callbacks; the source keeps them, and reads nothing."""
    settings = make_settings(bootstrap, make_topic)

    def fail() -> None:
        if source.owned:
            raise ValueError("note failed")

    source = Source(settings, fail)

    async def work() -> None:
        try:
            await source.start()
            with pytest.raises(Retryable, match="callback"):
                await source.fetch(100)
        finally:
            await source.close()

    asyncio.run(work())


def test_an_offset_outside_the_log_is_named(bootstrap: str, make_topic: MakeTopic) -> None:
    """Section 7: a position outside the log is an error of its partition, never a silent jump."""
    settings = make_settings(bootstrap, make_topic)

    async def work(source: Source) -> None:
        assert source.begin(0, source.owned[0], 1_000)
        fetched = await source.fetch(2_000)
        while not fetched.faults:
            fetched = await source.fetch(2_000)
        assert isinstance(fetched.faults[0], OutOfRange)

    asyncio.run(with_source(settings, work))


def broken_batch() -> bytes:
    """Make a batch of ten records whose checksum is wrong."""
    builder = DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, 1 << 20)
    for n in range(10):
        builder.append(n, 1_700_000_000_000, b"key", b"%d" % n, [])
    made = bytearray(builder.build())
    made[-1] ^= 1
    return bytes(made)


def test_an_error_in_the_middle_of_a_batch_skips_nothing(bootstrap: str, make_topic: MakeTopic) -> None:
    """After a batch that cannot be read the source goes back to what it handed out, and reads it again."""
    settings = make_settings(bootstrap, make_topic)

    async def work(source: Source) -> None:
        assert source.begin(0, source.owned[0], 0)
        consumer = source._consumer
        fetcher = consumer._fetcher
        while not fetcher._records:
            await asyncio.sleep(0.01)
        ((_, result),) = fetcher._records.items()
        result._partition_records._records = MemoryRecords(broken_batch())
        fetched = await source.fetch(1_000)
        assert isinstance(fetched.faults[-1], Retryable)
        assert await offsets(source, 10) == list(range(10))

    async def all_of_it() -> None:
        await produce(bootstrap, settings.topics.events, [b"%d" % n for n in range(10)])
        await with_source(settings, work)

    asyncio.run(all_of_it())


@pytest.mark.parametrize("packed", [False, True])
def test_a_header_name_that_is_no_text(bootstrap: str, make_topic: MakeTopic, *, packed: bool) -> None:
    """Any bytes as a header: the client's reader gives up such a batch, each time anew; here nothing stands still for it."""
    settings = make_settings(bootstrap, make_topic, partitions=2)
    topic = settings.topics.events

    async def write() -> None:
        producer = AIOKafkaProducer(bootstrap_servers=bootstrap)
        await producer.start()
        try:
            for _ in range(2):
                await producer.send_and_wait(topic, b"before", partition=0)
                await (await producer.send_batch(odd(producer.create_batch(), packed=packed), topic, partition=0))
            await producer.send_and_wait(topic, b"after", partition=0)
        finally:
            await producer.stop()
        await produce(bootstrap, topic, [b"%d" % n for n in range(10)], partition=1)

    async def work(source: Source) -> None:
        for number in (0, 1):
            assert source.begin(number, source.owned[number], 0)
        seen: dict[int, list[Any]] = {0: [], 1: []}
        while len(seen[0]) < 7 or len(seen[1]) < 10:
            fetched = await source.fetch(200)
            assert not fetched.faults
            for number, records, _ in fetched.batches:
                seen[number] += records
        assert [record.offset for record in seen[0]] == list(range(7))
        assert [record.offset for record in seen[1]] == list(range(10))
        odd_ones = [record for record in seen[0] if record.value == b"odd"]
        assert [record.headers[0] for record in odd_ones] == [("\\xff\\xfe\\xfd\\xfc", b"x")] * 4

    async def all_of_it() -> None:
        await write()
        await with_source(settings, work)

    asyncio.run(all_of_it())


def odd(batch: Any, *, packed: bool) -> Any:
    """Fill a batch with two records that have a header whose name is no text; any producer may send it."""
    builder = DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, 1 << 20)
    for n in range(2):
        batch.append(key=None, value=b"odd", timestamp=None)
        builder.append(n, 1_700_000_000_000, None, b"odd", [("name", b"x")])
    data = bytearray(bytes(builder.build()).replace(b"name", b"\xff\xfe\xfd\xfc"))
    if packed:
        # Its codec is in the attributes, its length in the head; both of them by hand, since the client packs only text.
        data[61:] = zstd_encode(bytes(data[61:]))
        data[22] |= 4
        data[8:12] = (len(data) - 12).to_bytes(4, "big")
    data[17:21] = calc_crc32c(bytes(data[21:])).to_bytes(4, "big")
    batch._build()
    batch._buffer = data
    return batch


def test_markers_move_the_position_without_records(bootstrap: str, make_topic: MakeTopic) -> None:
    """Section 7: position, not last record: aborted transactions and markers at the end of the log are passed."""
    settings = make_settings(bootstrap, make_topic)
    topic = settings.topics.events

    async def write() -> None:
        producer = AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=f"in-{topic}")
        await producer.start()
        try:
            async with producer.transaction():
                await producer.send_and_wait(topic, b"seen", partition=0)
            await producer.begin_transaction()
            await producer.send_and_wait(topic, b"aborted", partition=0)
            await producer.abort_transaction()
        finally:
            await producer.stop()

    async def work(source: Source) -> None:
        assert source.begin(0, source.owned[0], 0)
        position, seen = 0, []
        while position < 4:
            for _, records, after in (await source.fetch(200)).batches:
                seen += [record.value for record in records]
                position = after
        assert seen == [b"seen"]
        end = await with_reader(settings, ends)
        assert end == position == 4

    async def ends(reader: Reader, _: Lines) -> int:
        return await reader.end(input_partition(settings))

    async def all_of_it() -> None:
        await write()
        await with_source(settings, work)

    asyncio.run(all_of_it())


def test_leaving_hands_the_partition_on_at_once(bootstrap: str, make_topic: MakeTopic) -> None:
    """A clean stop leaves the group: the next member does not wait for the session to end, which here is minutes away."""
    settings = make_settings(bootstrap, make_topic, kafka={"session_timeout_ms": 600_000, "rebalance_timeout_ms": 600_000})

    async def work() -> None:
        await with_source(settings, lambda source: source.fetch(50))
        await with_source(settings, lambda source: source.fetch(50))

    asyncio.run(work())


def test_a_member_that_was_voted_out_is_not_confirmed(bootstrap: str, make_topic: MakeTopic) -> None:
    """Section 7: a member paused past its session must not fence the new owner: the coordinator is asked first."""
    settings = make_settings(bootstrap, make_topic)

    async def work(source: Source) -> None:
        await source.confirm()
        source._consumer._coordinator.member_id = "somebody-else"
        with pytest.raises(Fenced):
            await source.confirm()

    asyncio.run(with_source(settings, work))


def test_the_question_leaves_the_membership_as_it_is(bootstrap: str, make_topic: MakeTopic) -> None:
    """Section 7: asked with an old generation, the answer is no; the member must not join again as somebody else for that."""
    settings = make_settings(bootstrap, make_topic)

    async def work(source: Source) -> None:
        coordinator = source._consumer._coordinator
        # As where the group moves on while the question waits behind the join on the same connection.
        coordinator.generation -= 1
        before = coordinator.generation, coordinator.member_id
        with pytest.raises(Fenced):
            await source.confirm()
        assert (coordinator.generation, coordinator.member_id) == before
        coordinator.generation += 1
        await source.confirm()

    asyncio.run(with_source(settings, work))
