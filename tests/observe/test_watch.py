"""What core and runner tell their observers arrives in the metrics: whole, once, and only what is live."""

import msgspec

from processor import app
from processor.adapters.archive import Archive
from processor.config import load
from processor.core.pipeline import Partition
from processor.core.signals import Tally
from processor.demo.driver import STREAMS, TOOLS
from processor.observe.meters import Meters
from processor.observe.watch import TimedJudge, Watch, empty

SETTINGS = load(sets=[f"schemas={TOOLS}"])


def watched(meters: Meters) -> tuple[Watch, Partition]:
    """A partition as `run` puts it together."""
    judge = TimedJudge(app.build_core(SETTINGS).judge, meters)
    partition = Partition("t", 0, SETTINGS.bounds(), judge)
    partition.resume(None, 0)
    return Watch(meters), partition


def sample(meters: Meters, name: str, **labels: str) -> float | None:
    """One value."""
    return meters.registry.get_sample_value(name, labels)


def test_counts_are_whole_however_they_are_flushed() -> None:
    """Flushed after each record or once at the end: the sums are the same, and nothing is counted twice."""
    records = list(Archive("t").read(str(STREAMS / "parallel-calls.jsonl")))
    sums = []
    for size in (1, 5, len(records)):
        meters = Meters("1")
        watch, partition = watched(meters)
        for start in range(0, len(records), size):
            partition.feed(records[start : start + size], records[-1].timestamp + 2_000)
            watch.on_batch(partition)
        names = ("callgate_records_total", "callgate_value_bytes_total", "callgate_decision_latency_seconds_count")
        sums.append(
            [
                *(sample(meters, name) for name in names),
                sample(meters, "callgate_decisions_total", decision="approved", reason="ok"),
                sample(meters, "callgate_events_total", type="response.output_item.done"),
            ]
        )
    assert sums[0] == sums[1] == sums[2]
    assert sums[0] == [len(records), sum(len(each.value or b"") for each in records), 2, 2, 3]


def test_latency_is_from_the_releasing_record() -> None:
    """The latency of a decision is the time since the timestamp of the record that released it."""
    meters = Meters("1")
    _, partition = watched(meters)
    records = list(Archive("t").read(str(STREAMS / "parallel-calls.jsonl")))
    partition.feed(records, records[-1].timestamp + 3_000)
    assert sample(meters, "callgate_decision_latency_seconds_sum") == 6.0


def test_gauges_show_what_is_open() -> None:
    """At a scrape the gauges show what the state holds; those of partitions that are gone are let go."""
    meters = Meters("1")
    watch, partition = watched(meters)
    records = list(Archive("t").read(str(STREAMS / "parallel-calls.jsonl")))
    partition.feed(records[:-1], 0)
    watch.on_batch(partition)
    watch.set_gauges({0})
    labels = {"topic": "t", "partition": "0"}
    assert sample(meters, "callgate_open_responses", **labels) == 1
    assert (sample(meters, "callgate_buffered_bytes", **labels) or 0) > 0
    partition.feed(records[-1:], 0)
    watch.set_gauges({0})
    assert sample(meters, "callgate_open_responses", **labels) == 0
    assert sample(meters, "callgate_known_responses", **labels) == 1
    watch.set_gauges(set())
    assert watch.partitions == {}


def test_tally_is_emptied_in_place() -> None:
    """The core holds on to its tally: it is set back, not exchanged, and every field of it."""
    full = Tally()
    for field in msgspec.structs.fields(Tally):
        if isinstance(getattr(full, field.name), int):
            setattr(full, field.name, 1)
        else:
            getattr(full, field.name)["x"] += 1
    empty(full)
    assert full == Tally()


def test_hooks_count() -> None:
    """Commits, failures and rebuilds are counted."""
    meters = Meters("1")
    watch = Watch(meters)
    watch.on_commit(0, 5, 0.5)
    watch.on_failure(0, "Fenced")
    watch.on_rebuilt(0, 2.0)
    assert sample(meters, "callgate_transaction_duration_seconds_sum") == 0.5
    assert sample(meters, "callgate_partition_failures_total", kind="Fenced") == 1
    assert sample(meters, "callgate_rebuild_duration_seconds_sum") == 2.0
