"""Fixtures for everybody: a broker for the session, topics with names of their own, Hypothesis' profiles.

Tests that ask for `bootstrap`, `broker` or `make_topic` are marked `kafka` here, so that `-m "not kafka"` never starts one. A
test never falls back: without Java or Maven those fail, and say what to install.
"""

import asyncio
import os
import secrets
import threading
from collections.abc import Callable, Iterator
from typing import Protocol

import pytest
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from hypothesis import HealthCheck, settings

from processor.broker import Broker

BOOTSTRAP = "CALLGATE_TEST_BOOTSTRAP"
"""Environment variable with the address of a broker that is there already; it is used instead of one started here."""

NEED_KAFKA = {"bootstrap", "broker", "make_topic"}

# A loaded machine is slow; that is no fault of the code under test. CI draws the same examples each time: a failure there is
# a failure here.
settings.register_profile("dev", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("dev"), derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "dev")


class MakeTopic(Protocol):
    """Makes a topic on the session's broker and returns its name, which starts with `name` and is used by nobody else."""

    def __call__(self, name: str = "topic", *, partitions: int = 1, config: dict[str, str] | None = None) -> str:
        """Create it, and return when it is there."""
        ...


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs the broker; the simulation has one in memory."""
    for item in items:
        names = set(getattr(item, "fixturenames", ()))
        if NEED_KAFKA & names and "in_memory" not in names:
            item.add_marker(pytest.mark.kafka)


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    """Give the session's own broker: not to be killed or stopped; tests that do so make their own."""
    with Broker(quick=True) as running:
        yield running


@pytest.fixture(scope="session")
def bootstrap(request: pytest.FixtureRequest) -> str:
    """Give the address of a broker: the one named in the environment, else the session's own."""
    named = os.environ.get(BOOTSTRAP)
    if named:
        return named
    running: Broker = request.getfixturevalue("broker")
    return running.bootstrap


@pytest.fixture(scope="session")
def make_topic(bootstrap: str) -> MakeTopic:
    """Give a maker of topics; it may be called with or without a running event loop."""

    def make(name: str = "topic", *, partitions: int = 1, config: dict[str, str] | None = None) -> str:
        unique = f"{name}-{secrets.token_hex(4)}"
        elsewhere(lambda: asyncio.run(create_topic(bootstrap, unique, partitions=partitions, config=config)))
        return unique

    return make


async def create_topic(bootstrap: str, name: str, *, partitions: int = 1, config: dict[str, str] | None = None) -> None:
    """Create one topic, and return when it is there. Raises AssertionError with the broker's answer where it refuses."""
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        answer = await admin.create_topics([NewTopic(name, partitions, 1, topic_configs=config or {})])
        refused = [error for error in answer.to_object()["topic_errors"] if error["error_code"]]
        assert not refused, refused
    finally:
        await admin.close()


def elsewhere(work: Callable[[], None]) -> None:
    """Do it in a thread of its own, where no event loop runs; its failure is raised here."""
    failures: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as failure:  # noqa: BLE001 - raised again below, in the caller's thread
            failures.append(failure)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if failures:
        raise failures[0]
