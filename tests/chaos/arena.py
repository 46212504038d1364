"""Everything that a chaos run needs, put together: broker, proxy, topics, load, monitor and members.

Owns their order of start and end, and the questions that a fault asks: do calls wait, is W below P, is everybody back? It does
no harm by itself.
"""

import asyncio
import contextlib
import json
import random
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

from confluent_kafka.admin import AdminClient

from processor.broker import Broker
from tests.chaos.load import HURRY, Load
from tests.chaos.monitor import Monitor
from tests.chaos.proxy import Proxy
from tests.chaos.verdict import Verdict, compare
from tests.conftest import create_topic
from tests.e2e.rig import Member, Rig

PARTITIONS = 4
SESSION_SECONDS = 1.5
"""Session time-out of the members, as the rig sets it."""
EXPIRATION_MS = 5_000
"""How soon the broker forgets a transactional id that nobody uses."""
PATIENCE_SECONDS = 150.0


class NeverBack(AssertionError):
    """A condition that had to come did not."""


class Arena:
    """One run's world. Use it as a context manager."""

    def __init__(self, folder: Path, seed: int, *, members: int = 3, per_second: float = 400.0) -> None:
        """Prepare; nothing runs yet. `per_second`: records of the load, over all partitions."""
        self.rng = random.Random(seed)
        self._seed = seed
        self._folder = folder
        self._count = members
        self._per_second = per_second
        self._stack = ExitStack()
        self.members: list[Member] = []
        self._ports: dict[int, int] = {}

    def __enter__(self) -> Self:
        """Start everything; returns when every partition decides."""
        stack = self._stack
        try:
            self.proxy = stack.enter_context(Proxy())
            expire = {
                "transactional.id.expiration.ms": str(EXPIRATION_MS),
                "transaction.remove.expired.transaction.cleanup.interval.ms": "500",
            }
            self.broker = stack.enter_context(Broker(apart=True, front=self.proxy.port, settings=expire, quick=True))
            self.proxy.lead_to(self.broker.address("FRONT"))
            kafka = {"bootstrap_servers": [self.proxy.address]}
            rig = Rig(self.broker.bootstrap, self._make_topic, self._folder, PARTITIONS, kafka=kafka)
            self.rig = stack.enter_context(rig.running())
            self.admin = AdminClient({"bootstrap.servers": self.broker.bootstrap, **HURRY})
            topics = self.rig.topics
            self.monitor = Monitor(self.broker.bootstrap, (topics.approved, topics.rejected), PARTITIONS)
            self.monitor.start()
            stack.callback(self.monitor.close)
            self.load = Load(self.broker.bootstrap, topics.events, PARTITIONS, seed=self._seed, per_second=self._per_second)
            self.load.start()
            stack.callback(self._end_of_load)
            for _ in range(self._count):
                self.join()
            self.wait(lambda: all(self.monitor.arrivals), "nothing is decided")
            self.wait(self.ready, "the members never got ready")
        except BaseException:
            stack.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """End everything."""
        self._stack.close()

    def _end_of_load(self) -> None:
        # It may have failed, or wait for a broker that is gone: neither matters any more.
        with contextlib.suppress(BaseException):
            self.load.abandon()

    def _make_topic(self, name: str = "topic", *, partitions: int = 1, config: dict[str, str] | None = None) -> str:
        asyncio.run(create_topic(self.broker.bootstrap, name, partitions=partitions, config=config))
        return name

    # -- members

    def join(self) -> Member:
        """Start a member."""
        member = self.rig.start()
        self.members.append(member)
        return member

    def replace(self, member: Member) -> Member:
        """Start a member in the place of one that is gone."""
        self.members.remove(member)
        return self.join()

    def victim(self) -> Member:
        """Choose one."""
        return self.rng.choice(self.members)

    def ready(self) -> bool:
        """Whether each member has joined, and each of its partitions is live."""
        return all(self._get(member, "/readyz") == 200 for member in self.members)

    def _get(self, member: Member, path: str) -> int:
        try:
            return member.get(path)[0]
        except (OSError, StopIteration):
            assert member.process.poll() is None, f"member {member.index} ended by itself\n{member.log()[-3000:]}"
            return 0

    # -- the state of things

    def amid_calls(self) -> bool:
        """Whether calls wait for their decision, and W is below P."""
        # None where the broker has just come back.
        self.wait(lambda: bool(self.rig.commits()), "no commit can be read")
        below = [number for number, commit in self.rig.commits().items() if commit.offset < commit.position]
        return bool(below) and self.load.undecided(self.monitor.decided) > 0

    def caught_up(self, ends: list[int]) -> bool:
        """Whether P has reached these ends."""
        commits = self.rig.commits()
        return all(number in commits and commits[number].position >= end for number, end in enumerate(ends))

    def recover(self) -> None:
        """Wait until everything written so far is decided and every member is ready. Raises NeverBack."""
        ends = list(self.load.written)
        self.wait(lambda: self.caught_up(ends), "P did not go on")
        self.wait(self.ready, "a member is not ready")

    def wait(self, what: Callable[[], bool], otherwise: str, seconds: float = PATIENCE_SECONDS) -> None:
        """Wait until it holds. Raises NeverBack with an explanation."""
        patience = time.monotonic() + seconds
        while not what():
            self.load.check()
            if time.monotonic() > patience:
                raise NeverBack(f"{otherwise}\n{self.explain()}")
            time.sleep(0.05)

    def explain(self) -> str:
        """Say where things stand."""
        said: list[str] = []
        for member in self.members:
            state = "runs" if member.process.poll() is None else f"ended with {member.process.poll()}"
            said.append(f"--- member {member.index} {state}, ready: {self._said(member)}")
            said += member.log().splitlines()[-15:]
        where = {n: (c.offset, c.position) for n, c in self.rig.commits().items()}
        return f"W, P {where}, written {self.load.written}\n" + "\n".join(said)

    @staticmethod
    def _said(member: Member) -> str:
        try:
            return member.get("/readyz")[1]
        except Exception as fault:  # noqa: BLE001 - it is only told
            return repr(fault)

    # -- the end

    def finish(self) -> Verdict:
        """Let the load end, wait until all is decided, stop everybody, and read the outputs anew."""
        self.load.finish()
        self.rig.settle()
        codes = [member.stop(60) for member in self.members]
        assert codes == [0] * len(codes), self.explain()
        return self.verdict()

    def verdict(self) -> Verdict:
        """Read the output topics from their beginning, and compare."""
        topics, read = self.rig.topics, self.rig.read
        decisions = [m.value() or b"null" for topic in (topics.approved, topics.rejected) for m in read(topic)]
        dead_letters = [m.value() or b"" for m in read(topics.dead_letter)]
        return compare(decisions, dead_letters, self.load.calls, self.load.dead_letters)


@contextlib.contextmanager
def said_by(members: list[Member], event: str) -> Iterator[Callable[[], list[dict[str, Any]]]]:
    """Give a function that returns what the members' logs say of an event from here on."""
    before = {member.index: member._file.stat().st_size for member in members}

    def since() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for member in members:
            with member._file.open("rb") as file:
                file.seek(before.get(member.index, 0))
                lines = file.read().decode(errors="replace").splitlines()
            found += [json.loads(line) for line in lines if f'"{event}"' in line and line.startswith("{") and line[-1] == "}"]
        return found

    yield since
