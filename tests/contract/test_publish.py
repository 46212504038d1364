"""The transactional seam on a real broker: all of a commit or nothing, and nothing from an owner that was replaced."""

import asyncio

import pytest
from aiokafka import AIOKafkaProducer

from processor.adapters.offset_fetch import Reader
from processor.core.offsets import decode
from processor.core.outgoing import Route
from processor.errors import Fenced, Poisoned
from tests.conftest import MakeTopic
from tests.contract.kit import (
    Lines,
    commit_at,
    decision,
    input_partition,
    make_settings,
    produce,
    read_all,
    started,
    with_reader,
)


def test_decisions_and_offset_are_published_at_once(bootstrap: str, make_topic: MakeTopic) -> None:
    """Section 7: decisions of all routes and the commit, metadata included, become visible in one transaction."""
    settings = make_settings(bootstrap, make_topic)

    async def work(reader: Reader, _: Lines) -> None:
        publisher = await started(settings)
        commit = commit_at(3, 17)
        records = [
            decision(b"a"),
            decision(b"b", route=Route.REJECTED),
            decision(b"c", route=Route.DEAD_LETTER),
            decision(b"d"),
        ]
        await publisher.publish(records, commit)
        await publisher.close()
        found = await reader.committed(input_partition(settings))
        assert found is not None
        assert decode(*found) == commit
        names = settings.topics
        assert [r.value for r in await read_all(bootstrap, names.approved)] == [b"a", b"d"]
        assert [r.value for r in await read_all(bootstrap, names.rejected)] == [b"b"]
        assert [r.value for r in await read_all(bootstrap, names.dead_letter)] == [b"c"]

    asyncio.run(with_reader(settings, work))


def test_a_refused_record_aborts_everything(bootstrap: str, make_topic: MakeTopic) -> None:
    """Section 7: the client would commit although a record was refused for its size; here nothing of it becomes visible."""
    settings = make_settings(bootstrap, make_topic, approved={"max.message.bytes": "20000"}, kafka={"compression": "none"})

    async def work(reader: Reader, _: Lines) -> None:
        publisher = await started(settings)
        await publisher.publish([decision(b"before", route=Route.REJECTED)], commit_at(1))
        with pytest.raises(Poisoned, match="MessageSizeTooLarge"):
            await publisher.publish([decision(b"with it", route=Route.REJECTED), decision(b"x" * 50_000)], commit_at(2))
        await publisher.close()
        assert [r.value for r in await read_all(bootstrap, settings.topics.rejected)] == [b"before"]
        assert await read_all(bootstrap, settings.topics.approved) == []
        found = await reader.committed(input_partition(settings))
        assert found is not None
        assert found.offset == 1

    asyncio.run(with_reader(settings, work))


def test_a_replaced_owner_is_fenced(bootstrap: str, make_topic: MakeTopic) -> None:
    """Section 7, fencing: once a successor has initialised, the last owner commits nothing more, decisions or progress."""
    settings = make_settings(bootstrap, make_topic)

    async def work(reader: Reader, _: Lines) -> None:
        zombie = await started(settings)
        await zombie.publish([decision(b"mine")], commit_at(1))
        other = await started(settings)
        with pytest.raises(Fenced):
            await zombie.publish([decision(b"late")], commit_at(2))
        await zombie.close()
        await other.publish([decision(b"next")], commit_at(2))
        third = await started(settings)
        with pytest.raises(Fenced):
            await other.publish([], commit_at(3))
        await other.close()
        await third.close()
        assert [r.value for r in await read_all(bootstrap, settings.topics.approved)] == [b"mine", b"next"]
        found = await reader.committed(input_partition(settings))
        assert found is not None
        assert found.offset == 2

    asyncio.run(with_reader(settings, work))


def test_progress_alone_is_a_transaction_without_records(bootstrap: str, make_topic: MakeTopic) -> None:
    """Section 7: commits without decisions go through the partition's own producer too, and write nothing else."""
    settings = make_settings(bootstrap, make_topic)

    async def work(reader: Reader, _: Lines) -> None:
        publisher = await started(settings)
        for offset in (5, 6):
            await publisher.publish([], commit_at(offset))
        await publisher.close()
        found = await reader.committed(input_partition(settings))
        assert found is not None
        assert found.offset == 6
        for topic in (settings.topics.approved, settings.topics.rejected, settings.topics.dead_letter):
            assert await reader.end(input_partition(settings)._replace(topic=topic)) == 0

    asyncio.run(with_reader(settings, work))


def test_what_was_begun_is_aborted_on_close(bootstrap: str, make_topic: MakeTopic) -> None:
    """A publish that is cancelled half-way leaves no open transaction behind for readers to wait for."""
    settings = make_settings(bootstrap, make_topic)

    async def work() -> None:
        publisher = await started(settings)
        producer = publisher._sender._producer
        await producer.begin_transaction()
        publisher._begun = True
        await publisher._sender.send([decision(b"never")])
        await publisher.close()
        await produce(bootstrap, settings.topics.approved, [b"after"])
        # A reader of committed records would not get past an open transaction.
        assert [r.value for r in await read_all(bootstrap, settings.topics.approved)] == [b"after"]

    asyncio.run(work())


def test_anything_can_be_a_dead_letter(bootstrap: str, make_topic: MakeTopic) -> None:
    """Any bytes, also none at all, go out as key, value and header."""
    settings = make_settings(bootstrap, make_topic)
    shapes = [(None, None), (b"", b""), (b"\x00\xff", b"\x80" * 300_000), ("é".encode(), None), (None, b"\n")]

    async def work() -> None:
        publisher = await started(settings)
        records = [decision(value, key, Route.DEAD_LETTER) for key, value in shapes]
        records[0].headers = [("callgate-cause", b""), ("x", None), ("", b"\xff")]
        await publisher.publish(records, commit_at(1))
        await publisher.close()
        found = await read_all(bootstrap, settings.topics.dead_letter)
        assert [(r.key, r.value) for r in found] == shapes
        assert list(found[0].headers) == records[0].headers

    asyncio.run(work())


def test_many_records_keep_their_order(bootstrap: str, make_topic: MakeTopic) -> None:
    """Records that do not fit into one batch come out in the order in which they were decided."""
    settings = make_settings(bootstrap, make_topic)
    values = [b"%06d" % n + b"." * 400 for n in range(5000)]

    async def work() -> None:
        publisher = await started(settings)
        await publisher.publish([decision(value) for value in values], commit_at(1))
        await publisher.close()
        assert [r.value for r in await read_all(bootstrap, settings.topics.approved)] == values

    asyncio.run(work())


def test_the_committed_offset_waits_for_a_pending_commit(bootstrap: str, make_topic: MakeTopic) -> None:
    """Section 7: OffsetFetch with require_stable never answers with the offset before a commit that is being settled."""
    settings = make_settings(bootstrap, make_topic)

    async def work(reader: Reader, log: Lines) -> None:
        where = input_partition(settings)
        assert await reader.committed(where) is None
        producer = AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=f"own-{where.topic}", retry_backoff_ms=5)
        await producer.start()
        try:
            for offset in range(1, 41):
                async with producer.transaction():
                    await producer.send_offsets_to_transaction({where: offset}, settings.group)
                found = await reader.committed(where)
                assert found is not None
                assert found.offset == offset
            await producer.begin_transaction()
            await producer.send_offsets_to_transaction({where: 99}, settings.group)
            reading = asyncio.ensure_future(reader.committed(where))
            done, _ = await asyncio.wait([reading], timeout=0.3)
            assert not done
            await producer.abort_transaction()
            found = await reading
            assert found is not None
            assert found.offset == 40
        finally:
            await producer.stop()
        assert log.events() == []

    asyncio.run(with_reader(settings, work))
