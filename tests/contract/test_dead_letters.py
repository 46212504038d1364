"""Dead letters on a real broker: they are what was read, and where one cannot be written its partition stops and says so."""

import asyncio
from dataclasses import replace
from typing import Any

from aiokafka import AIOKafkaProducer

from processor import app
from processor.adapters.runner import Runner
from processor.core.toolsets import EMPTY
from processor.settings import Settings
from tests.conftest import MakeTopic
from tests.contract.kit import Lines, make_settings, produce, read_all

PATIENCE_SECONDS = 60


async def until(true: Any) -> None:
    """Wait for something that must come."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not true():
            await asyncio.sleep(0.02)


def runner_of(settings: Settings, log: Lines) -> Runner:
    """A member without tools: nothing is approved, and what cannot be read is a dead letter."""
    return Runner(settings, app.Core(settings, EMPTY).partition, log)


def committed(runner: Runner, number: int) -> int:
    """P, as acknowledged."""
    return runner.status()["partitions"].get(number, {}).get("committed_p") or 0


def test_it_is_what_was_read(bootstrap: str, make_topic: MakeTopic) -> None:
    """Section 2: key, value, headers and timestamp of the record, and behind them cause, detail and place."""
    settings = make_settings(bootstrap, make_topic, partitions=2)
    events = settings.topics.events
    headers = [("traceparent", b"\xff"), ("x", None), ("x", b"2"), ("callgate-cause", b"a producer's own"), ("", b"")]
    shapes = [(b"key", b"\xff\xfe"), (None, None), (b"", b""), (b"\x00", b'{"unknown": 1}')]
    runner = runner_of(settings, Lines())

    async def work() -> None:
        producer = AIOKafkaProducer(bootstrap_servers=bootstrap)
        await producer.start()
        batch = producer.create_batch()
        for key, value in shapes:
            batch.append(timestamp=None, key=key, value=value, headers=headers)
        await (await producer.send_batch(batch, events, partition=1))
        await producer.stop()
        running = asyncio.create_task(runner.run())
        await until(lambda: committed(runner, 1) == len(shapes))
        runner.stop()
        await running

    asyncio.run(work())
    read = asyncio.run(read_all(bootstrap, events, 1))
    found = asyncio.run(read_all(bootstrap, settings.topics.dead_letter, 1))
    assert [(letter.key, letter.value) for letter in found] == shapes
    causes = [b"not_text", b"empty", b"empty", b"unknown_form"]
    for letter, record, cause in zip(found, read, causes, strict=True):
        own, added = letter.headers[: len(headers)], dict(letter.headers[len(headers) :])
        assert list(own) == headers
        assert added.pop("callgate-detail")
        assert added == {
            "callgate-cause": cause,
            "callgate-topic": events.encode(),
            "callgate-partition": b"1",
            "callgate-offset": b"%d" % record.offset,
            "callgate-timestamp": b"%d" % record.timestamp,
        }


def test_one_that_cannot_be_written_stops_its_partition(bootstrap: str, make_topic: MakeTopic) -> None:
    """Issue 6: the topic lost its room after the start found it; nothing is committed past the record, the others go on."""
    settings = make_settings(bootstrap, make_topic, partitions=2)
    small = make_topic("dead-letter", partitions=2, config={"max.message.bytes": "3000"})
    settings = replace(settings, topics=replace(settings.topics, dead_letter=small))
    events, log = settings.topics.events, Lines()
    runner = runner_of(settings, log)

    async def work() -> dict[int, dict[str, Any]]:
        await produce(bootstrap, events, [b"{one"], partition=0)
        running = asyncio.create_task(runner.run())
        try:
            await until(lambda: committed(runner, 0) == 1)
            await produce(bootstrap, events, [b"{two", b"{" + b"x" * 5_000, b"{three"], partition=0)
            await until(lambda: runner.status()["partitions"][0]["state"] == "stopped")
            await produce(bootstrap, events, [b"{four", b"{five"], partition=1)
            await until(lambda: committed(runner, 1) == 2)
            found: dict[int, dict[str, Any]] = runner.status()["partitions"]
            return found
        finally:
            runner.stop()
            await running

    status = asyncio.run(work())
    assert (status[0]["state"], status[1]["state"]) == ("stopped", "live")
    assert status[0]["lag_p"] >= 2
    (line,) = [fields for level, event, fields in log.lines if (level, event) == ("error", "partition_stopped")]
    assert line["partition"] == 0
    assert line["cause"] == f"Writing to `{small}` failed: MessageSizeTooLargeError."
    left = asyncio.run(read_all(bootstrap, small, 0))
    assert [letter.value for letter in left] in ([b"{one"], [b"{one", b"{two"])
    assert [letter.value for letter in asyncio.run(read_all(bootstrap, small, 1))] == [b"{four", b"{five"]
