"""When something falls due, and what is needed longest ago: two queues over all that a partition knows.

Owns derived data only: everything here can be made anew from the streams. An entry may be late or gone, and is put right when
it comes to the top, so that an event costs no heap operation at all.
"""

import heapq
from collections import deque
from collections.abc import Iterable

from processor.core.limits import Bounds
from processor.core.state import Known, Stream

_NEVER = 1 << 63


class Timetable:
    """Deadlines and first offsets of what is known."""

    def __init__(self, bounds: Bounds) -> None:
        """Start empty, under these settings."""
        self.bounds = bounds
        self._due: list[tuple[int, int, Stream, Known]] = []
        """A heap, by deadline and by when they came."""
        self._first: deque[Known] = deque()
        """In order of the offset from which they hold W: nearly always what came later holds it from a later one."""
        self._earlier: list[tuple[int, int, Known]] = []
        """The others: a heap, likewise."""
        self._count = 0
        self._live = 0
        self.soonest = _NEVER
        """No deadline is before this watermark: all that an event has to look at."""

    def add(self, stream: Stream, known: Known) -> None:
        """Hold something that is known from now on."""
        self.pin(known)
        self._push(stream, known, known.until(self.bounds))

    def pin(self, known: Known) -> None:
        """Hold W for something that has no deadline of its own."""
        self._live += 1
        if not self._first or self._first[-1].held <= known.held:
            self._first.append(known)
        else:
            self._count += 1
            heapq.heappush(self._earlier, (known.held, self._count, known))

    def sooner(self, stream: Stream, known: Known) -> None:
        """Tell that it may fall due sooner than before: it was closed, or its last record is a terminal event now."""
        until = known.until(self.bounds)
        if until < known.due:
            self._push(stream, known, until)

    def drop(self, known: Known) -> None:
        """Forget it."""
        known.gone = True
        self._live -= 1
        if len(self._due) > 2 * self._live + 64:  # streams that were evicted are not due for long
            self._due = [entry for entry in self._due if not entry[-1].gone and entry[0] == entry[-1].due]
            heapq.heapify(self._due)
        # One silent stream must not keep all that came and went after it.
        if len(self._first) + len(self._earlier) > 2 * self._live + 64:
            self._first = deque(known for known in self._first if not known.gone)
            self._earlier = [entry for entry in self._earlier if not entry[-1].gone]
            heapq.heapify(self._earlier)

    def next_due(self) -> int | None:
        """Watermark at which something falls due next; None: nothing is known."""
        due = self._due
        while due:
            deadline, _, stream, known = due[0]
            if known.gone or deadline != known.due:
                heapq.heappop(due)
                continue
            until = known.until(self.bounds)
            if until <= deadline:
                return deadline
            heapq.heappop(due)
            self._push(stream, known, until)
        return None

    def pop_due(self, watermark: int) -> list[tuple[Stream, Known]]:
        """Take out what has fallen due, oldest first offset first."""
        found: list[tuple[Stream, Known]] = []
        while (deadline := self.next_due()) is not None and deadline <= watermark:
            *_, stream, known = heapq.heappop(self._due)
            known.due = 0
            found.append((stream, known))
        self.soonest = self._due[0][0] if self._due else _NEVER
        found.sort(key=lambda entry: entry[1].first)
        return found

    def back(self, stream: Stream, known: Known) -> None:
        """Put back what was taken out and stays known under a later deadline."""
        self._push(stream, known, known.until(self.bounds))

    def oldest(self) -> Known | None:
        """What holds W: the smallest first offset."""
        first, earlier = self._first, self._earlier
        while first and first[0].gone:
            first.popleft()
        while earlier and earlier[0][-1].gone:
            heapq.heappop(earlier)
        if earlier and (not first or earlier[0][0] < first[0].held):
            return earlier[0][-1]
        return first[0] if first else None

    def reset(self, bounds: Bounds, streams: Iterable[Stream]) -> None:
        """Make all deadlines anew under other settings."""
        self.bounds = bounds
        self._due, self.soonest = [], _NEVER
        for stream in streams:
            for known in everything(stream):
                self._push(stream, known, known.until(bounds))

    def _push(self, stream: Stream, known: Known, until: int) -> None:
        self._count += 1
        known.due = until
        self.soonest = min(self.soonest, until)
        heapq.heappush(self._due, (until, self._count, stream, known))


def everything(stream: Stream) -> list[Known]:
    """All that is known under a key, each once."""
    found = {id(known): known for known in stream.closed.values()}
    for known in (stream.open, stream.request):
        if known is not None:
            found[id(known)] = known
    return list(found.values())
