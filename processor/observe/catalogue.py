"""Every metric, declared once: name, kind, labels, unit and meaning.

Owns the names. The declarations feed the registry, the generated page, the alerts and the dashboard. It holds no values (that
is `processor.observe.meters`), and no label ever takes free text.
"""

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """What kind of metric it is."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, kw_only=True)
class Metric:
    """One metric."""

    name: str
    """As exported; counters end in `_total`."""
    kind: Kind
    labels: tuple[str, ...] = ()
    unit: str
    help: str
    """One sentence: what it says."""
    buckets: tuple[float, ...] = ()
    """Upper bounds, for a histogram."""


def _counter(name: str, sentence: str, *labels: str, unit: str = "events") -> Metric:
    return Metric(name=f"callgate_{name}_total", kind=Kind.COUNTER, labels=labels, unit=unit, help=sentence)


def _gauge(name: str, sentence: str, *labels: str, unit: str) -> Metric:
    return Metric(name=f"callgate_{name}", kind=Kind.GAUGE, labels=labels, unit=unit, help=sentence)


PARTITION = ("topic", "partition")
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)

RECORDS = _counter("records", "Records read, dead letters included.", unit="records")
VALUE_BYTES = _counter("value_bytes", "Bytes of the values read.", unit="bytes")
EVENTS = _counter("events", "Streaming events by type; foreign ones as `extension` or `unknown`.", "type")
ITEMS = _counter("items", "Items that are counted and not decided, by type.", "type", unit="items")
DECISIONS = _counter("decisions", "Decisions by outcome and reason.", "decision", "reason", unit="calls")
WOULD_REJECT = _counter(
    "would_reject", "Calls approved in observe mode that enforce would reject, by reason.", "reason", unit="calls"
)
DEAD_LETTERS = _counter("dead_letters", "Records that cannot be read, by cause.", "cause", unit="records")
TOLERATED = _counter("tolerated", "Uses of a tolerance, by its name.", "tolerance", unit="uses")
DISAGREEMENTS = _counter("engine_disagreements", "Calls on which the two validators disagree; rejected.", unit="calls")
LATE = _counter("late_events", "Events for what is closed already; they decide nothing.")
REPEATS = _counter("repeats", "Events and calls delivered again with the same content, and dropped.")
GAPS = _counter("sequence_gaps", "Steps of a sequence number by more than one.", unit="gaps")
UNNUMBERED = _counter("unnumbered_streams", "Streams whose sequence numbers stood still or restarted.", unit="streams")
FOREIGN = _counter("foreign_events", "Lifecycle events that name another response than the open one; ignored.")
NULL_ITEMS = _counter("null_items", "Item events whose item is null; ignored.")
UNKNOWN_TOOL_CHOICE = _counter(
    "unknown_tool_choice", "Texts of `tool_choice` that are unknown and so forbid nothing.", unit="uses"
)
LONG_CALL_IDS = _counter("long_call_ids", "Calls whose `call_id` is longer than the API takes back.", unit="calls")
FAILED_AFTER_RELEASE = _counter(
    "failed_after_release", "Calls released at `done` whose response then ended badly.", unit="calls"
)
MISLABELLED = _counter("mislabelled_frames", "Frames whose `event:` contradicts the JSON type.", unit="frames")

LAG_TO_POSITION = _gauge(
    "lag_to_position",
    "Records not decided yet: the end of the partition less P. Scale and alert on this. Absent while not known.",
    *PARTITION,
    unit="records",
)
LAG_TO_COMMIT = _gauge(
    "lag_to_commit",
    "The end of the partition less the committed offset W, which open responses hold back.",
    *PARTITION,
    unit="records",
)
HELD = _gauge("held", "P less W: records that a successor reads again to rebuild.", *PARTITION, unit="records")
LIVE = _gauge(
    "partition_live", "1 while the partition is decided, 0 while it is taken over, rebuilt or stopped.", *PARTITION, unit="flag"
)
SETTINGS_PENDING = _gauge("settings_pending", "1 while new settings wait for room in the metadata.", *PARTITION, unit="flag")
STREAMS = _gauge("streams", "Streams that are open or known.", *PARTITION, unit="streams")
OPEN_RESPONSES = _gauge("open_responses", "Responses that are open.", *PARTITION, unit="responses")
KNOWN_RESPONSES = _gauge("known_responses", "Responses that are closed and still known.", *PARTITION, unit="responses")
OPEN_CALLS = _gauge("open_calls", "Calls that are not decided.", *PARTITION, unit="calls")
BUFFERED = _gauge("buffered_bytes", "Bytes held for responses that are open.", *PARTITION, unit="bytes")
PARTITIONS = _gauge("assigned_partitions", "Partitions that this member owns.", unit="partitions")
TOOLS = _gauge("tools", "Tools in the registry.", unit="tools")
BUILD = _gauge("build_info", "1, with the version of callgate.", "version", unit="flag")
TOOLSET = _gauge("toolset_info", "1, with the SHA-256 of the toolset in force.", "toolset", unit="flag")

TOOLSET_STALE = _gauge(
    "toolset_stale", "1 while the schemas folder holds what cannot be used, and an older toolset is in force.", unit="flag"
)

DECISION_LATENCY = Metric(
    name="callgate_decision_latency_seconds",
    kind=Kind.HISTOGRAM,
    unit="seconds",
    help="From the timestamp of the record that released a decision to the decision; its transaction comes after.",
    buckets=SECONDS,
)
TRANSACTION_DURATION = Metric(
    name="callgate_transaction_duration_seconds",
    kind=Kind.HISTOGRAM,
    unit="seconds",
    help="From the begin of a transaction to its commit; those that fail are partition failures.",
    buckets=SECONDS,
)
REBUILD_DURATION = Metric(
    name="callgate_rebuild_duration_seconds",
    kind=Kind.HISTOGRAM,
    unit="seconds",
    help="From the takeover of a partition to its first live record.",
    buckets=SECONDS,
)
FAILURES = _counter(
    "partition_failures", "Partitions that lost their transaction or their owner, by kind of error.", "kind", unit="times"
)
RELOADS = _counter(
    "reloads", "Changes of the schemas folder, by what became of them: `done` or `refused`.", "outcome", unit="times"
)
IN_BAND = _counter(
    "in_band_lookups",
    "Lists of tools that came in-band, by whether they were known already: `hit` or `miss`.",
    "result",
    unit="lists",
)
WORKERS_UP = _gauge(
    "worker_up",
    "With `workers`: 1 for each worker process that answered this scrape, 0 for one that did not.",
    "worker",
    unit="flag",
)
WORKER_RESTARTS = _counter(
    "worker_restarts", "With `workers`: how often the process in this place was replaced.", "worker", unit="times"
)
HAPPENINGS = _counter("happenings", "Lines of the log, by event name.", "happening", unit="lines")

CATALOGUE: tuple[Metric, ...] = tuple(value for value in list(globals().values()) if isinstance(value, Metric))
"""All of them, in the order of declaration."""
