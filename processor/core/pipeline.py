"""One input partition: decode through decide, in order, over plain data.

`Partition` is all that adapters need. It never blocks, never reads a clock, and says with every commit point how a successor
rebuilds the same state.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from processor.core import offsets
from processor.core.decide import Outgoing
from processor.core.decode import decode
from processor.core.events import Event, Unreadable
from processor.core.limits import Bounds
from processor.core.offsets import Commit, Switch
from processor.core.parts import read_parts
from processor.core.ports import Judge, Record
from processor.core.rebuild import Rebuild
from processor.core.responses import Responses
from processor.core.signals import Tally
from processor.core.state import Context, Known
from processor.core.streams import Streams


class Partition:
    """The state of one input partition, and the decisions that fall out of it.

    Life: construct; `resume` once, with what was committed; `feed` the records from W on, `reached` after each fetch; `idle`
    when `idle_due` has passed and the partition is read to its end. `take` hands over what must be published in the same
    transaction as `commit_point()`.
    """

    def __init__(self, topic: str, number: int, bounds: Bounds, judge: Judge) -> None:
        """Make a partition that has read nothing. `bounds` are the settings to go over to where the log has others."""
        self.topic = topic
        self.number = number
        self.position = 0
        """P: next offset to decide (or, in a rebuild, to read)."""
        self.rebuilding = False
        """True until the position reached the committed P: nothing is published or counted, idle moves are refused."""
        self.tally = Tally()
        """Counts since the owner last replaced it."""
        self._configured = bounds
        self._judge = judge
        self._context = Context(bounds, self.tally)
        self._streams = Streams(bounds)
        self._responses = Responses(self._streams)
        self._rebuild: Rebuild | None = None
        self._moves: tuple[tuple[int, int], ...] = ()
        self._switches: tuple[Switch, ...] = ()
        self._bounds_at_w = bounds
        self._outbox: list[Outgoing] = []

    def resume(self, commit: Commit | None, offset: int) -> None:
        """Begin at a committed point, or afresh at `offset` where there is none."""
        context = self._context
        self.position = offset
        self._streams = Streams(self._configured if commit is None else commit.bounds)
        self._responses = Responses(self._streams)
        self._outbox = []
        context.out.clear()
        context.heads, context.heads_from = frozenset(), 0
        self._rebuild = None
        context.watermark, self._moves, self._switches = 0, (), ()
        context.bounds = self._bounds_at_w = self._configured
        self.rebuilding = commit is not None
        if commit is None:
            return
        context.bounds = self._bounds_at_w = commit.bounds
        context.watermark = commit.watermark
        context.tally = Tally()
        context.heads, context.heads_from = frozenset(commit.heads), commit.heads_from
        self._rebuild = Rebuild(commit, self._responses, context)
        self._moves, self._switches = commit.moves, commit.switches
        if commit.position <= offset:
            self._go_live(self._rebuild)

    def feed(self, records: Sequence[Record], now_ms: int, value_bytes: int | None = None) -> None:
        """Read records in order of offset; decisions collect for `take`. `now_ms` is only written into decisions.

        `value_bytes`: what the values of all these records have, where the caller has counted it.
        """
        rebuild = self._rebuild
        if rebuild is not None:
            rest = rebuild.read(records)
            if len(rest) < len(records):
                self.position = records[len(records) - len(rest) - 1].offset + 1
            if rest:
                self._go_live(rebuild)
            records, value_bytes = rest, None
        elif self._context.bounds is not self._configured:
            self._switch()
        self._run(records, now_ms)
        self.tally.records += len(records)
        if value_bytes is None:
            value_bytes = sum([len(record.value or b"") for record in records])
        self.tally.value_bytes += value_bytes

    def reached(self, position: int) -> None:
        """Tell that everything before `position` has been fed: transaction markers leave gaps behind the last record.

        Ends the rebuild where it has reached P.
        """
        self.position = max(self.position, position)
        if self._rebuild is not None and self.position >= self._rebuild.point.position:
            self._go_live(self._rebuild)

    def idle_due(self) -> int | None:
        """Wall-clock time in ms from which an idle move would expire or forget something; None: nothing is known."""
        return self._streams.timetable.next_due()

    def idle(self, wall_ms: int, now_ms: int) -> bool:
        """Move the watermark by the wall clock: only when the partition is read to its end and has been quiet.

        False where it had no effect (nothing to expire or forget, or no room left in E).
        """
        context = self._context
        if self.rebuilding or wall_ms <= context.watermark:
            return False
        if context.bounds is not self._configured:
            self._switch()
        due = self._streams.timetable.next_due()
        if due is None or due > wall_ms:
            return False
        moves = offsets.with_move(self._moves, self.position, wall_ms)
        oldest = self._streams.oldest_after(wall_ms, context.bounds)
        after = offsets.trim(replace(self._commit_at(oldest, wall_ms), moves=moves))
        if not offsets.fits(after):
            return False  # E is full: idle expiry waits
        self._moves = moves
        self._streams.move(wall_ms, self._context)
        self._emit(None, None, now_ms)
        return True

    def end_of_archive(self, now_ms: int) -> None:
        """Everything open has fallen silent for good (replay)."""
        context, bounds = self._context, self._context.bounds
        self._streams.move(context.watermark + bounds.stream_timeout_ms + bounds.closed_memory_ms, context)
        self._emit(None, None, now_ms)

    def take(self) -> list[Outgoing]:
        """What is to be published since the last call, in order."""
        taken, self._outbox = self._outbox, []
        return taken

    def commit_point(self) -> Commit:
        """W, P, T, E and settings of the state as it is now."""
        if self._rebuild is not None:
            return self._rebuild.point
        point = offsets.trim(self._commit_at(self._streams.timetable.oldest(), self._context.watermark))
        self._moves, self._switches, self._bounds_at_w = point.moves, point.switches, point.bounds
        self._streams.passed(point.offset)
        return point

    def counts(self) -> dict[str, int]:
        """Gauges: keys, open and known responses, waiting requests, open calls, buffered bytes. Walks everything."""
        return self._streams.counts()

    @property
    def pending_bounds(self) -> bool:
        """True where new settings wait for room in the metadata."""
        return not self.rebuilding and self._context.bounds != self._configured

    # -- records

    def _run(self, records: Sequence[Record], now_ms: int) -> None:
        """For each record: advance the watermark, expire, then read it (rule 20).

        The loop has the common event in it, one event of a stream that is known, and calls nothing for it that can be spared.
        """
        context, streams = self._context, self._streams
        read, by_key, timetable, lists = self._responses.read, streams.by_key, streams.timetable, context.lists
        for record in records:
            key, timestamp = record.key, record.timestamp
            context.record, context.offset = record, record.offset
            context.base = watermark = context.watermark
            if timestamp > watermark:
                context.watermark = watermark = timestamp
            if watermark >= timetable.soonest:
                streams.advance(context)
            decoded = decode(record.value, lists)
            unreadable = None
            if type(decoded) is Event and key is not None and (stream := by_key.get(key)) is not None and not streams.crowded:
                stream.last, stream.at = watermark, context.offset
                read(stream, decoded, context)
            elif isinstance(decoded, Unreadable):
                unreadable = decoded
            else:
                unreadable = read_parts(self._responses, record, decoded, context)
            if context.out or unreadable is not None:
                self._emit(record, unreadable, now_ms)
        if records:
            self.position = records[-1].offset + 1

    def _emit(self, record: Record | None, unreadable: Unreadable | None, now_ms: int) -> None:
        """Judge what came out, in order."""
        context = self._context
        for candidate in context.out:
            self._judge.tally = self.tally
            outgoing = self._judge(candidate, self.topic, self.number, now_ms)
            self.tally.decisions[outgoing.reason] += 1
            self._outbox.append(outgoing)
        context.out.clear()
        if unreadable is not None:
            self.tally.dead_letters[unreadable.cause] += 1
            self._outbox.append(self._judge.dead_letter(record, unreadable, self.topic, self.number))

    # -- moves that are no records

    def _go_live(self, rebuild: Rebuild) -> None:
        """The state is that at P: everything from here on is published and counted."""
        rebuild.end()
        self._rebuild = None
        self._context.heads, self._context.heads_from = frozenset(), 0
        self.position = max(self.position, rebuild.point.position)
        self.rebuilding = False
        self._context.tally = self.tally
        if self._context.bounds == self._configured:
            self._context.bounds = self._configured
        else:
            self._switch()

    def _switch(self) -> None:
        """Go over to the configured settings, where the metadata has room to say so."""
        context = self._context
        switch = Switch(self.position, context.watermark, self._configured)
        before = self._commit_at(self._streams.timetable.oldest(), context.watermark)
        after = offsets.trim(replace(before, switches=(*before.switches, switch)))
        if not offsets.fits(after):
            return  # the stored settings stay in force until there is
        self._switches = (*self._switches, switch)
        context.bounds = self._configured
        self._streams.adopt(self._configured)

    def _commit_at(self, oldest: Known | None, watermark: int) -> Commit:
        offset = oldest.held if oldest is not None else self.position
        heads, heads_from = self._streams.heads(offset, self.position)
        return Commit(
            offset=offset,
            position=self.position,
            watermark=oldest.held_base if oldest is not None else watermark,
            moves=self._moves,
            bounds=self._bounds_at_w,
            switches=self._switches,
            heads=heads,
            heads_from=heads_from,
        )
