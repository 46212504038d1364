r"""Reads records whose headers have names that are not UTF-8: any producer may send them, and the broker keeps them.

Owns one reading of one fetch, for the rare case only. The client's readers give up the whole batch of such a record, each time
anew, and its partition would stand still for ever. Here the batch is fetched once more and read by the client's slower reader,
with odd bytes in names shown as `\xff`.
"""

from typing import Any

from aiokafka import errors
from aiokafka.consumer.fetcher import READ_COMMITTED, PartitionRecords
from aiokafka.protocol.fetch import FetchRequest
from aiokafka.record.default_records import _DefaultRecordBatchPy
from aiokafka.record.memory_records import _MemoryRecordsPy
from aiokafka.structs import TopicPartition

MAX_WAIT_MS = 500


class _Lenient(bytearray):
    """Bytes that are decoded whatever they are."""

    def __getitem__(self, place: Any) -> Any:
        found: Any = super().__getitem__(place)
        return _Lenient(found) if isinstance(place, slice) else found

    def decode(self, encoding: str = "utf-8", errors: str = "backslashreplace") -> str:
        return super().decode(encoding, errors)


class _Batch(_DefaultRecordBatchPy):  # type: ignore[misc] # final for its authors' type checker only
    """A batch, read in Python."""

    def _maybe_uncompress(self) -> None:
        super()._maybe_uncompress()
        self._buffer = _Lenient(self._buffer)


class _Batches(_MemoryRecordsPy):  # type: ignore[misc] # as above
    """The batches of one fetch."""

    def next_batch(self, *_: Any) -> Any:
        part = self._next_slice
        if part is None:
            return None
        self._cache_next()
        return _Batch(part)


async def read(consumer: Any, where: TopicPartition, offset: int) -> tuple[list[Any], int]:
    """Fetch from an offset on; returns the client's records, and the position after them. Raises aiokafka's errors."""
    fetcher = consumer._fetcher
    node = consumer._client.cluster.leader_for_partition(where)
    wanted = [(where.topic, [(where.partition, offset, fetcher._max_partition_fetch_bytes)])]
    request = FetchRequest(MAX_WAIT_MS, 1, fetcher._fetch_max_bytes, READ_COMMITTED, wanted, rack_id="")
    response = await consumer._client.send(node, request)
    ((_, ((_, code, _, *rest),)),) = response.topics
    if code:
        raise errors.for_code(code)(where)
    aborted = rest[2] if response.API_VERSION >= 11 else rest[-2]
    unread = PartitionRecords(where, _Batches(rest[-1]), aborted, offset, None, None, True, READ_COMMITTED)
    return list(unread), unread.next_fetch_offset
