"""One chaos run: faults in a random order, each measured, until the plan is done; then the verdict.

Owns the order of the faults and what counts. A fault counts only where it landed, and calls were undecided and W was below P
both right before it and when it was done.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from tests.chaos.arena import PARTITIONS, Arena, NeverBack
from tests.chaos.faults import FAULTS, FEWEST_MEMBERS, MOST_MEMBERS, Fault, Hit, joined, left, restarted
from tests.chaos.overtaken import Overtaken
from tests.chaos.verdict import Verdict

ROLLING = "rolling restart of 4 members, each"
JOINS, LEAVES = (next(name for name, fault in FAULTS.items() if fault is one) for one in (joined, left))

Say = Callable[[str], None]


@dataclass(frozen=True)
class Outcome:
    """One fault and its pauses."""

    kind: str
    counted: bool
    pauses: tuple[float, ...]
    """By partition, in seconds."""
    note: str = ""


@dataclass
class Result:
    """All of a run."""

    seed: int
    outcomes: list[Outcome] = field(default_factory=list)
    stuck: list[str] = field(default_factory=list)
    """Faults after which not everybody came back by themselves."""
    last: str = ""
    """What was done last, for people."""
    verdict: Verdict | None = None
    overtaken: list[Overtaken] = field(default_factory=list)
    """Runs of the fault after which something must be lost."""
    records: int = 0
    seconds: float = 0.0

    @property
    def counted(self) -> int:
        """Faults that count."""
        return sum(one.counted for one in self.outcomes)


def chaos(folder: Path, seed: int, plan: Mapping[str, int], say: Say, *, rolls: int = 0, per_second: float = 400.0) -> Result:
    """Run a plan (kind to number of times), then `rolls` rolling restarts of four members; returns what was found.

    Raises NeverBack where a rescue failed, AssertionError where a member ended by itself or with a fault.
    """
    result = Result(seed)
    began = time.monotonic()
    with Arena(folder, seed, per_second=per_second) as arena:
        order = [kind for kind, times in plan.items() for _ in range(times)]
        arena.rng.shuffle(order)
        total = len(order) + 4 * rolls
        while order:
            kind = _next(arena, order)
            _one(arena, result, kind, FAULTS[kind])
            say(_line(result, total, began))
        for _ in range(rolls):
            while len(arena.members) < MOST_MEMBERS:
                arena.join()
            arena.recover()
            for member in list(arena.members):
                _one(arena, result, ROLLING, partial(restarted, victim=member))
                say(_line(result, total, began))
        say("The load ends; everything is decided, then read anew ...")
        result.verdict = arena.finish()
        result.records = arena.load.records
    result.seconds = time.monotonic() - began
    return result


def _next(arena: Arena, order: list[str]) -> str:
    """Take the next fault that the number of members allows."""
    unfit = {MOST_MEMBERS: JOINS, FEWEST_MEMBERS: LEAVES}.get(len(arena.members))
    place = next((at for at, kind in enumerate(order) if kind != unfit), None)
    if place is None:
        # Only such are left: make room, or company.
        other = LEAVES if unfit == JOINS else JOINS
        FAULTS[other](arena)
        arena.recover()
        place = 0
    return order.pop(place)


def _one(arena: Arena, result: Result, kind: str, fault: Fault) -> None:
    """Wait until it would count, do it, wait until everybody is back, and note the pauses."""
    try:
        arena.wait(arena.amid_calls, "no call is undecided any more")
        hit: Hit = fault(arena)
        amid = arena.amid_calls()
        arena.recover()
    except NeverBack as fault_:
        result.stuck.append(f"{kind}: {fault_}")
        result.last = f"STUCK {result.stuck[-1]}"
        _rescue(arena)
        return
    pauses = tuple(arena.monitor.pause(number, hit.since) for number in range(PARTITIONS))
    result.outcomes.append(Outcome(kind, hit.landed and amid, pauses, hit.note))
    missed = "" if hit.landed and amid else f" (does not count: {'it missed' if amid else 'W was at P'})"
    result.last = f"{kind}: {max(pauses):.1f} s{missed} {hit.note}"


def _rescue(arena: Arena) -> None:
    """Replace every member: the run goes on, and its report says that it needed this."""
    arena.proxy.delay = 0.0
    arena.load.flow()
    for member in list(arena.members):
        member.kill()
        arena.replace(member)
    arena.recover()


def _line(result: Result, total: int, began: float) -> str:
    """Tell how far it is."""
    seconds = time.monotonic() - began
    done = len(result.outcomes) + len(result.stuck)
    left_over = seconds / max(done, 1) * (total - done)
    return f"[{done:3}/{total}] {seconds / 60:4.1f} min, about {left_over / 60:4.1f} left  {result.last}"
