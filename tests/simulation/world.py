"""One simulation: members on an in-memory broker, everything that happens to them, and the verdict. All of it from one seed.

Owns the members' lives and the order: faults, then peace until everything is decided, then the checks.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Mapping
from contextvars import copy_context
from dataclasses import replace
from itertools import count
from typing import Any

from msgspec import structs

from processor.app import Core
from processor.core.offsets import Commit, decode
from processor.core.pipeline import Partition
from processor.settings import Kafka, Settings, Topics
from tests.simulation import script, verdict
from tests.simulation.broker import Broker
from tests.simulation.group import Place
from tests.simulation.log import records
from tests.simulation.loop import Loop
from tests.simulation.machine import Machine
from tests.simulation.network import Network
from tests.simulation.transactions import Transaction
from tests.simulation.trouble import Trouble
from tests.simulation.verdict import Committed, Violation, essence
from tests.simulation.watch import Moves, Watched

INPUT, GROUP = "events", "group"
PATIENCE_SECONDS = 120.0
"""Virtual time after the last fault in which everything must be decided."""

LONG_ENOUGH_SECONDS = (script.STREAM_TIMEOUT_MS + 2 * script.IDLE_AFTER_MS) / 1000
"""In which all that fell silent has expired, if the clocks are right."""

SETTINGS = Settings(
    group=GROUP,
    topics=Topics(events=INPUT, approved="approved", rejected="rejected", dead_letter="dead-letter"),
    stream_timeout_ms=script.STREAM_TIMEOUT_MS,
    closed_memory_ms=script.CLOSED_MEMORY_MS,
    idle_after_ms=script.IDLE_AFTER_MS,
    progress_interval_ms=700,
    shutdown_grace_ms=6_000,
    kafka=Kafka(
        bootstrap_servers=("broker:9092",),
        request_timeout_ms=2_000,
        session_timeout_ms=1_000,
        heartbeat_interval_ms=400,
        rebalance_timeout_ms=1_500,
        transaction_timeout_ms=1_500,
        fetch_max_wait_ms=500,
        metadata_max_age_ms=600_000,
        max_partition_fetch_bytes=8_000,
        max_poll_records=12,
        max_buffered_bytes=30_000,
    ),
)

OTHER_SETTINGS: tuple[dict[str, Any], ...] = (
    {"release": "item"},
    {"stream_timeout_ms": script.LONGEST_GAP_MS + 400, "closed_memory_ms": 1_000},
    {"max_calls": 1},
    {"max_argument_bytes": 40},
    {"max_response_bytes": 1_500},
    {"max_streams": 2},
    {"tolerate": ("added_again", "status_absent")},
)
"""What a process may be started with instead."""


class World:
    """All of one seed."""

    def __init__(
        self,
        seed: int,
        core: Core,
        say: Callable[[str], None] | None = None,
        deeds: Mapping[str, int] | None = None,
        *,
        busy: bool = False,
    ) -> None:
        """Draw everything; `core` decides, `say` takes a line for each thing that happens.

        `deeds`: what goes wrong by how often, in place of what the seed says; `busy`: there is always something to do.
        """
        self.seed = seed
        self.rng = rng = random.Random(seed)
        self.core = core
        self.loop = Loop()
        self.say = None if say is None else lambda text: say(f"{self.loop.now:8.3f} {text}")
        self.counts: Counter[str] = Counter()
        self.settings = SETTINGS
        self.rolling = rng.choice((False, False, True))
        """Whether processes start with different settings, as in a rolling upgrade."""
        self._others = random.Random(f"settings {seed}")
        self._takeovers = count()
        self.repeats = deeds is None and self._others.random() < 0.1
        """Whether members deliver at least once: then nothing may be lost, and that is all."""
        self.partitions = rng.choice((1, 1, 2)) if deeds is None else 2
        self.script = script.make(rng, self.partitions, busy=busy)
        self.broker = Broker(self.loop, random.Random(rng.random()))
        self.broker.make_topic(INPUT, self.partitions, append_time=self.script.append_time)
        for name in ("approved", "rejected", "dead-letter"):
            self.broker.make_topic(name, self.partitions)
        self.broker.transactions.settles_late = rng.random() < 0.3
        self.broker.transactions.on_end, self.broker.on_commit = self._ended, self._committed
        self.trouble = Trouble(self, random.Random(rng.random()), deeds, busy=busy)
        self.network = Network(self.broker, self.trouble.fate)
        self.machines = [Machine(self, f"m{number}") for number in range(2 if deeds else rng.choice((1, 2, 2, 2, 3)))]
        self.moves: dict[tuple[int, Commit], Moves] = {}
        self.chains: dict[int, list[Committed]] = {number: [] for number in range(self.partitions)}
        self.partition_class: type[Watched] = Watched
        self.member_settings = self.settings
        """Of the members: only a mutation's differ from those of the undisturbed run."""
        largest = max(len(value) for write in self.script.writes for _, value, _ in write.records)
        self.most_in_hand = SETTINGS.kafka.max_buffered_bytes + 2 * SETTINGS.kafka.max_poll_records * (largest + 3_000)
        """Bytes: the bound, one fetch of records that goes over it, and what is decided of them."""
        self.only_truth = False
        """Whether only what is published counts, by the truth about the input."""
        self.surprises: list[Exception] = []
        """What ended a process and should not."""
        self._peace_since = 0.0
        self._published: dict[int, list[tuple[str, Any]]] = {}
        self._outside = copy_context()

    # -- what the members are given

    def draw_settings(self) -> Settings:
        """Draw the settings of a process that starts."""
        if self.repeats and not self.only_truth:
            return replace(self.member_settings, delivery="at_least_once")
        if self.only_truth or not self.rolling or self._others.random() < 0.3:
            return self.member_settings
        changed = self._others.sample(OTHER_SETTINGS, 2)
        return replace(self.member_settings, **changed[0], **changed[1])

    def make_partition(self, settings: Settings, topic: str, number: int) -> Partition:
        """Make what a member decides with."""
        bounds = settings.bounds()
        if self.rolling and not self.repeats and not self.only_truth:
            # A header that nobody sends, so that each history of settings has commits of its own.
            bounds = structs.replace(bounds, key_header=f"x-{next(self._takeovers)}")
        return self.partition_class(topic, number, bounds, self.core.judge, self.moves)

    @property
    def truth_holds(self) -> bool:
        """Whether the truth about the input says what is decided: not where clocks or settings were other ones."""
        return not self.trouble.clocks_were_wrong and (self.only_truth or self.repeats or not self.rolling)

    def outside(self, seconds: float, work: Callable[[], None]) -> None:
        """Do something later, that is no process's step."""
        self.loop.call_later(seconds, work, context=self._outside)

    # -- what the broker tells

    def _ended(self, transaction: Transaction, commit: bool) -> None:
        if not commit:
            return
        found = []
        for log in transaction.logs:
            first = log.open.get(transaction.producer)
            if first is not None:
                found += [
                    (verdict.ROUTES[log.topic], essence(verdict.ROUTES[log.topic], value))
                    for value in verdict.written(log, first, transaction.producer)
                ]
        if any(group.pending.get(transaction.number) for group in transaction.groups):
            self._published[transaction.number] = found

    def _committed(self, where: tuple[str, int], place: Place) -> None:
        if self.say is not None:
            self.say(f"commit {where} {place.offset} {place.metadata[:60]}")
        self.chains[where[1]].append(Committed(place.offset, place.metadata, self._published.pop(place.transaction, [])))

    # -- the run

    def run(self) -> None:
        """Run it, and check. Raises Violation."""
        state = random.getstate()
        random.seed(self.seed)
        asyncio.set_event_loop(self.loop)
        try:
            with self.network.installed():
                self.loop.run_until_complete(self._live())
            self._check()
        finally:
            # What is ended by force below still speaks; nobody counts it.
            self.say, self.counts = None, Counter(self.counts)
            random.setstate(state)
            asyncio.set_event_loop(None)
            self.loop.dispose()

    async def _live(self) -> None:
        writing = self.loop.create_task(self._write_all())
        for machine in self.machines:
            self.outside(self.rng.uniform(0, 0.3), machine.start)
        await self.trouble.run()
        self._peace_since = self.loop.now
        until = self.loop.now + PATIENCE_SECONDS
        while not self._all_decided():
            if self.loop.now > until:
                raise Violation(f"no progress: {self._where()}")
            self.trouble.tend()
            await asyncio.sleep(0.25)
        await writing
        # What is decided once more, although everything is, shows now.
        await asyncio.sleep(1.0)
        while self._published:  # the markers of one transaction come one by one
            await asyncio.sleep(0.05)

    async def _write_all(self) -> None:
        for write in self.script.writes:
            if write.at > self.loop.now:
                await asyncio.sleep(write.at - self.loop.now)
            self._write(write)

    def _write(self, write: script.Write) -> None:
        log, now_ms = self.broker.logs[INPUT, write.number], self.broker.now_ms()
        batch = [(key, value, now_ms + skew) for key, value, skew in write.records]
        if not write.transaction:
            log.append(records(batch), now_ms)
            return
        producer, _ = self.broker.transactions.init(None, 0)
        log.append(records(batch, producer, 0, 0), now_ms)
        mark = lambda: log.mark(producer, 0, commit=write.transaction == "committed", now_ms=self.broker.now_ms())  # noqa: E731
        self.outside(write.held, mark)

    @property
    def decided(self) -> int:
        """Decisions and dead letters that are committed."""
        return sum(len(each.published) for chain in self.chains.values() for each in chain)

    def _all_decided(self) -> bool:
        if self.repeats and self.truth_holds and not self.only_truth:
            enough = not verdict.lost(self.script.work, self._outputs())
        elif not self.truth_holds:
            # It may have expired a stream before its calls came, or keep one for an hour: P tells, and some more time.
            enough = self.loop.now > max(self.script.ends_at, self._peace_since) + LONG_ENOUGH_SECONDS
        else:
            enough = self.decided >= len(self.script.work.calls) + len(self.script.work.dead_letters)
        return (
            enough
            and self.loop.now > self.script.ends_at + 0.01
            and all(
                chain and verdict.position_of(chain[-1]) >= self.broker.logs[INPUT, number].end
                for number, chain in self.chains.items()
            )
        )

    def _where(self) -> str:
        work = self.script.work
        places = [
            f"{number}: W {chain[-1].offset} P {verdict.position_of(chain[-1])} of {self.broker.logs[INPUT, number].end}"
            for number, chain in self.chains.items()
            if chain
        ]
        states = [
            f"{machine.name} {machine.runner.status()['partitions'] if machine.runner is not None else 'ended'}"
            for machine in self.machines
        ]
        return f"{self.decided} of {len(work.calls) + len(work.dead_letters)} decided; {places}; {states}"

    def _outputs(self) -> dict[str, list[bytes]]:
        """What a committed reader finds, by route."""
        found: dict[str, list[bytes]] = {route: [] for route in verdict.ROUTES.values()}
        for number in range(self.partitions):
            for topic, route in verdict.ROUTES.items():
                found[route] += [one.value for one in verdict.records(self.broker.logs[topic, number])]
        return found

    def _check(self) -> None:
        if self.surprises:
            raise Violation(f"a process ended with {self.surprises[0]!r}") from self.surprises[0]
        if self.repeats and not self.only_truth:
            if self.truth_holds and (lost := verdict.lost(self.script.work, self._outputs())):
                raise Violation(lost)
            return
        for number, chain in self.chains.items():
            if self.only_truth:
                continue
            log = verdict.records(self.broker.logs[INPUT, number])
            first = decode(chain[0].offset, chain[0].metadata) if chain else None
            bounds = first.bounds if isinstance(first, Commit) else self.settings.bounds()
            fresh = Partition(INPUT, number, bounds, self.core.judge)
            verdict.check_chain(number, chain, log, fresh, self.moves)
            if self.truth_holds:
                verdict.check_held(number, chain, log, self.script.work)
        outputs = self._outputs()
        published = Counter(one for chain in self.chains.values() for each in chain for one in each.published)
        visible = Counter((route, essence(route, value)) for route, values in outputs.items() for value in values)
        if published != visible and not self.only_truth:
            raise Violation("what a committed reader sees is not what was committed")
        if self.truth_holds:
            verdict.check_truth(self.script.work, outputs)
