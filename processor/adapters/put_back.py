"""Dead letters as records of the input topic: batches that it takes, in the partition that each was read from.

Owns what is sent for one transaction of a redrive. It begins and ends none.
"""

import asyncio
from collections.abc import Sequence

from aiokafka.producer.message_accumulator import BatchBuilder

from processor.adapters.publish import BATCH_BYTES, TransactionalPublisher
from processor.core.redrive import DeadLetter
from processor.settings import Settings

OVERHEAD_BYTES = 128
"""More than a batch and a record, or one header, take beside what is in them: a smaller record need not be measured."""
CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
"""Numbers of the record format."""


async def send(publisher: TransactionalPublisher, settings: Settings, letters: Sequence[DeadLetter], room: int) -> None:
    """Send each to the partition that it was read from, in order, and wait until the broker has it."""
    producer, topic = publisher._sender._producer, settings.topics.events
    builders: dict[int, BatchBuilder] = {}
    delivered = []
    for letter in letters:
        number = letter.partition
        builder = builders.get(number)
        if builder is None or not _append(builder, letter):
            if builder is not None:
                delivered.append(await producer.send_batch(builder, topic, partition=number))
            builder = builders[number] = _batch(settings, room)
            _append(builder, letter)
    for number, builder in builders.items():
        builder.close()
        delivered.append(await producer.send_batch(builder, topic, partition=number))
    for outcome in await asyncio.gather(*delivered, return_exceptions=True):
        if isinstance(outcome, BaseException):
            raise outcome


def _batch(settings: Settings, room: int) -> BatchBuilder:
    """A batch that the topic takes: it holds a whole one against its bound, and may have less room than ours have."""
    return BatchBuilder(min(BATCH_BYTES, room), CODECS[settings.kafka.compression], is_transactional=1)


def _append(builder: BatchBuilder, letter: DeadLetter) -> bool:
    # The time at which it happened: the input's own clock, where it has one, is put in its place.
    timestamp = letter.timestamp if letter.timestamp >= 0 else None
    added = builder.append(timestamp=timestamp, key=letter.key, value=letter.value, headers=letter.again())
    return added is not None


def too_large(letter: DeadLetter, settings: Settings, room: int) -> bool:
    """Whether the input topic would refuse it, alone in a batch and compressed as it would be sent."""
    size = sum(OVERHEAD_BYTES + len(name) * 4 + len(value or b"") for name, value in letter.again())
    if size + len(letter.key or b"") + len(letter.value or b"") <= room:
        return False
    builder = _batch(settings, room)
    _append(builder, letter)
    return len(builder._build()) > room
