"""What goes wrong in a simulation, and when: all of it drawn from the seed.

Owns the faults and their count. It tells nobody what is coming, and ends before the run does: after it everything must heal.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tests.simulation.loop import Process
from tests.simulation.network import Fate
from tests.simulation.refusals import DONE_ALL_THE_SAME, FINAL, RETRIABLE

if TYPE_CHECKING:
    from tests.simulation.machine import Machine
    from tests.simulation.world import World

GROUP = (11, 12, 13, 14)
"""Requests of a member to its group."""
LONGEST = 10.0
"""Seconds in which things go wrong."""


class Trouble:
    """All faults of one simulation."""

    def __init__(self, world: "World", rng: random.Random, deeds: Mapping[str, int] | None, *, busy: bool) -> None:
        self._world = world
        self._rng = rng
        self.over = False
        self.counts: Counter[str] = Counter()
        self.clocks_were_wrong = False
        self._rates = {
            kind: rng.choice((0.0, 0.0, most / 5, most))
            for kind, most in (
                ("lost request", 0.03),
                ("lost answer", 0.03),
                ("no answer", 0.01),
                ("slow", 0.05),
                ("retriable", 0.08),
                ("final", 0.02),
                ("done, but refused", 0.03),
                ("slow start", 0.4),
            )
        }
        self._deeds = {
            self._kill: rng.choice((0, 1, 3)),
            self._freeze: rng.choice((0, 1, 3)),
            self._rebalance: rng.choice((0, 1, 2)),
            self._stop: rng.choice((0, 0, 1)),
            self._outage: rng.choice((0, 0, 1)),
            self._cut: rng.choice((0, 1)),
            self._abort: rng.choice((0, 1)),
            self._forget: rng.choice((0, 0, 1)),
            self._retain: rng.choice((0, 1)),
            self._wrong_clock: rng.choice((0, 0, 0, 1)),
            self._deafen: rng.choice((0, 1, 3)),
            self._swap: rng.choice((0, 1, 2)),
        }
        self._deaf: dict[Process, float] = {}
        """Processes whose requests to the group get lost, and until when."""
        self._focus = rng.choice((-1, 26, 26, 28, 22, 9, 0, 24))
        """A request that goes wrong more often than others."""
        self._every = rng.choice((0.15, 0.5, 1.5))
        if deeds is not None:
            self._rates = dict.fromkeys(self._rates, 0.0) | {
                kind: rate / 100 for kind, rate in deeds.items() if kind in self._rates
            }
            self._deeds = {deed: deeds.get(deed.__name__.strip("_"), 0) for deed in self._deeds}
            self._every = 1.0
        self._begins = 0.0 if deeds is None else 1.0 if busy else max(0.5, world.script.ends_at - rng.uniform(0.0, 1.5))
        """Seconds until the first fault."""
        world.broker.cut_fetches = rng.choice((0.0, 0.3))

    # -- requests

    def fate(self, process: Process | None, request: Any) -> Fate:
        """What becomes of a request."""
        rng = self._rng
        fate = Fate(rng.uniform(0.0001, 0.002), rng.uniform(0.0001, 0.002))
        if self.over or self._world.loop.now < self._begins:
            return fate
        if (
            process is not None
            and self._deaf
            and request.API_KEY in GROUP
            and self._deaf.get(process, 0) > self._world.loop.now
        ):
            fate.lost = "hang"
            return fate
        for kind, rate in self._rates.items():
            if self._focus == request.API_KEY:
                rate *= 6  # noqa: PLW2901
            if rate and rng.random() < rate and self._strike(kind, fate, request.API_KEY):
                self.counts[kind] += 1
                if self._world.say is not None and process is not None:
                    self._world.say(f"{process.name} trouble: {kind} {type(request).__name__} {fate}")
                break
        return fate

    def _strike(self, kind: str, fate: Fate, key: int) -> bool:
        rng = self._rng
        if kind == "slow start":
            # Between the question for what is committed and the fencing, if somebody asked in that order.
            fate.there = rng.uniform(0.05, 0.5)
            return key == 22
        if kind == "slow":
            # Fetches most of all.
            fate.there, fate.back = rng.choice(((0.5, 0.001), (0.001, 0.7), (1.5, 1.0)))
        elif kind in {"retriable", "final", "done, but refused"}:
            codes = {"retriable": RETRIABLE, "final": FINAL}.get(kind, DONE_ALL_THE_SAME).get(key, ())
            if not codes:
                return False
            if kind == "done, but refused":
                fate.late_code = rng.choice(codes)
            else:
                fate.code = rng.choice(codes)
        else:
            fate.lost = {"lost request": "request", "lost answer": "answer"}.get(kind) or rng.choice(("stall", "hang"))
        return True

    # -- deeds

    async def run(self) -> None:
        """Do harm for a while, then end it."""
        rng = self._rng
        until = rng.uniform(1.5, LONGEST) if not self._begins else max(LONGEST, self._begins + 3)
        await asyncio.sleep(self._begins)
        deeds, weights = list(self._deeds), list(self._deeds.values())
        while self._world.loop.now < until:
            await asyncio.sleep(rng.expovariate(1 / self._every))
            if any(weights):
                (deed,) = rng.choices(deeds, weights)
                if deed():
                    name = deed.__name__.strip("_")
                    self.counts[name] += 1
                    if self._world.say is not None:
                        self._world.say(f"trouble: {name}")
        self.over = True
        for machine in self._world.machines:
            machine.clock.wrong_ms = 0
        self._deaf.clear()
        self._world.network.come_up()
        for machine in self._world.machines:
            machine.wanted = True
            if machine.process is None:
                machine.start()

    def tend(self) -> None:
        """Do what an operator does: start a process again whose partition stopped for good."""
        for machine in self._world.machines:
            if machine.runner is not None and machine.process is not None:
                states = [worker.state for worker in machine.runner._workers.values()]
                if "stopped" in states:
                    self.counts["operator"] += 1
                    machine.process.kill()

    def _some(self) -> "Machine | None":
        machines = [one for one in self._world.machines if one.process is not None and not one.process.frozen]
        return self._rng.choice(machines) if machines else None

    def _kill(self) -> bool:
        machine = self._some()
        if machine is None or machine.process is None:
            return False
        machine.process.kill_at = machine.process.steps + self._rng.randint(1, 300)
        return True

    def _freeze(self) -> bool:
        machine = self._some()
        if machine is None or machine.process is None:
            return False
        process, world = machine.process, self._world
        process.freeze()
        world.outside(self._rng.choice((0.3, 0.8, 1.5, 4.0)), lambda: process.thaw(world.loop))
        return True

    def _deafen(self) -> bool:
        """The group hears nothing of a member any more, which goes on with all it has: a zombie that is awake."""
        machine = self._some()
        if machine is None or machine.process is None or any(until > self._world.loop.now for until in self._deaf.values()):
            return False
        self._deaf[machine.process] = self._world.loop.now + self._rng.choice((1.0, 2.0, 3.0))
        return True

    def _swap(self) -> bool:
        """A member freezes, others go on with its partitions; when it wakes, they die."""
        machine, machines = self._some(), self._world.machines
        if machine is None or machine.process is None or any(one.process and one.process.frozen for one in machines):
            return False
        process, world = machine.process, self._world

        def wake() -> None:
            for other in world.machines:
                if other is not machine and other.process is not None:
                    other.process.kill()
            process.thaw(world.loop)

        process.freeze()
        world.outside(self._rng.choice((1.5, 3.0, 5.0, 8.0)), wake)
        return True

    def _rebalance(self) -> bool:
        for group in self._world.broker.groups.values():
            group.rebalance()
        return True

    def _stop(self) -> bool:
        machine = self._some()
        if machine is None or machine.runner is None or machine.process is None:
            return False
        # A signal handler runs between two steps of the process.
        machine.runner.stop()
        return True

    def _outage(self) -> bool:
        network = self._world.network
        if not network.up:
            return False
        network.go_down()
        self._world.outside(self._rng.choice((0.1, 1.0, 3.0)), network.come_up)
        return True

    def _cut(self) -> bool:
        rng = self._rng
        self._world.network.cut(lambda _: rng.random() < 0.5)
        return True

    def _abort(self) -> bool:
        """The broker aborts open transactions, as after their time-out."""
        transactions = self._world.broker.transactions
        found = [one for one in transactions.by_name.values() if one.state == "ongoing"]
        for one in found:
            transactions.abort_behind_its_back(one)
        return bool(found)

    def _forget(self) -> bool:
        transactions = self._world.broker.transactions
        names = list(transactions.by_name.values())
        for one in names:
            transactions.forget(one)
        return bool(names)

    def _retain(self) -> bool:
        """Retention deletes what nobody needs any more: before W, here."""
        for (topic, number), place in self._world.broker.groups["group"].offsets.items():
            self._world.broker.logs[topic, number].cut(place.offset)
        return True

    def _wrong_clock(self) -> bool:
        machine = self._rng.choice(self._world.machines)
        machine.clock.jump(self._rng)
        self.clocks_were_wrong = True
        return True
