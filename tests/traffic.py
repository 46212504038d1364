"""Writes and reads plain records with aiokafka, for tests that only ask whether the broker is there."""

from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition


async def produce(bootstrap: str, topic: str, values: list[bytes], **security: Any) -> None:
    """Write values to partition 0, acknowledged by the broker."""
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, acks="all", **security)
    try:
        await producer.start()
        for value in values:
            await producer.send_and_wait(topic, value, partition=0)
    finally:
        # `async with` would not stop one that could not start.
        await producer.stop()


async def consume(bootstrap: str, topic: str, count: int, **security: Any) -> list[bytes | None]:
    """Read the first values of partition 0."""
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest", **security)
    await consumer.start()
    try:
        consumer.assign([TopicPartition(topic, 0)])
        return [(await consumer.getone()).value for _ in range(count)]
    finally:
        await consumer.stop()
