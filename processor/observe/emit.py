"""Named happenings: the log's event names, each with its level, its meaning and its count.

Owns the list of what the processor may log. Levels say what an operator must do: `error` a person must act, `warning` one
should look, `info` what happened. Nothing per record, no argument values, no free text from records. A test holds the list
against the calls in the code.
"""

from dataclasses import dataclass
from typing import Any

from structlog.typing import FilteringBoundLogger

from processor.observe import catalogue as of
from processor.observe.meters import Meters


@dataclass(frozen=True)
class Happening:
    """One thing that can happen to a processor."""

    name: str
    """Event name of its log line, and label of its count."""
    level: str
    """info, warning or error."""
    meaning: str
    """One sentence for the operator."""


HAPPENINGS = (
    Happening("started", "info", "The processor runs, with these settings."),
    Happening("http_listening", "info", "Metrics and health are served at this address."),
    Happening("toolset_loaded", "info", "This toolset is in force."),
    Happening("toolset_refused", "error", "The schemas folder cannot be used as it is; the toolset in force stays."),
    Happening("no_tools", "warning", "The schemas folder has no tools: every call will be `unknown_tool`."),
    Happening("files_skipped", "warning", "Files of the schemas folder are not read, for the end of their names."),
    Happening("one_engine_only", "info", "These schemas use keywords that the second validator is not proven to honour."),
    Happening("delivery_weak", "warning", "Delivery is at least once: consumers must drop repeats by the decision's id."),
    Happening("topic_unsafe", "warning", "A topic works, but not as safely as it could."),
    Happening("first_start", "info", "The group had no offset; the starting position was committed before the first read."),
    Happening("fresh_start", "warning", "A partition begins without usable metadata: what was open before is not known."),
    Happening("live", "info", "A partition's state is complete; decisions are published from here on."),
    Happening("state_kept", "info", "A partition came back and its state equals its last commit: no rebuild was needed."),
    Happening("joining_again", "warning", "The connection to the group was lost and is made anew."),
    Happening("fetch_failed", "warning", "A fetch failed and is tried again."),
    Happening("aborted", "warning", "A transaction or a read failed; the partition is taken over and rebuilt again."),
    Happening("fenced", "warning", "The partition may have another owner; it is taken over anew if it is still ours."),
    Happening("partition_stopped", "error", "A partition cannot go on; the others do."),
    Happening("out_of_retention", "warning", "The committed offset is gone; the start moved as `offset_reset` says."),
    Happening("stale_offsets", "warning", "The broker may answer an old offset at a takeover (KAFKA-17507)."),
    Happening("worker_started", "info", "A worker process runs, in this place."),
    Happening("worker_ended", "warning", "A worker process ended by itself; it is replaced after a pause."),
    Happening("worker_silent", "error", "A worker process did not answer, or was not alive; it is killed and replaced."),
    Happening("stopping", "info", "A signal came: the transaction in hand is finished, then the group is left."),
    Happening("ended_at_once", "warning", "A second signal came: the process ends without a commit; nothing is lost."),
    Happening("stopped", "info", "Everything is ended and closed."),
    Happening("failed", "error", "The processor cannot go on; its exit code says why."),
)
"""All of them."""

BY_NAME = {each.name: each for each in HAPPENINGS}


class Emit:
    """A log that counts what it writes; fits `processor.ports.Log`."""

    def __init__(self, log: FilteringBoundLogger, meters: Meters) -> None:
        self._log = log
        self._meters = meters

    def info(self, event: str, **fields: Any) -> None:
        """Say what happened, for the record."""
        self._log.info(event, **fields)
        self._count(event)

    def warning(self, event: str, **fields: Any) -> None:
        """Say what was cured by itself, but should not be frequent."""
        self._log.warning(event, **fields)
        self._count(event)

    def error(self, event: str, **fields: Any) -> None:
        """Say what a person must act on."""
        self._log.error(event, **fields)
        self._count(event)

    def _count(self, event: str) -> None:
        self._meters.count(of.HAPPENINGS, event if event in BY_NAME else "unlisted")
