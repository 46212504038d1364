"""The single seam that may touch transactions: decisions, dead letters and the offset of one input partition.

Owns one producer for each input partition. It never sends anything again, and after any failure it only aborts: the partition
is taken over anew.

What stops a zombie: aiokafka's offset call takes a group id alone (no KIP-447), so the group cannot refuse a member that was
voted out. The transactional id can: it is that of the input partition, the next owner initialises it first, and from then on
the broker refuses whatever the last owner sends. Therefore **every** commit goes through here, those without decisions too: a
plain offset commit by a group member is not fenced and could set P back.
"""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any

from aiokafka import AIOKafkaProducer
from aiokafka.client import ConnectionGroup
from aiokafka.errors import InvalidTxnState, KafkaError
from aiokafka.producer.transaction_manager import TransactionState
from aiokafka.protocol.produce import ProduceRequest
from aiokafka.structs import OffsetAndMetadata, TopicPartition

from processor.adapters.kafka_client import client_options, patient, translate
from processor.adapters.source import Source
from processor.core.offsets import Commit, encode
from processor.core.outgoing import Outgoing, Route
from processor.errors import Fatal, Fenced, Poisoned, Retryable
from processor.settings import Kafka, Settings

BATCH_BYTES = 256 << 10
"""Records that fit together go in one batch; a larger record goes alone. The broker holds a whole batch against
`max.message.bytes`, so this stays below its default of 1 MiB."""
CLOSE_SECONDS = 3.0
"""How long an abort, and then the closing of connections, may take: the broker aborts what is left by itself."""

OVER = (TransactionState.ABORTING_TRANSACTION, TransactionState.ABORTABLE_ERROR, TransactionState.FATAL_ERROR)
"""States of a transaction that can only be given up."""

FAULTS = (KafkaError, OSError, TimeoutError, AssertionError, RuntimeError, ValueError, LookupError)
"""What aiokafka raises: its states are asserted, calls in the wrong one are RuntimeErrors, a connection that it does not find
any more is a KeyError."""


def topics_of(settings: Settings) -> dict[Route, str]:
    """Topic by route."""
    names = settings.topics
    return {Route.APPROVED: names.approved, Route.REJECTED: names.rejected, Route.DEAD_LETTER: names.dead_letter}


def transactional_id(group: str, partition: TopicPartition) -> str:
    """Name the producer of an input partition (design section 7)."""
    return f"callgate/{group}/{partition.topic}/{partition.partition}"


class _Sender:
    """What both ways of delivery share: a producer, and the sending of batches."""

    def __init__(self, settings: Kafka, topics: Mapping[Route, str], number: int, **options: Any) -> None:
        self._topics = topics
        self._number = number
        self._producer: Any = AIOKafkaProducer(
            **client_options(settings),
            retry_backoff_ms=settings.retry_backoff_ms,
            compression_type=None if settings.compression == "none" else settings.compression,
            max_batch_size=BATCH_BYTES,
            max_request_size=settings.max_request_bytes,
            **options,
        )
        patient(self._producer.client)
        self.unanswered = False
        """Whether a request of a transaction went without an answer: the client sends it again, and the first copy may arrive
        much later."""
        self._notice(self._producer.client)

    def _notice(self, client: Any) -> None:
        """Note requests without an answer, which the client keeps to itself, and hold back what it should."""
        send, transactions = client.send, self._producer._txn_manager

        async def send_and_notice(node: Any, request: Any, **options: Any) -> Any:
            if isinstance(request, ProduceRequest) and transactions is not None and transactions.state in OVER:
                # The client sends what it still has. While the marker of the transaction before is not written yet, the broker
                # takes it for a part of that one, which is committed.
                raise InvalidTxnState
            try:
                return await send(node, request, **options)
            except FAULTS:
                # Not for records: the broker knows a repeated batch by its sequence number.
                self.unanswered |= options.get("group") is ConnectionGroup.COORDINATION
                raise

        client.send = send_and_notice

    async def start(self) -> None:
        """Connect; a transactional producer is initialised by it."""
        producer = self._producer
        await producer.start()
        await producer.client.set_topics(self._topics.values())

    async def send(self, outgoing: Sequence[Outgoing]) -> None:
        """Send everything and wait until the broker has each record; the first refusal is raised."""
        producer, number, now_ms = self._producer, self._number, int(time.time() * 1000)
        builders: dict[Route, Any] = {}
        delivered, names = [], []

        async def go(route: Route, builder: Any) -> None:
            names.append(self._topics[route])
            delivered.append(await producer.send_batch(builder, self._topics[route], partition=number))

        for one in outgoing:
            builder = builders.get(one.route)
            if builder is None:
                builder = builders[one.route] = producer.create_batch()
            if builder.append(timestamp=now_ms, key=one.key, value=one.value, headers=one.headers) is None:
                await go(one.route, builder)
                builder = builders[one.route] = producer.create_batch()
                builder.append(timestamp=now_ms, key=one.key, value=one.value, headers=one.headers)
        for route, builder in builders.items():
            builder.close()
            await go(route, builder)
        # All are waited for before the first failure is raised: a future that nobody reads would be reported as lost.
        outcomes = await asyncio.gather(*delivered, return_exceptions=True)
        for topic, outcome in zip(names, outcomes, strict=True):
            if isinstance(outcome, BaseException):
                ours = translate(outcome, f"Writing to `{topic}` failed")
                # What no other try would cure names its topic; the rest is sorted by whoever holds the transaction.
                if isinstance(ours, Poisoned | Fatal):
                    raise ours from outcome
                raise outcome

    async def close(self) -> None:
        """Stop the producer, by force where it does not stop."""
        producer = self._producer
        stopping = asyncio.ensure_future(producer.stop())
        await asyncio.wait([stopping], timeout=CLOSE_SECONDS)
        if stopping.done() and not stopping.cancelled() and stopping.exception() is None:
            return
        # Its requests to a broker that is gone are tried again for ever, and `stop` waits for them.
        sender = producer._sender
        lost = [stopping, *(task for task in asyncio.all_tasks() if _owner(task) is sender)]
        for task in lost:
            task.cancel()
        await asyncio.wait(lost, timeout=CLOSE_SECONDS)
        with contextlib.suppress(*FAULTS):
            async with asyncio.timeout(CLOSE_SECONDS):
                await producer.client.close()


def _owner(task: asyncio.Task[Any]) -> Any:
    """The object whose method a task runs: the producer keeps no list of its tasks."""
    frame = getattr(task.get_coro(), "cr_frame", None)
    return frame.f_locals.get("self") if frame is not None else None


class TransactionalPublisher:
    """Exactly once: everything of one commit in one transaction of the input partition's own producer."""

    fenced = True

    def __init__(self, settings: Settings, partition: TopicPartition, topics: Mapping[Route, str] | None = None) -> None:
        """`topics` where others are written to than the settings' outputs."""
        kafka = settings.kafka
        self._partition = partition
        self._group = settings.group
        # None is open longer than half the time after which the broker would abort it behind our back.
        self._deadline = kafka.transaction_timeout_ms / 2000
        self._sender = _Sender(
            kafka,
            topics_of(settings) if topics is None else topics,
            partition.partition,
            transactional_id=transactional_id(settings.group, partition),
            transaction_timeout_ms=kafka.transaction_timeout_ms,
        )
        self._begun = False

    async def start(self) -> None:
        """Fence the last owner and settle its pending transaction. Raises Retryable, Fenced, Fatal."""
        try:
            async with asyncio.timeout(self._deadline):
                await self._sender.start()
        except FAULTS as fault:
            raise translate(fault, "Initialising the partition's producer failed") from fault

    async def publish(self, outgoing: Sequence[Outgoing], commit: Commit) -> None:
        """Publish the records and commit the offset in one transaction. Raises Retryable, Fenced, Poisoned, Fatal."""
        send = partial(self._sender.send, outgoing) if outgoing else None
        await self.transact(send, commit.offset, encode(commit))

    async def transact(self, send: Callable[[], Awaitable[None]] | None, offset: int, metadata: str) -> None:
        """Send in one transaction with the offset. `send` returns when the broker has each record. Raises as `publish`."""
        if self._sender.unanswered:
            # A late copy of its EndTxn would commit this transaction half-way, one of its offsets would set P back: the broker
            # tells them from ours only by a new epoch (KIP-890, which the client does not speak).
            raise Fenced("A request of an earlier transaction went without an answer, and may still arrive.")
        producer = self._sender._producer
        offsets = {self._partition: OffsetAndMetadata(offset, metadata)}
        doing = "The transaction failed"
        try:
            async with asyncio.timeout(self._deadline):
                await producer.begin_transaction()
                self._begun = True
                if send is not None:
                    await send()
                # Only now: the client commits happily although a record in the transaction was refused.
                await producer.send_offsets_to_transaction(offsets, self._group)
                doing = "The commit failed, or its answer was lost"
                await producer.commit_transaction()
                self._begun = False
        except FAULTS as fault:
            ours = translate(fault, doing)
            # Whatever pause would cure it, the fate of this transaction is unknown.
            raise (Fenced(str(ours)) if isinstance(ours, Retryable) else ours) from fault

    async def close(self) -> None:
        """Abort what was begun and let go of the connections, within a few seconds. Never raises."""
        if self._begun:
            self._begun = False
            # A commit under way cannot be aborted (the client asserts it): the next owner's start settles it.
            with contextlib.suppress(*FAULTS):
                async with asyncio.timeout(CLOSE_SECONDS):
                    await self._sender._producer.abort_transaction()
        waiter = self._sender._producer._txn_manager.wait_for_transaction_end()
        if waiter is not None and waiter.done() and not waiter.cancelled():
            waiter.exception()  # read, or the event loop reports it as lost
        await self._sender.close()


class PlainPublisher:
    """At least once, for brokers without transactions: publish, wait, then commit the same offset and metadata."""

    fenced = False

    def __init__(self, settings: Settings, partition: TopicPartition, source: Source) -> None:
        self._partition = partition
        self._source = source
        self._deadline = settings.kafka.transaction_timeout_ms / 2000
        self._sender = _Sender(settings.kafka, topics_of(settings), partition.partition, acks="all", enable_idempotence=True)

    async def start(self) -> None:
        """Connect; nothing is fenced. Raises Retryable, Fatal."""
        try:
            async with asyncio.timeout(self._deadline):
                await self._sender.start()
        except FAULTS as fault:
            raise translate(fault, "Starting the partition's producer failed") from fault

    async def publish(self, outgoing: Sequence[Outgoing], commit: Commit) -> None:
        """Publish the records, then commit the offset. Raises Retryable, Fenced, Poisoned, Fatal."""
        try:
            async with asyncio.timeout(self._deadline):
                if outgoing:
                    await self._sender.send(outgoing)
                await self._source.commit(self._partition.partition, commit.offset, encode(commit))
        except FAULTS as fault:
            ours = translate(fault, "Publishing failed")
            raise (Fenced(str(ours)) if isinstance(ours, Retryable) else ours) from fault

    async def close(self) -> None:
        """Let go of the connections, within a few seconds. Never raises."""
        await self._sender.close()
