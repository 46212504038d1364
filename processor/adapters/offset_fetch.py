"""Questions that the group's consumer cannot ask: committed offsets with metadata, ends of a partition, membership.

Owns OffsetFetch version 7 with `require_stable`: the client stops at version 3, which answers with the old offset while the
markers of another producer's commit are not written yet, and its `committed()` drops the metadata. It never writes.
"""

import asyncio
from typing import Any, NamedTuple

from aiokafka import errors as kafka
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.commit import OffsetFetchRequest
from aiokafka.protocol.group import HeartbeatRequest
from aiokafka.protocol.offset import OffsetRequest
from aiokafka.protocol.types import Boolean, CompactArray, CompactString, Int16, Int32, Int64, Schema, TaggedFields
from aiokafka.structs import TopicPartition

from processor.adapters.kafka_client import client_options, patient, translate
from processor.errors import Fatal, Fenced, Retryable
from processor.ports import Log
from processor.settings import Kafka

UNSTABLE_OFFSET_COMMIT = 88
UNSTABLE_PAUSE_SECONDS = 0.005
"""Markers are written within milliseconds."""
COORDINATOR_PAUSE_SECONDS = 0.1
"""Making the offsets topic takes a moment longer."""
COORDINATOR_PATIENCE_SECONDS = 5.0
"""How long a question to a coordinator waits for one."""
MOVED = {kafka.GroupCoordinatorNotAvailableError, kafka.NotCoordinatorForGroupError, kafka.GroupLoadInProgressError}
"""The group's coordinator is not known, is another broker, or is only starting."""
UNSTABLE_PATIENCE_SECONDS = 60.0
"""A pending transaction of the partition's own producer is settled before; one that hangs longer is somebody else's."""
LATEST, EARLIEST = -1, -2
"""Offsets that ListOffsets is asked for, as the protocol numbers them."""
READ_UNCOMMITTED = 0

FAULTS = (kafka.KafkaError, OSError, TimeoutError, LookupError)
"""What the client raises. Where two requests time out at once it may look for a connection that a third has just given up."""


class _StableResponse(Response):
    API_KEY = 9
    API_VERSION = 7
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "topics",
            CompactArray(
                ("topic", CompactString("utf-8")),
                (
                    "partitions",
                    CompactArray(
                        ("partition", Int32),
                        ("offset", Int64),
                        ("leader_epoch", Int32),
                        ("metadata", CompactString("utf-8")),
                        ("error_code", Int16),
                        ("tags", TaggedFields),
                    ),
                ),
                ("tags", TaggedFields),
            ),
        ),
        ("error_code", Int16),
        ("tags", TaggedFields),
    )


class _StableStruct(RequestStruct):
    API_KEY = 9
    API_VERSION = 7
    FLEXIBLE_VERSION = True
    RESPONSE_TYPE = _StableResponse
    SCHEMA = Schema(
        ("group", CompactString("utf-8")),
        (
            "topics",
            CompactArray(
                ("topic", CompactString("utf-8")),
                ("partitions", CompactArray(Int32)),
                ("tags", TaggedFields),
            ),
        ),
        ("require_stable", Boolean),
        ("tags", TaggedFields),
    )


class _StableOffsets(Request[_StableStruct]):
    API_KEY = 9

    def __init__(self, group: str, partition: TopicPartition) -> None:
        self._group = group
        self._partition = partition

    def build(self, request_struct_class: type[_StableStruct]) -> _StableStruct:
        """Make the request of the version that was agreed on."""
        topics: list[tuple[str, list[int], dict[int, bytes]]] = [(self._partition.topic, [self._partition.partition], {})]
        return request_struct_class(self._group, topics, True, {})


class Committed(NamedTuple):
    """What a group committed for a partition."""

    offset: int
    metadata: str | None


class Reader:
    """Asks the broker on a connection of its own, beside the consumer's."""

    def __init__(self, settings: Kafka, group: str, log: Log) -> None:
        self._settings = settings
        self._group = group
        self._log = log
        self._admin: Any = None
        self._coordinator: int | None = None
        self._stable = True

    @property
    def admin(self) -> Any:
        """The admin client, for topics and their settings."""
        return self._admin

    async def start(self) -> None:
        """Connect. Raises Retryable, Refused."""
        self._admin = AIOKafkaAdminClient(**client_options(self._settings), retry_backoff_ms=self._settings.retry_backoff_ms)
        patient(self._admin._client)
        try:
            await self._admin.start()
        except FAULTS as fault:
            raise translate(fault, "Connecting to the broker failed") from fault

    async def close(self) -> None:
        """Let go of the connection."""
        if self._admin is not None:
            await self._admin.close()
            self._admin = None

    async def committed(self, partition: TopicPartition) -> Committed | None:
        """Read the offset that the group has committed, and its metadata; None: it has none.

        Waits while a transaction on that offset is being settled. Raises Retryable, Refused.
        """
        loop = asyncio.get_running_loop()
        patience = loop.time() + UNSTABLE_PATIENCE_SECONDS
        while True:
            try:
                if self._coordinator is None:
                    self._coordinator = await self._admin.find_coordinator(self._group)
                code, found = await self._ask(partition, self._coordinator)
            except kafka.GroupCoordinatorNotAvailableError as fault:  # a new cluster makes its offsets topic only when asked
                if loop.time() >= patience:
                    raise translate(fault, "Reading the committed offset failed") from fault
                await asyncio.sleep(COORDINATOR_PAUSE_SECONDS)
                continue
            except FAULTS as fault:
                self._coordinator = None
                raise translate(fault, "Reading the committed offset failed") from fault
            if code == UNSTABLE_OFFSET_COMMIT and loop.time() < patience:
                await asyncio.sleep(UNSTABLE_PAUSE_SECONDS)
                continue
            if code == UNSTABLE_OFFSET_COMMIT:
                # Fail closed: whether its decisions were published cannot be told.
                raise Retryable("Reading the committed offset failed: a transaction on it does not end (docs/reliability.md).")
            if code:
                self._coordinator = None
                raise translate(kafka.for_code(code)(), "Reading the committed offset failed")
            return found

    async def _ask(self, partition: TopicPartition, node: int) -> tuple[int, Committed | None]:
        request = _StableOffsets(self._group, partition) if self._stable else self._plain(partition)
        try:
            answer = await self._admin._send_request(request, node)
        except (NotImplementedError, kafka.IncompatibleBrokerVersion):
            if not self._stable:
                raise
            self._stable = False
            self._log.warning(
                "stale_offsets",
                detail="The broker does not offer OffsetFetch version 7 with require_stable: "
                "an offset read at a takeover may be one commit behind (KAFKA-17507).",
            )
            return await self._ask(partition, node)
        if answer.error_code:
            return answer.error_code, None
        for _, partitions, *_ in answer.topics:
            for entry in partitions:
                offset, code = entry[1], entry[4] if self._stable else entry[3]
                metadata = entry[3] if self._stable else entry[2]
                return code, None if offset < 0 else Committed(offset, metadata)
        raise Retryable("Reading the committed offset failed: the answer is empty.")

    def _plain(self, partition: TopicPartition) -> Any:
        return OffsetFetchRequest(self._group, [(partition.topic, [partition.partition])])

    async def ends(self, partition: TopicPartition) -> tuple[int, int]:
        """First offset of the log, and the one after its last record, undecided transactions included.

        Raises Retryable, Refused, and Fatal where there is no such partition.
        """
        return await self._list(partition, EARLIEST), await self._list(partition, LATEST)

    async def end(self, partition: TopicPartition) -> int:
        """Offset after the last record, undecided transactions included: silence is judged by it. Raises as `ends`."""
        return await self._list(partition, LATEST)

    async def _list(self, partition: TopicPartition, which: int) -> int:
        doing = f"Asking for the ends of {partition.topic}-{partition.partition} failed"
        client = self._admin._client  # it knows the leaders; the admin client has no call that asks them
        try:
            if partition.partition not in (await client._wait_on_metadata(partition.topic)):
                raise Fatal(f"{doing}: there is no such partition.")
            leader = client.cluster.leader_for_partition(partition)
            if leader is None or leader < 0:
                client.force_metadata_update()
                raise Retryable(f"{doing}: it has no leader.")
            request = OffsetRequest(-1, READ_UNCOMMITTED, [(partition.topic, [(partition.partition, which)])])
            answer = await client.send(leader, request)
            _, ((_, code, _, offset),) = answer.topics[0]
            if code:
                client.force_metadata_update()
                raise kafka.for_code(code)
        except FAULTS as fault:
            raise translate(fault, doing) from fault
        return int(offset)


async def confirm_membership(coordinator: Any) -> None:
    """Ask the group's coordinator, by the consumer's own, whether the member belongs. Raises Fenced and aiokafka's errors.

    Not by the client's own heartbeat: that one forgets the membership where the generation is an old one. This question waits
    behind a join on the same connection, so that its generation is old whenever the group has just moved on; the member would
    then join once more, as somebody else, and the whole group with it, over and over (seen for 20 s).
    """
    loop = asyncio.get_running_loop()
    patience = loop.time() + COORDINATOR_PATIENCE_SECONDS
    while True:
        request = HeartbeatRequest(coordinator.group_id, coordinator.generation, coordinator.member_id)
        try:
            found = kafka.for_code((await coordinator._send_req(request)).error_code)
        except kafka.GroupCoordinatorNotAvailableError:
            found = kafka.GroupCoordinatorNotAvailableError
        if found not in MOVED or loop.time() >= patience:
            break
        if found is kafka.NotCoordinatorForGroupError:
            coordinator.coordinator_dead()
        # The consumer looks for it; to come back later, and later each time, would keep the partition waiting.
        await asyncio.sleep(COORDINATOR_PAUSE_SECONDS)
    if found in {kafka.IllegalGenerationError, kafka.UnknownMemberIdError}:
        raise Fenced("The group's coordinator does not confirm the membership.")
    # In a rebalance that has only begun it is still the owner.
    if found not in {kafka.NoError, kafka.RebalanceInProgressError}:
        raise found
