"""Metrics: every one declared once, tallies flushed whole, partitions that leave take their gauges along."""

from collections import Counter

import msgspec
import pytest

from processor.core.reasons import Cause, Reason
from processor.core.signals import Tally
from processor.observe import catalogue, meters
from processor.observe.catalogue import CATALOGUE, Kind
from processor.observe.meters import Meters


def value(meter: Meters, name: str, **labels: str) -> float | None:
    """One sample."""
    return meter.registry.get_sample_value(name, labels)


def test_names_are_unique_and_prometheus_like() -> None:
    """Every metric is declared once, under callgate's name, with a sentence."""
    names = [metric.name for metric in CATALOGUE]
    assert len(names) == len(set(names))
    assert all(name.startswith("callgate_") for name in names)
    assert all(metric.help.endswith(".") and metric.unit for metric in CATALOGUE)
    assert all(metric.name.endswith("_total") == (metric.kind is Kind.COUNTER) for metric in CATALOGUE)


def test_every_field_of_a_tally_has_a_metric() -> None:
    """No count of the core is lost on its way out."""
    fields = {field.name for field in msgspec.structs.fields(Tally)}
    assert fields == {*meters.PLAIN, *meters.LABELLED, "decisions"}


def test_flush_adds_up() -> None:
    """Two tallies add up, field by field and label by label."""
    meter = Meters("1")
    for _ in range(2):
        meter.flush(
            Tally(
                records=3,
                late=1,
                events=Counter({"response.created": 2}),
                decisions=Counter({Reason.OK: 2, Reason.CONFLICT: 1}),
                dead_letters=Counter({Cause.NOT_JSON: 1}),
            )
        )
    assert value(meter, "callgate_records_total") == 6
    assert value(meter, "callgate_late_events_total") == 2
    assert value(meter, "callgate_events_total", type="response.created") == 4
    assert value(meter, "callgate_decisions_total", decision="approved", reason="ok") == 4
    assert value(meter, "callgate_decisions_total", decision="rejected", reason="conflict") == 2
    assert value(meter, "callgate_dead_letters_total", cause="not_json") == 2


def test_every_reason_and_cause_is_there_from_the_start() -> None:
    """Alerts need a zero before the first happening."""
    meter = Meters("1")
    outcomes = {reason: "approved" if reason is Reason.OK else "rejected" for reason in Reason}
    assert all(value(meter, "callgate_decisions_total", decision=outcomes[reason], reason=reason) == 0 for reason in Reason)
    assert all(value(meter, "callgate_dead_letters_total", cause=cause) == 0 for cause in Cause)


def test_two_lags() -> None:
    """Section 7: the lag to W and the lag to P are two metrics."""
    meter = Meters("1")
    partition = meter.partition("t", 3)
    partition.lag(to_position=10, to_commit=60, held=50, state="live")
    labels = {"topic": "t", "partition": "3"}
    assert value(meter, catalogue.LAG_TO_POSITION.name, **labels) == 10
    assert value(meter, catalogue.LAG_TO_COMMIT.name, **labels) == 60
    assert value(meter, catalogue.HELD.name, **labels) == 50
    assert value(meter, catalogue.LIVE.name, **labels) == 1
    meter.forget("t", 3)
    assert value(meter, catalogue.HELD.name, **labels) is None


def test_state_gauges() -> None:
    """What a partition holds is exported under its own labels."""
    meter = Meters("1")
    meter.partition("t", 0).state({"streams": 5, "buffered_bytes": 7}, settings_pending=True)
    labels = {"topic": "t", "partition": "0"}
    assert value(meter, catalogue.STREAMS.name, **labels) == 5
    assert value(meter, catalogue.BUFFERED.name, **labels) == 7
    assert value(meter, catalogue.SETTINGS_PENDING.name, **labels) == 1


def test_transactions_and_toolset() -> None:
    """Transactions are timed; only the toolset in force is named."""
    meter = Meters("1")
    meter.transaction(0.2)
    meter.toolset("aa", 3)
    meter.toolset("bb", 4)
    assert value(meter, "callgate_transaction_duration_seconds_count") == 1
    assert value(meter, "callgate_transaction_duration_seconds_sum") == pytest.approx(0.2)
    assert value(meter, "callgate_toolset_info", toolset="bb") == 1
    assert value(meter, "callgate_toolset_info", toolset="aa") is None
    assert value(meter, "callgate_tools") == 4


def test_exposition_has_every_family_and_no_birthdays() -> None:
    """The page names every metric, and leaves the `_created` series out."""
    text = Meters("1").exposition().decode()
    assert all(f"# TYPE {metric.name} {metric.kind}" in text for metric in CATALOGUE)
    assert 'callgate_build_info{version="1"} 1.0' in text
    assert "_created " not in text
    assert "_created{" not in text


def test_two_apps_in_one_process() -> None:
    """There is no process-wide registry: two apps do not meet."""
    one, two = Meters("1"), Meters("1")
    one.flush(Tally(records=1))
    assert value(two, "callgate_records_total") == 0


def test_in_band_look_ups_are_totals() -> None:
    """Issue 5: the hit rate of the in-band cache is a metric; a scrape brings its counters up to the totals."""
    meters = Meters("1.2.3")
    for hits, misses in ((0, 0), (5, 2), (5, 2), (9, 3)):
        meters.in_band(hits, misses)
    lines = meters.exposition().decode().splitlines()
    assert 'callgate_in_band_lookups_total{result="hit"} 9.0' in lines
    assert 'callgate_in_band_lookups_total{result="miss"} 3.0' in lines
