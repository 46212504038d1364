"""What the contract tests share: settings for one test, topics, readers, a log that is kept."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.structs import ConsumerRecord, TopicPartition

from processor.adapters.offset_fetch import Reader
from processor.adapters.publish import TransactionalPublisher
from processor.core.limits import Bounds
from processor.core.offsets import Commit
from processor.core.outgoing import Outgoing, Route
from processor.settings import Kafka, Settings, Topics
from tests.conftest import MakeTopic

BOUNDS = Bounds()


class Lines:
    """A log that keeps what it is told."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str, dict[str, Any]]] = []

    def info(self, event: str, **fields: Any) -> None:
        """Keep it."""
        self.lines.append(("info", event, fields))

    def warning(self, event: str, **fields: Any) -> None:
        """Keep it."""
        self.lines.append(("warning", event, fields))

    def error(self, event: str, **fields: Any) -> None:
        """Keep it."""
        self.lines.append(("error", event, fields))

    def events(self) -> list[str]:
        """Names of what happened, in order."""
        return [event for _, event, _ in self.lines]


def make_settings(bootstrap: str, make_topic: MakeTopic, partitions: int = 1, **changes: Any) -> Settings:
    """Give a test settings with a group and four topics of its own."""
    output = {"max.message.bytes": str(8 << 20)}
    events = make_topic("events", partitions=partitions, config={"message.timestamp.type": "LogAppendTime"})
    topics = Topics(
        events=events,
        approved=make_topic("approved", partitions=partitions, config=changes.pop("approved", output)),
        rejected=make_topic("rejected", partitions=partitions, config=output),
        dead_letter=make_topic("dead-letter", partitions=partitions, config=output),
    )
    usual = {
        "session_timeout_ms": 6_000,
        "heartbeat_interval_ms": 500,
        "rebalance_timeout_ms": 10_000,
        "transaction_timeout_ms": 10_000,
    }
    kafka = Kafka(bootstrap_servers=(bootstrap,), **(usual | changes.pop("kafka", {})))
    return Settings(group=f"group-{events}", topics=topics, kafka=kafka, **changes)


def commit_at(offset: int, position: int | None = None) -> Commit:
    """Make a commit point without anything special about it."""
    return Commit(offset=offset, position=offset if position is None else position, watermark=7, moves=(), bounds=BOUNDS)


def decision(value: bytes | None, key: bytes | None = b"key", route: Route = Route.APPROVED) -> Outgoing:
    """Make one record to publish."""
    return Outgoing(route=route, key=key, value=value, headers=[("reason", b"ok")], reason="ok")


def input_partition(settings: Settings, number: int = 0) -> TopicPartition:
    """Name a partition of the input topic."""
    return TopicPartition(settings.topics.events, number)


async def with_reader(settings: Settings, work: Callable[[Reader, Lines], Awaitable[Any]]) -> Any:
    """Do something with a connected reader."""
    log = Lines()
    reader = Reader(settings.kafka, settings.group, log)
    await reader.start()
    try:
        return await work(reader, log)
    finally:
        await reader.close()


async def started(settings: Settings, number: int = 0) -> TransactionalPublisher:
    """Make the publisher of a partition; it fences whoever had it."""
    publisher = TransactionalPublisher(settings, input_partition(settings, number))
    try:
        await publisher.start()
    except BaseException:
        await publisher.close()
        raise
    return publisher


async def produce(bootstrap: str, topic: str, values: list[bytes], *, partition: int = 0, key: bytes | None = b"key") -> None:
    """Write values, acknowledged by the broker."""
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, acks="all")
    await producer.start()
    try:
        sent = [await producer.send(topic, value, key=key, partition=partition) for value in values]
        await asyncio.gather(*sent)
    finally:
        await producer.stop()


async def read_all(bootstrap: str, topic: str, partition: int = 0, *, committed: bool = True) -> list[ConsumerRecord[Any, Any]]:
    """Read a partition up to the end that it has now."""
    isolation = "read_committed" if committed else "read_uncommitted"
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest", isolation_level=isolation)
    await consumer.start()
    where = TopicPartition(topic, partition)
    try:
        consumer.assign([where])
        end = (await consumer.end_offsets([where]))[where]
        found: list[ConsumerRecord[Any, Any]] = []
        while await consumer.position(where) < end:
            for records in (await consumer.getmany(timeout_ms=200)).values():
                found += records
        return found
    finally:
        await consumer.stop()
