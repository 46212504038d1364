"""`callgate redrive` on a real broker: what moves, what stays, and that nothing moves twice, whatever happens to it."""

import asyncio
import contextlib
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.structs import TopicPartition

from processor import app
from processor.adapters.offset_fetch import Reader
from processor.adapters.redrive import Plan, Redrive, settings_for
from processor.adapters.runner import Runner
from processor.cli.exits import Exit
from processor.core.events import Unreadable
from processor.core.outgoing import dead_letter
from processor.core.reasons import Cause
from processor.core.redrive import ATTEMPTS, Choice, Fate
from processor.core.toolsets import EMPTY
from processor.errors import Fatal, Unfit
from processor.settings import Settings, Topics
from tests.cli.command import callgate
from tests.conftest import MakeTopic
from tests.contract.kit import Lines, commit_at, input_partition, make_settings, produce, read_all, started, with_reader
from tests.core.test_redrive import Plain

PATIENCE_SECONDS = 90.0


def patient_settings(bootstrap: str, make_topic: MakeTopic, partitions: int = 1) -> Settings:
    """Settings whose transactions have time on a machine that is busy."""
    return make_settings(bootstrap, make_topic, partitions, kafka={"transaction_timeout_ms": 60_000})


async def bury(settings: Settings, buried: Sequence[Plain], *, number: int = 0, each: int = 3) -> None:
    """Write dead letters as the processor does, so many in each transaction."""
    publisher = await started(settings, number)
    try:
        for first in range(0, len(buried), each):
            some = [
                dead_letter(one, Unreadable(cause_of(one), "at byte 1"), settings.topics.events, number)
                for one in buried[first : first + each]
            ]
            await publisher.publish(some, commit_at(first))
    finally:
        await publisher.close()


def cause_of(record: Plain) -> Cause:
    """Every third one has no key."""
    return Cause.NO_KEY if record.offset % 3 == 2 else Cause.NOT_JSON


def numbered(count: int) -> list[Plain]:
    """Records that can be told apart."""
    return [Plain(n, 1_700_000_000_000 + n, b"key", b"%d" % n, [("x", None), ("n", b"%d" % n)]) for n in range(count)]


async def redrive(settings: Settings, **what: Any) -> Plan:
    """Run it once."""
    own = settings_for(settings)
    plain = {name: what.pop(name) for name in ("only", "limit", "rate", "dry") if name in what}
    reader = Reader(own.kafka, own.group, Lines())
    await reader.start()
    try:
        steps: list[int] = []
        work = Redrive(own, reader, started=steps.append, seen=steps.append)
        plan = await work.run(lambda count: Plan(Choice(settings.topics.events, count, **what), **plain))
        # What a progress bar is told: never more than there is, all of it in the end, and each transaction by itself.
        assert sum(steps[1:]) == steps[0] or plan.limit
        assert min(steps) >= 0
        return plan
    finally:
        await reader.close()


async def records(settings: Settings, number: int = 0, topic: str = "") -> list[Any]:
    """The input topic for a reader of what is committed, as soon as no transaction is open: markers come a moment later."""
    where = TopicPartition(topic or settings.topics.events, number)
    bootstrap = settings.kafka.bootstrap_servers[0]
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, isolation_level="read_committed")
    await consumer.start()

    async def open_ones(reader: Reader, _: Lines) -> bool:
        return bool((await consumer.end_offsets([where]))[where] < await reader.end(where))

    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while await with_reader(settings, open_ones):
                await asyncio.sleep(0.02)
    finally:
        await consumer.stop()
    return await read_all(bootstrap, where.topic, number)


async def values(settings: Settings, number: int = 0) -> list[bytes | None]:
    """Its values."""
    return [record.value for record in await records(settings, number)]


def create_time(bootstrap: str, make_topic: MakeTopic, partitions: int = 1, config: dict[str, str] | None = None) -> Settings:
    """Settings whose input keeps its producers' timestamps."""
    settings = patient_settings(bootstrap, make_topic, partitions)
    topic = make_topic("events", partitions=partitions, config={"message.timestamp.type": "CreateTime", **(config or {})})
    names = settings.topics
    changed = Topics(events=topic, approved=names.approved, rejected=names.rejected, dead_letter=names.dead_letter)
    return Settings(group=settings.group, topics=changed, kafka=settings.kafka)


def test_records_come_back_as_they_were_read(bootstrap: str, make_topic: MakeTopic) -> None:
    """Partition, order, key, value, headers and timestamp are those of the record; one header counts the attempt."""
    settings = create_time(bootstrap, make_topic, partitions=2)
    odd = [Plain(0, 5, None, b"\xff\x00"), Plain(1, -1, b"", None, [("callgate-cause", b"mine")]), *numbered(4)[2:]]

    async def work() -> None:
        await bury(settings, odd, number=1)
        plan = await redrive(settings)
        assert (plan.moved, plan.fates) == (4, Counter({("not_json", Fate.MOVES): 3, ("no_key", Fate.MOVES): 1}))
        assert await values(settings, 0) == []
        found = await records(settings, 1)
        assert [(r.key, r.value) for r in found] == [(r.key, r.value) for r in odd]
        assert [list(r.headers) for r in found] == [[*r.headers, (ATTEMPTS, b"1")] for r in odd]
        assert [r.timestamp for r in found if r.offset != 1] == [r.timestamp for r in odd if r.timestamp >= 0]
        assert (await redrive(settings)).fates == Counter()

    asyncio.run(work())


def test_a_choice_leaves_the_rest_for_later(bootstrap: str, make_topic: MakeTopic) -> None:
    """By cause, time, offset and number; what is left moves in a later run, what has moved never again."""
    settings = patient_settings(bootstrap, make_topic)

    async def work() -> None:
        await bury(settings, numbered(60), each=7)
        moved: list[int] = []

        async def run(expected: list[int], **what: Any) -> Plan:
            dry = await redrive(settings, dry=True, **what)
            plan = await redrive(settings, **what)
            assert (dry.moved, dry.fates) == (plan.moved, plan.fates)
            moved.extend(expected)
            assert [int(value or b"") for value in await values(settings)] == moved
            return plan

        plan = await run([2, 5], causes=frozenset({"no_key"}), limit=2)
        assert plan.fates["not_json", Fate.NOT_CHOSEN] == 4
        await run([30, 31], since_ms=1_700_000_000_030, until_ms=1_700_000_000_032)
        dead = await records(settings, topic=settings.topics.dead_letter)
        await run([45, 46, 47], first=dead[45].offset, last=dead[47].offset)
        plan = await run([n for n in range(60) if n not in moved])
        # The first ones are before the offset of the group, and are not looked at any more.
        assert plan.fates["no_key", Fate.MOVED_BEFORE] + plan.fates["not_json", Fate.MOVED_BEFORE] == 7
        await bury(settings, numbered(62)[60:])
        await run([60, 61])

    asyncio.run(work())


def test_killed_again_and_again(bootstrap: str, make_topic: MakeTopic, tmp_path: Path) -> None:
    """SIGKILL in the middle, three times: whoever reads what is committed finds every record once."""
    settings = patient_settings(bootstrap, make_topic, partitions=2)
    count = 600

    async def prepare() -> None:
        for number in (0, 1):
            await bury(settings, numbered(count), number=number, each=100)

    asyncio.run(prepare())
    config = write_config(settings, tmp_path)
    command = [sys.executable, "-m", "processor", "redrive", "--config", str(config)]

    def there() -> int:
        # Uncommitted ones too: the kill should come in the middle of a transaction.
        ends = asyncio.run(with_reader(settings, ends_of))
        return int(sum(ends))

    async def ends_of(reader: Reader, _: Lines) -> list[int]:
        return [(await reader.ends(input_partition(settings, number)))[1] for number in (0, 1)]

    for kill in range(3):
        before = there()
        with subprocess.Popen([*command, "--rate", "100"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as running:
            patience = time.monotonic() + PATIENCE_SECONDS
            while there() == before:
                assert running.poll() is None, running.stderr and running.stderr.read()
                assert time.monotonic() < patience
            running.kill()
        assert there() < 2 * count, f"kill {kill} came too late to mean anything"
    ended = subprocess.run(command, check=False, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")

    async def verdict() -> None:
        for number in (0, 1):
            assert [int(value or b"") for value in await values(settings, number)] == list(range(count))

    asyncio.run(verdict())


def test_told_to_end_it_says_what_it_moved(bootstrap: str, make_topic: MakeTopic, tmp_path: Path) -> None:
    """SIGTERM ends it after the transaction in hand: what it says it moved is what was moved."""
    settings = patient_settings(bootstrap, make_topic)
    asyncio.run(bury(settings, numbered(200), each=100))
    command = [sys.executable, "-m", "processor", "redrive", "--config", str(write_config(settings, tmp_path)), "--rate", "4"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        patience = time.monotonic() + PATIENCE_SECONDS
        while not asyncio.run(values(settings)):
            assert running.poll() is None
            assert time.monotonic() < patience
        running.terminate()
        out, err = running.communicate(timeout=PATIENCE_SECONDS)
    assert (running.returncode, err) == (Exit.INTERRUPTED, "")
    moved = len(asyncio.run(values(settings)))
    assert out.splitlines()[-1].startswith(f"{moved} dead letter")
    assert moved < 200


def test_two_at_once_move_nothing_twice(bootstrap: str, make_topic: MakeTopic) -> None:
    """One fences the others, or begins where they ended: together they move everything once."""
    settings = patient_settings(bootstrap, make_topic)

    async def work() -> None:
        await bury(settings, numbered(300), each=50)
        results = await asyncio.gather(*(redrive(settings, rate=1_000.0) for _ in range(3)), return_exceptions=True)
        assert all(isinstance(one, Plan | Fatal) for one in results), results
        assert any(isinstance(one, Plan) for one in results)
        with contextlib.suppress(Fatal):
            await redrive(settings)
        assert Counter(await values(settings)) == Counter(b"%d" % n for n in range(300))

    asyncio.run(work())


def test_what_comes_back_each_time_is_left(bootstrap: str, make_topic: MakeTopic) -> None:
    """The loop guard: a record that still cannot be read becomes a dead letter again, counted, and is given up."""
    settings = patient_settings(bootstrap, make_topic)
    runner = Runner(settings, app.Core(settings, EMPTY).partition, Lines())

    async def dead(count: int) -> list[Any]:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while len(found := await records(settings, topic=settings.topics.dead_letter)) < count:
                await asyncio.sleep(0.05)
        return found

    async def work() -> None:
        await produce(bootstrap, settings.topics.events, [b"{no"])
        running = asyncio.create_task(runner.run())
        try:
            for attempt in (1, 2):
                await dead(attempt)
                assert (await redrive(settings, max_attempts=2)).moved == 1
            letters = await dead(3)
            plan = await redrive(settings, max_attempts=2)
            assert plan.fates == Counter({("not_json", Fate.TRIED): 1})
        finally:
            runner.stop()
            await running
        assert [dict(letter.headers).get(ATTEMPTS) for letter in letters] == [None, b"1", b"2"]
        assert {(letter.key, letter.value) for letter in letters} == {(b"key", b"{no")}

    asyncio.run(work())


def test_what_the_input_would_refuse_is_left(bootstrap: str, make_topic: MakeTopic) -> None:
    """A record that was as large as the topic takes has no room for the header; the others move."""
    settings = create_time(bootstrap, make_topic, config={"max.message.bytes": "2000"})
    sizes = [1_000, 1_700, 1_850, 1_990, 10]

    async def work() -> None:
        await bury(settings, [Plain(0, 5, b"key", b"x" * size) for size in sizes])
        plan = await redrive(settings)
        assert plan.fates == Counter({("not_json", Fate.MOVES): 4, ("not_json", Fate.TOO_LARGE): 1})
        assert [len(value or b"") for value in await values(settings)] == [1_000, 1_700, 1_850, 10]

    asyncio.run(work())


def test_what_cannot_be_done_is_one_sentence(bootstrap: str, make_topic: MakeTopic) -> None:
    """A partition or a topic that is not there is named."""
    settings = patient_settings(bootstrap, make_topic)
    with pytest.raises(Fatal, match=r"has no partition 4: it has 1, from 0 on\.$"):
        asyncio.run(redrive(settings, only=frozenset({4})))
    missing = Settings(
        group="g", kafka=settings.kafka, topics=Topics(events=settings.topics.events, dead_letter="no-such-topic")
    )
    with pytest.raises(Unfit, match=r"^Topic `no-such-topic` is missing\.$"):
        asyncio.run(redrive(missing))


def write_config(settings: Settings, folder: Path) -> Path:
    """Write the settings to a file, for the command line."""
    path = folder / "callgate.yaml"
    names = settings.topics
    topics = {"events": names.events, "dead_letter": names.dead_letter}
    kafka = {"bootstrap_servers": list(settings.kafka.bootstrap_servers)}
    path.write_text(json.dumps({"group": settings.group, "topics": topics, "kafka": kafka}))
    return path


def test_the_command_says_what_it_did(bootstrap: str, make_topic: MakeTopic, tmp_path: Path) -> None:
    """Counts by cause and why, on standard output; what would move in a dry run is what moves then."""
    settings = patient_settings(bootstrap, make_topic)
    asyncio.run(bury(settings, numbered(9)))
    config = str(write_config(settings, tmp_path))
    dry = callgate("redrive", "--config", config, "--cause", "not_json", "--dry-run")
    assert (dry.code, dry.err) == (0, "")
    assert dry.out.splitlines()[0].split() == ["cause", "would", "move", "not", "chosen"]
    assert [line.split() for line in dry.out.splitlines()[1:3]] == [["no_key", "3"], ["not_json", "6"]]
    assert dry.out.splitlines()[-1] == "6 dead letters would move, 3 left."
    moved = callgate("redrive", "--config", config, "--cause", "not_json", "--limit", "2")
    assert (moved.code, moved.out.splitlines()[-1]) == (0, "2 dead letters moved, 0 left.")
    rest = callgate("redrive", "--config", config, "--since", "2023-11-14", "--until", "0s", "--partition", "0")
    assert (rest.code, rest.out.splitlines()[-1]) == (0, "7 dead letters moved, 0 left.")
    assert callgate("redrive", "--config", config).out == "0 dead letters moved, 0 left.\n"
