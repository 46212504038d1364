"""Floor 1: read the topic with aiokafka's getmany and throw the records away. There is no job.

Prints DONE once it has read as many records as it was told, and goes on polling until SIGTERM, as a processor would.
"""

import argparse
import asyncio
import signal

from aiokafka import AIOKafkaConsumer


async def read(options: argparse.Namespace) -> None:
    """Read until cancelled."""
    consumer = AIOKafkaConsumer(
        options.topic,
        bootstrap_servers=options.bootstrap,
        group_id=options.group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        isolation_level="read_committed",
    )
    await consumer.start()
    left = options.events
    try:
        while True:
            for records in (await consumer.getmany(timeout_ms=1000)).values():
                left -= len(records)
                if left == 0:
                    print("DONE", flush=True)
    finally:
        await consumer.stop()


async def main() -> None:
    """Run the floor until SIGTERM."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--group", required=True)
    parser.add_argument("--events", type=int, required=True, help="records on the topic")
    task = asyncio.ensure_future(read(parser.parse_args()))
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    await asyncio.wait([task])
    if not task.cancelled():
        task.result()


if __name__ == "__main__":
    asyncio.run(main())
