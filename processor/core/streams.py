"""What is open and what is known under each key: the book that W is read from.

Owns how something becomes known, stays known and is forgotten (design section 4, rules 13, 14 and 20). It reads no event:
`responses` does, and calls here.
"""

from bisect import bisect_left
from itertools import islice
from operator import attrgetter, itemgetter

from processor.core import echo
from processor.core.limits import MAX_HEADS, Bounds
from processor.core.machine import UNFINISHED, Input
from processor.core.nothing import NOTHING
from processor.core.state import NO_RECORD, Context, Known, Pending, Response, Stream
from processor.core.terminal import end_unlisted
from processor.core.text import key_text
from processor.core.timetable import Timetable, everything

_at = attrgetter("at")
_offset = itemgetter(0)
_first = attrgetter("first", "base")


class Streams:
    """All streams of one partition."""

    def __init__(self, bounds: Bounds) -> None:
        """Start with nothing known."""
        self.by_key: dict[bytes | None, Stream] = {}
        self.headless: list[tuple[int, Stream, int]] = []
        """Where responses began without `response.created`, in order, with the stream and its epoch then."""
        self.timetable = Timetable(bounds)
        self._silent: list[Stream] = []
        """Keys in the order of their last records, the one silent longest at the end: as it was after record `_sorted_at`."""
        self._sorted_at = NO_RECORD
        self._silent_since = 0
        """No key had its last record before this watermark."""
        self.crowded = False
        """Other settings came into force: there may be more keys than they allow."""
        self._eldest: tuple[Stream, Known] | None = None
        """What was known first of all that is known under the key that was last asked for."""

    def advance(self, ctx: Context) -> None:
        """Expire what fell silent and forget what is due, at `ctx.watermark` (rule 20)."""
        bounds, watermark = ctx.bounds, ctx.watermark
        for stream, known in self.timetable.pop_due(watermark):
            if known.open is not None:
                end_unlisted(known.open, Input.FELL_SILENT, ctx)
                self.close(stream, known, terminal=False)
                if known.until(bounds) > watermark:
                    self.timetable.back(stream, known)
                    continue
            self.forget(stream, known)

    def move(self, watermark: int, ctx: Context) -> None:
        """Move the watermark without a record: an idle move, made now or before a crash, or the end of an archive."""
        ctx.base = ctx.watermark
        ctx.watermark = max(ctx.watermark, watermark)
        ctx.offset, ctx.record = NO_RECORD, None
        self.advance(ctx)

    def adopt(self, bounds: Bounds) -> None:
        """Go on under other settings: how long something stays known follows the settings in force."""
        self.timetable.reset(bounds, self.by_key.values())
        self.crowded = True

    def touch(self, key: bytes, ctx: Context) -> Stream:
        """The stream of a record; past `max_streams` the one silent longest goes as a whole, its open calls as `limit`."""
        stream = self.by_key.get(key)
        if stream is None:
            stream = self.by_key[key] = Stream(key, ctx.watermark, ctx.offset)
            self._make_room(ctx)
        else:
            stream.last, stream.at = ctx.watermark, ctx.offset
            if self.crowded:
                self._make_room(ctx)
        return stream

    def _make_room(self, ctx: Context) -> None:
        """Keys count for stream_timeout + closed_memory after a record; asked when one is new or settings change."""
        self.crowded = False
        latest = ctx.watermark - ctx.bounds.stream_timeout_ms - ctx.bounds.closed_memory_ms
        while len(self.by_key) > ctx.bounds.max_streams or self._silent_since <= latest:
            oldest = self._silent_longest(ctx)
            self._silent_since = oldest.last
            counts = oldest.last > latest
            if counts and len(self.by_key) <= ctx.bounds.max_streams:
                break
            del self.by_key[self._silent.pop().key]
            if counts:
                if oldest.open is not None and oldest.open.open is not None:
                    end_unlisted(oldest.open.open, Input.BOUND_PASSED, ctx)
                for known in everything(oldest):
                    self.forget(oldest, known)

    def _silent_longest(self, ctx: Context) -> Stream:
        """The key with the earliest last record, which is the end of `_silent` then.

        Whoever had a record since the keys were sorted is younger than all that had none. They are sorted again when none of
        these is left, after as many records or evictions as there were keys: a record only notes its offset, and touches no
        neighbour in memory.
        """
        silent = self._silent
        while silent and silent[-1].at > self._sorted_at:
            silent.pop()
        if not silent:
            silent += sorted(self.by_key.values(), key=_at)[::-1]
            self._sorted_at = ctx.offset
        return silent[-1]

    def open(self, stream: Stream, ident: str | None, ctx: Context, *, headless: bool = False) -> Known:
        """Begin a response at the record at hand, or at the request that waited for it; None: nothing named it yet.

        `headless`: there is no `response.created`.
        """
        key = key_text(stream.key)
        # Nearly always the key is the id of the response: one text for both.
        response = Response(ident, ident if ident == key else key, ctx.offset)
        first, base = held, held_base = ctx.offset, ctx.base
        used: Known | None = None
        if "response_id_rotates" in ctx.bounds.tolerate:  # whether an id is its own depends on those that are known
            held, held_base = self._depends(stream, ctx)
        if stream.request is not None and stream.request.pending is not None:
            first, base = stream.request.first, stream.request.base
            held, held_base = min((held, held_base), (stream.request.held, stream.request.held_base))
            echo.inherit(response, stream.request.pending)
            if not headless:  # in a rebuild it may be left out, so that it must not use the request up
                used, stream.request = stream.request, None
        if ident is None:
            stream.nameless += 1
        known = Known(ident or -stream.nameless, first, base, ctx.watermark, held, held_base, open=response)
        if headless:
            self.headless.append((ctx.offset, stream, stream.epoch))
        stream.open = known
        self._add(stream, known)
        if used is not None:
            self._drop(stream, used)  # only now: something was known under the key all the time
        return known

    def wait(self, stream: Stream, pending: Pending, ctx: Context) -> None:
        """Keep a request for the next response under its key; a newer one takes its place (rule 22).

        Which response that is depends on what is open or known now: W stays before all of it, or a rebuild would give the
        request to the rest of a response that it was never meant for.
        """
        before, (held, held_base) = stream.request, self._depends(stream, ctx)
        stream.request = Known("request", ctx.offset, ctx.base, ctx.watermark, held, held_base, pending=pending)
        self._add(stream, stream.request)
        if before is not None:
            self._drop(stream, before)

    def _depends(self, stream: Stream, ctx: Context) -> tuple[int, int]:
        """The first offset, and the watermark before it, of all that is open or known under a key, or of this record."""
        if self._eldest is None or self._eldest[0] is not stream or self._eldest[1].gone:
            # Kept while it is known, since nothing comes before it any more: one record may ask thousands of times.
            alive = everything(stream)
            if not alive:
                return ctx.offset, ctx.base
            self._eldest = stream, min(alive, key=_first)
        return _first(self._eldest[1])

    def _add(self, stream: Stream, known: Known) -> None:
        stream.count += 1
        stream.live += 1
        known.serial = stream.count
        self.timetable.add(stream, known)

    def _drop(self, stream: Stream, known: Known) -> None:
        self.timetable.drop(known)
        stream.live -= 1
        stream.epoch += stream.live == 0
        if stream.floor is not None and known.serial <= stream.floor.serial:
            stream.held -= 1
            if stream.held == 0:
                self.timetable.drop(stream.floor)
                stream.floor = None

    def hold(self, stream: Stream, known: Known) -> None:
        """Hold W where this one needs it, as long as anything that is known under its key now stays known.

        For a record whose meaning for the others hung on this one's being known: a rebuild that begins after it would give
        the record to one of them, or begin a response with it.
        """
        floor = stream.floor
        if floor is None or known.held < floor.held:
            if floor is not None:
                self.timetable.drop(floor)
            floor = stream.floor = Known("floor", known.first, known.base, 0, known.held, known.held_base)
            self.timetable.pin(floor)
        floor.serial, stream.held = stream.count, stream.live

    def heads(self, offset: int, position: int) -> tuple[tuple[int, ...], int]:
        """Where responses began without `response.created`, and from where on any more did (see `offsets`).

        From an offset on, and under keys under which something was known ever since.
        """
        found: list[tuple[int, Stream, int]] = []
        walked = first = bisect_left(self.headless, offset, key=_offset)
        for entry in islice(self.headless, first, None):
            if len(found) > MAX_HEADS:
                break
            walked += 1
            if entry[1].epoch == entry[2]:
                found.append(entry)
        self.headless[first:walked] = found  # what is dead is looked at once
        heads = [entry[0] for entry in found]
        return tuple(heads[:MAX_HEADS]), heads[MAX_HEADS] if len(heads) > MAX_HEADS else position

    def passed(self, offset: int) -> None:
        """Let go of what is needed for no rebuild any more: W is at this offset."""
        del self.headless[: bisect_left(self.headless, offset, key=_offset)]

    def renew(self, stream: Stream, ctx: Context) -> None:
        """Any event under its key shows that the open response is alive (rule 20)."""
        if stream.open is not None and stream.open.open is not None:
            stream.open.act = ctx.watermark
            stream.open.open.last = ctx.offset

    def late(self, stream: Stream, ctx: Context, *, terminal: bool) -> bool:
        """Whether an event that comes while nothing is open is late: it belongs to what is known (rule 14), and renews it."""
        if not stream.closed:
            return False
        ctx.tally.late += 1
        self.touch_closed(stream, stream.latest_closed(), ctx, terminal=terminal)
        return True

    def touch_closed(self, stream: Stream, known: Known, ctx: Context, *, terminal: bool) -> None:
        """Any record of a known response renews its time (rule 13); it is the latest now."""
        known.act, known.terminal = ctx.watermark, terminal
        closed = _closed(stream)
        closed.pop(known.ident, None)  # its aliases stay where they are: there may be thousands, and one is enough
        closed[known.ident] = known
        self.timetable.sooner(stream, known)
        if known.serial < stream.count and stream.live > 1:
            self.hold(stream, known)

    def close(self, stream: Stream, known: Known, *, terminal: bool) -> None:
        """Close a response; it stays known. `terminal`: by a terminal event."""
        known.open, known.terminal = None, terminal
        stream.open = None
        for ident in (*known.aliases, known.ident):
            _closed(stream)[ident] = known
        if not known.gone:
            self.timetable.sooner(stream, known)

    def forget(self, stream: Stream, known: Known) -> None:
        """Forget what was known: it holds W no longer."""
        for ident in (*known.aliases, known.ident):
            if stream.closed.get(ident) is known:
                del _closed(stream)[ident]
        if not stream.closed:
            stream.closed = NOTHING
        if stream.open is known:
            stream.open = known.open = None
        if stream.request is known:
            stream.request = None
        if not known.gone:
            self._drop(stream, known)

    # -- what it amounts to

    def oldest_after(self, watermark: int, bounds: Bounds) -> Known | None:
        """What would hold W if the watermark stood there: what falls silent by then is closed, and stays known for a while."""
        oldest: Known | None = None
        for stream in self.by_key.values():
            for known in everything(stream):
                closed = bounds.closed_memory_ms if known.open is not None else 0
                if known.until(bounds) + closed > watermark and (oldest is None or known.held < oldest.held):
                    oldest = known
            if stream.floor is not None and (oldest is None or stream.floor.held < oldest.held):
                oldest = stream.floor
        return oldest

    def counts(self) -> dict[str, int]:
        """Gauges: keys, open and known responses, waiting requests, open calls, buffered bytes. Walks everything."""
        found = {"streams": 0, "open_responses": 0, "known_responses": 0, "requests": 0, "open_calls": 0, "buffered_bytes": 0}
        for stream in self.by_key.values():
            found["streams"] += 1
            found["requests"] += stream.request is not None
            found["known_responses"] += len(everything(stream)) - (stream.open is not None) - (stream.request is not None)
            if stream.open is not None and stream.open.open is not None:
                response = stream.open.open
                found["open_responses"] += 1
                found["open_calls"] += sum(call.state in UNFINISHED for call in response.items)
                found["buffered_bytes"] += response.buffered_bytes
        return found


def _closed(stream: Stream) -> dict[str | int, Known]:
    """The dictionary of what is closed, to be changed."""
    if stream.closed is NOTHING:
        stream.closed = {}
    return stream.closed
