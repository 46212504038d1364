"""Large answers come out of a connection exactly as asyncio's own reader gives them, whatever the socket brings at a time."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer
from hypothesis import given
from hypothesis import strategies as st

from processor.adapters import answers

LARGE, LIMIT = 64, 50
"""Small ones: what is large is many parts long then, too."""
SIZES = st.lists(st.sampled_from([0, 4, LARGE - 1, LARGE, LARGE + 1, 3 * LARGE]), min_size=1, max_size=5)
PARTS = st.lists(st.sampled_from([1, 3, LARGE // 2, LARGE, 2 * LARGE]), min_size=1, max_size=12)


@pytest.fixture(scope="module", autouse=True)
def _small() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(answers, "LARGE", LARGE)
        yield


class Transport:
    """Notes whether the socket is read."""

    def __init__(self) -> None:
        self.paused = False

    def pause_reading(self) -> None:
        """Read no more."""
        assert not self.paused
        self.paused = True

    def resume_reading(self) -> None:
        """Read again."""
        assert self.paused
        self.paused = False


def content(size: int) -> bytes:
    """Bytes that are not alike."""
    return b"".join(n.to_bytes(4, "big") for n in range(size // 4 + 1))[:size]


async def turns() -> None:
    """Let everybody run who can."""
    for _ in range(5):
        await asyncio.sleep(0)


async def read(prepared: bool, sizes: list[int], parts: list[int], ended: str, burst: int) -> list[Any]:
    """Read frames of these sizes from a socket that brings these parts over and over; it ends early, breaks, or does not.

    It brings so many before the reader has its turn: uvloop does, where a part filled its buffer.
    """
    reader = asyncio.StreamReader(limit=LIMIT, loop=asyncio.get_running_loop())
    transport = Transport()
    reader.set_transport(transport)  # type: ignore[arg-type]
    if prepared:
        assert answers.prepare(reader)
    found: list[Any] = []

    async def frames() -> None:
        try:
            for size in sizes:
                frame = await reader.readexactly(size)
                found.append(frame)
        except asyncio.IncompleteReadError as fault:
            found.append(("incomplete", fault.partial, fault.expected))
        except OSError as fault:
            found.append(("broken", str(fault)))

    reading = asyncio.create_task(frames())
    data = content(sum(sizes) if ended == "no" else sum(sizes) // 2)
    place = turn = 0
    while place < len(data):
        if turn % burst == 0:
            await turns()
            # A paused socket brings nothing: whoever waits for more must have let it go on.
            assert not transport.paused or reading.done()
        part = data[place : place + parts[turn % len(parts)]]
        reader.feed_data(part)
        place, turn = place + len(part), turn + 1
    await turns()
    if ended == "early":
        reader.feed_eof()
    elif ended == "broken":
        reader.set_exception(OSError("reset"))
    await asyncio.wait([reading])
    found.append(bytes(reader._buffer))  # type: ignore[attr-defined]
    return found


@given(SIZES, PARTS, st.sampled_from(["no", "early", "broken"]), st.integers(1, 4))
def test_as_asyncio_reads(sizes: list[int], parts: list[int], ended: str, burst: int) -> None:
    """Frames, what is missing at an early end, what a connection broke with, and what is left over are the same."""
    if ended != "no" and not sum(sizes):
        ended = "no"
    ours = asyncio.run(read(True, sizes, parts, ended, burst))
    assert ours == asyncio.run(read(False, sizes, parts, ended, burst))


def test_a_cancelled_wait_loses_nothing() -> None:
    """Who reads again after a cancellation finds all that had come, as with asyncio's own reader."""

    async def work() -> None:
        reader = asyncio.StreamReader(limit=LIMIT, loop=asyncio.get_running_loop())
        assert answers.prepare(reader)
        data = content(3 * LARGE)
        waiting = asyncio.create_task(reader.readexactly(len(data)))
        for part in (data[:10], data[10:LARGE], data[LARGE : 2 * LARGE]):
            await turns()
            reader.feed_data(part)
        waiting.cancel()
        await asyncio.wait([waiting])
        reader.feed_data(data[2 * LARGE :])
        assert await reader.readexactly(4) == data[:4]
        assert await reader.readexactly(len(data) - 4) == data[4:]

    asyncio.run(work())


def test_what_is_not_as_expected_stays_as_it_is() -> None:
    """Another reader, a connection without one, a client without the seam: no error, and nothing is changed."""

    class Other(asyncio.StreamReader):
        pass

    async def work() -> None:
        other = Other()
        assert not answers.prepare(other)
        assert type(other) is Other
        assert not answers.prepare(None)

    asyncio.run(work())
    client = object()
    answers.install(client)


@pytest.mark.kafka
def test_the_consumer_reads_so(bootstrap: str) -> None:
    """The connections of the client that is given are prepared, those that are made later too."""

    async def work() -> None:
        consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap)
        answers.install(consumer._client)
        await consumer.start()
        try:
            await consumer.topics()
            for connection in list(consumer._client._conns.values()):
                connection.close()
            await consumer.topics()
            readers = [connection._reader for connection in consumer._client._conns.values() if connection.connected()]
            assert readers
            assert all(isinstance(reader, answers._Reader) for reader in readers)
        finally:
            await consumer.stop()

    asyncio.run(work())
