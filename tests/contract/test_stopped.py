"""A partition or a member that stands still, on a real broker: what is said, that lag grows meanwhile, that a stop ends."""

import asyncio
import json
from typing import Any

from processor import app
from processor.adapters.runner import Runner
from processor.core.candidate import Candidate
from processor.core.outgoing import Outgoing
from processor.core.pipeline import Partition
from processor.core.ports import Judge
from processor.core.toolsets import EMPTY
from processor.errors import Retryable
from tests.conftest import MakeTopic
from tests.contract.kit import Lines, make_settings, produce

SECRET = "off-with-her-head"


class Breaking:
    """A judge with a fault of its own: a call by a certain id breaks it, and its message quotes what was read."""

    def __init__(self, judge: Judge) -> None:
        self.tally = judge.tally
        self._judge = judge

    def __call__(self, candidate: Candidate, topic: str, partition: int, now_ms: int) -> Outgoing:
        """Judge one call. Raises ValueError at the one that breaks it."""
        if candidate.call_id == "breaks":
            raise ValueError(SECRET)
        self._judge.tally = self.tally
        return self._judge(candidate, topic, partition, now_ms)

    def dead_letter(self, *arguments: Any) -> Outgoing:
        """Pass it on."""
        return self._judge.dead_letter(*arguments)


def whole(call_id: str) -> bytes:
    """Make one response with one call, as one record."""
    item = {"type": "function_call", "id": "i", "call_id": call_id, "name": "leave_note", "arguments": "{}"}
    response = {"id": f"resp-{call_id}", "status": "completed", "output": [{**item, "status": "completed"}]}
    return json.dumps({"type": "response.completed", "response": response}).encode()


def one(runner: Runner) -> dict[str, Any]:
    """Where partition 0 stands."""
    found: dict[str, Any] = runner.status()["partitions"].get(0, {})
    return found


async def until(runner: Runner, name: str, value: Any) -> None:
    """Wait until it stands there."""
    async with asyncio.timeout(60):
        while one(runner).get(name) != value:
            await asyncio.sleep(0.02)


def test_a_stopped_partition_is_named_and_its_lag_grows(bootstrap: str, make_topic: MakeTopic) -> None:
    """Section 7: the line has topic, partition and the record's offset, and no value; the lag is that of its last commit."""
    settings = make_settings(bootstrap, make_topic)
    core, log = app.Core(settings, EMPTY), Lines()

    def make_partition(topic: str, number: int) -> Partition:
        return Partition(topic, number, settings.bounds(), Breaking(core.judge))

    runner = Runner(settings, make_partition, log)

    async def work() -> None:
        events = settings.topics.events
        await produce(bootstrap, events, [whole("first"), whole("second")])
        running = asyncio.create_task(runner.run())
        try:
            await until(runner, "committed_p", 2)
            await produce(bootstrap, events, [whole("third"), whole("breaks"), whole("fifth")])
            await until(runner, "state", "stopped")
            waiting = 5 - one(runner)["committed_p"]
            assert (one(runner)["lag_p"], one(runner)["position"]) == (waiting, 5 - waiting)
            await produce(bootstrap, events, [whole("sixth")])
            await until(runner, "lag_p", waiting + 1)
            assert one(runner)["lag_w"] >= one(runner)["lag_p"]
        finally:
            runner.stop()
            await running

    asyncio.run(work())
    (line,) = [fields for _, event, fields in log.lines if event == "partition_stopped"]
    assert (line["topic"], line["partition"], line["offset"]) == (settings.topics.events, 0, 3)
    assert "ValueError" in line["cause"]
    assert SECRET not in repr(log.lines)


def test_a_takeover_that_fails_shows_its_lag(bootstrap: str, make_topic: MakeTopic) -> None:
    """Section 7: while a partition is taken over again and again, its lag is that of its last commit, and grows."""
    settings = make_settings(bootstrap, make_topic)
    runner = Runner(settings, app.Core(settings, EMPTY).partition, Lines())
    publisher = runner._publisher

    async def work() -> None:
        events = settings.topics.events
        await produce(bootstrap, events, [whole("first"), whole("second")])
        running = asyncio.create_task(runner.run())
        try:
            await until(runner, "committed_p", 2)
            worker = runner._workers[0]

            def refuse(_: object) -> Any:
                raise Retryable("The coordinator is away.")

            worker._make_publisher = refuse
            worker.fail(Retryable("The connection was lost."))
            await until(runner, "state", "takeover")
            assert one(runner)["lag_p"] == 0
            await produce(bootstrap, events, [whole("third"), whole("fourth")])
            await until(runner, "lag_p", 2)
            assert (one(runner)["state"], one(runner)["position"]) == ("takeover", 2)
            worker._make_publisher = publisher
            await until(runner, "committed_p", 4)
            assert one(runner)["lag_p"] == 0
        finally:
            runner.stop()
            await running

    asyncio.run(work())


class Late(Lines):
    """A log at whose first word of a stop the group's callback brings one partition more."""

    runner: Runner

    def info(self, event: str, **fields: Any) -> None:
        """Keep it; in a stop, wait until the workers were told."""
        super().info(event, **fields)
        if event == "stopping":
            asyncio.get_running_loop().call_soon(self.bring)

    def bring(self) -> None:
        """Do what the callback does when an assignment brings partitions 0 and 1."""
        source = self.runner._source
        source._generation += 1
        source.owned = dict.fromkeys((0, 1), source._generation)
        source._on_change()


def test_an_assignment_that_comes_into_a_stop_does_not_hold_it_up(bootstrap: str, make_topic: MakeTopic) -> None:
    """Section 7, stop: another member leaves at the same moment, and its partitions come to one that is on its way out."""
    settings = make_settings(bootstrap, make_topic, partitions=2)
    core, log = app.Core(settings, EMPTY), Late()
    log.runner = runner = Runner(settings, core.partition, log)
    other = Runner(settings, core.partition, Lines())

    async def work() -> None:
        async with asyncio.timeout(120), asyncio.TaskGroup() as group:
            group.create_task(other.run())
            await until(other, "state", "live")
            group.create_task(runner.run())
            while not (len(runner._workers) == 1 and runner.status()["ready"]):
                await asyncio.sleep(0.02)
            runner.stop()
            other.stop()

    asyncio.run(work())
    assert len(runner._workers) == 1, "nobody would have ended the worker of the second partition"
