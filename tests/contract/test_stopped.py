"""A partition that the core's own fault stops, on a real broker: what is said, and that its lag grows while records wait."""

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


def test_a_stopped_partition_is_named_and_its_lag_grows(bootstrap: str, make_topic: MakeTopic) -> None:
    """Section 7: the line has topic, partition and the record's offset, and no value; the lag is that of its last commit."""
    settings = make_settings(bootstrap, make_topic)
    core, log = app.Core(settings, EMPTY), Lines()

    def make_partition(topic: str, number: int) -> Partition:
        return Partition(topic, number, settings.bounds(), Breaking(core.judge))

    runner = Runner(settings, make_partition, log)

    def one() -> dict[str, Any]:
        found: dict[str, Any] = runner.status()["partitions"].get(0, {})
        return found

    async def until(name: str, value: Any) -> None:
        async with asyncio.timeout(60):
            while one().get(name) != value:
                # Nothing is shown as 0 because it is not known: before the first fetch, or after the stop.
                assert one().get("state") == "live" or one().get("lag_p") != 0
                await asyncio.sleep(0.02)

    async def work() -> None:
        events = settings.topics.events
        await produce(bootstrap, events, [whole("first"), whole("second")])
        running = asyncio.create_task(runner.run())
        try:
            await until("committed_p", 2)
            await produce(bootstrap, events, [whole("third"), whole("breaks"), whole("fifth")])
            await until("state", "stopped")
            waiting = 5 - one()["committed_p"]
            assert (one()["lag_p"], one()["position"]) == (waiting, 5 - waiting)
            await produce(bootstrap, events, [whole("sixth")])
            await until("lag_p", waiting + 1)
            assert one()["lag_w"] >= one()["lag_p"]
        finally:
            runner.stop()
            await running

    asyncio.run(work())
    (line,) = [fields for _, event, fields in log.lines if event == "partition_stopped"]
    assert (line["topic"], line["partition"], line["offset"]) == (settings.topics.events, 0, 3)
    assert "ValueError" in line["cause"]
    assert SECRET not in repr(log.lines)
