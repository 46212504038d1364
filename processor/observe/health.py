"""Is the processor alive, and is it ready? Plain answers over what the loop reported last.

Owns the two rules. It reads no clock: every call brings the time in ms of a clock that never goes back.
"""

from typing import Any

from msgspec import Struct


class _Progress(Struct):
    """What is known of one partition."""

    rebuilding: bool
    position: int
    backlog: int
    moved_ms: int
    """When the position last moved, or the backlog was last empty."""


class Health:
    """Liveness and readiness of one member.

    Alive: no partition has records waiting and has stood still for `stall_after_ms`. Ready: the group is joined and every
    assigned partition is live; a member with no partitions is ready.
    """

    def __init__(self, stall_after_ms: int) -> None:
        self._stall_after_ms = stall_after_ms
        self._joined = False
        self._stopping = False
        self._partitions: dict[tuple[str, int], _Progress] = {}

    def joined(self) -> None:
        """The group has given its first assignment."""
        self._joined = True

    def stopping(self) -> None:
        """The member leaves: no longer ready, still alive."""
        self._stopping = True

    def assigned(self, partitions: set[tuple[str, int]], now_ms: int) -> None:
        """Set which partitions are owned now; those kept keep their progress."""
        self._joined = True
        self._partitions = {
            name: self._partitions.get(name) or _Progress(rebuilding=True, position=-1, backlog=0, moved_ms=now_ms)
            for name in sorted(partitions)
        }

    def progress(self, topic: str, partition: int, *, position: int, backlog: int, rebuilding: bool, now_ms: int) -> None:
        """Report where a partition stands; partitions that are not owned are ignored."""
        known = self._partitions.get((topic, partition))
        if known is None:
            return
        if position != known.position or backlog <= 0 or rebuilding != known.rebuilding:
            known.moved_ms = now_ms
        known.position = position
        known.backlog = backlog
        known.rebuilding = rebuilding

    def live(self, now_ms: int) -> tuple[bool, dict[str, Any]]:
        """Whether the member is alive, and the partitions that are stalled."""
        stalled = [
            {"topic": topic, "partition": partition, "position": each.position, "backlog": each.backlog, "still_ms": still}
            for (topic, partition), each in self._partitions.items()
            if each.backlog > 0 and (still := now_ms - each.moved_ms) >= self._stall_after_ms
        ]
        return not stalled, {"alive": not stalled, "stalled": stalled}

    def ready(self) -> tuple[bool, dict[str, Any]]:
        """Whether the member is ready, and what is missing."""
        rebuilding = [
            {"topic": topic, "partition": partition} for (topic, partition), each in self._partitions.items() if each.rebuilding
        ]
        ready = self._joined and not self._stopping and not rebuilding
        return ready, {
            "ready": ready,
            "joined": self._joined,
            "stopping": self._stopping,
            "partitions": len(self._partitions),
            "rebuilding": rebuilding,
        }
