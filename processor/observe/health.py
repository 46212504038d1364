"""Is the processor alive, and is it ready? Plain answers over the status that the runner gives.

Owns the two rules, and no state. Alive: no partition that is read has records waiting and has stood still for too long, and
the loop that fetches comes round; a takeover waits for the broker, and no restart helps that. Ready: the group is joined and
every assigned partition is live; a member with no partitions is ready. A partition that was stopped by a fault makes the
process unready, not dead: a restart would take the others down with it.
"""

from collections.abc import Mapping
from typing import Any, TypedDict

from processor.observe.meters import Meters


class PartitionStatus(TypedDict):
    """Where one partition stands, as `Runner.status` says."""

    state: str
    """`takeover`, `rebuilding`, `live` or `stopped`."""
    why: str
    position: int | None
    committed_w: int | None
    committed_p: int | None
    end: int | None
    lag_w: int | None
    """End less W; None: not known (yet)."""
    lag_p: int | None
    """End less P; None: not known (yet)."""
    backlog: int
    """Records fetched and not read."""
    progress_age_s: float


class Status(TypedDict):
    """Where the runner stands."""

    joined: bool
    fetch_age_s: float
    ready: bool
    partitions: Mapping[int, PartitionStatus]


READ = {"rebuilding", "live"}
"""States in which records are read."""


def live(status: Status, stall_after_s: float) -> tuple[bool, dict[str, Any]]:
    """Whether the member is alive, and the partitions that are stalled."""
    stalled = [
        {"partition": number, "position": one["position"], "lag": one["lag_p"], "still_s": round(one["progress_age_s"], 1)}
        for number, one in status["partitions"].items()
        if one["state"] in READ and (one["backlog"] or one["lag_p"]) and one["progress_age_s"] >= stall_after_s
    ]
    fetching = not status["joined"] or status["fetch_age_s"] < stall_after_s
    return fetching and not stalled, {"alive": fetching and not stalled, "fetching": fetching, "stalled": stalled}


def ready(status: Status, *, stopping: bool = False, schemas: Mapping[str, Any] | None = None) -> tuple[bool, dict[str, Any]]:
    """Whether the member is ready, and what is missing.

    `schemas` only says where the toolset stands: one that could not be replaced still decides, and is no reason to be unready.
    """
    waiting = [
        {"partition": number, "state": one["state"], **({"why": one["why"]} if one["why"] else {})}
        for number, one in status["partitions"].items()
        if one["state"] != "live"
    ]
    good = status["joined"] and not stopping and not waiting
    return good, {
        "ready": good,
        "joined": status["joined"],
        "stopping": stopping,
        "partitions": len(status["partitions"]),
        "waiting": waiting,
        **({} if schemas is None else {"schemas": dict(schemas)}),
    }


class Gauges:
    """Copies the status into the gauges, at each scrape."""

    def __init__(self, meters: Meters, topic: str) -> None:
        self._meters = meters
        self._topic = topic
        self._owned: set[int] = set()

    def set(self, status: Status) -> None:
        """Set both lags and the state of every partition; those of partitions that are gone, or not known, are removed."""
        partitions = status["partitions"]
        for number in self._owned - set(partitions):
            self._meters.forget(self._topic, number)
        self._owned = set(partitions)
        for number, one in partitions.items():
            to_position, to_commit = one["lag_p"], one["lag_w"]
            held = None if to_position is None or to_commit is None else max(0, to_commit - to_position)
            self._meters.partition(self._topic, number).lag(
                to_position=to_position, to_commit=to_commit, held=held, state=one["state"]
            )
        self._meters.assigned(len(partitions))
