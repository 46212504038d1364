"""What goes wrong around a member, end to end: silence, transactions on the input, a broker that dies, a log that was cut."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from aiokafka.admin import RecordsToDelete
from aiokafka.structs import TopicPartition
from confluent_kafka import Producer

from processor.adapters.offset_fetch import Reader
from processor.broker import Broker
from processor.settings import Kafka
from tests.conftest import MakeTopic, create_topic
from tests.contract.kit import Lines
from tests.e2e.rig import Member, Rig, Writer, wait_until
from tests.e2e.test_kill import check
from tests.e2e.workload import make


def event(kind: str, **fields: Any) -> bytes:
    """Make one event without a number."""
    return json.dumps({"type": kind, **fields}).encode()


def opened(call_id: str) -> list[bytes]:
    """Make a stream that stops in the middle of a call."""
    item = {
        "type": "function_call",
        "id": "i",
        "call_id": call_id,
        "name": "leave_note",
        "arguments": "",
        "status": "in_progress",
    }
    return [
        event("response.created", response={"id": f"resp-{call_id}", "status": "in_progress"}),
        event("response.output_item.added", output_index=0, item=item),
        event("response.function_call_arguments.delta", output_index=0, item_id="i", delta='{"te'),
    ]


def completed(call_id: str) -> bytes:
    """Make a whole response with one good call."""
    item = {"type": "function_call", "id": "i", "call_id": call_id, "name": "leave_note", "arguments": '{"text":"x"}'}
    response = {
        "object": "response",
        "id": f"resp-{call_id}",
        "status": "completed",
        "output": [item | {"status": "completed"}],
    }
    return json.dumps(response).encode()


def send(rig: Rig, values: list[bytes], number: int = 0, **options: Any) -> None:
    """Write values of one stream."""
    producer = Producer({"bootstrap.servers": rig.bootstrap, **options})
    for value in values:
        producer.produce(rig.topics.events, value, b"stream", number)
    assert producer.flush(30) == 0


def reasons(rig: Rig) -> list[tuple[str, str]]:
    """Decisions as call_id and reason."""
    return [(d["call_id"], d["reason"]) for d in rig.decisions()]


def test_silence_of_the_whole_partition(bootstrap: str, make_topic: MakeTopic, tmp_path: Path) -> None:
    """Section 7: with no record to move the watermark the wall clock expires a call, once, also for a successor."""
    settings = {"stream_timeout": "1s", "closed_memory": "60s", "idle_after": "300ms"}
    with Rig(bootstrap, make_topic, tmp_path, partitions=1, **settings).running() as rig:
        first = rig.start()
        send(rig, opened("quiet"))
        wait_until(lambda: reasons(rig) == [("quiet", "timeout")], "the call did not expire", rig.explain)
        wait_until(lambda: bool(rig.commits()[0].moves), "the idle move was not committed", rig.explain)
        first.kill()
        second = rig.start()
        # The response is known still: its end comes late, and decides nothing.
        send(rig, [event("response.completed", response={"id": "resp-quiet", "status": "completed"}), completed("next")])
        rig.settle()
        assert second.stop() == 0
        assert sorted(reasons(rig)) == [("next", "ok"), ("quiet", "timeout")]


def test_input_written_with_transactions(bootstrap: str, make_topic: MakeTopic, tmp_path: Path) -> None:
    """Section 7: what was aborted is never read, and the markers at the end of the log leave no lag."""
    with Rig(bootstrap, make_topic, tmp_path, partitions=1).running() as rig:
        producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": rig.group})
        producer.init_transactions(30)
        for number in range(6):
            producer.begin_transaction()
            producer.produce(rig.topics.events, completed(f"call-{number}"), b"stream", 0)
            if number % 2:
                producer.abort_transaction(30)
            else:
                producer.commit_transaction(30)
        member = rig.start()
        rig.settle()
        assert reasons(rig) == [(f"call-{number}", "ok") for number in (0, 2, 4)]
        assert member.get("/readyz")[0] == 200
        _, metrics = member.get("/metrics")
        lags = [line for line in metrics.splitlines() if line.startswith("callgate_lag")]
        assert lags
        # To P at least; W is held while the responses are known.
        assert any(line.endswith(" 0.0") for line in lags), lags
        assert member.stop() == 0


@pytest.mark.kafka
@pytest.mark.timeout(240)
@pytest.mark.parametrize("how", ["stop", "kill"])
def test_the_broker_goes_and_comes_back(tmp_path: Path, how: str) -> None:
    """Members outlive a broker that is restarted, cleanly or not, under load, and lose and repeat nothing.

    With a controller that stays up: alone in its cluster, Kafka 4.3.1 leaves out markers after a crash (docs/reliability.md).
    """
    with Broker(apart=True) as broker:

        def make_topic(name: str = "topic", *, partitions: int = 1, config: dict[str, str] | None = None) -> str:
            asyncio.run(create_topic(broker.bootstrap, name, partitions=partitions, config=config))
            return name

        work = make(21, 5_000, 4)
        with Rig(broker.bootstrap, make_topic, tmp_path).running() as rig:
            member = rig.start()
            writer = Writer(rig, work, per_second=3_000)
            writer.allow(0.4)
            writer.start()
            wait_until(
                lambda: any(commit.offset < commit.position for commit in rig.commits().values()),
                "nothing is decided",
                rig.explain,
            )
            getattr(broker, how)()
            broker.start()
            writer.allow(1)
            writer.join()
            rig.settle()
            assert member.process.poll() is None, member.log()
            assert member.stop() == 0
            check(rig, work)


def test_one_partition_that_stops_leaves_the_others_running(bootstrap: str, make_topic: MakeTopic, tmp_path: Path) -> None:
    """Section 7: a committed offset out of retention stops its partition by name; the others go on, unready but alive."""
    with Rig(bootstrap, make_topic, tmp_path, partitions=2).running() as rig:
        send(rig, [completed("before")], 0)
        first = rig.start()
        rig.settle()
        assert first.stop() == 0
        send(rig, [b"lost"] * 5, 0)
        asyncio.run(cut(rig, rig.ends()[0]))
        second = rig.start()
        wait_until(lambda: "partition_stopped" in second.log(), "it was not said", second.log)
        send(rig, [completed("other")], 1)
        wait_until(lambda: ("other", "ok") in reasons(rig), "the other partition stood still", rig.explain)
        status, body = second.get("/readyz")
        assert status == 503, body
        assert second.get("/healthz")[0] == 200
        line = next(line for line in second.lines() if line["event"] == "partition_stopped")
        assert line["partition"] == 0
        assert "is not in the log" in line["cause"]
        assert line["topic"] == rig.topics.events
        lags = ("callgate_lag_to_position", "callgate_lag_to_commit")
        assert [lag(second, rig, name) for name in lags] == [5.0, 6.0]
        send(rig, [b"waits"] * 2, 0)
        wait_until(lambda: [lag(second, rig, name) for name in lags] == [7.0, 8.0], "the lag did not grow", second.log)
        assert second.stop() == 0
        third = rig.start("offset_reset=earliest")
        send(rig, [completed("after")], 0)
        rig.settle()
        assert third.stop() == 0
        assert sorted(reasons(rig)) == [("after", "ok"), ("before", "ok"), ("other", "ok")]


def test_retention_between_w_and_p_decides_nothing_twice(bootstrap: str, make_topic: MakeTopic, tmp_path: Path) -> None:
    """Section 7: a log that begins between W and P, and a configured reset: what was decided there is not decided again."""
    with Rig(bootstrap, make_topic, tmp_path, partitions=1).running() as rig:
        send(rig, [*opened("held"), b"unreadable", completed("one"), completed("two"), completed("three")])
        first = rig.start()
        rig.settle()
        first.kill()
        commit = rig.commits()[0]
        assert (commit.offset, commit.position) == (0, 7)
        asyncio.run(cut(rig, 5))
        second = rig.start("offset_reset=earliest")
        send(rig, [completed("four")])
        rig.settle()
        assert second.stop() == 0
        assert "out_of_retention" in second.log()
        # `held` has lost its beginning, and nothing came of it any more.
        assert sorted(reasons(rig)) == [("four", "ok"), ("one", "ok"), ("three", "ok"), ("two", "ok")]
        assert len(rig.read(rig.topics.dead_letter)) == 1


def lag(member: Member, rig: Rig, name: str) -> float | None:
    """One lag of partition 0, as `/metrics` shows it; None where it does not."""
    start = f'{name}{{partition="0",topic="{rig.topics.events}"}} '
    found = [line for line in member.get("/metrics")[1].splitlines() if line.startswith(start)]
    return float(found[0].removeprefix(start)) if found else None


async def cut(rig: Rig, before: int) -> None:
    """Delete the records of partition 0 up to an offset, as retention would."""
    reader = Reader(Kafka(bootstrap_servers=(rig.bootstrap,)), rig.group, Lines())
    await reader.start()
    await reader.admin.delete_records({TopicPartition(rig.topics.events, 0): RecordsToDelete(before_offset=before)})
    await reader.close()


def test_topics_that_do_not_fit_end_the_start(bootstrap: str, make_topic: MakeTopic, tmp_path: Path) -> None:
    """A missing topic or one with too little room is one sentence and exit code 4, never a traceback."""
    with Rig(bootstrap, make_topic, tmp_path).running() as rig:
        small = make_topic("small", partitions=4)
        for setting, word in ((f"topics.approved={small}", "max.message.bytes"), ("topics.events=nowhere", "is missing")):
            member = rig.start(setting)
            assert member.process.wait(60) == 4
            assert word in member.log()
            assert "Traceback" not in member.log()
