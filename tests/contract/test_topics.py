"""The topics on a real broker: made as they must be, and what is not is said in one sentence each."""

import asyncio
import dataclasses
import secrets

import pytest

from processor.adapters import topics
from processor.adapters.offset_fetch import Reader
from processor.app import gate_settings
from processor.core.outgoing import Route
from processor.errors import Unfit
from processor.settings import BROKER_DEFAULT_BYTES, Kafka, Settings, Topics
from tests.conftest import MakeTopic
from tests.contract.kit import Lines, commit_at, decision, make_settings, read_all, started, with_reader


async def known(reader: Reader, settings: Settings) -> None:
    """Wait until the broker's metadata has the topics that were just made."""
    while any("is missing" in finding.sentence for finding in await topics.check(reader, settings)):
        await asyncio.sleep(0.01)


def test_what_is_missing_is_made_as_it_must_be(bootstrap: str) -> None:
    """Design section 7: topics are configured when they are made; after that the check finds nothing, and makes nothing."""
    mark = secrets.token_hex(4)
    names = Topics(events=f"e-{mark}", approved=f"a-{mark}", rejected=f"r-{mark}", dead_letter=f"d-{mark}", partitions=3)
    settings = Settings(topics=names, kafka=Kafka(bootstrap_servers=(bootstrap,)), arguments="include")

    async def work(reader: Reader, _: Lines) -> None:
        before = await topics.check(reader, settings)
        assert [finding.stops for finding in before] == [True] * 4
        # Asking must not make them, whatever the broker is set to.
        assert len(await topics.create(reader, settings)) == 4
        await known(reader, settings)
        assert await topics.check(reader, settings) == []
        assert await topics.create(reader, settings) == []

    asyncio.run(with_reader(settings, work))


def test_the_largest_decisions_fit(bootstrap: str) -> None:
    """Everything that is decided can be published: what the gate lets through, to the byte, fits the topics that were made."""
    mark = secrets.token_hex(4)
    names = Topics(events=f"e-{mark}", approved=f"a-{mark}", rejected=f"r-{mark}", dead_letter=f"d-{mark}", partitions=1)
    settings = Settings(topics=names, kafka=Kafka(bootstrap_servers=(bootstrap,)), group=mark)
    gate = gate_settings(settings)
    largest = [
        decision(b"a" * gate.max_decision_bytes, None),
        decision(b"r" * gate.max_rejection_bytes, None, Route.REJECTED),
        decision(b"r" * 60_000, b"k" * BROKER_DEFAULT_BYTES, Route.REJECTED),
        decision(b"d" * BROKER_DEFAULT_BYTES, None, Route.DEAD_LETTER),
    ]

    async def work(reader: Reader, _: Lines) -> None:
        assert len(await topics.create(reader, settings)) == 4
        await known(reader, settings)
        publisher = await started(settings)
        try:
            await publisher.publish(largest, commit_at(0))
        finally:
            await publisher.close()
        for name, count in ((names.approved, 1), (names.rejected, 2), (names.dead_letter, 1)):
            # The markers are written a little after the commit is answered.
            while len(found := await read_all(bootstrap, name)) < count:
                pass
            assert len(found) == count

    asyncio.run(with_reader(settings, work))


@pytest.mark.parametrize(
    ("config", "word"),
    [({"cleanup.policy": "compact"}, "compacted"), ({"retention.ms": "60000"}, "retention.ms")],
)
def test_an_input_that_loses_records_stops_the_start(
    bootstrap: str, make_topic: MakeTopic, config: dict[str, str], word: str
) -> None:
    """A rebuild reads the log again: an input that is compacted or kept too short is refused by name."""
    settings = make_settings(bootstrap, make_topic)
    bad = make_topic("bad", config=config)
    settings = dataclasses.replace(settings, topics=dataclasses.replace(settings.topics, events=bad))

    async def work(reader: Reader, _: Lines) -> None:
        await known(reader, settings)
        with pytest.raises(Unfit, match=word):
            await topics.require(reader, settings)

    asyncio.run(with_reader(settings, work))


def test_producers_clocks_are_warned_of(bootstrap: str, make_topic: MakeTopic) -> None:
    """Section 7: a producer with a wrong clock must not expire everybody; the start says so, and goes on."""
    settings = make_settings(bootstrap, make_topic)
    clocks = make_topic("clocks")
    settings = dataclasses.replace(settings, topics=dataclasses.replace(settings.topics, events=clocks))

    async def work(reader: Reader, _: Lines) -> None:
        await known(reader, settings)
        (finding,) = await topics.require(reader, settings)
        assert "LogAppendTime" in finding.sentence

    asyncio.run(with_reader(settings, work))


def test_records_that_hold_up_the_heartbeats_are_warned_of(bootstrap: str, make_topic: MakeTopic) -> None:
    """Issue 6: an input whose largest record may take longer than the session is said at the start, which goes on."""
    settings = make_settings(bootstrap, make_topic)
    large = make_topic("events", config={"message.timestamp.type": "LogAppendTime", "max.message.bytes": str(5 << 20)})
    room = {"max.message.bytes": str(8 << 20)}
    yes, no, dead = (make_topic(name, config=room) for name in ("approved", "rejected", "dead-letter"))
    names = Topics(events=large, approved=yes, rejected=no, dead_letter=dead)
    settings = dataclasses.replace(settings, topics=names)

    async def work(reader: Reader, _: Lines) -> list[topics.Finding]:
        return await topics.require(reader, settings)

    (finding,) = asyncio.run(with_reader(settings, work))
    assert "records of up to 5MiB" in finding.sentence
    assert "kafka.session_timeout" in finding.sentence


def test_outputs_must_match_the_input(bootstrap: str, make_topic: MakeTopic) -> None:
    """Equally many partitions, and room for the largest decision: else a decision could not be published."""
    settings = make_settings(bootstrap, make_topic)
    small = make_topic("small", partitions=2)
    settings = dataclasses.replace(settings, topics=dataclasses.replace(settings.topics, approved=small))

    async def work(reader: Reader, _: Lines) -> None:
        await known(reader, settings)
        sentences = [finding.sentence for finding in await topics.check(reader, settings) if finding.stops]
        assert any("partitions" in sentence for sentence in sentences)
        assert any("max.message.bytes" in sentence for sentence in sentences)

    asyncio.run(with_reader(settings, work))
