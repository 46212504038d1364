"""The values of the metrics: one registry for each process's app, children prepared, tallies flushed once a batch.

Owns the registry. It is never global, and it looks no metric up by name after the start.
"""

from collections import Counter as Counts
from collections.abc import Iterator, Mapping
from typing import cast

import prometheus_client
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from processor.core.reasons import Cause, Reason
from processor.core.signals import Tally
from processor.observe import catalogue as of
from processor.observe.catalogue import CATALOGUE, Kind, Metric

PLAIN = {
    "records": of.RECORDS,
    "value_bytes": of.VALUE_BYTES,
    "late": of.LATE,
    "repeats": of.REPEATS,
    "gaps": of.GAPS,
    "unnumbered": of.UNNUMBERED,
    "foreign": of.FOREIGN,
    "null_items": of.NULL_ITEMS,
    "unknown_tool_choice": of.UNKNOWN_TOOL_CHOICE,
    "long_call_ids": of.LONG_CALL_IDS,
    "failed_after_release": of.FAILED_AFTER_RELEASE,
    "mislabelled": of.MISLABELLED,
    "disagreements": of.DISAGREEMENTS,
}
"""Fields of a tally that are one number."""
LABELLED = {
    "events": of.EVENTS,
    "items": of.ITEMS,
    "tolerated": of.TOLERATED,
    "dead_letters": of.DEAD_LETTERS,
    "would_reject": of.WOULD_REJECT,
}
"""Fields of a tally that count by one label, out of a closed list."""
GAUGES = {
    "streams": of.STREAMS,
    "open_responses": of.OPEN_RESPONSES,
    "known_responses": of.KNOWN_RESPONSES,
    "open_calls": of.OPEN_CALLS,
    "buffered_bytes": of.BUFFERED,
}
"""Names of `Partition.counts()`."""


class PartitionMeters:
    """The gauges of one partition."""

    def __init__(self, gauges: Mapping[str, Gauge], topic: str, partition: int) -> None:
        self._labels = (topic, str(partition))
        self._gauges = gauges
        self._children = {name: gauge.labels(*self._labels) for name, gauge in gauges.items()}

    def state(self, counts: Mapping[str, int], *, settings_pending: bool) -> None:
        """Set what the state holds, as `Partition.counts()` says."""
        for name, metric in GAUGES.items():
            self._children[metric.name].set(counts.get(name, 0))
        self._children[of.SETTINGS_PENDING.name].set(settings_pending)

    def lag(self, *, to_position: int | None, to_commit: int | None, held: int | None, state: str) -> None:
        """Set both lags, the distance from W to P, and whether the partition is live. None: not known, and no series."""
        for metric, records in ((of.LAG_TO_POSITION, to_position), (of.LAG_TO_COMMIT, to_commit), (of.HELD, held)):
            gauge = self._gauges[metric.name]
            if records is None:
                gauge.remove(*self._labels)
            else:
                gauge.labels(*self._labels).set(records)
        self._children[of.LIVE.name].set(state == "live")

    def remove(self) -> None:
        """Take them out of the registry."""
        for gauge in self._gauges.values():
            gauge.remove(*self._labels)


class Meters:
    """All metrics of one app."""

    def __init__(self, version: str) -> None:
        self.registry = CollectorRegistry(auto_describe=True)
        made = {metric.name: _make(metric, self.registry) for metric in CATALOGUE}
        self._counters = {name: each for name, each in made.items() if isinstance(each, Counter)}
        self._gauges = {name: each for name, each in made.items() if isinstance(each, Gauge)}
        histograms = {name: each for name, each in made.items() if isinstance(each, Histogram)}
        self._partition_meters: dict[tuple[str, int], PartitionMeters] = {}
        self._by_partition = {metric.name: self._gauges[metric.name] for metric in CATALOGUE if metric.labels == of.PARTITION}
        self._plain = [(field, self._counters[metric.name]) for field, metric in PLAIN.items()]
        self._labelled = [(field, self._counters[metric.name]) for field, metric in LABELLED.items()]
        decisions = self._counters[of.DECISIONS.name]
        self._decisions = {
            reason.value: decisions.labels("approved" if reason is Reason.OK else "rejected", reason) for reason in Reason
        }
        for cause in Cause:
            self._counters[of.DEAD_LETTERS.name].labels(cause)
        self._latency = histograms[of.DECISION_LATENCY.name]
        self._rebuild = histograms[of.REBUILD_DURATION.name]
        self._transactions = histograms[of.TRANSACTION_DURATION.name]
        self._partitions = self._gauges[of.PARTITIONS.name]
        self._looked_up = {"hit": 0, "miss": 0}
        for outcome in ("done", "refused"):
            self._counters[of.RELOADS.name].labels(outcome)
        self._gauges[of.BUILD.name].labels(version).set(1)

    def flush(self, tally: Tally) -> None:
        """Add what a partition counted since the last flush; the caller then gives it a new tally."""
        for field, counter in self._plain:
            if amount := getattr(tally, field):
                counter.inc(amount)
        for field, counter in self._labelled:
            counts: Counts[str] = getattr(tally, field)
            for label, amount in counts.items():
                counter.labels(label).inc(amount)
        for reason, amount in tally.decisions.items():
            self._decisions[reason].inc(amount)

    def partition(self, topic: str, partition: int) -> PartitionMeters:
        """The gauges of one partition, prepared at its first use."""
        found = self._partition_meters.get((topic, partition))
        if found is None:
            found = self._partition_meters[topic, partition] = PartitionMeters(self._by_partition, topic, partition)
        return found

    def forget(self, topic: str, partition: int) -> None:
        """The partition is another member's now: its gauges go."""
        found = self._partition_meters.pop((topic, partition), None)
        if found is not None:
            found.remove()

    def transaction(self, seconds: float) -> None:
        """Count one transaction that was committed, and its duration."""
        self._transactions.observe(seconds)

    def latency(self, seconds: float) -> None:
        """Count one decision's way from the record that released it to its commit."""
        self._latency.observe(max(0.0, seconds))

    def rebuilt(self, seconds: float) -> None:
        """Count one rebuild and its duration."""
        self._rebuild.observe(seconds)

    def assigned(self, partitions: int) -> None:
        """Set the number of partitions owned."""
        self._partitions.set(partitions)

    def count(self, metric: Metric, *labels: str) -> None:
        """Count one of the rare happenings: never called for each record."""
        counter = self._counters[metric.name]
        (counter.labels(*labels) if labels else counter).inc()

    def toolset(self, sha256: str, tools: int) -> None:
        """Name the toolset in force."""
        info = self._gauges[of.TOOLSET.name]
        info.clear()
        info.labels(sha256).set(1)
        self._gauges[of.TOOLS.name].set(tools)

    def stale(self, *, now: bool) -> None:
        """Say whether the schemas folder holds what cannot be used."""
        self._gauges[of.TOOLSET_STALE.name].set(now)

    def in_band(self, hits: int, misses: int) -> None:
        """Bring the counts of in-band look-ups up to these totals."""
        for result, total in (("hit", hits), ("miss", misses)):
            self._counters[of.IN_BAND.name].labels(result).inc(total - self._looked_up[result])
            self._looked_up[result] = total

    def exposition(self) -> bytes:
        """Everything, in the text format that Prometheus reads."""
        return generate_latest(cast("CollectorRegistry", _WithoutBirthdays(self.registry)))


class _WithoutBirthdays:
    """A registry less the `_created` series, which double its size and tell what a restart tells already."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def collect(self) -> Iterator[prometheus_client.Metric]:
        """All families, without them."""
        for family in self._registry.collect():
            family.samples = [sample for sample in family.samples if not sample.name.endswith("_created")]
            yield family


def _make(metric: Metric, registry: CollectorRegistry) -> Counter | Gauge | Histogram:
    if metric.kind is Kind.COUNTER:
        return Counter(metric.name, metric.help, metric.labels, registry=registry)
    if metric.kind is Kind.GAUGE:
        return Gauge(metric.name, metric.help, metric.labels, registry=registry)
    return Histogram(metric.name, metric.help, metric.labels, registry=registry, buckets=metric.buckets)
