"""What a rebuild leaves unread: of a response that is over by P nothing counts but when it was there, and what it was called.

Owns the records of open responses that a rebuild has only glimpsed. They are read when anything but one more event of that
response comes under its key, and at P; where it ends before, they are let go. A rebuild publishes nothing, so that no decision
is missed. Reading could have closed the response early (`max_response_bytes`): then what follows is late, renews it all the
same, and ends with it; only where something else is known under its key would more hang on that, and there all is read.
`tests/core/test_unread.py` holds the state at P against that of a rebuild that reads everything.

The core takes 2.3 to 3.6 us an event for a rebuild, and 8.1 and more live (`python -m benchmarks.core --stages core,rebuild`).
"""

from dataclasses import dataclass, field

from processor.core.decode import decode, glimpse
from processor.core.event_types import CREATED, EVENT_TYPES, LIFECYCLE_TYPES, TERMINAL_TYPES
from processor.core.events import Event, Glimpse
from processor.core.limits import UNREAD_BYTES
from processor.core.ports import Record
from processor.core.responses import Responses, ident_of
from processor.core.state import Context, Known, Response, Stream

_FILLING = EVENT_TYPES - LIFECYCLE_TYPES
"""About items, text, or only signs of life: they do nothing to an open response but fill it."""
_SAID_AGAIN = frozenset(("response.in_progress", "response.queued"))
_ENDS = TERMINAL_TYPES - {"error"}
_RECORD_BYTES = 300
"""What a record costs beside its value: the object, its key, a few headers."""


@dataclass(slots=True)
class _Kept:
    """The records of one open response."""

    known: Known
    highest: int
    """No number of an event of it is higher."""
    bytes: int = 0
    records: list[Record] = field(default_factory=list)


class Unread:
    """Records of one partition that may never have to be read."""

    def __init__(self, responses: Responses) -> None:
        """Keep records for this reader."""
        self._responses = responses
        self._streams = responses.streams
        self._kept: dict[bytes, _Kept] = {}
        self._bytes = 0

    def skim(self, record: Record, ctx: Context) -> bool:
        """Do without reading a record, at least for now. False: it must be read, and what is kept under its key before it."""
        key, value, streams = record.key, record.value, self._streams
        if key is None or value is None or streams.crowded or (event := glimpse(value)) is None:
            return False
        kind, number = event.type, event.sequence_number
        stream = streams.by_key.get(key)
        begins = kind == CREATED and (stream is None or stream.open is None)
        if begins:
            stream = self._begin(key, stream, event, ctx)
        if stream is None or (known := stream.open) is None or (response := known.open) is None:
            return False
        if stream.live > 1 and known.serial < stream.count:
            return False
        kept = self._kept.get(key)
        if kept is None or kept.known is not known:
            kept = self._keep(key, known, response)
        if kind in _ENDS and _ends(event, response, kept):
            known.act = ctx.watermark
            streams.close(stream, known, terminal=True)
            self._drop(key)
        elif kind in _FILLING or begins or (kind in _SAID_AGAIN and _names(event, response)):
            known.act = ctx.watermark
            kept.records.append(record)
            if type(number) is int and number > kept.highest:
                kept.highest = number
            size = len(value) + _RECORD_BYTES
            kept.bytes += size
            self._bytes += size
        else:
            return False
        stream.last, stream.at = ctx.watermark, ctx.offset
        if self._bytes > UNREAD_BYTES:
            self.read(next(reversed(self._kept)), ctx)  # the others are nearer to their end
        return True

    def read(self, key: bytes, ctx: Context) -> None:
        """Read what is kept under a key: its open response is as if all had been read at once."""
        kept = self._drop(key)
        stream = self._streams.by_key.get(key)
        if kept is None or stream is None or stream.open is not kept.known:
            return  # nothing is, or it fell silent, or its key was evicted
        act, at = kept.known.act, (ctx.offset, ctx.record)
        for record in kept.records:
            event = decode(record.value, ctx.lists)
            ctx.offset, ctx.record = record.offset, record
            if type(event) is Event:  # as was glimpsed
                self._responses.read(stream, event, ctx)
        kept.known.act = act
        ctx.offset, ctx.record = at
        ctx.out.clear()  # published before the crash

    def read_all(self, ctx: Context) -> None:
        """Read everything that is kept."""
        for key in list(self._kept):
            self.read(key, ctx)

    def _begin(self, key: bytes, stream: Stream | None, event: Glimpse, ctx: Context) -> Stream | None:
        """Begin a response, under a name that is not known under its key; its `created` read again then changes nothing."""
        ident = ident_of(event.response)
        if ident is None or (stream is not None and ident in stream.closed):
            return None
        stream = self._streams.touch(key, ctx)
        self._streams.open(stream, ident, ctx)
        stream.begun = True
        return stream

    def _keep(self, key: bytes, known: Known, response: Response) -> _Kept:
        self._drop(key)  # of one that fell silent
        kept = self._kept[key] = _Kept(known, max(response.passed_number, response.next_number - 1))
        return kept

    def _drop(self, key: bytes) -> _Kept | None:
        kept = self._kept.pop(key, None)
        if kept is not None:
            self._bytes -= kept.bytes
        return kept


def _names(event: Glimpse, response: Response) -> bool:
    """Whether an event names this response."""
    ident = ident_of(event.response)
    return ident is not None and ident == response.id


def _ends(event: Glimpse, response: Response, kept: _Kept) -> bool:
    """Whether a terminal event ends this response: it names no other, and is no repeat of an event before (rule 12)."""
    if ident_of(event.response) is not None and not _names(event, response):
        return False
    return type(event.sequence_number) is not int or event.sequence_number > kept.highest
