"""The transaction coordinator: producer ids and epochs, open transactions, markers that come late.

Owns the state of each transactional id. What a marker makes visible is the business of the logs and of the group.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.simulation.group import Group
from tests.simulation.log import Log, Refused

INVALID_EPOCH, INVALID_STATE, INVALID_MAPPING, CONCURRENT = 47, 48, 49, 51


@dataclass
class Transaction:
    """One transactional id, and its transaction if it has one."""

    name: str
    producer: int
    epoch: int
    timeout: float
    state: str = "empty"
    """`empty`, `ongoing`, `committing`, `aborting`, `committed` or `aborted`: the last two have all their markers."""
    logs: list[Log] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)
    expiry: Any = None
    markers: int = 0
    """Markers that are not written yet."""
    opened_by: int = -1
    """Epoch that opened the last transaction: aborting it behind its back raises `epoch`."""
    number: int = 0
    """Of the last transaction, among all."""


class Transactions:
    """All transactional ids."""

    def __init__(
        self,
        loop: Any,
        marker_delay: Callable[[], float],
        now_ms: Callable[[], int],
    ) -> None:
        """`marker_delay` draws how long each marker takes."""
        self._loop = loop
        self._marker_delay = marker_delay
        self._now_ms = now_ms
        self.on_end: Callable[[Transaction, bool], None] = lambda *_: None
        """Told of each transaction that is decided."""
        self.by_name: dict[str, Transaction] = {}
        self.by_producer: dict[int, Transaction] = {}
        self._producers = itertools.count(1)
        self._numbers = itertools.count(1)
        self._late_until = 0.0
        self.settles_late = False
        """Brokers before the fix of KAFKA-17507: a transaction counts as ended before its offsets are readable."""

    def init(self, name: str | None, timeout: float) -> tuple[int, int]:
        """Begin a new incarnation of a producer: the last one is fenced, its transaction aborted. Raises Refused."""
        if name is None:
            return next(self._producers), 0
        known = self.by_name.get(name)
        if known is None:
            known = Transaction(name, next(self._producers), 0, timeout)
            self.by_name[name] = self.by_producer[known.producer] = known
            return known.producer, known.epoch
        if known.state in {"committing", "aborting"}:
            raise Refused(CONCURRENT)
        if known.state == "ongoing":
            self.abort_behind_its_back(known)
            raise Refused(CONCURRENT)
        known.epoch += 1
        known.timeout = timeout
        known.state = "empty"
        return known.producer, known.epoch

    def abort_behind_its_back(self, known: Transaction) -> None:
        """Fence an open transaction and abort it: a successor came, or it was open for too long."""
        known.epoch += 1
        self._decide(known, commit=False)

    def forget(self, known: Transaction) -> None:
        """Forget an id that was not used for long (transactional.id.expiration)."""
        if known.state not in {"ongoing", "committing", "aborting"}:
            del self.by_name[known.name]
            del self.by_producer[known.producer]

    def _own(self, name: str, producer: int, epoch: int) -> Transaction:
        known = self.by_name.get(name)
        if known is None or known.producer != producer:
            raise Refused(INVALID_MAPPING)
        if known.epoch != epoch:
            raise Refused(INVALID_EPOCH)
        if known.state in {"committing", "aborting"}:
            raise Refused(CONCURRENT)
        return known

    def add(self, name: str, producer: int, epoch: int, logs: list[Log], group: Group | None = None) -> None:
        """Take partitions, or the offsets of a group, into the transaction; the first one opens it. Raises Refused."""
        known = self._own(name, producer, epoch)
        if known.state != "ongoing":
            known.state, known.logs, known.groups = "ongoing", [], []
            known.opened_by, known.number = epoch, next(self._numbers)
            known.expiry = self._loop.call_later(known.timeout, self._expire, known, epoch)
        known.logs += [log for log in logs if log not in known.logs]
        if group is not None and group not in known.groups:
            known.groups.append(group)

    def may_write(self, producer: int, epoch: int, log: Log) -> None:
        """Check a write to a partition: the transaction has it, or began there and no marker ended it. Raises Refused."""
        known = self.by_producer.get(producer)
        if known is None:
            raise Refused(INVALID_MAPPING)
        if producer in log.open and epoch == known.opened_by:
            return
        if known.epoch != epoch:
            raise Refused(INVALID_EPOCH)
        if known.state != "ongoing" or log not in known.logs:
            raise Refused(INVALID_STATE)

    def may_commit(self, producer: int, epoch: int, group: Group) -> int:
        """Check offsets that are sent to a transaction; returns its number. Raises Refused."""
        known = self.by_producer.get(producer)
        if known is None:
            raise Refused(INVALID_MAPPING)
        if known.number in group.pending and epoch == known.opened_by:
            return known.number
        if known.epoch != epoch:
            raise Refused(INVALID_EPOCH)
        if known.state != "ongoing" or group not in known.groups:
            raise Refused(INVALID_STATE)
        return known.number

    def end(self, name: str, producer: int, epoch: int, *, commit: bool) -> None:
        """Decide a transaction. The answer comes before its markers are written. Raises Refused."""
        known = self._own(name, producer, epoch)
        if known.state == ("committed" if commit else "aborted"):
            return
        if known.state != "ongoing":
            raise Refused(INVALID_STATE)
        self._decide(known, commit=commit)

    def _expire(self, known: Transaction, epoch: int) -> None:
        if known.state == "ongoing" and known.epoch == epoch:
            self.abort_behind_its_back(known)

    def _decide(self, known: Transaction, *, commit: bool) -> None:
        known.state = "committing" if commit else "aborting"
        if known.expiry is not None:
            known.expiry.cancel()
        self.on_end(known, commit)
        places: list[Log | Group] = [*known.logs, *known.groups]
        known.markers = len(places)
        if not places:
            self._ended(known, commit=commit)
        for place in places:
            self._loop.call_later(self._marker_delay(), self._mark, known, place, commit)

    def _mark(self, known: Transaction, place: Any, commit: bool) -> None:
        if isinstance(place, Log):
            place.mark(known.producer, known.epoch, commit=commit, now_ms=self._now_ms())
        elif self.settles_late:
            # In the order of the markers, all the same: the group reads one log.
            self._late_until = max(self._late_until, self._loop.time() + self._marker_delay() * 15)
            self._loop.call_at(self._late_until, self._settle, place, known.number, commit)
        else:
            self._settle(place, known.number, commit)
        known.markers -= 1
        if not known.markers:
            self._ended(known, commit=commit)

    @staticmethod
    def _settle(group: Group, number: int, commit: bool) -> None:
        group.settle(number, commit=commit)

    def _ended(self, known: Transaction, *, commit: bool) -> None:
        known.state = "committed" if commit else "aborted"
        known.logs, known.groups = [], []
