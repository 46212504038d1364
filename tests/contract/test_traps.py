"""Traps of client and broker (issue 6), each on a real broker: what a lost answer, a fence or a long rebuild must not do."""

import asyncio
import json
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any, cast

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaTimeoutError

from processor import app
from processor.adapters.publish import TransactionalPublisher
from processor.adapters.runner import FETCH_TIMEOUT_MS, NoHooks, Runner
from processor.adapters.source import Fetched
from processor.broker import Broker
from processor.core.toolsets import EMPTY
from processor.errors import Fenced
from processor.observe.health import Status, live
from processor.settings import Kafka, Settings, Topics
from tests.conftest import MakeTopic, create_topic
from tests.contract.kit import Lines, input_partition, make_settings, produce, read_all, started
from tests.contract.test_stopped import whole

PATIENCE_SECONDS = 120


async def until(true: Any) -> None:
    """Wait for something that must come."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not true():
            await asyncio.sleep(0.01)


def runner_of(settings: Settings, log: Lines | None = None, hooks: Any = None) -> Runner:
    """A member without tools: every call is rejected as unknown."""
    return Runner(settings, app.Core(settings, EMPTY).partition, log or Lines(), hooks)


def committed(runner: Runner) -> int:
    """P of partition 0, as acknowledged."""
    return runner.status()["partitions"].get(0, {}).get("committed_p") or 0


def decided(settings: Settings) -> list[str]:
    """Calls in the rejected topic, for a reader of what is committed."""
    found = asyncio.run(read_all(settings.kafka.bootstrap_servers[0], settings.topics.rejected))
    return [json.loads(one.value or b"")["call_id"] for one in found]


def test_a_commit_whose_answer_is_lost(bootstrap: str, make_topic: MakeTopic) -> None:
    """Section 7: the broker has it, the member does not know: it takes over anew, reads that it has, and repeats nothing."""
    settings, log = make_settings(bootstrap, make_topic), Lines()
    runner = runner_of(settings, log)
    make_publisher = runner._publisher
    lost: list[Any] = []

    def publisher_of(where: Any) -> Any:
        publisher: Any = make_publisher(where)
        producer = publisher._sender._producer
        commit = producer.commit_transaction

        async def lose_the_answer() -> None:
            await commit()
            if committed(runner) and not lost:
                lost.append(where)
                raise KafkaTimeoutError

        producer.commit_transaction = lose_the_answer
        return publisher

    runner._publisher = publisher_of  # type: ignore[assignment]

    async def work() -> None:
        await produce(bootstrap, settings.topics.events, [whole("one"), whole("two")])
        running = asyncio.create_task(runner.run())
        try:
            await until(lambda: committed(runner) == 2)
            await produce(bootstrap, settings.topics.events, [whole("three"), whole("four")])
            await until(lambda: committed(runner) == 4 and lost)
            await produce(bootstrap, settings.topics.events, [whole("five")])
            await until(lambda: committed(runner) == 5)
        finally:
            runner.stop()
            await running

    asyncio.run(work())
    assert log.events().count("live") == 2
    assert "fenced" in log.events()
    assert decided(settings) == ["one", "two", "three", "four", "five"]


def test_after_a_fence_everything_is_read_again_in_order(bootstrap: str, make_topic: MakeTopic) -> None:
    """Section 7: membership, then the producer, then the committed offset; nothing is sent again, and nothing is lost."""
    settings = make_settings(bootstrap, make_topic)
    runner = runner_of(settings)
    steps: list[str] = []
    confirm, read, make_publisher = runner._source.confirm, runner._reader.committed, runner._publisher

    async def confirm_noted() -> None:
        await confirm()
        steps.append("membership")

    async def read_noted(where: Any) -> Any:
        steps.append("offset")
        return await read(where)

    def publisher_of(where: Any) -> Any:
        publisher: Any = make_publisher(where)
        start = publisher.start

        async def start_noted() -> None:
            await start()
            steps.append("producer")

        publisher.start = start_noted
        return publisher

    runner._source.confirm = confirm_noted  # type: ignore[method-assign]
    runner._reader.committed = read_noted  # type: ignore[assignment]
    runner._publisher = publisher_of  # type: ignore[assignment]

    async def work() -> None:
        await produce(bootstrap, settings.topics.events, [whole("one")])
        running = asyncio.create_task(runner.run())
        try:
            await until(lambda: committed(runner) == 1)
            await (await started(settings)).close()
            await produce(bootstrap, settings.topics.events, [whole("two")])
            await until(lambda: committed(runner) == 2)
        finally:
            runner.stop()
            await running

    asyncio.run(work())
    assert steps == ["membership", "producer", "offset"] * 2
    assert decided(settings) == ["one", "two"]


class Rebuilt(NoHooks):
    """Notes how long a takeover took."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def on_rebuilt(self, number: int, seconds: float) -> None:
        """Note it."""
        del number
        self.seconds.append(seconds)


def test_a_rebuild_longer_than_the_session_keeps_the_membership(bootstrap: str, make_topic: MakeTopic) -> None:
    """Section 7: a rebuild from slow reading gives the heartbeats their turn: the partition is taken over once."""
    session_s, records = 3.0, 200
    slow = {"session_timeout_ms": int(session_s * 1000), "heartbeat_interval_ms": 100, "max_poll_records": 10}
    settings = make_settings(bootstrap, make_topic, kafka=slow)
    opened = {"type": "response.created", "response": {"id": "resp-open", "status": "in_progress"}}
    text = json.dumps({"type": "response.output_text.delta", "delta": "x"}).encode()
    hooks = Rebuilt()

    async def once(pause_s: float) -> int:
        runner = runner_of(settings, hooks=hooks)
        fetch = runner._source.fetch

        async def fetch_slowly(timeout_ms: int) -> Fetched:
            await asyncio.sleep(pause_s)
            return await fetch(timeout_ms)

        runner._source.fetch = fetch_slowly  # type: ignore[method-assign]
        running = asyncio.create_task(runner.run())
        try:
            await until(lambda: committed(runner) == records + 1 and runner.status()["ready"])
            return runner._source._generation
        finally:
            runner.kill()
            await asyncio.wait([running])
            await runner._close()

    async def work() -> int:
        events = settings.topics.events
        await produce(bootstrap, events, [json.dumps(opened).encode(), *[text] * records])
        await once(0.0)
        return await once(2 * session_s * slow["max_poll_records"] / records)

    assert asyncio.run(work()) == 1
    assert hooks.seconds[-1] > session_s


def test_no_transaction_is_empty(bootstrap: str, make_topic: MakeTopic) -> None:
    """Issue 6: what is idle commits nothing, however often it looks; progress alone is committed once."""
    settings = make_settings(bootstrap, make_topic, progress_interval_ms=50)
    runner = runner_of(settings)
    make_publisher = runner._publisher
    made: list[tuple[int, Any]] = []

    def publisher_of(where: Any) -> Any:
        publisher: Any = make_publisher(where)
        publish = publisher.publish

        async def publish_noted(outgoing: Sequence[Any], commit: Any) -> None:
            made.append((len(outgoing), commit))
            await publish(outgoing, commit)

        publisher.publish = publish_noted
        return publisher

    runner._publisher = publisher_of  # type: ignore[assignment]
    text = json.dumps({"type": "response.output_text.delta", "delta": "x"}).encode()

    def came_round(before: float) -> bool:
        return runner._turned > before

    async def turns(count: int) -> None:
        """Wait until the loop that fetches has come round so often with nothing: each time longer than the interval."""
        for _ in range(count):
            before = runner._turned
            await until(partial(came_round, before))

    async def work() -> None:
        assert settings.progress_interval_ms < FETCH_TIMEOUT_MS
        await produce(bootstrap, settings.topics.events, [whole("one"), text])
        running = asyncio.create_task(runner.run())
        try:
            await until(lambda: committed(runner) == 2)
            before = len(made)
            await turns(12)
            assert len(made) == before
            await produce(bootstrap, settings.topics.events, [text])
            await until(lambda: committed(runner) == 3)
            await turns(12)
        finally:
            runner.stop()
            await running

    asyncio.run(work())
    commits = [commit for _, commit in made]
    assert all(one != other for one, other in pairwise(commits)), "a commit of nothing new"


def test_no_transaction_is_open_longer_than_half_its_timeout(bootstrap: str, make_topic: MakeTopic) -> None:
    """Issue 6: one whose sending does not end is given up while the broker still keeps it, and leaves nothing behind."""
    settings = make_settings(bootstrap, make_topic, kafka={"transaction_timeout_ms": 2_000})

    async def work() -> None:
        publisher: TransactionalPublisher = await started(settings)
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                with pytest.raises(Fenced):
                    await publisher.transact(asyncio.Event().wait, 7, "")  # type: ignore[arg-type]
        finally:
            await publisher.close()
        assert publisher._deadline == settings.kafka.transaction_timeout_ms / 2 / 1000

    asyncio.run(work())


def test_idle_lags_are_zero_behind_transactions(bootstrap: str, make_topic: MakeTopic) -> None:
    """Issue 6: nothing open, nothing known, markers and aborted records at the end: both lags are 0, not the markers."""
    settings = make_settings(bootstrap, make_topic, progress_interval_ms=50)
    runner = runner_of(settings)
    events = settings.topics.events

    async def work() -> None:
        producer = AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=f"writer-{events}")
        await producer.start()
        running = asyncio.create_task(runner.run())
        try:
            for number in range(6):
                await producer.begin_transaction()
                await producer.send(events, b"{no", key=b"key", partition=0)
                await (producer.abort_transaction() if number % 2 else producer.commit_transaction())
            await until(lambda: committed(runner) == 12)

            def lags() -> tuple[Any, Any, Any]:
                one = runner.status()["partitions"][0]
                return one["end"], one["lag_w"], one["lag_p"]

            await until(lambda: lags() == (12, 0, 0))
        finally:
            await producer.stop()
            runner.stop()
            await running

    asyncio.run(work())


def test_records_in_hand_of_a_partition_that_is_taken_away_are_dropped(bootstrap: str, make_topic: MakeTopic) -> None:
    """Section 7: what was fetched and not fed when the partition goes is never decided here; the next member decides it."""
    settings = make_settings(bootstrap, make_topic)
    runner = runner_of(settings)

    async def work() -> None:
        await produce(bootstrap, settings.topics.events, [whole("one")])
        running = asyncio.create_task(runner.run())
        try:
            await until(lambda: committed(runner) == 1)
            worker = runner._workers[0]
            records = await read_all(bootstrap, settings.topics.events)
            # In one turn of the loop: what was handed over cannot have been fed yet.
            worker.give(records, 2)
            assert worker.backlog == 1
            runner._source.note_revoked({input_partition(settings)})
            assert (worker.backlog, runner._room.held) == (0, 0)
        finally:
            runner.stop()
            await running

    asyncio.run(work())
    assert decided(settings) == ["one"]


@pytest.mark.kafka
def test_an_outage_of_the_broker_is_no_reason_to_restart() -> None:
    """Issue 6: while no broker answers, and while it comes back, the process is alive: a restart would help nothing."""
    stall_s = 3.0
    with Broker(quick=True) as broker:
        names = Topics(events="events", approved="yes", rejected="no", dead_letter="dead")
        kafka = Kafka(bootstrap_servers=(broker.bootstrap,), request_timeout_ms=5_000, session_timeout_ms=6_000)
        settings = Settings(group="outage", topics=names, kafka=kafka, progress_interval_ms=50)
        runner = runner_of(settings)

        def alive(runner: Runner) -> bool:
            return live(cast("Status", runner.status()), stall_s)[0]

        async def beside(work: Any) -> None:
            """Do something with the broker, and look at the health all the while."""
            doing = asyncio.get_running_loop().run_in_executor(None, work)
            while not doing.done():
                assert alive(runner), runner.status()
                await asyncio.sleep(0.05)
            await doing

        async def work() -> None:
            for name in (names.events, names.approved, names.rejected, names.dead_letter):
                await create_topic(broker.bootstrap, name)
            await produce(broker.bootstrap, names.events, [whole("one")])
            running = asyncio.create_task(runner.run())
            try:
                await until(lambda: committed(runner) == 1)
                began = asyncio.get_running_loop().time()
                await beside(broker.kill)
                # Longer than what would be a stall, were the broker there.
                while asyncio.get_running_loop().time() < began + 2 * stall_s:
                    await beside(lambda: None)
                await beside(broker.start)
                await produce(broker.bootstrap, names.events, [whole("two")])
                await until(lambda: committed(runner) == 2)
            finally:
                runner.stop()
                await running

        asyncio.run(work())
        assert decided(settings) == ["one", "two"]


def test_a_rebalance_of_a_minute_is_no_reason_to_restart() -> None:
    """Issue 6: nothing is fetched in a rebalance, which may last `rebalance_timeout`; the defaults leave it that time."""
    settings = Settings()
    longest = settings.kafka.rebalance_timeout_ms / 1000
    assert longest >= 60
    alive = [
        live({"joined": True, "ready": False, "partitions": {}, "fetch_age_s": age}, settings.stall_after_ms / 1000)[0]
        for age in (longest + 1, 10 * longest)
    ]
    assert alive == [True, False]
