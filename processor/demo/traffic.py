"""What goes over Kafka in the demo: streams in, interleaved as on a busy topic; decisions out, as a consumer reads them."""

import asyncio
from pathlib import Path
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient

from processor.adapters.archive import Archive, ArchivedRecord
from processor.adapters.kafka_client import client_options
from processor.demo.shown import Row
from processor.settings import Settings


async def publish(settings: Settings, files: list[Path]) -> int:
    """Send every stream in its order, taking turns; returns the number of records."""
    queues = [list(Archive(settings.topics.events).read(str(file))) for file in files]
    turns: list[ArchivedRecord] = []
    while any(queues):
        turns += [queue.pop(0) for queue in queues if queue]
    options = client_options(settings.kafka)
    producer: Any = AIOKafkaProducer(**options, acks="all", enable_idempotence=True)  # type: ignore[no-untyped-call]
    await producer.start()
    try:
        sent = [
            await producer.send(settings.topics.events, record.value, key=record.key, headers=list(record.headers))
            for record in turns
        ]
        await asyncio.gather(*sent)
    finally:
        await producer.stop()
    return len(turns)


async def collect(settings: Settings, expected: int, seconds: float) -> list[Row]:
    """Read decisions and dead letters, committed ones only, until there are as many as expected and a moment longer."""
    names = settings.topics
    consumer: Any = AIOKafkaConsumer(  # type: ignore[no-untyped-call]
        names.approved,
        names.rejected,
        names.dead_letter,
        **client_options(settings.kafka),
        auto_offset_reset="earliest",
        isolation_level="read_committed",
        enable_auto_commit=False,
    )
    await consumer.start()
    rows: list[Row] = []
    loop = asyncio.get_running_loop()
    patience = loop.time() + seconds
    try:
        while loop.time() < patience:
            fetched = await consumer.getmany(timeout_ms=300)
            for partition, records in fetched.items():
                dead = partition.topic == names.dead_letter
                rows += [Row.of_dead_letter(one.key, one.headers) if dead else Row.of_decision(one.value) for one in records]
            if len(rows) >= expected and not fetched:
                break
    finally:
        await consumer.stop()
    return rows


async def remove(settings: Settings, topics: list[str]) -> None:
    """Remove topics that the demo made on a broker that goes on after it."""
    admin: Any = AIOKafkaAdminClient(**client_options(settings.kafka))
    await admin.start()
    try:
        await admin.delete_topics(topics)
    finally:
        await admin.close()
