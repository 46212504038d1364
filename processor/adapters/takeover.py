"""Start and takeover of one input partition, in the order of the design, never another.

Owns the order: initialise the producer (it fences the last owner and settles a pending transaction), read the committed offset,
put the state at that point. Reading first would let the last owner commit behind our back.
"""

from typing import NamedTuple

from aiokafka.structs import TopicPartition

from processor.adapters.offset_fetch import Committed, Reader
from processor.core.offsets import Commit, Foreign, UnknownMeaning, decode
from processor.core.pipeline import Partition
from processor.errors import Fatal, Poisoned
from processor.ports import Log, Publisher


class Start(NamedTuple):
    """Where a partition begins."""

    offset: int
    """The offset to read from: W."""
    acknowledged: Commit | None
    """The commit that the broker holds; None: it has another's, or one that counts no more."""


async def take_over(partition: Partition, publisher: Publisher, reader: Reader, offset_reset: str, log: Log) -> Start:
    """Fence the last owner and put `partition` at what it committed.

    Raises Retryable, Fenced, Poisoned (the committed offset is out of range), Fatal (it was written by an unknown version).
    """
    where = TopicPartition(partition.topic, partition.number)
    await publisher.start()
    committed = await reader.committed(where)
    first, end = await reader.ends(where)
    if committed is None:
        return await _begin(partition, publisher, first, log)
    try:
        found = decode(committed.offset, committed.metadata)
    except UnknownMeaning as fault:
        raise Fatal(
            f"The commit of {where.topic}-{where.partition} was written by a callgate whose rules this version does not know "
            f"({fault}): run the version that wrote it, or reset the group's offset."
        ) from fault
    position = committed.offset if isinstance(found, Foreign) else found.position
    if committed.offset < first or position > end:
        return await _out_of_range(partition, publisher, (committed, position, first, end), offset_reset, log)
    if isinstance(found, Foreign):
        log.warning("fresh_start", partition=partition.number, offset=committed.offset, why=found.why)
        partition.resume(None, committed.offset)
        return Start(committed.offset, None)
    partition.resume(found, committed.offset)
    return Start(committed.offset, found)


async def _begin(partition: Partition, publisher: Publisher, offset: int, log: Log) -> Start:
    """Begin where nothing is committed.

    The place is committed before the first read: a group without an offset would begin elsewhere after a crash, and what was
    read in between would be lost or decided twice.
    """
    partition.resume(None, offset)
    commit = partition.commit_point()
    await publisher.publish([], commit)
    log.info("first_start", partition=partition.number, offset=offset)
    return Start(offset, commit)


async def _out_of_range(
    partition: Partition,
    publisher: Publisher,
    places: tuple[Committed, int, int, int],
    offset_reset: str,
    log: Log,
) -> Start:
    """The log does not have what was committed: a named error or the configured reset, never a silent jump."""
    committed, position, first, end = places
    what = (
        f"The committed offset of {partition.topic}-{partition.number} (W {committed.offset}, P {position}) is not in the log, "
        f"which holds {first} to {end}"
    )
    if offset_reset == "error":
        raise Poisoned(
            f"{what}: records were deleted before they were decided. Set `offset_reset`, or reset the group's offset."
        )
    offset = first if offset_reset == "earliest" else end
    log.warning("out_of_retention", partition=partition.number, detail=f"{what}: going on at {offset} (`offset_reset`).")
    return await _begin(partition, publisher, offset, log)
