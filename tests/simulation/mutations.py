"""The known-bad variants of the protocol (`model/protocol_model.py`, a to l), put into the real code one at a time.

Owns the deliberate mistakes. Each is as small as one that somebody could make; what is around it stays the real code.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
from msgspec import structs

from processor.adapters import publish, runner, tenure, worker
from processor.adapters.hand import Hand
from processor.adapters.offset_fetch import Committed, Reader
from processor.adapters.publish import TransactionalPublisher
from processor.adapters.source import Source
from processor.adapters.takeover import Kept, Start, Takeover
from processor.core.offsets import Commit, encode
from processor.core.outgoing import Outgoing
from processor.core.rebuild import Rebuild
from processor.errors import Fenced, Retryable
from processor.ports import Publisher
from tests.simulation.loop import PROCESS
from tests.simulation.watch import Watched
from tests.simulation.world import World

MOST_SEEDS, SAFE_SEEDS = 400, 25
"""Seeds after which a search ends."""
Mutate = Callable[[pytest.MonkeyPatch, World], None]


@dataclass(frozen=True)
class Mutation:
    """One mistake."""

    letter: str
    what: str
    mutate: Mutate
    seed: int
    """A seed that finds it, as long as neither the code nor the simulation takes another step."""
    deeds: Mapping[str, int] | None = None
    """What goes wrong, by how often, where the usual mixture would take too many seeds."""
    busy: bool = False
    """Whether there is always something to decide."""
    safe: bool = False
    """Whether the protocol is right all the same, so that no seed may find anything."""

    @property
    def seeds(self) -> Iterator[int]:
        """Where it is looked for, in this order; the first seed that finds it ends the search."""
        yield self.seed
        yield from range(1, SAFE_SEEDS if self.safe else MOST_SEEDS)


class _Same:
    """Equal to any commit, or to those with the same P."""

    def __init__(self, position: int | None = None) -> None:
        self._position = position

    def __eq__(self, other: object) -> bool:
        return self._position is None or (isinstance(other, Commit) and other.position == self._position)

    __hash__ = None  # type: ignore[assignment]


def read_before_init(patch: pytest.MonkeyPatch, _: World) -> None:
    """The committed offset is read before the last owner is fenced."""
    run = Takeover.run

    class Read:
        """What was read too early."""

        def __init__(self, reader: Reader, found: Committed | None) -> None:
            self._found = found
            self.ends = reader.ends

        async def committed(self, _: Any) -> Committed | None:
            return self._found

    async def too_early(self: Takeover, publisher: Publisher, kept: Kept | None = None) -> Start:
        reader = self._reader
        self._reader = Read(reader, await reader.committed(self._where))  # type: ignore[assignment]
        try:
            return await run(self, publisher, kept)
        finally:
            self._reader = reader

    patch.setattr(Takeover, "run", too_early)


def id_of_the_process(patch: pytest.MonkeyPatch, _: World) -> None:
    """The transactional id is the process's own: no successor fences it."""
    name = publish.transactional_id

    def own(group: str, partition: Any) -> str:
        process = PROCESS.get()
        return name(group, partition) + (process.name if process is not None else "")

    patch.setattr(publish, "transactional_id", own)


def commit_the_next_offset(_: pytest.MonkeyPatch, world: World) -> None:
    """W is P: what is open is not read again."""

    class NextOffset(Watched):
        def commit_point(self) -> Commit:
            point = super().commit_point()
            return structs.replace(point, offset=point.position, watermark=self._context.watermark, moves=())

    world.partition_class = NextOffset


def idle_moves_unrecorded(_: pytest.MonkeyPatch, world: World) -> None:
    """What the wall clock expired is not in E."""

    class Unrecorded(Watched):
        def idle(self, wall_ms: int, now_ms: int) -> bool:
            moved = super().idle(wall_ms, now_ms)
            self._moves = ()
            return moved

    world.partition_class = Unrecorded


def closed_are_forgotten(_: pytest.MonkeyPatch, world: World) -> None:
    """A closed response is not known any more."""
    world.member_settings = replace(world.settings, closed_memory_ms=0)


def kept_uncompared(patch: pytest.MonkeyPatch, _: World) -> None:
    """A state is kept whatever was committed meanwhile."""
    _keep(patch, lambda _: _Same())


def kept_if_same_position(patch: pytest.MonkeyPatch, _: World) -> None:
    """A state is kept where only P is what it was."""
    _keep(patch, lambda commit: _Same(commit.position))


def _keep(patch: pytest.MonkeyPatch, same: Callable[[Commit], _Same]) -> None:
    run = Takeover.run

    async def keeping(self: Takeover, publisher: Publisher, kept: Kept | None = None) -> Start:
        if kept is not None:
            kept = kept._replace(acknowledged=same(kept.acknowledged))  # type: ignore[arg-type]
        return await run(self, publisher, kept)

    patch.setattr(Takeover, "run", keeping)


class _Sticky(Hand):
    """Records in hand that nobody can drop."""

    def drop(self) -> None:
        """Keep them."""


def finish_what_is_in_hand(patch: pytest.MonkeyPatch, _: World) -> None:
    """A member that lost a partition decides and publishes what it still has in hand."""
    last = tenure.Tenure._last

    async def finish_first(self: tenure.Tenure) -> Kept | None:
        while self._worker._hand:
            await self._feed()
        return await last(self)

    def assign(self: worker.Worker, generation: int | None) -> None:
        hand = self._hand
        self._hand = Hand(self.number, hand._room)
        before(self, generation)
        self._hand = hand

    before = worker.Worker.assign
    patch.setattr(worker.Worker, "assign", assign)
    patch.setattr(tenure.Tenure, "_last", finish_first)


def hand_survives(patch: pytest.MonkeyPatch, _: World) -> None:
    """Records in hand survive the takeover."""
    begin = worker.Worker.__init__

    def sticky(self: worker.Worker, *arguments: Any) -> None:
        begin(self, *arguments)
        self._hand = _Sticky(self.number, self._hand._room)

    patch.setattr(worker.Worker, "__init__", sticky)


def finish_with_own_id(patch: pytest.MonkeyPatch, world: World) -> None:
    """Both: what is in hand is finished, and nobody fences it."""
    finish_what_is_in_hand(patch, world)
    id_of_the_process(patch, world)


def progress_by_plain_commit(patch: pytest.MonkeyPatch, _: World) -> None:
    """A commit without decisions is a plain one of the group's member."""

    class Plain(TransactionalPublisher):
        source: Source

        async def publish(self, outgoing: Sequence[Outgoing], commit: Commit) -> None:
            if outgoing:
                await super().publish(outgoing, commit)
                return
            try:
                await self.source.commit(self._partition.partition, commit.offset, encode(commit))
            except publish.FAULTS as fault:
                raise Fenced("The plain commit failed.") from fault

    def make(self: runner.Runner, partition: Any) -> Publisher:
        made = Plain(self._settings, partition)
        made.source = self._source
        return made

    patch.setattr(runner.Runner, "_publisher", make)


def go_on_from_memory(patch: pytest.MonkeyPatch, _: World) -> None:
    """After a transaction that failed the state in memory goes on, with a new producer."""
    work = tenure.Tenure.work

    async def go_on(self: tenure.Tenure) -> Kept | None:
        try:
            return await work(self)
        except (Fenced, Retryable):
            if self._partition.rebuilding:
                raise
            return Kept(self._partition, self._partition.commit_point())

    patch.setattr(tenure.Tenure, "work", go_on)
    _keep(patch, lambda _: _Same())


def loud_at_p(_: pytest.MonkeyPatch, world: World) -> None:
    """An idle move at P, which the last owner has published, is published again by the rebuild."""

    class Loud(Watched):
        def _go_live(self, rebuild: Rebuild) -> None:
            at = rebuild.point.position
            again = [step for step in rebuild._script if step[0] == at]
            rebuild._script = [step for step in rebuild._script if step[0] < at]
            super()._go_live(rebuild)
            for _, wall, _ in again:
                self._streams.move(wall, self._context)
                self._emit(None, None, 0)

    world.partition_class = Loud


def send_again(patch: pytest.MonkeyPatch, world: World) -> None:
    """A commit whose fate is unknown is sent once more."""
    once = TransactionalPublisher.publish

    async def twice(self: TransactionalPublisher, outgoing: Sequence[Outgoing], commit: Commit) -> None:
        try:
            await once(self, outgoing, commit)
        except Fenced as fault:
            if "its answer was lost" not in str(fault):
                raise
            await self.close()
            self._sender, self._begun = TransactionalPublisher(world.settings, self._partition)._sender, False
            await self.start()
            await once(self, outgoing, commit)

    patch.setattr(TransactionalPublisher, "publish", twice)


def unstable_offsets(patch: pytest.MonkeyPatch, world: World) -> None:
    """The committed offset is read without `require_stable`, from a broker before the fix of KAFKA-17507."""
    begin = Reader.__init__

    def unstable(self: Reader, *arguments: Any) -> None:
        begin(self, *arguments)
        self._stable = False

    patch.setattr(Reader, "__init__", unstable)
    world.broker.transactions.settles_late = True


MUTATIONS = (
    Mutation("a", "read before init", read_before_init, 6, {"deafen": 1, "slow start": 60}, busy=True),
    Mutation("b", "transactional id of the process", id_of_the_process, 29),
    Mutation("c", "commit the next offset", commit_the_next_offset, 1),
    Mutation("d", "idle expiry not in E", idle_moves_unrecorded, 3),
    Mutation("e", "closed are forgotten at once", closed_are_forgotten, 23),
    Mutation("f", "state kept, not compared", kept_uncompared, 7, {"swap": 1}, busy=True),
    Mutation("f2", "state kept if P is the same", kept_if_same_position, 9, {"swap": 1}),
    Mutation("g", "publish what is in hand when revoked", finish_what_is_in_hand, 1, safe=True),
    Mutation(
        "g2", "records in hand survive the takeover", hand_survives, 1, {"abort": 3, "rebalance": 3, "slow": 5}, busy=True
    ),
    Mutation("g+b", "g and b", finish_with_own_id, 29),
    Mutation("h", "progress by plain OffsetCommit", progress_by_plain_commit, 10, {"deafen": 1, "slow": 2}, busy=True),
    Mutation("i", "go on in memory after an abort", go_on_from_memory, 3),
    Mutation("j", "idle move at P not silent", loud_at_p, 3),
    Mutation("k", "unknown commit is sent again", send_again, 7, {"no answer": 4, "swap": 1}, busy=True),
    Mutation("l", "offsets visible after init (KAFKA-17507)", unstable_offsets, 1),
)
