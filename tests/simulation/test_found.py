"""What seeds have found, each as a plain test: the answers of the broker that brought it about, and nothing else."""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterator
from typing import Any

import pytest
from aiokafka.structs import TopicPartition

from processor.adapters.hand import Room
from processor.adapters.offset_fetch import Reader
from processor.adapters.publish import TransactionalPublisher
from processor.adapters.source import Source
from processor.errors import Fenced, Refused, Retryable
from tests.contract.kit import commit_at, decision
from tests.simulation import verdict
from tests.simulation.broker import Broker
from tests.simulation.clock import virtual_time
from tests.simulation.log import records
from tests.simulation.loop import Loop
from tests.simulation.network import Fate, Network
from tests.simulation.watch import Lines
from tests.simulation.world import INPUT, SETTINGS


def on_broker(
    work: Callable[[Broker], Awaitable[None]], codes: dict[int, list[int]], silent: Collection[int] = (), late: int = 0
) -> None:
    """Do something on an in-memory broker that gives the first requests of a kind these error codes.

    `silent`: kinds of requests of which nothing is heard; `late`: a kind of which the first arrives when its connection has
    been broken for long.
    """
    loop = Loop()
    broker = Broker(loop, random.Random(1))
    broker.make_topic(INPUT, 1)

    def fate(_: object, request: Any) -> Fate:
        left = codes.get(request.API_KEY)
        if late == request.API_KEY and not delayed:
            delayed.append(loop.call_later(0.1, network.cut))
            return Fate(0.6, 0.0)
        lost = "hang" if request.API_KEY in silent else ""
        return Fate(0.0005, 0.0005, code=left.pop(0) if left else 0, lost=lost)

    delayed: list[object] = []
    network = Network(broker, fate)
    asyncio.set_event_loop(loop)
    try:
        with virtual_time(), network.installed():
            loop.run_until_complete(work(broker))
    finally:
        asyncio.set_event_loop(None)
        loop.dispose()


async def read_on(source: Source) -> None:
    """Read for a while."""
    for _ in range(100):
        await source.fetch(200)
        await asyncio.sleep(0.1)


def test_a_consumer_whose_helpers_have_ended_is_made_anew() -> None:
    """Seeds 30, 31, 88: one answer that the client does not expect, to a heartbeat or a look at commits, stops its task.

    Every fetch raises it from then on, while the member stays in the group: no record of its partitions was read again.
    """

    async def work(broker: Broker) -> None:
        broker.logs[INPUT, 0].append(records([(b"key", b"value", 1)]), 1)
        source = Source(SETTINGS, lambda: None, Room(SETTINGS.kafka.max_buffered_bytes))
        await source.start()
        with pytest.raises(Retryable):
            await read_on(source)
        await source.close()
        await source.start()
        while not source.begin(0, source.owned.get(0, 0), 0):
            await source.fetch(200)
        found: list[int] = []
        while not found:
            fetched = await source.fetch(200)
            assert not fetched.faults
            found += [record.offset for _, some, _ in fetched.batches for record in some]
        assert found == [0]
        await source.close()

    on_broker(work, {12: [-1]})


def test_two_requests_that_time_out_at_once_are_retryable() -> None:
    """Seed 3 of variant h: the client looks up a connection that a third request has just taken out, and raises a KeyError.

    A process that was frozen sees all its time-outs at once. The error would have stopped the partition for good.
    """
    silent: set[int] = set()

    async def work(broker: Broker) -> None:
        del broker
        where = TopicPartition(INPUT, 0)
        reader = Reader(SETTINGS.kafka, SETTINGS.group, Lines("reader", Counter(), None))
        await reader.start()
        await reader.end(where)
        silent.add(2)

        async def later() -> None:
            await asyncio.sleep(SETTINGS.kafka.request_timeout_ms / 1000)
            await reader.end(where)

        found = await asyncio.gather(reader.end(where), later(), reader.end(where), return_exceptions=True)
        assert [type(each) for each in found] == [Retryable] * 3, found
        await reader.close()

    on_broker(work, {}, silent)


def test_a_late_copy_of_a_request_meets_no_other_transaction() -> None:
    """Seed 1974: an EndTxn whose connection broke was sent again; its first copy came late, and committed half of the next one.

    The decisions of that one were published without their offset, and made again. A new epoch keeps such copies out (KIP-890).
    """

    async def work(broker: Broker) -> None:
        for name in ("approved", "rejected", "dead-letter"):
            broker.make_topic(name, 1)
        publisher = TransactionalPublisher(SETTINGS, TopicPartition(INPUT, 0))
        await publisher.start()
        await publisher.publish([decision(b"one")], commit_at(1))
        with pytest.raises(Fenced, match="may still arrive"):
            await publisher.publish([decision(b"two")], commit_at(2))
        await publisher.close()
        await asyncio.sleep(1.0)
        assert [record.value for record in verdict.records(broker.logs["approved", 0])] == [b"one"]
        place = broker.groups[SETTINGS.group].offsets[INPUT, 0]
        assert place.offset == 1

    on_broker(work, {}, late=26)


def test_a_refused_partition_leaves_no_record_in_the_transaction_before() -> None:
    """Seed 100776: the client went on to send the records of a partition that was refused for the transaction.

    The marker of the one before was not written yet, so that the broker took them for a part of it: without an offset.
    """

    async def work(broker: Broker) -> None:
        broker.marker_seconds = (0.3, 0.3)
        for name in ("approved", "rejected", "dead-letter"):
            broker.make_topic(name, 1)
        publisher = TransactionalPublisher(SETTINGS, TopicPartition(INPUT, 0))
        await publisher.start()
        await publisher.publish([decision(b"one")], commit_at(1))
        with pytest.raises((Refused, Fenced)):
            await publisher.publish([decision(b"two")], commit_at(2))
        await publisher.close()
        await asyncio.sleep(2.0)
        assert [record.value for record in verdict.records(broker.logs["approved", 0])] == [b"one"]

    on_broker(work, {24: [0, 29]})


def test_a_partition_that_is_not_begun_asks_for_nothing() -> None:
    """Found by counting requests: without a committed offset the client asked for one without end, until the takeover was done.

    Of a partition that is stopped it would have done so for ever, and slowed down the others.
    """
    asked: Counter[int] = Counter()

    async def work(broker: Broker) -> None:
        del broker
        source = Source(SETTINGS, lambda: None, Room(SETTINGS.kafka.max_buffered_bytes))
        await source.start()
        await read_on(source)
        assert (asked[9], asked[1]) == (0, 0), asked
        await source.close()

    on_broker(work, {}, _Counted(asked))


class _Counted(Collection[int]):
    """Empty, but it counts what is looked for."""

    def __init__(self, asked: Counter[int]) -> None:
        self._asked = asked

    def __contains__(self, key: object) -> bool:
        assert isinstance(key, int)
        self._asked[key] += 1
        return False

    def __iter__(self) -> Iterator[int]:
        return iter(())

    def __len__(self) -> int:
        return 0
