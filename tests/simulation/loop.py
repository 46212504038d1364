"""An asyncio event loop in which time is a number and processes can die, freeze and wake.

Owns virtual time and the order of steps: one thread, ready callbacks in the order in which they became ready, and a jump to the
next timer where nothing is ready. It opens no socket and reads no clock. What belongs to a process is told by a context
variable, which asyncio hands on to every task and callback by itself.
"""

import asyncio
import contextlib
import contextvars
import heapq
import itertools
from collections.abc import Callable
from typing import Any


class Process:
    """One simulated process: its steps can be counted, and stop for a while or for good, between any two awaits."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.alive = True
        self.frozen = False
        self.steps = 0
        self.kill_at = 0
        """Step in whose place it dies; 0: none."""
        self.on_death: list[Callable[[], None]] = []
        self._parked: list[asyncio.Handle] = []

    def kill(self) -> None:
        """Die at once: no callback runs any more, no cleanup either. The kernel closes its connections."""
        if self.alive:
            self.alive = False
            self._parked.clear()
            for tell in self.on_death:
                tell()

    def freeze(self) -> None:
        """Stop like a process that was sent SIGSTOP: what becomes due waits."""
        self.frozen = True

    def thaw(self, loop: "Loop") -> None:
        """Go on; what became due meanwhile runs now."""
        self.frozen = False
        parked, self._parked = self._parked, []
        if self.alive:
            loop.ready(parked)

    def park(self, handle: asyncio.Handle) -> None:
        """Keep a callback that became due while the process is frozen."""
        self._parked.append(handle)


PROCESS: contextvars.ContextVar[Process | None] = contextvars.ContextVar("process", default=None)
"""Whose step it is; None: the broker's, or the world's around it."""


class Stuck(Exception):
    """Nothing is ready and no timer runs: nobody would ever go on."""


class Restless(Exception):
    """More steps than any run needs: something goes round and round."""


MOST_STEPS = 150_000
"""Steps of one run: the longest ones take a tenth."""


ROUND_SECONDS = 1e-7
"""Virtual time that one round of the loop takes."""


class _Numbered:
    """Hashed by number: sets of futures and tasks are walked in the same order each time, which addresses do not give."""

    _numbers = itertools.count(1)
    _number = 0

    def __hash__(self) -> int:
        number = self._number
        if not number:
            number = self._number = next(_Numbered._numbers)
        return number


class Future(_Numbered, asyncio.Future):  # type: ignore[type-arg]
    """A future of this loop."""

    __hash__ = _Numbered.__hash__


class Task(_Numbered, asyncio.Task):  # type: ignore[type-arg]
    """A task of this loop."""

    __hash__ = _Numbered.__hash__


class Loop(asyncio.BaseEventLoop):
    """The loop."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        """Virtual seconds since the start."""
        self.steps = 0
        self.faults: list[dict[str, Any]] = []
        """What nobody caught."""
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._sequence = 0
        self._tasks: list[asyncio.Task[Any]] = []
        _Numbered._numbers = itertools.count(1)
        self._inner: Any = self
        self.set_exception_handler(lambda _, context: self.faults.append(context))

    def time(self) -> float:
        """Virtual seconds."""
        return self.now

    def create_future(self) -> asyncio.Future[Any]:
        """Make a future whose hash is its number."""
        return Future(loop=self)

    def create_task(self, coro: Any, *, name: object = None, context: Any = None) -> asyncio.Task[Any]:
        """Make a task whose hash is its number."""
        task = Task(coro, loop=self, name=str(name or "task"), context=context)
        # Kept: a dead process's coroutine that was collected as garbage would run its cleanup in somebody else's step.
        self._tasks.append(task)
        return task

    def dispose(self) -> None:
        """End what never ended, once nobody can be disturbed by it any more."""
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            if not task.done():
                task._log_destroy_pending = False  # type: ignore[attr-defined]
                # Whatever its cleanup wants to wait for, it cannot.
                with contextlib.suppress(BaseException):
                    task.get_coro().close()
        self._inner._ready.clear()
        self._timers.clear()
        self.close()

    def call_soon(  # type: ignore[override]
        self, callback: Any, *args: Any, context: Any = None
    ) -> asyncio.Handle:
        """Put a callback at the end of those that are ready."""
        handle = asyncio.Handle(callback, args, self, context)
        self._inner._ready.append(handle)
        return handle

    def call_at(  # type: ignore[override]
        self, when: float, callback: Any, *args: Any, context: Any = None
    ) -> asyncio.TimerHandle:
        """Run a callback at a time; those of one time in the order of these calls."""
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        self._sequence += 1
        heapq.heappush(self._timers, (when, self._sequence, timer))
        return timer

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Any, *args: Any, context: Any = None
    ) -> asyncio.TimerHandle:
        """Run a callback after so many seconds."""
        return self.call_at(self.now + delay, callback, *args, context=context)

    def ready(self, handles: list[asyncio.Handle]) -> None:
        """Put callbacks at the end of those that are ready."""
        self._inner._ready.extend(handles)

    def _run_once(self) -> None:
        ready, timers = self._inner._ready, self._timers
        while timers and timers[0][2]._cancelled:
            heapq.heappop(timers)
        if not ready and not self._inner._stopping:
            if not timers:
                raise Stuck
            self.now = max(self.now, timers[0][0])
        # A round takes some time: a pause that is shorter than what a float can tell apart would else last for ever.
        self.now += ROUND_SECONDS
        while timers and timers[0][0] <= self.now:
            ready.append(heapq.heappop(timers)[2])
        count = len(ready)
        for _ in range(count):
            handle = ready.popleft()
            if handle._cancelled:
                continue
            context = handle._context
            process = context.get(PROCESS)
            if process is not None:
                if process.frozen:
                    process.park(handle)
                    continue
                process.steps += 1
                if process.steps == process.kill_at:
                    process.kill()
                if not process.alive:
                    continue
            try:
                context.run(handle._callback, *handle._args)
            except Exception as fault:  # noqa: BLE001 - as the base class does
                self.faults.append({"exception": fault, "handle": handle})
        self.steps += count
        if self.steps > MOST_STEPS:
            raise Restless

    def _process_events(self, event_list: Any) -> None:
        """Nothing comes from outside."""

    def _timer_handle_cancelled(self, handle: Any) -> None:
        """It is left out when its time comes."""

    def _write_to_self(self) -> None:
        """Nobody else is there to wake."""
