"""Where members run, one process after the other.

Owns a member's life: its start, its end, and who starts it again. What it does inside is the real code's.
"""

from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, Any

from processor.adapters.runner import NoHooks, Runner
from processor.core.pipeline import Partition
from processor.errors import Fatal, Retryable
from tests.simulation.clock import Clock
from tests.simulation.loop import PROCESS, Process
from tests.simulation.watch import Lines

if TYPE_CHECKING:
    from tests.simulation.world import World


class Machine:
    """A place where a member runs, one process after the other."""

    def __init__(self, world: "World", name: str) -> None:
        self.world = world
        self.name = name
        self.clock = Clock(world.loop)
        self.process: Process | None = None
        self.runner: Runner | None = None
        self.wanted = True
        """Whether a process that ends is replaced."""
        self.incarnations = 0
        self._tasks: list[Any] = []

    def start(self) -> None:
        """Start a new process."""
        self.incarnations += 1
        self.process = process = Process(f"{self.name}.{self.incarnations}")
        process.on_death.append(lambda: self._died(process))
        context = copy_context()
        context.run(PROCESS.set, process)
        self._tasks.append(self.world.loop.create_task(self._run(process), context=context))

    async def _run(self, process: Process) -> None:
        world = self.world
        lines = Lines(process.name, world.counts, world.say)
        settings = world.draw_settings()
        make = partial(world.make_partition, settings)
        self.runner = Runner(settings, make, lines, _Bounds(world, lambda: self.runner), self.clock)
        try:
            await self.runner.run()
        except (Fatal, Retryable) as fault:
            lines.error("ended", cause=str(fault))
        except Exception as fault:  # noqa: BLE001 - the verdict is the world's
            world.surprises.append(fault)
        self.world.loop.call_soon(process.kill)

    def _died(self, process: Process) -> None:
        if process is self.process:
            self.process = self.runner = None
            if self.wanted:
                self.world.outside(self.world.rng.uniform(0.05, 1.5), self._again)

    def _again(self) -> None:
        if self.process is None and self.wanted:
            self.start()


class _Bounds(NoHooks):
    """Holds the bound of what a process has in hand, at each batch."""

    def __init__(self, world: "World", runner: Callable[[], Runner | None]) -> None:
        self._world = world
        self._runner = runner

    def on_batch(self, partition: Partition) -> None:
        """Look at the bytes in hand."""
        runner = self._runner()
        if runner is not None and not 0 <= runner._room.held <= self._world.most_in_hand:
            held, most = runner._room.held, self._world.most_in_hand
            self._world.surprises.append(
                AssertionError(f"{held} bytes in hand at partition {partition.number}, not 0 to {most}")
            )
