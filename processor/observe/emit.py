"""Named happenings: each derives its log line and its count from the same fields.

Owns the list of what may be logged by the processor and at which level. Levels say what an operator must do: `error` a person
must act, `warning` one should look, `info` what happened. Nothing per record, no argument values, no free text from records.
"""

from dataclasses import dataclass
from typing import Any

from structlog.typing import FilteringBoundLogger

from processor.observe import catalogue as of
from processor.observe.catalogue import Metric
from processor.observe.logs import LEVELS
from processor.observe.meters import Meters


@dataclass(frozen=True, kw_only=True)
class Happening:
    """One thing that can happen to a processor."""

    name: str
    """Event name of its log line."""
    level: str
    """debug, info, warning or error."""
    meaning: str
    """One sentence for the operator."""
    metric: Metric | None = None
    """Counted there as well."""
    labels: tuple[str, ...] = ()
    """Labels of that metric, fixed for this happening."""


def _info(name: str, meaning: str, metric: Metric | None = None, *labels: str) -> Happening:
    return Happening(name=name, level="info", meaning=meaning, metric=metric, labels=labels)


def _warning(name: str, meaning: str, metric: Metric | None = None, *labels: str) -> Happening:
    return Happening(name=name, level="warning", meaning=meaning, metric=metric, labels=labels)


def _error(name: str, meaning: str, metric: Metric | None = None, *labels: str) -> Happening:
    return Happening(name=name, level="error", meaning=meaning, metric=metric, labels=labels)


STARTED = _info("started", "The processor runs, with these settings.")
LISTENING = _info("http_listening", "Metrics and health are served at this address.")
STOPPING = _info("stopping", "A signal came: the transaction in hand is finished, then the group is left.")
STOPPED = _info("stopped", "Everything is ended and closed.")
ENDED_AT_ONCE = _warning("ended_at_once", "A second signal came: the process ends without a commit; nothing is lost.")
GRACE_EXCEEDED = _warning(
    "grace_exceeded", "The stop took longer than `shutdown_grace`; the transaction was left to the broker."
)
ASSIGNED = _info("assigned", "Partitions were assigned to this member.", of.REBALANCES)
REVOKED = _info("revoked", "Partitions were taken from this member.")
REBUILDING = _info("rebuilding", "A partition's state is rebuilt from W, silently, up to P.")
LIVE = _info("live", "A partition's state is complete; decisions are published from here on.")
KEPT = _info("state_kept", "A partition came back and its state equals its last commit; no rebuild was needed.")
FRESH_START = _warning(
    "fresh_start", "A partition begins without usable metadata: what was open before is not known.", of.FRESH_STARTS
)
ABORTED = _warning("aborted", "A transaction was aborted; the partition is initialised, read and rebuilt again.", of.RETRIES)
FENCED = _warning("fenced", "Another member took the partition over.", of.FENCED)
SETTINGS_PENDING = _warning("settings_pending", "New settings wait: the metadata has no room for another switch.")
STALE_OFFSETS = _warning(
    "stale_offsets",
    "The broker cannot be asked for stable offsets only; one before the fix of KAFKA-17507 may answer old ones.",
)
OUT_OF_RETENTION = _warning("out_of_retention", "The committed offset is gone; the start moved as `offset_reset` says.")
DELIVERY_WEAK = _warning("delivery_weak", "Delivery is at least once: consumers must drop repeats by the decision's id.")
TOOLSET_LOADED = _info("toolset_loaded", "This toolset is in force.", of.RELOADS, "loaded")
TOOLSET_REFUSED = _error("toolset_refused", "The registry has a fault; the toolset in force stays.", of.RELOADS, "refused")
ONE_ENGINE_ONLY = _info("one_engine_only", "These schemas use keywords that the second validator is not proven to honour.")
FAILED = _error("failed", "The processor cannot go on; its exit code says why.")

HAPPENINGS: tuple[Happening, ...] = tuple(value for value in list(globals().values()) if isinstance(value, Happening))
"""All of them, in the order of declaration."""


class Emit:
    """Writes happenings to the log and counts them."""

    def __init__(self, log: FilteringBoundLogger, meters: Meters) -> None:
        self._log = log
        self._meters = meters

    def __call__(self, happening: Happening, **fields: Any) -> None:
        """Log one line with `fields`, and count it where it is counted."""
        self._log.log(LEVELS[happening.level], happening.name, **fields)
        if happening.metric is not None:
            self._meters.count(happening.metric, *happening.labels)
