"""What runner and core tell their observers, turned into metrics.

Owns the hooks of `processor.ports.Hooks`: called at most once a batch, never blocking, never raising. What has to be walked for
is only walked at a scrape.
"""

from typing import Any

from msgspec.structs import fields

from processor.core.candidate import Candidate
from processor.core.events import Unreadable
from processor.core.outgoing import Outgoing
from processor.core.pipeline import Partition
from processor.core.ports import Judge
from processor.core.signals import Tally
from processor.observe import catalogue as of
from processor.observe.meters import Meters

_FIELDS = tuple(field.name for field in fields(Tally))


def empty(tally: Tally) -> None:
    """Set every count back; in place, since the core holds on to the object."""
    for name in _FIELDS:
        value = getattr(tally, name)
        if isinstance(value, int):
            setattr(tally, name, 0)
        else:
            value.clear()


class Watch:
    """Hooks that count."""

    def __init__(self, meters: Meters) -> None:
        self._meters = meters
        self.partitions: dict[int, Partition] = {}
        """The latest state of each partition that this process has held."""

    def on_batch(self, partition: Partition) -> None:
        """Flush the tally, and note the state for the next scrape."""
        self.partitions[partition.number] = partition
        self._meters.flush(partition.tally)
        empty(partition.tally)

    def on_commit(self, number: int, records: int, seconds: float) -> None:  # noqa: ARG002 - the port's own signature
        """Count a transaction that was committed."""
        self._meters.transaction(seconds)

    def on_failure(self, number: int, kind: str) -> None:  # noqa: ARG002 - as above
        """Count a partition that lost its transaction or its owner."""
        self._meters.count(of.FAILURES, kind)

    def on_rebuilt(self, number: int, seconds: float) -> None:  # noqa: ARG002 - as above
        """Count a rebuild."""
        self._meters.rebuilt(seconds)

    def set_gauges(self, owned: set[int]) -> None:
        """At a scrape: set what the states hold, and let go of those that are another member's."""
        for number in set(self.partitions) - owned:
            del self.partitions[number]
        for partition in self.partitions.values():
            gauges = self._meters.partition(partition.topic, partition.number)
            gauges.state(partition.counts(), settings_pending=partition.pending_bounds)


class TimedJudge:
    """A judge that also counts how long a decision took, from the timestamp of the record that released it."""

    def __init__(self, judge: Judge, meters: Meters) -> None:
        self.tally = judge.tally
        self._judge = judge
        self._latency = meters.latency

    def __call__(self, candidate: Candidate, topic: str, partition: int, now_ms: int) -> Outgoing:
        """Judge one call. Never raises for anything that is in the candidate."""
        self._judge.tally = self.tally
        self._latency((now_ms - candidate.event_time) / 1000)
        return self._judge(candidate, topic, partition, now_ms)

    def dead_letter(self, record: Any, unreadable: Unreadable, topic: str, partition: int) -> Outgoing:
        """Keep a record that cannot be read, with the cause."""
        return self._judge.dead_letter(record, unreadable, topic, partition)
