"""Which response an event belongs to, and when that is over.

Owns section 4 of the design from the response upwards, and rules 11 to 22. It decides no call by itself: it tells `assemble`
what came and `terminal` how a response ended, and keeps the book in `streams`.
"""

from collections.abc import Callable

from processor.core import assemble, echo, numbers, plain
from processor.core.event_types import CREATED, DECIDING_TYPES, EVENT_TYPES
from processor.core.events import Event, Named, Request, ResponseBody, WholeResponse
from processor.core.machine import Input, State
from processor.core.nothing import NOTHING
from processor.core.state import EVENT_BYTES, NO_INDEX, Context, Known, Response, Stream
from processor.core.streams import Streams
from processor.core.terminal import end, end_unlisted
from processor.core.vocabulary import Kind, event_label

ITEM_EVENTS: dict[str, Callable[[Response, Event, Context], None]] = {
    "response.function_call_arguments.delta": assemble.append,
    "response.output_item.added": assemble.announce,
    "response.output_item.done": assemble.finish,
    "response.function_call_arguments.done": assemble.give_arguments,
}
_ITEM_AGAIN_BYTES = 8
"""What each item costs for which its response starts again."""
_ALIVE = EVENT_TYPES - DECIDING_TYPES
"""Events that only say that the stream is alive."""
_ANNOUNCING = ("response.output_item.added", "response.output_item.done")
_TERMINAL = {
    "response.completed": Input.RELEASED,
    "response.incomplete": Input.CUT_OFF,
    "response.failed": Input.RESPONSE_FAILED,
    "response.cancelled": Input.RESPONSE_FAILED,
}
_STATUSES = {
    "completed": Input.RELEASED,
    "incomplete": Input.CUT_OFF,
    "failed": Input.RESPONSE_FAILED,
    "cancelled": Input.RESPONSE_FAILED,
}


class Responses:
    """Reads the events of one partition's streams."""

    def __init__(self, streams: Streams) -> None:
        """Read into this book."""
        self.streams = streams
        self._lifecycle = {
            CREATED: self._created,
            "response.in_progress": self._in_progress,
            "response.queued": self._in_progress,
            "error": self._error,
            **dict.fromkeys(_TERMINAL, self._terminal),
        }

    def read(self, stream: Stream, event: Event, ctx: Context) -> None:
        """Read one event."""
        kind = event.type
        known = stream.open
        handle = ITEM_EVENTS.get(kind)
        if handle is None:
            if kind in _ALIVE and known is not None and known.open is not None:
                ctx.tally.events[kind] += 1
                known.act = ctx.watermark
                numbers.passed(known.open, event, ctx)
            else:
                self._read_other(stream, event, ctx)
            return
        ctx.tally.events[kind] += 1
        if known is None:
            if self.streams.late(stream, ctx, terminal=False):
                return
            if event.item is None and event.type in _ANNOUNCING:
                ctx.tally.null_items += 1  # rule 1: ignored, so it begins nothing either
                return
            if not ctx.headless(stream):
                return
            known = self.streams.open(stream, None, ctx, headless=True)
            stream.begun = True
        response = known.open
        if response is None:
            return
        known.act = ctx.watermark
        response.last = ctx.offset
        number = event.sequence_number
        if number == response.next_number > response.passed_number and type(number) is int:
            response.next_number = number + 1
            response.prints.append(numbers.print_of(event))
        elif numbers.repeated(response, event, ctx.tally):
            return
        response.buffered_bytes += EVENT_BYTES
        handle(response, event, ctx)
        if response.buffered_bytes > ctx.bounds.max_response_bytes:
            self._overflow(stream, known, response, ctx)

    def _read_other(self, stream: Stream, event: Event, ctx: Context) -> None:
        """An event that is about no item: of the response's life, unknown, or while nothing is open."""
        kind = event.type
        ctx.tally.events[kind if kind in EVENT_TYPES else event_label(kind)] += 1
        lifecycle = self._lifecycle.get(kind)
        known = stream.open
        if lifecycle is not None:
            lifecycle(stream, event, ctx)
        elif known is not None and known.open is not None:
            known.act = ctx.watermark
            numbers.passed(known.open, event, ctx)
        elif stream.closed:  # it renews what is known, and is not counted as late
            self.streams.touch_closed(stream, stream.latest_closed(), ctx, terminal=False)

    def _created(self, stream: Stream, event: Event, ctx: Context) -> None:
        """Rules 11 and 13."""
        ident = ident_of(event.response)
        known = stream.open
        response = known.open if known is not None else None
        if known is not None and response is not None:
            if known.goes_by(ident):
                self.streams.renew(stream, ctx)
                echo.absorb(response, event.response, ctx)
                repeated = numbers.repeated(response, event, ctx.tally)
                if not repeated and not numbers.numbered(response):
                    _start_again(response)
                self._check_bytes(stream, known, response, ctx)
                return
            end_unlisted(response, Input.RESPONSE_FAILED, ctx)
            self.streams.close(stream, known, terminal=False)
        if not self._is_late(stream, ident, ctx, terminal=False):
            self._begin(stream, ident, event, ctx)

    def _in_progress(self, stream: Stream, event: Event, ctx: Context) -> None:
        """`response.in_progress` and `response.queued` open nothing and give no name.

        A rebuild begins in the middle of responses that are over by P. A foreign one, ignored while such a response was open,
        would open another there, or lend its name to the nameless rest, and the real terminal event would then close neither.
        """
        ident = ident_of(event.response)
        known = stream.open
        response = known.open if known is not None else None
        if known is None or response is None:
            if not self._is_late(stream, ident, ctx, terminal=False):
                self.streams.late(stream, ctx, terminal=False)
            return
        self.streams.renew(stream, ctx)
        if (ident is not None and response.id is None) or not self._own(stream, known, response, ident, ctx):
            self._other(stream, ident, ctx, terminal=False)
            return
        echo.absorb(response, event.response, ctx)
        numbers.repeated(response, event, ctx.tally)
        self._check_bytes(stream, known, response, ctx)

    def _terminal(self, stream: Stream, event: Event, ctx: Context) -> None:
        """Rules 15 and 16."""
        body, fact = event.response, _TERMINAL[event.type]
        ident = ident_of(body)
        known = stream.open
        if known is not None and known.open is not None:
            self.streams.renew(stream, ctx)
            if not self._own(stream, known, known.open, ident, ctx):
                self._other(stream, ident, ctx, terminal=True)
                return
            if numbers.repeated(known.open, event, ctx.tally):
                return
        elif (
            self._is_late(stream, ident, ctx, terminal=True)
            # In a rebuild an unknown name can be that of a response that began before W: its events, which renewed what was
            # closed beside it, are over too.
            or ((ident is None or not ctx.headless(stream)) and self.streams.late(stream, ctx, terminal=True))
            or not ctx.headless(stream)
        ):
            return
        else:
            known = self.streams.open(stream, ident, ctx, headless=True)
            stream.begun = True
        claimed = _STATUSES.get(body.status, fact) if body is not None and isinstance(body.status, str) else fact
        self._end(stream, known, body, max(fact, claimed), ctx)  # the worse of type and status: inputs are in that order

    def _error(self, stream: Stream, _event: Event, ctx: Context) -> None:
        """An `error` ends the response: servers omit the `response.failed` that should follow."""
        known = stream.open
        if known is not None:
            self.streams.renew(stream, ctx)
            self._end(stream, known, None, Input.RESPONSE_FAILED, ctx)
        else:
            self.streams.late(stream, ctx, terminal=True)

    def read_request(self, stream: Stream, request: Request, ctx: Context) -> None:
        """Rule 22: it serves the next response under its key, once, and holds W until then."""
        serial = request.parallel_tool_calls is False
        self.streams.wait(stream, echo.pending(request.tools, request.tool_choice, serial=serial), ctx)

    def read_whole(self, stream: Stream, whole: WholeResponse, ctx: Context) -> None:
        """A whole response: its own terminal event, and the one of the open response where it has its id (rule 16)."""
        body = whole.response
        ident = ident_of(body)
        fact = _STATUSES.get(body.status, Input.RESPONSE_FAILED) if type(body.status) is str else Input.RESPONSE_FAILED
        known = stream.open
        if known is not None and known.open is not None and known.goes_by(ident):
            self.streams.renew(stream, ctx)
            self._end(stream, known, body, fact, ctx)
            return
        if self._is_late(stream, ident, ctx, terminal=True):
            return
        aside, stream.open = stream.open, None
        known = self.streams.open(stream, ident, ctx)
        if aside is not None:
            self.streams.hold(stream, aside)  # what comes for that one would renew this one, closed by then, in a rebuild
        self._end(stream, known, body, fact, ctx)
        if ident is None:
            self.streams.forget(stream, known)
        stream.open = aside

    def _is_late(self, stream: Stream, ident: str | None, ctx: Context, *, terminal: bool) -> bool:
        """Whether what came names a response that is closed and known: it renews that one, and decides nothing."""
        if ident is None or ident not in stream.closed:
            return False
        ctx.tally.late += 1
        self.streams.touch_closed(stream, stream.closed[ident], ctx, terminal=terminal)
        return True

    def _begin(self, stream: Stream, ident: str | None, event: Event, ctx: Context) -> None:
        known = self.streams.open(stream, ident, ctx)
        stream.begun = True
        if known.open is not None:
            echo.absorb(known.open, event.response, ctx)
            numbers.repeated(known.open, event, ctx.tally)
            self._check_bytes(stream, known, known.open, ctx)

    def _own(self, stream: Stream, known: Known, response: Response, ident: str | None, ctx: Context) -> bool:
        """Whether a lifecycle event is about the open response; a nameless one takes the name (rule 15)."""
        if ident is None or known.goes_by(ident):
            return True
        if response.id is None and ident not in stream.closed:
            response.id = known.ident = ident
            return True
        if "response_id_rotates" in ctx.bounds.tolerate and response.id is not None and ident not in stream.closed:
            if not isinstance(known.aliases, dict):
                known.aliases = {}
            known.aliases[ident] = None
            response.buffered_bytes += len(ident)
            response.rotated = True
            return True
        return False

    def _other(self, stream: Stream, ident: str | None, ctx: Context, *, terminal: bool) -> None:
        """A lifecycle event about another response than the open one: closes nothing."""
        ctx.tally.foreign += 1
        if ident is not None and ident in stream.closed:
            self.streams.touch_closed(stream, stream.closed[ident], ctx, terminal=terminal)

    def _check_bytes(self, stream: Stream, known: Known, response: Response, ctx: Context) -> None:
        if response.buffered_bytes > ctx.bounds.max_response_bytes:
            self._overflow(stream, known, response, ctx)

    def _overflow(self, stream: Stream, known: Known, response: Response, ctx: Context) -> None:
        """`max_response_bytes` is passed: all of its undecided calls are `limit`."""
        end_unlisted(response, Input.BOUND_PASSED, ctx)
        self.streams.close(stream, known, terminal=False)

    def _end(self, stream: Stream, known: Known, body: ResponseBody | None, fact: Input, ctx: Context) -> None:
        if known.open is not None:
            echo.absorb(known.open, body, ctx)
            output = body.output if body is not None else None
            if fact is Input.RELEASED and plain.listed(known.open, output):
                end_unlisted(known.open, fact, ctx)
            else:
                end(known.open, output, fact, ctx)
        self.streams.close(stream, known, terminal=True)


def ident_of(body: ResponseBody | Named | None) -> str | None:
    """The name of a response, where it says one."""
    if body is None or type(body.id) is not str:
        return None
    return body.id or None


def _start_again(response: Response) -> None:
    """Rule 11: an unnumbered stream sent again; what is decided stays known.

    Beyond a number of items it costs bytes, so that thousands of both are bounded.
    """
    response.buffered_bytes += _ITEM_AGAIN_BYTES * max(0, len(response.items) - assemble.MANY_ITEMS)
    decided = [c for c in response.items if c.state in (State.DECIDED, State.LIMITED) and not c.absorbed]
    for call in decided:
        call.state = State.DECIDED  # nothing that comes now belongs to it
    kept = {id(call) for call in decided}
    response.items = decided
    response.latest, response.clashed = {} if decided else None, None  # what is kept is at no index
    response.highest_index = NO_INDEX
    response.functions = sum(call.kind is Kind.CALL for call in decided)
    response.finished = {
        ident: left for ident, uses in response.finished.items() if (left := [use for use in uses if id(use) in kept])
    } or NOTHING
