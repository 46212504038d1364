"""What a simulation sees of the members: every idle move and change of settings behind each commit, and what they log.

Owns observation only: a partition that is watched decides as any other.
"""

from collections import Counter
from typing import Any

from processor.core.limits import Bounds
from processor.core.offsets import Commit
from processor.core.pipeline import Partition
from processor.core.ports import Judge

Moves = tuple[tuple[int, int, Bounds | None], ...]
"""Offset, time in ms, and the settings in force from there on; None: an idle move."""


class Watched(Partition):
    """A partition that remembers all idle moves and changes of settings that ever led to its state, as no metadata can."""

    def __init__(self, topic: str, number: int, bounds: Bounds, judge: Judge, known: dict[tuple[int, Commit], Moves]) -> None:
        super().__init__(topic, number, bounds, judge)
        self._known = known
        self._all_moves: Moves = ()

    def resume(self, commit: Commit | None, offset: int) -> None:
        """Begin, with what is known of the commit."""
        self._all_moves = self._known.get((self.number, commit), ()) if commit is not None else ()
        super().resume(commit, offset)  # other settings may come into force at once

    def idle(self, wall_ms: int, now_ms: int) -> bool:
        """Move, and remember it."""
        position = self.position
        moved = super().idle(wall_ms, now_ms)
        if moved:
            self._all_moves = (*self._all_moves, (position, wall_ms, None))
        return moved

    def _switch(self) -> None:
        """Go over to other settings, and remember it."""
        before = self._context.bounds
        super()._switch()
        if self._context.bounds is not before:
            self._all_moves = (*self._all_moves, (self.position, self._context.watermark, self._configured))

    def commit_point(self) -> Commit:
        """Note what is behind the commit."""
        point = super().commit_point()
        if not self.rebuilding:
            self._known[self.number, point] = self._all_moves
        return point


class Lines:
    """The log of one member: counted, and kept where somebody looks for a cause."""

    def __init__(self, name: str, counts: Counter[str], say: Any) -> None:
        self._name = name
        self._counts = counts
        self._say = say

    def _keep(self, event: str, fields: dict[str, Any]) -> None:
        self._counts[event] += 1
        if self._say is not None:
            self._say(f"{self._name} {event} {fields}")

    def info(self, event: str, **fields: Any) -> None:
        """Keep it."""
        self._keep(event, fields)

    def warning(self, event: str, **fields: Any) -> None:
        """Keep it."""
        self._keep(event, fields)

    def error(self, event: str, **fields: Any) -> None:
        """Keep it."""
        self._keep(event, fields)
