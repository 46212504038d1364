"""The parts of one record, each to whom it concerns: events and requests to their stream, journals to themselves.

Owns which stream a record belongs to. It reads no part by itself.
"""

from processor.core import journal
from processor.core.decode import needs_stream, stream_id
from processor.core.events import Event, Journal, Mislabelled, Part, Request, Unreadable, WholeResponse
from processor.core.ports import Record
from processor.core.reasons import Cause
from processor.core.responses import Responses
from processor.core.state import Context, Stream

_NO_STREAM = Unreadable(Cause.NO_KEY, "no record key, no configured header, no response id")


def key_of(record: Record, decoded: Event | list[Part], ctx: Context) -> bytes | None:
    """The key of a record, or what stands for it (rule 27); None: it names no stream."""
    if record.key is not None:
        return record.key
    name = stream_id(None, record.headers, ctx.bounds.key_header, decoded)
    return None if name is None else name.encode("utf-8", "surrogatepass")


def read_parts(responses: Responses, record: Record, decoded: Event | list[Part], ctx: Context) -> Unreadable | None:
    """Read all parts in order; Unreadable where they need a stream and none is named."""
    key = key_of(record, decoded, ctx)
    if key is None and needs_stream(decoded):
        return _NO_STREAM
    stream = Stream(None, ctx.watermark, ctx.offset) if key is None else responses.streams.touch(key, ctx)
    for part in (decoded,) if isinstance(decoded, Event) else decoded:
        match part:
            case Event():
                responses.read(stream, part, ctx)
            case WholeResponse():
                responses.read_whole(stream, part, ctx)
            case Journal():
                journal.judge(part, stream_id(record.key, record.headers, ctx.bounds.key_header, decoded), ctx)
            case Request():
                responses.read_request(stream, part, ctx)
            case Mislabelled():
                ctx.tally.mislabelled += 1
    return None
