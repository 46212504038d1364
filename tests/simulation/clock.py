"""Time as the code under test reads it: the loop's, by process, with wall clocks that may be wrong.

Owns the one place where the client's and callgate's own reading of the machine's clock is replaced. It never changes the clocks
of the interpreter itself.
"""

import asyncio
import contextlib
import random
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import aiokafka.client
import aiokafka.cluster
import aiokafka.consumer.fetcher
import aiokafka.consumer.group_coordinator
import aiokafka.consumer.subscription_state
import aiokafka.producer.message_accumulator

from processor.adapters import publish

EPOCH_MS = 1_790_000_000_000
"""Wall clock when a simulation begins."""

READERS: tuple[ModuleType, ...] = (
    aiokafka.client,
    aiokafka.cluster,
    aiokafka.consumer.fetcher,
    aiokafka.consumer.group_coordinator,
    aiokafka.consumer.subscription_state,
    aiokafka.producer.message_accumulator,
    publish,
)
"""Modules that read the clock by themselves."""


class _Time:
    """In place of the module `time`."""

    @staticmethod
    def monotonic() -> float:
        """Virtual seconds."""
        return asyncio.get_event_loop().time()

    @staticmethod
    def time() -> float:
        """Virtual seconds since the epoch."""
        return EPOCH_MS / 1000 + asyncio.get_event_loop().time()


@contextlib.contextmanager
def virtual_time() -> Iterator[None]:
    """Let the client read the loop's time."""
    kept = [module.__dict__["time"] for module in READERS]
    for module in READERS:
        module.__dict__["time"] = _Time
    try:
        yield
    finally:
        for module, time in zip(READERS, kept, strict=True):
            module.__dict__["time"] = time


class Clock:
    """The clocks of one machine: the port that the runner asks for. Only the wall clock can be wrong."""

    def __init__(self, loop: Any) -> None:
        self._loop = loop
        self.wrong_ms = 0
        """How far the wall clock is off."""

    def wall_ms(self) -> int:
        """Milliseconds since the epoch, perhaps wrong."""
        return EPOCH_MS + self.wrong_ms + int(self._loop.now * 1000)

    def monotonic(self) -> float:
        """Seconds that never go back."""
        now: float = self._loop.now
        return now

    def jump(self, rng: random.Random) -> None:
        """Be wrong from now on, by seconds or by hours."""
        self.wrong_ms = rng.choice((-3_600_000, -5_000, 2_000, 20_000, 90_000, 3_600_000))
