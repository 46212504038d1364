"""Backpressure on a real broker: what is in hand stays within its bound, and a slow partition does not stop the others."""

import asyncio
import json
from collections.abc import Container, Sequence
from typing import Any, cast

from aiokafka import AIOKafkaProducer

from processor import app
from processor.adapters.runner import Runner
from processor.adapters.tenure import CHUNK, CHUNK_BYTES
from processor.core.pipeline import Partition
from processor.core.ports import Record
from processor.core.toolsets import EMPTY
from processor.observe.health import Status, live
from processor.settings import Settings
from tests.conftest import MakeTopic
from tests.contract.kit import Lines, make_settings, produce

PATIENCE_SECONDS = 120
MIB = 1 << 20


async def until(true: Any) -> None:
    """Wait for something that must come."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not true():
            await asyncio.sleep(0.01)


async def fill(bootstrap: str, topic: str, partitions: Sequence[int], values: Sequence[bytes]) -> None:
    """Write the same to some partitions."""
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap)
    await producer.start()
    try:
        for number in partitions:
            await asyncio.gather(*[await producer.send(topic, value, key=b"key", partition=number) for value in values])
    finally:
        await producer.stop()


def committed(runner: Runner) -> list[int]:
    """P of each partition that has one."""
    return [one["committed_p"] or 0 for one in runner.status()["partitions"].values()]


def message(size: int) -> bytes:
    """An event of about this size that decides nothing."""
    return json.dumps({"type": "response.output_text.delta", "delta": "x" * size}).encode()


def held_up(runner: Runner, numbers: Container[int]) -> asyncio.Event:
    """Let the transactions of these partitions wait, in the midst of publishing, for the event that is returned."""
    make_publisher, go_on = runner._publisher, asyncio.Event()

    def publisher_of(where: Any) -> Any:
        publisher = make_publisher(where)
        publish = publisher.publish

        async def wait_first(outgoing: Any, commit: Any) -> None:
            if where.partition in numbers and outgoing:
                await go_on.wait()
            await publish(outgoing, commit)

        publisher.publish = wait_first  # type: ignore[method-assign]
        return publisher

    runner._publisher = publisher_of  # type: ignore[assignment]
    return go_on


def test_many_partitions_stay_within_the_bound(bootstrap: str, make_topic: MakeTopic) -> None:
    """Issue 6: 64 partitions, each with fetches of 50 MB, hold what is set and no more, though no transaction ends."""
    partitions, bound = 64, 8 * MIB
    kafka = {"max_partition_fetch_bytes": 50 * MIB, "fetch_max_bytes": 50 * MIB, "max_buffered_bytes": bound}
    settings = make_settings(bootstrap, make_topic, partitions, kafka=kafka)
    runner = Runner(settings, app.Core(settings, EMPTY).partition, Lines())
    room = runner._room

    async def work() -> None:
        go_on = held_up(runner, range(partitions))
        await fill(bootstrap, settings.topics.events, range(partitions), [b"{" + b"x" * 40_000] * 10)
        running = asyncio.create_task(runner.run())
        try:
            await until(lambda: room.full)
            go_on.set()
            await until(lambda: committed(runner) == [10] * partitions)
        finally:
            go_on.set()
            runner.stop()
            await running

    asyncio.run(work())
    # A batch may go over the bound, and a decision is larger than its record.
    assert bound <= room.peak <= bound * 1.25
    assert room.held == 0


def test_a_slow_partition_does_not_stop_the_others(bootstrap: str, make_topic: MakeTopic) -> None:
    """Issue 6: one whose transaction does not end holds its share, and no more; the others are read to their ends."""
    settings = make_settings(bootstrap, make_topic, 4, kafka={"max_buffered_bytes": MIB})
    runner = Runner(settings, app.Core(settings, EMPTY).partition, Lines())

    def health() -> tuple[bool, dict[str, Any]]:
        return live(cast("Status", runner.status()), 1.0)

    async def work() -> None:
        go_on = held_up(runner, {2})
        await fill(bootstrap, settings.topics.events, range(4), [b"{" + b"x" * 20_000] * 100)
        running = asyncio.create_task(runner.run())
        try:
            await until(lambda: sorted(committed(runner)) == [0, 100, 100, 100])
            assert runner.status()["partitions"][2]["state"] == "live"
            # It is not alive for ever: one that has backlog and makes no progress is a reason to restart.
            await until(lambda: not health()[0])
            assert [one["partition"] for one in health()[1]["stalled"]] == [2]
            go_on.set()
            await until(lambda: health()[0])
            await until(lambda: committed(runner) == [100] * 4)
        finally:
            go_on.set()
            runner.stop()
            await running

    asyncio.run(work())
    assert runner._room.held == 0


class Counted(Partition):
    """A partition that notes what it is fed at a stretch, and in which turn of the loop."""

    turns = 0
    fed: list[tuple[int, int, int]]

    def feed(self, records: Sequence[Record], now_ms: int, value_bytes: int | None = None) -> None:
        """Feed, and note turn, records and bytes."""
        self.fed.append((Counted.turns, len(records), sum(len(record.value or b"") for record in records)))
        super().feed(records, now_ms, value_bytes)


def test_the_loop_gets_its_turn_between_large_records(bootstrap: str, make_topic: MakeTopic) -> None:
    """Issue 6: between two stretches the loop runs; none has more than the largest record. The membership outlives it."""
    largest = 1_000_000
    slow = b"[" + b"{}," * (largest // 3 - 2) + b"{}]"
    settings = make_settings(bootstrap, make_topic, 2, kafka={"session_timeout_ms": 30_000})
    core = app.Core(settings, EMPTY)
    fed: list[tuple[int, int, int]] = []

    def make_partition(topic: str, number: int) -> Partition:
        made = Counted(topic, number, settings.bounds(), core.judge)
        made.fed = fed
        return made

    runner = Runner(settings, make_partition, Lines())

    async def count_turns() -> None:
        while True:
            Counted.turns += 1
            await asyncio.sleep(0)

    async def work() -> None:
        events = settings.topics.events
        await produce(bootstrap, events, [slow] * 4, partition=0)
        await produce(bootstrap, events, [message(10)] * 3_000, partition=1)
        await produce(bootstrap, events, [message(200_000)] * 20, partition=1)
        counting = asyncio.create_task(count_turns())
        running = asyncio.create_task(runner.run())
        try:
            await until(lambda: sorted(committed(runner)) == [4, 3_020])
        finally:
            counting.cancel()
            runner.stop()
            await running

    asyncio.run(work())
    assert runner._source._generation == 1
    assert sum(records for _, records, _ in fed) >= 3_024
    assert all(records <= CHUNK and (count <= CHUNK_BYTES or records == 1) for _, records, count in fed)
    turns = [turn for turn, _, _ in fed]
    # Two partitions may be fed in one turn, each once.
    assert all(turns.count(turn) <= 2 for turn in set(turns))


def test_a_largest_record_of_any_setting_is_read(bootstrap: str, make_topic: MakeTopic) -> None:
    """A record larger than the share, the bound and the fetch size is read all the same, alone."""
    settings = make_settings(
        bootstrap, make_topic, 3, kafka={"max_buffered_bytes": 100_000, "max_partition_fetch_bytes": 2_000}
    )
    runner = Runner(settings, app.Core(settings, EMPTY).partition, Lines())

    async def work() -> None:
        await fill(bootstrap, settings.topics.events, range(3), [message(900_000), message(10), message(500_000)])
        running = asyncio.create_task(runner.run())
        try:
            await until(lambda: committed(runner) == [3, 3, 3])
        finally:
            runner.stop()
            await running

    asyncio.run(work())
    assert runner._room.held == 0


def test_settings_say_how_much() -> None:
    """The bound is a setting, and its default leaves a partition of sixteen its four fetches."""
    kafka = Settings().kafka
    assert kafka.max_buffered_bytes // 16 == 4 * kafka.max_partition_fetch_bytes
