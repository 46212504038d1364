"""From W to P: the state is made again from the log, silently.

Owns what happens on the way: the records in order, idle moves and changes of settings between them. It publishes and counts
nothing.
"""

from bisect import bisect_left
from collections.abc import Sequence

from processor.core import offsets
from processor.core.decode import decode
from processor.core.events import Event, Unreadable
from processor.core.offsets import Commit
from processor.core.parts import key_of, read_parts
from processor.core.ports import Record
from processor.core.responses import ITEM_EVENTS, Responses
from processor.core.state import Context
from processor.core.timetable import everything
from processor.core.unread import Unread


class Rebuild:
    """One rebuild of one partition."""

    def __init__(self, commit: Commit, responses: Responses, ctx: Context) -> None:
        """Begin at W with the stored settings: `ctx` must have them."""
        self.point = commit
        """Where it ends, and what was stored there."""
        self._responses = responses
        self._streams = responses.streams
        self._ctx = ctx
        self._script = offsets.script(commit)
        self._unread = Unread(responses)

    def read(self, records: Sequence[Record]) -> Sequence[Record]:
        """Read records up to P; the rest is returned."""
        before = bisect_left(records, self.point.position, key=_offset)
        place = 0
        while (
            self._script and self._script[0][0] < self.point.position
        ):  # what happened between two records happens there again
            until = bisect_left(records, self._script[0][0], key=_offset)
            if until >= before:
                break
            self._run(records[place:until])
            self._follow(records[until].offset)
            place = until
        self._run(records[place:before])
        return records[before:]

    def end(self) -> None:
        """Everything before P is read: the state is that at P."""
        self._follow(self.point.position)
        self._unread.read_all(self._ctx)
        self._forget_dead()

    def _run(self, records: Sequence[Record]) -> None:
        ctx, streams, unread = self._ctx, self._streams, self._unread
        timetable = streams.timetable
        for record in records:
            ctx.record, ctx.offset = record, record.offset
            ctx.base = ctx.watermark
            ctx.watermark = max(ctx.watermark, record.timestamp)
            if ctx.watermark >= timetable.soonest:
                streams.advance(ctx)
            if ctx.offset in ctx.heads:
                self._begin_afresh(record)
            if not unread.skim(record, ctx):
                self._read(record)
            if ctx.out:
                ctx.out.clear()

    def _forget_dead(self) -> None:
        """Forget what began without its head and is not named by H: all of that is over by P, even where it seems to go on."""
        streams, ctx = self._streams, self._ctx
        alive = []
        for entry in streams.headless:
            offset, stream, _ = entry
            if offset in ctx.heads or offset >= ctx.heads_from:
                alive.append(entry)
                continue
            for known in everything(stream):
                if known.first == offset and known is not stream.request:
                    streams.forget(stream, known)
        streams.headless = alive

    def _begin_afresh(self, record: Record) -> None:
        """Forget what is open or known where an item's event began a response: for who read it live nothing was.

        A record that is read without what came before W may renew another response than it did live, and keep that known.
        """
        event = decode(record.value, self._ctx.lists)
        if type(event) is not Event or event.type not in ITEM_EVENTS:
            return
        stream = self._streams.by_key.get(key_of(record, event, self._ctx))
        if stream is not None:
            for known in everything(stream):
                if known is not stream.request:
                    self._streams.forget(stream, known)

    def _read(self, record: Record) -> None:
        decoded = decode(record.value, self._ctx.lists)
        if not isinstance(decoded, Unreadable):
            if (key := key_of(record, decoded, self._ctx)) is not None:
                self._unread.read(key, self._ctx)
            read_parts(self._responses, record, decoded, self._ctx)

    def _follow(self, offset: int) -> None:
        """Repeat what happened before the record at `offset`."""
        ctx = self._ctx
        while self._script and self._script[0][0] <= offset:
            _, watermark, bounds = self._script.pop(0)
            if bounds is None:
                self._streams.move(watermark, ctx)
            else:  # nothing expires by a change of settings: the next record or move comes under them, or under still others
                self._unread.read_all(ctx)  # under the settings that they came under
                ctx.bounds = bounds
                self._streams.adopt(bounds)
            ctx.out.clear()


def _offset(record: Record) -> int:
    return record.offset
