"""The verdict on one simulation: what was published against an undisturbed run, and against the truth about the input.

Owns the checks. It reads the broker's logs as a committed reader would, and never what a member believes.
"""

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

import msgspec
from aiokafka.consumer.fetcher import READ_COMMITTED, PartitionRecords
from aiokafka.record.memory_records import MemoryRecords
from aiokafka.structs import TopicPartition

from processor.core.limits import Bounds
from processor.core.offsets import Commit, decode
from processor.core.pipeline import Partition
from tests.e2e.workload import Workload
from tests.simulation.log import Log
from tests.simulation.watch import Moves

ROUTES = {"approved": "approved", "rejected": "rejected", "dead-letter": "dead_letter"}


class Violation(AssertionError):
    """A promise was broken."""


@dataclass
class Committed:
    """One commit, as it became visible."""

    offset: int
    metadata: str
    published: list[tuple[str, Any]] = field(default_factory=list)
    """What became visible with it: route, and what `essence` makes of the record."""


def position_of(committed: Committed) -> int:
    """P of a commit."""
    commit = decode(committed.offset, committed.metadata)
    return commit.position if isinstance(commit, Commit) else committed.offset


def records(log: Log) -> list[Any]:
    """All that a committed reader ever got of a partition."""
    data, hidden = log.archived(0, 1 << 40, committed=True)
    where = TopicPartition(log.topic, log.number)
    return list(PartitionRecords(where, MemoryRecords(data), hidden, 0, None, None, False, READ_COMMITTED))


def written(log: Log, first: int, producer: int) -> list[bytes | None]:
    """Values that a transaction has written to a partition."""
    data = b"".join(each.data for each in log.batches if each.base >= first and each.producer == producer)
    found: list[bytes | None] = []
    memory: Any = MemoryRecords(data)
    while (batch := memory.next_batch()) is not None:
        found += [record.value for record in batch]
    return found


def essence(route: str, value: bytes | None) -> Any:
    """What of an output record must be equal whenever it is decided."""
    if route == "dead_letter":
        return value
    decision = msgspec.json.decode(value or b"null")
    decision.pop("decided_at")
    return msgspec.json.encode(decision, order="deterministic")


def check_chain(
    number: int, chain: list[Committed], log: list[Any], fresh: Partition, moves: dict[tuple[int, Commit], Moves]
) -> None:
    """Hold every commit of a partition, in order, against one process that nothing disturbs. Raises Violation."""
    run = _Undisturbed(fresh, log)
    before = -1
    for place, each in enumerate(chain):
        commit = decode(each.offset, each.metadata)
        where = f"partition {number}, commit {place} (W {each.offset})"
        if not isinstance(commit, Commit):
            raise Violation(f"{where}: not callgate's own: {each.metadata}")
        where += f", P {commit.position}"
        if commit.position < before:
            raise Violation(f"{where}: P goes back from {before}")
        before = commit.position
        run.go_on(moves.get((number, commit), ()), commit.position, where)
        want, have = Counter(run.take()), Counter(each.published)
        if want != have:
            raise Violation(f"{where}: extra {_few(have - want)}, lost {_few(want - have)}")
        point = fresh.commit_point()
        if point != commit:
            raise Violation(f"{where}: the commit point is {point}, committed was {commit}")


class _Undisturbed:
    """One process on one partition, from the first record to the last."""

    def __init__(self, partition: Partition, log: list[Any]) -> None:
        self._partition = partition
        self._log = log
        self._place = 0
        self._moves: Moves = ()
        partition.resume(None, 0)

    def go_on(self, moves: Moves, position: int, where: str) -> None:
        """Go on to a position, with the idle moves on the way."""
        if moves[: len(self._moves)] != self._moves:
            raise Violation(f"{where}: moves {moves} do not go on from {self._moves}")
        for at, wall, bounds in moves[len(self._moves) :]:
            if at < self._partition.position:
                raise Violation(f"{where}: a move at {at}, after {self._partition.position} was decided")
            self._feed(at)
            if bounds is not None:
                self._switch(bounds, where)
            elif not self._partition.idle(wall, 0):
                raise Violation(f"{where}: an idle move at {at} to {wall} that moves nothing")
        self._moves = moves
        self._feed(position)

    def _switch(self, bounds: Bounds, where: str) -> None:
        self._partition._configured = bounds
        self._partition._switch()
        if self._partition._context.bounds is not bounds:
            raise Violation(f"{where}: other settings came into force, for which the metadata has no room")

    def _feed(self, position: int) -> None:
        first = self._place
        while self._place < len(self._log) and self._log[self._place].offset < position:
            self._place += 1
        self._partition.feed(self._log[first : self._place], 0)
        self._partition.reached(position)

    def take(self) -> list[tuple[str, Any]]:
        """What was decided since."""
        return [(one.route.value, essence(one.route.value, one.value)) for one in self._partition.take()]


def check_truth(work: Workload, outputs: dict[str, list[bytes]]) -> None:
    """Every call decided exactly once, as its making says, and every unreadable record kept once. Raises Violation."""
    found: dict[tuple[str, str, str], list[tuple[str, Any]]] = defaultdict(list)
    for route in ("approved", "rejected"):
        for value in outputs[route]:
            decision = msgspec.json.decode(value)
            name = decision["stream"], decision["response_id"], decision["call_id"]
            arguments = decision["arguments"] if decision["decision"] == "approved" else None
            found[name].append((decision["reason"], arguments))
    for name, call in work.calls.items():
        decided = found.pop(name, [])
        if decided != [(call.reason, call.arguments)]:
            raise Violation(f"{name}: expected {call.reason}, decided {[reason for reason, _ in decided]}")
    if found:
        raise Violation(f"decided, but never called: {sorted(found)}")
    if Counter(outputs["dead_letter"]) != Counter(work.dead_letters):
        raise Violation("the dead letters are not the records that cannot be read")


def lost(work: Workload, outputs: dict[str, list[bytes]]) -> str:
    """A call that is not decided as its making says, or that an unreadable record is not kept; how often ever. Empty: none."""
    found = set()
    for route in ("approved", "rejected"):
        for value in outputs[route]:
            decision = msgspec.json.decode(value)
            arguments = decision["arguments"] if decision["decision"] == "approved" else None
            found.add((decision["stream"], decision["response_id"], decision["call_id"], decision["reason"], arguments))
    for name, call in work.calls.items():
        if (*name, call.reason, call.arguments) not in found:
            return f"{name}: {call.reason} is lost"
    return "" if set(work.dead_letters) <= set(outputs["dead_letter"]) else "a record that cannot be read is lost"


def check_held(number: int, chain: list[Committed], log: list[Any], work: Workload) -> None:
    """W is never beyond the first record of a response that has an undecided call: told from the input alone."""
    first: dict[tuple[str, str], int] = {}
    for record in log:
        for name in {name[:2] for name in work.calls}:
            if name not in first and name[0].encode() == record.key and f'"{name[1]}"'.encode() in (record.value or b""):
                first[name] = record.offset
    undecided = Counter(name[:2] for name in work.calls if name[:2] in first)
    for each in chain:
        for _, value in each.published:
            if value.startswith(b"{"):
                decision = msgspec.json.decode(value)
                undecided[decision["stream"], decision["response_id"]] -= 1
        commit = decode(each.offset, each.metadata)
        assert isinstance(commit, Commit)
        for name, calls in undecided.items():
            if calls > 0 and first[name] < commit.position and commit.offset > first[name]:
                raise Violation(
                    f"partition {number}: W {commit.offset} is beyond {first[name]}, where {name} begins that has "
                    f"{calls} undecided calls at P {commit.position}"
                )


def _few(counts: Counter[Any]) -> str:
    texts = [repr(one)[:300] for one in list(counts.elements())[:3]]
    return f"{counts.total()} [{'; '.join(texts)}]"
