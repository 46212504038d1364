"""An in-memory broker: answers the client's requests out of logs, a group and a transaction coordinator.

Owns the topics and what each request means. It knows nothing of connections, delays and faults: `network` brings requests and
takes answers.
"""

import asyncio
import random
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from aiokafka.protocol.admin import DeleteRecordsRequest
from aiokafka.protocol.api import Request

from tests.simulation.clock import EPOCH_MS
from tests.simulation.group import Group, Joined, Place
from tests.simulation.log import HEAD, TRANSACTIONAL, Log, Refused
from tests.simulation.transactions import Transactions

NODE, HOST, PORT = 1, "broker", 9092
NO_PARTITION, TOO_LARGE, METADATA_TOO_LARGE = 3, 10, 12
METADATA_BYTES = 4096
EARLIEST = -2

VERSIONS = {0: 7, 1: 11, 2: 3, 3: 5, 8: 3, 9: 7, 10: 1, 11: 5, 12: 1, 13: 1, 14: 3, 21: 2, 22: 0, 24: 0, 25: 0, 26: 0, 28: 0}
"""What the client and Kafka 4.3 agree on, by request."""
Answer = Callable[[Any], None]


class Broker:
    """One broker, which leads every partition and coordinates everything."""

    def __init__(self, loop: asyncio.AbstractEventLoop, rng: random.Random) -> None:
        self.loop = loop
        self.rng = rng
        self.logs: dict[tuple[str, int], Log] = {}
        self.topics: dict[str, list[int]] = {}
        self.groups: dict[str, Group] = defaultdict(lambda: Group(loop, self.on_commit))
        self.transactions = Transactions(loop, self._marker_delay, self.now_ms)
        self.marker_seconds = (0.0005, 0.006)
        """How long a marker takes, from and to; a few take twenty times that."""
        self.cut_fetches = 0.0
        """How often an answer to a fetch ends in the middle of a batch."""
        self.on_commit: Callable[[tuple[str, int], Place], None] = _nobody
        self._answers: dict[int, Callable[[Any, Answer], None]] = {
            0: self._produce,
            1: self._fetch,
            2: self._list_offsets,
            3: self._metadata,
            8: self._offset_commit,
            9: self._offset_fetch,
            10: self._find_coordinator,
            11: self._join,
            12: self._heartbeat,
            13: self._leave,
            14: self._sync,
            21: self._delete_records,
            22: self._init_producer,
            24: self._add_partitions,
            25: self._add_offsets,
            26: self._end,
            28: self._txn_offset_commit,
        }

    def make_topic(self, name: str, partitions: int, *, append_time: bool = False, max_bytes: int = 1 << 23) -> None:
        """Make a topic."""
        self.topics[name] = list(range(partitions))
        for number in range(partitions):
            self.logs[name, number] = Log(name, number, append_time, max_bytes)

    def now_ms(self) -> int:
        """The broker's own clock."""
        return EPOCH_MS + int(self.loop.time() * 1000)

    def _marker_delay(self) -> float:
        least, most = self.marker_seconds
        return self.rng.uniform(least, most) * (20 if self.rng.random() < 0.03 else 1)

    def handle(self, request: Any, answer: Answer) -> None:
        """Answer a request, now or later."""
        self._answers[request.API_KEY](request, answer)

    # -- logs

    def _produce(self, request: Any, answer: Answer) -> None:
        topics = []
        for topic, partitions in request.topics:
            found = [(number, *self._write(topic, number, bytes(data)), -1, 0) for number, data in partitions]
            topics.append((topic, found))
        answer(request.RESPONSE_TYPE(topics, 0))

    def _write(self, topic: str, number: int, data: bytes) -> tuple[int, int]:
        log = self.logs.get((topic, number))
        if log is None:
            return NO_PARTITION, -1
        if len(data) > log.max_bytes:
            return TOO_LARGE, -1
        head = HEAD.unpack_from(data)
        try:
            if head[5] & TRANSACTIONAL:
                self.transactions.may_write(head[9], head[10], log)
            return 0, log.append(data, self.now_ms())
        except Refused as refused:
            return refused.code, -1

    def _fetch(self, request: Any, answer: Answer) -> None:
        until = self.loop.time() + request.max_wait_time / 1000
        done = False

        def look() -> None:
            nonlocal done
            if done:
                return
            topics, found = self._look(request)
            if found or self.loop.time() >= until:
                done = True
                timer.cancel()
                answer(request.RESPONSE_TYPE(0, 0, 0, topics))
                return
            for topic, partitions in request.topics:
                for number, *_ in partitions:
                    self.logs[topic, number].on_change.append(soon)

        def soon() -> None:
            self.loop.call_soon(look)

        timer = self.loop.call_at(until, look)
        look()

    def _look(self, request: Any) -> tuple[list[Any], bool]:
        """What a fetch would be answered now, and whether that is worth an answer."""
        topics, found = [], False
        for topic, partitions in request.topics:
            entries = []
            for number, _, offset, _, most in partitions:
                log = self.logs.get((topic, number))
                hidden: list[tuple[int, int]] = []
                code, data = NO_PARTITION, b""
                if log is not None:
                    try:
                        cut = self.rng.randrange(1 << 16) if self.rng.random() < self.cut_fetches else None
                        data, hidden = log.read(offset, most, committed=request.isolation_level == 1, cut_at=cut)
                        code = 0
                    except Refused as refused:
                        code = refused.code
                found = found or bool(data) or bool(code)
                end, stable, start = (log.end, log.stable, log.start) if log is not None else (-1, -1, -1)
                entries.append((number, code, end, stable, start, hidden, -1, data))
            topics.append((topic, entries))
        return topics, found

    def _list_offsets(self, request: Any, answer: Answer) -> None:
        topics = []
        for topic, partitions in request.topics:
            entries = []
            for number, which in partitions:
                log = self.logs.get((topic, number))
                if log is None:
                    entries.append((number, NO_PARTITION, -1, -1))
                    continue
                end = log.stable if request.isolation_level == 1 else log.end
                entries.append((number, 0, -1, log.start if which == EARLIEST else end))
            topics.append((topic, entries))
        answer(request.RESPONSE_TYPE(0, topics))

    def _delete_records(self, request: Any, answer: Answer) -> None:
        topics: list[Any] = []
        for topic, partitions, *_ in request.topics:
            entries: list[Any] = []
            for number, offset in [one[:2] for one in partitions]:
                self.logs[topic, number].cut(offset)
                entries.append((number, self.logs[topic, number].start, 0, {}))
            topics.append((topic, entries, {}))
        answer(request.RESPONSE_TYPE(0, topics, {}))

    # -- the cluster

    def _metadata(self, request: Any, answer: Answer) -> None:
        names = self.topics if request.topics is None else request.topics
        topics = []
        for name in names:
            partitions: list[Any] = [(0, number, NODE, [NODE], [NODE], []) for number in self.topics.get(name, ())]
            topics.append((0 if partitions else NO_PARTITION, name, False, partitions))
        answer(request.RESPONSE_TYPE(0, [(NODE, HOST, PORT, None)], "cluster", NODE, topics))

    def _find_coordinator(self, request: Any, answer: Answer) -> None:
        answer(request.RESPONSE_TYPE(0, 0, "", NODE, HOST, PORT))

    # -- the group

    def _join(self, request: Any, answer: Answer) -> None:
        ((protocol, metadata),) = request.group_protocols

        def joined(code: int, found: Joined) -> None:
            answer(request.RESPONSE_TYPE(0, code, *found))

        session, rebalance = request.session_timeout / 1000, request.rebalance_timeout / 1000
        self.groups[request.group].join(request.member_id, session, rebalance, protocol, metadata, joined)

    def _sync(self, request: Any, answer: Answer) -> None:
        def synced(code: int, assignment: bytes) -> None:
            answer(request.RESPONSE_TYPE(0, code, assignment))

        assignments = dict(request.group_assignment)
        self.groups[request.group].sync(request.member_id, request.generation_id, assignments, synced)

    def _heartbeat(self, request: Any, answer: Answer) -> None:
        code = _code(lambda: self.groups[request.group].heartbeat(request.member_id, request.generation_id))
        answer(request.RESPONSE_TYPE(0, code))

    def _leave(self, request: Any, answer: Answer) -> None:
        answer(request.RESPONSE_TYPE(0, _code(lambda: self.groups[request.group].leave(request.member_id))))

    def _offset_commit(self, request: Any, answer: Answer) -> None:
        group = self.groups[request.consumer_group]
        code = _code(lambda: group.commit(request.consumer_id, request.consumer_group_generation_id, _offsets(request.topics)))
        answer(request.RESPONSE_TYPE(0, [(topic, [(one[0], code) for one in some]) for topic, some in request.topics]))

    def _offset_fetch(self, request: Any, answer: Answer) -> None:
        new = request.API_VERSION >= 7
        group = self.groups[request.group if new else request.consumer_group]
        topics: list[Any] = []
        for topic, partitions, *_ in request.topics:
            entries: list[Any] = []
            for number in partitions:
                code, place = 0, None
                try:
                    place = group.committed((topic, number), stable=new and request.require_stable)
                except Refused as refused:
                    code = refused.code
                offset, metadata = (place.offset, place.metadata) if place is not None else (-1, "")
                entries.append((number, offset, -1, metadata, code, {}) if new else (number, offset, metadata, code))
            topics.append((topic, entries, {}) if new else (topic, entries))
        answer(request.RESPONSE_TYPE(0, topics, 0, {}) if new else request.RESPONSE_TYPE(0, topics, 0))

    # -- transactions

    def _init_producer(self, request: Any, answer: Answer) -> None:
        try:
            producer, epoch = self.transactions.init(request.transactional_id, request.transaction_timeout_ms / 1000)
        except Refused as refused:
            answer(request.RESPONSE_TYPE(0, refused.code, -1, -1))
        else:
            answer(request.RESPONSE_TYPE(0, 0, producer, epoch))

    def _add_partitions(self, request: Any, answer: Answer) -> None:
        logs = [self.logs[topic, number] for topic, numbers in request.topics for number in numbers]
        who = request.transactional_id, request.producer_id, request.producer_epoch
        code = _code(lambda: self.transactions.add(*who, logs))
        answer(request.RESPONSE_TYPE(0, [(topic, [(number, code) for number in numbers]) for topic, numbers in request.topics]))

    def _add_offsets(self, request: Any, answer: Answer) -> None:
        who = request.transactional_id, request.producer_id, request.producer_epoch
        code = _code(lambda: self.transactions.add(*who, [], self.groups[request.group_id]))
        answer(request.RESPONSE_TYPE(0, code))

    def _txn_offset_commit(self, request: Any, answer: Answer) -> None:
        group, offsets = self.groups[request.group_id], _offsets(request.topics)

        def promise() -> None:
            number = self.transactions.may_commit(request.producer_id, request.producer_epoch, group)
            if any(len(metadata.encode()) > METADATA_BYTES for _, metadata in offsets.values()):
                raise Refused(METADATA_TOO_LARGE)
            group.promise(number, offsets)

        code = _code(promise)
        answer(request.RESPONSE_TYPE(0, [(topic, [(one[0], code) for one in some]) for topic, some in request.topics]))

    def _end(self, request: Any, answer: Answer) -> None:
        who = request.transactional_id, request.producer_id, request.producer_epoch
        code = _code(lambda: self.transactions.end(*who, commit=bool(request.transaction_result)))
        answer(request.RESPONSE_TYPE(0, code))


def version_of(request: Request[Any]) -> Any:
    """The struct that goes over the wire, in the version that is agreed on."""
    key = request.API_KEY
    most = 0 if key == DeleteRecordsRequest.API_KEY and key not in VERSIONS else VERSIONS[key]
    return request.prepare({key: (0, most)})


def _nobody(*_: Any) -> None:
    """Tell nobody."""


def _code(work: Callable[[], None]) -> int:
    try:
        work()
    except Refused as refused:
        return refused.code
    return 0


def _offsets(topics: list[Any]) -> dict[tuple[str, int], tuple[int, str]]:
    return {(topic, number): (offset, metadata) for topic, some in topics for number, offset, metadata, *_ in some}
