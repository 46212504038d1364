"""Floor 2: the bare transactional loop. It reads, writes as many records as callgate writes, and commits the input's offsets.

There is no job: what is written is filler. A partition has a producer of its own, as aiokafka without KIP-447 demands it, and
its transaction begins with its first batch and ends `--commit-ms` later. It writes to the output partition of the same number,
so that no two open transactions are in each other's way.

One getmany serves all partitions and hands each batch to its partition's task: a commit then holds up nobody else. Prints DONE
once everything has been read and committed, and goes on until SIGTERM.
"""

import argparse
import asyncio
import signal
import time
from typing import Any, TypeAlias

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRecord, TopicPartition

Batch: TypeAlias = list[ConsumerRecord[Any, Any]]

FILLER = b"." * 400
"""A record's value: about what the shortest decisions have."""


class Lane:
    """One partition's transactions."""

    def __init__(self, options: argparse.Namespace, number: int, progress: "Progress") -> None:
        self.options = options
        self.source = TopicPartition(options.topic, number)
        self.producer = AIOKafkaProducer(
            bootstrap_servers=options.bootstrap,
            transactional_id=f"{options.group}-{number}",
            retry_backoff_ms=options.backoff_ms,
        )
        self.batches: asyncio.Queue[Batch] = asyncio.Queue(16)
        self.progress = progress
        self.owed = 0.0

    async def run(self) -> None:
        """Forward batches for ever, a transaction at a time."""
        while True:
            batch = await self.batches.get()
            await self.transaction(batch)

    async def transaction(self, batch: Batch | None) -> None:
        """One transaction, begun with a batch at hand."""
        due = time.monotonic() + self.options.commit_ms / 1000
        read = offset = 0
        await self.producer.begin_transaction()
        while batch is not None:
            await self.write(batch)
            read += len(batch)
            offset = batch[-1].offset + 1
            batch = await self.next_batch(due)
        await self.producer.send_offsets_to_transaction({self.source: offset}, self.options.group)
        await self.producer.commit_transaction()
        self.progress.committed(read)

    async def write(self, batch: Batch) -> None:
        """Write this batch's share of records."""
        self.owed += len(batch) / self.options.per
        due, self.owed = int(self.owed), self.owed % 1
        # Spread over the batch, as the last records of responses are.
        step = len(batch) // max(due, 1)
        for record in batch[step // 2 :: max(step, 1)][:due]:
            value = b"%-400d" % record.offset if self.options.carry else FILLER
            await self.producer.send(self.options.output, value, key=record.key, partition=self.source.partition)

    async def next_batch(self, due: float) -> Batch | None:
        """Wait for the next batch of this transaction; None where it is time to commit."""
        left = due - time.monotonic()
        if left <= 0:
            return None
        try:
            return await asyncio.wait_for(self.batches.get(), left)
        except TimeoutError:
            return None


class Progress:
    """Counts what is committed, and says DONE."""

    def __init__(self, events: int) -> None:
        self.left = events

    def committed(self, count: int) -> None:
        """Take note of a transaction."""
        self.left -= count
        if self.left == 0:
            print("DONE", flush=True)


async def forward(options: argparse.Namespace) -> None:
    """Read and forward until cancelled."""
    progress = Progress(options.events)
    lanes = [Lane(options, number, progress) for number in range(options.partitions)]
    for lane in lanes:
        await lane.producer.start()
    consumer = AIOKafkaConsumer(
        options.topic,
        bootstrap_servers=options.bootstrap,
        group_id=options.group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        isolation_level="read_committed",
    )
    await consumer.start()
    try:
        async with asyncio.TaskGroup() as tasks:
            for lane in lanes:
                tasks.create_task(lane.run())
            while True:
                for source, records in (await consumer.getmany(timeout_ms=1000)).items():
                    await lanes[source.partition].batches.put(records)
    finally:
        await consumer.stop()
        for lane in lanes:
            await lane.producer.stop()


async def main() -> None:
    """Run the floor until SIGTERM."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--output", required=True)
    parser.add_argument("--group", required=True)
    parser.add_argument("--events", type=int, required=True, help="records on the topic")
    parser.add_argument("--partitions", type=int, required=True)
    parser.add_argument("--per", type=float, required=True, help="records read for each one written")
    parser.add_argument("--commit-ms", type=float, default=100)
    parser.add_argument("--backoff-ms", type=int, default=100, help="retry_backoff_ms of the producers")
    parser.add_argument("--carry", action="store_true", help="write the offset that each record was made of, not filler")
    task = asyncio.ensure_future(forward(parser.parse_args()))
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    await asyncio.wait([task])
    if not task.cancelled():
        task.result()


if __name__ == "__main__":
    asyncio.run(main())
