"""Start and takeover of a partition on a real broker, in the order of the design."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.admin import RecordsToDelete
from aiokafka.structs import OffsetAndMetadata

from processor.adapters.offset_fetch import Reader
from processor.adapters.publish import TransactionalPublisher, transactional_id
from processor.adapters.takeover import Kept, Start, Takeover
from processor.core.candidate import Candidate
from processor.core.events import Unreadable
from processor.core.offsets import Commit, decode, encode
from processor.core.outgoing import Outgoing
from processor.core.pipeline import Partition
from processor.core.signals import Tally
from processor.errors import Fatal, Fenced, Poisoned
from processor.settings import Settings
from tests.conftest import MakeTopic
from tests.contract.kit import (
    BOUNDS,
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


class NoJudge:
    """Nothing is decided here."""

    def __init__(self) -> None:
        self.tally = Tally()

    def __call__(self, candidate: Candidate, topic: str, partition: int, now_ms: int) -> Outgoing:
        """Never called."""
        raise AssertionError((candidate, topic, partition, now_ms))

    def dead_letter(self, record: Any, unreadable: Unreadable, topic: str, partition: int) -> Outgoing:
        """Never called."""
        raise AssertionError((record, unreadable, topic, partition))


def make_partition(topic: str, number: int) -> Partition:
    """Make the state of a partition, empty."""
    return Partition(topic, number, BOUNDS, NoJudge())


async def take(settings: Settings, reader: Reader, log: Lines, reset: str = "error", kept: Kept | None = None) -> Start:
    """Take the partition over, and let go of it again."""
    where = input_partition(settings)
    publisher = TransactionalPublisher(settings, where)
    try:
        return await Takeover(where, make_partition, reader, reset, log).run(publisher, kept)
    finally:
        await publisher.close()


def run(settings: Settings, work: Callable[[Reader, Lines], Awaitable[None]]) -> None:
    """Run it with a reader."""
    asyncio.run(with_reader(settings, work))


async def commit_plain(settings: Settings, offset: int, metadata: str) -> None:
    """Commit as an operator's tool would: without callgate's metadata, or with a broken one."""
    producer = AIOKafkaProducer(
        bootstrap_servers=settings.kafka.bootstrap_servers[0],
        transactional_id=transactional_id(settings.group, input_partition(settings)),
    )
    await producer.start()
    async with producer.transaction():
        await producer.send_offsets_to_transaction(
            {input_partition(settings): OffsetAndMetadata(offset, metadata)}, settings.group
        )
    await producer.stop()


def test_the_first_start_commits_its_place(bootstrap: str, make_topic: MakeTopic) -> None:
    """Section 7: with no offset at all the starting position is committed before the first read."""
    settings = make_settings(bootstrap, make_topic)

    async def work(reader: Reader, log: Lines) -> None:
        await produce(bootstrap, settings.topics.events, [b"x"] * 3)
        start = await take(settings, reader, log)
        found = await reader.committed(input_partition(settings))
        assert found is not None
        assert start.offset == found.offset == 0
        assert decode(*found) == start.acknowledged == start.partition.commit_point()
        assert log.events() == ["first_start"]

    run(settings, work)


def test_what_was_committed_comes_back(bootstrap: str, make_topic: MakeTopic) -> None:
    """Section 7: W, P, T, E and the settings come back, and the partition rebuilds from W to P."""
    settings = make_settings(bootstrap, make_topic)
    commit = Commit(offset=1, position=3, watermark=1_000, moves=((2, 5_000),), bounds=BOUNDS)

    async def work(reader: Reader, log: Lines) -> None:
        await produce(bootstrap, settings.topics.events, [b"x"] * 4)
        publisher = await started(settings)
        await publisher.publish([], commit)
        await publisher.close()
        start = await take(settings, reader, log)
        assert start[1:] == (1, commit)
        assert start.partition.rebuilding
        assert log.events() == []

    run(settings, work)


def test_the_last_owner_is_settled_before_its_commit_is_read(bootstrap: str, make_topic: MakeTopic) -> None:
    """Model, known-bad a: reading before initialising would take a commit that the last owner then moves on from."""
    settings = make_settings(bootstrap, make_topic)

    async def work(reader: Reader, log: Lines) -> None:
        await produce(bootstrap, settings.topics.events, [b"x"] * 9)
        last = await started(settings)
        await last.publish([decision(b"one")], commit_at(2))
        producer = last._sender._producer
        await producer.begin_transaction()
        await last._sender.send([decision(b"never")])
        offsets = {input_partition(settings): OffsetAndMetadata(8, encode(commit_at(8)))}
        await producer.send_offsets_to_transaction(offsets, settings.group)
        start = await take(settings, reader, log)
        assert start.offset == 2
        last._begun = False
        with pytest.raises(Fenced):
            await last.publish([], commit_at(9))
        await last.close()
        assert [r.value for r in await read_all(bootstrap, settings.topics.approved)] == [b"one"]

    run(settings, work)


@pytest.mark.parametrize("metadata", ["", "somebody else's", "{}", "\x00\U0001f600" * 20])
def test_foreign_metadata_is_a_fresh_start(bootstrap: str, make_topic: MakeTopic, metadata: str) -> None:
    """Section 7: an offset that is not callgate's own is a fresh start there, said in the log."""
    settings = make_settings(bootstrap, make_topic)

    async def work(reader: Reader, log: Lines) -> None:
        await produce(bootstrap, settings.topics.events, [b"x"] * 5)
        await commit_plain(settings, 4, metadata)
        start = await take(settings, reader, log)
        assert start[1:] == (4, None)
        assert not start.partition.rebuilding
        assert log.events() == ["fresh_start"]

    run(settings, work)


def test_an_offset_reset_by_hand_is_a_fresh_start(bootstrap: str, make_topic: MakeTopic) -> None:
    """Section 7: metadata of another offset (somebody reset it and kept the metadata) counts no more."""
    settings = make_settings(bootstrap, make_topic)

    async def work(reader: Reader, log: Lines) -> None:
        await produce(bootstrap, settings.topics.events, [b"x"] * 5)
        await commit_plain(settings, 2, encode(commit_at(4)))
        start = await take(settings, reader, log)
        assert start[1:] == (2, None)
        assert log.events() == ["fresh_start"]

    run(settings, work)


@pytest.mark.parametrize(("reset", "offset"), [("error", None), ("earliest", 3), ("latest", 6)])
def test_out_of_retention_is_never_a_silent_jump(bootstrap: str, make_topic: MakeTopic, reset: str, offset: int | None) -> None:
    """Section 7: a committed offset out of retention is a named error, or the configured reset, committed at once."""
    settings = make_settings(bootstrap, make_topic)

    async def work(reader: Reader, log: Lines) -> None:
        await produce(bootstrap, settings.topics.events, [b"x"] * 6)
        publisher = await started(settings)
        await publisher.publish([], commit_at(1))
        await publisher.close()
        await reader.admin.delete_records({input_partition(settings): RecordsToDelete(before_offset=3)})
        if offset is None:
            with pytest.raises(Poisoned, match="W 1, P 1"):
                await take(settings, reader, log, reset)
            return
        start = await take(settings, reader, log, reset)
        found = await reader.committed(input_partition(settings))
        assert found is not None
        assert start.offset == found.offset == offset
        assert "out_of_retention" in log.events()

    run(settings, work)


def test_what_is_decided_stays_so_where_the_log_begins_between_w_and_p(bootstrap: str, make_topic: MakeTopic) -> None:
    """Section 7: with `offset_reset = earliest` the records between the log's first one and P are not decided again."""
    settings = make_settings(bootstrap, make_topic)

    async def work(reader: Reader, log: Lines) -> None:
        await produce(bootstrap, settings.topics.events, [b"x"] * 6)
        publisher = await started(settings)
        await publisher.publish([], commit_at(1, 5))
        await publisher.close()
        await reader.admin.delete_records({input_partition(settings): RecordsToDelete(before_offset=3)})
        start = await take(settings, reader, log, "earliest")
        assert start[1:] == (3, None)
        assert start.partition.rebuilding
        assert (start.partition.commit_point().offset, start.partition.commit_point().position) == (3, 5)
        assert "out_of_retention" in log.events()

    run(settings, work)


def test_a_commit_beyond_the_log_is_named(bootstrap: str, make_topic: MakeTopic) -> None:
    """A topic that was made anew is shorter than what was committed: the rebuild would wait for ever."""
    settings = make_settings(bootstrap, make_topic)

    async def work(reader: Reader, log: Lines) -> None:
        await produce(bootstrap, settings.topics.events, [b"x"] * 2)
        publisher = await started(settings)
        await publisher.publish([], commit_at(1, 50))
        await publisher.close()
        with pytest.raises(Poisoned, match="W 1, P 50"):
            await take(settings, reader, log)

    run(settings, work)


def test_a_partition_that_is_not_there_is_fatal(bootstrap: str, make_topic: MakeTopic) -> None:
    """Asking for the ends of a partition that the topic does not have is a plain sentence, not a wait."""
    settings = make_settings(bootstrap, make_topic)

    async def work(reader: Reader, _: Lines) -> None:
        with pytest.raises(Fatal, match="no such partition"):
            await reader.ends(input_partition(settings, 7))

    run(settings, work)


def test_a_kept_state_counts_only_if_nothing_moved(bootstrap: str, make_topic: MakeTopic) -> None:
    """Model, known-bad f: a state is kept only where the commit that is read equals its own last one in full."""
    settings = make_settings(bootstrap, make_topic)

    async def work(reader: Reader, log: Lines) -> None:
        await produce(bootstrap, settings.topics.events, [b"x"] * 9)
        commit = commit_at(4)
        publisher = await started(settings)
        await publisher.publish([], commit)
        await publisher.close()
        mine = make_partition(settings.topics.events, 0)
        mine.resume(commit, 4)
        kept = Kept(mine, commit)
        start = await take(settings, reader, log, kept=kept)
        assert start.partition is mine
        assert start[1:] == (4, commit)
        moved = Commit(offset=4, position=4, watermark=8, moves=(), bounds=BOUNDS)
        other = await started(settings)
        await other.publish([], moved)
        await other.close()
        start = await take(settings, reader, log, kept=kept)
        assert start.partition is not mine
        assert start.acknowledged == moved
        assert log.events() == ["state_kept"]

    run(settings, work)
