"""Start and takeover of one input partition, in the order of the design, never another.

Owns the order: initialise the producer (it fences the last owner and settles a pending transaction), read the committed offset,
put the state at that point. Reading first would let the last owner commit behind our back.
"""

from collections.abc import Callable
from typing import NamedTuple

from aiokafka.structs import TopicPartition

from processor.adapters.offset_fetch import Reader
from processor.core.offsets import Commit, Foreign, UnknownMeaning, begun_at, decode
from processor.core.pipeline import Partition
from processor.errors import Fatal, Poisoned
from processor.ports import Log, Publisher


class Kept(NamedTuple):
    """The state of a partition that this member had before, with nothing in hand, undecided to publish, or in flight."""

    partition: Partition
    acknowledged: Commit
    """Its last commit, as the broker acknowledged it: the state is exactly that of this commit."""


class Start(NamedTuple):
    """Where a partition begins."""

    partition: Partition
    offset: int
    """The offset to read from: W, or P where the state was kept."""
    acknowledged: Commit | None
    """The commit that the broker holds; None: it has another's, or one that counts no more."""


class Takeover:
    """Takes one partition over, each time by a publisher of its own."""

    def __init__(
        self,
        where: TopicPartition,
        make_partition: Callable[[str, int], Partition],
        reader: Reader,
        offset_reset: str,
        log: Log,
    ) -> None:
        self._where = where
        self._make_partition = make_partition
        self._reader = reader
        self._offset_reset = offset_reset
        self._log = log
        self.place: tuple[int, int] | None = None
        """W and P of the last commit that is known, whoever made it."""

    async def run(self, publisher: Publisher, kept: Kept | None = None) -> Start:
        """Fence the last owner and begin at what it committed.

        Raises Retryable, Fenced, Poisoned (the committed offset is out of range), Fatal (an unknown version wrote it).
        """
        where, log = self._where, self._log
        await publisher.start()
        committed = await self._reader.committed(where)
        first, end = await self._reader.ends(where)
        if committed is None:
            return await self._begin(publisher, first)
        try:
            found = decode(committed.offset, committed.metadata)
        except UnknownMeaning as fault:
            raise Fatal(
                f"The commit of {where.topic}-{where.partition} was written by a callgate whose rules this version does not "
                f"know ({fault}): run the version that wrote it, or reset the group's offset."
            ) from fault
        position = committed.offset if isinstance(found, Foreign) else found.position
        self.place = committed.offset, position
        if committed.offset < first or position > end:
            return await self._out_of_range(publisher, committed.offset, found, (first, end))
        if kept is not None and found == kept.acknowledged:
            # In full: W, P, T, E and the settings. Another member may have had the partition meanwhile and moved any of them.
            log.info("state_kept", partition=where.partition, position=kept.partition.position)
            return Start(kept.partition, kept.partition.position, found)
        partition = self._make_partition(where.topic, where.partition)
        if isinstance(found, Foreign):
            log.warning("fresh_start", partition=where.partition, offset=committed.offset, why=found.why)
            partition.resume(None, committed.offset)
            return Start(partition, committed.offset, None)
        partition.resume(found, committed.offset)
        return Start(partition, committed.offset, found)

    async def _begin(self, publisher: Publisher, offset: int) -> Start:
        """Begin where nothing is committed.

        The place is committed before the first read: a group without an offset would begin elsewhere after a crash, and what
        was read in between would be lost or decided twice.
        """
        partition = self._make_partition(self._where.topic, self._where.partition)
        partition.resume(None, offset)
        commit = partition.commit_point()
        await publisher.publish([], commit)
        self._log.info("first_start", partition=partition.number, offset=offset)
        return Start(partition, offset, commit)

    async def _out_of_range(
        self, publisher: Publisher, offset: int, found: Commit | Foreign, log_range: tuple[int, int]
    ) -> Start:
        """The log does not have what was committed: a named error or the configured reset, never a silent jump."""
        where, (first, end) = self._where, log_range
        position = offset if isinstance(found, Foreign) else found.position
        what = (
            f"The committed offset of {where.topic}-{where.partition} (W {offset}, P {position}) is not in the log, "
            f"which holds {first} to {end}"
        )
        if self._offset_reset == "error":
            raise Poisoned(
                f"{what}: records were deleted that are still needed. Set `offset_reset`, or reset the group's offset."
            )
        if self._offset_reset == "earliest" and isinstance(found, Commit) and first <= position <= end:
            # A fresh start at the first record would decide once more what was decided between it and P.
            self._log.warning("out_of_retention", partition=where.partition, detail=f"{what}: going on at P (`offset_reset`).")
            partition = self._make_partition(where.topic, where.partition)
            partition.resume(begun_at(found, first), first)
            return Start(partition, first, None)
        at = first if self._offset_reset == "earliest" else end
        self._log.warning("out_of_retention", partition=where.partition, detail=f"{what}: going on at {at} (`offset_reset`).")
        return await self._begin(publisher, at)
