"""Readable builders for events, items, responses and records.

Owns the shapes of the wire as tests write them. It never imports the code under test, so that a test's input does not depend
on what it examines.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

Json: TypeAlias = dict[str, Any]

START_MS = 1_790_000_000_000
"""Timestamp of the first record where a test does not care."""


@dataclass
class Record:
    """One input record, as the core reads it."""

    offset: int
    timestamp: int
    """Milliseconds since the epoch."""
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]] = field(default_factory=tuple)


def text(value: Any) -> str:
    """Compact JSON text, as most servers write it."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def record(
    offset: int,
    value: Json | list[Any] | str | bytes | None,
    *,
    key: str | None = "stream-1",
    timestamp: int = START_MS,
    headers: Sequence[tuple[str, bytes | None]] = (),
) -> Record:
    """One record; a value that is neither text nor bytes is written as JSON."""
    if value is None or isinstance(value, bytes):
        raw = value
    else:
        # Lone surrogates are part of the tests' input; they can only travel as JSON escapes.
        raw = (value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))).encode("utf-8", "surrogatepass")
    return Record(offset, timestamp, None if key is None else key.encode(), raw, headers)


def records(
    values: Iterable[Json | list[Any] | str | bytes | None],
    *,
    key: str | None = "stream-1",
    start_ms: int = START_MS,
    step_ms: int = 10,
    offset: int = 0,
) -> list[Record]:
    """Records of one key, evenly spaced in time."""
    return [record(offset + i, value, key=key, timestamp=start_ms + i * step_ms) for i, value in enumerate(values)]


def tool(name: str, properties: Json, required: Sequence[str] = (), **more: Any) -> Json:
    """A function tool whose arguments are an object with these properties and nothing else."""
    parameters = {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}
    return {"type": "function", "name": name, "parameters": parameters, **more}


WEATHER = tool("get_weather", {"city": {"type": "string", "minLength": 1}}, ["city"])
"""The tool most tests call."""


def function_call(
    call_id: str | None = "call_1",
    name: str | None = "get_weather",
    arguments: Any = '{"city":"Leeds"}',
    status: str | None = "completed",
    **more: Any,
) -> Json:
    """A function_call item; fields given as None are left out."""
    fields = {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments, "status": status}
    return {k: v for k, v in fields.items() if v is not None} | more


def call_output(call_id: str, output: str = "done") -> Json:
    """A function_call_output item."""
    return {"type": "function_call_output", "call_id": call_id, "output": output}


def message(words: str = "Let me look that up.", **more: Any) -> Json:
    """A finished assistant message."""
    content = [{"type": "output_text", "text": words, "annotations": []}]
    return {"type": "message", "role": "assistant", "status": "completed", "content": content, **more}


def response(response_id: str | None = "resp_1", status: str | None = "in_progress", **more: Any) -> Json:
    """A response object as lifecycle events carry it."""
    fields: Json = {"object": "response", "id": response_id, "status": status}
    return {k: v for k, v in fields.items() if v is not None} | more


def created(response_id: str | None = "resp_1", **more: Any) -> Json:
    """`response.created`; what else is given goes into the response."""
    return {"type": "response.created", "response": response(response_id, "in_progress", **{"output": [], **more})}


def added(index: int | None, item: Json | None) -> Json:
    """`response.output_item.added` with the item as it is given."""
    return _indexed("response.output_item.added", index, item=item)


def announced(index: int | None, item: Json, **more: Any) -> Json:
    """`response.output_item.added` for an item that will finish as `item`: no arguments yet, in progress."""
    return added(index, {**item, "arguments": "", "status": "in_progress", **more})


def delta(index: int | None, part: Any) -> Json:
    """`response.function_call_arguments.delta`."""
    return _indexed("response.function_call_arguments.delta", index, delta=part)


def arguments_done(index: int | None, arguments: Any, **more: Any) -> Json:
    """`response.function_call_arguments.done`."""
    return _indexed("response.function_call_arguments.done", index, arguments=arguments, **more)


def done(index: int | None, item: Json | None) -> Json:
    """`response.output_item.done`."""
    return _indexed("response.output_item.done", index, item=item)


def terminal(kind: str = "completed", response_id: str | None = "resp_1", output: Any = (), **more: Any) -> Json:
    """`response.completed`, `.incomplete`, `.failed` or `.cancelled`; `status` follows the kind unless given."""
    if output is not None:
        more = {"output": list(output), **more}
    status = more.pop("status", kind)
    return {"type": f"response.{kind}", "response": response(response_id, status, **more)}


def pieces(index: int, item: Json, chunks: Sequence[str] | None = None) -> list[Json]:
    """Every event of one call in the usual order; without `chunks` the arguments come in two deltas."""
    whole = item.get("arguments", "")
    if chunks is None:
        half = len(whole) // 2
        chunks = [whole[:half], whole[half:]] if whole else []
    return [
        announced(index, item),
        *(delta(index, chunk) for chunk in chunks),
        arguments_done(index, whole),
        done(index, item),
    ]


def numbered(events: Iterable[Json], start: int = 0) -> list[Json]:
    """The same events with rising sequence numbers."""
    return [{**event, "sequence_number": start + i} for i, event in enumerate(events)]


def whole_stream(
    items: Sequence[Json],
    response_id: str = "resp_1",
    *,
    tools: Sequence[Json] = (WEATHER,),
    kind: str = "completed",
    **more: Any,
) -> list[Json]:
    """A numbered stream of one response in which every item is a function call that comes in all its pieces."""
    events = [created(response_id, tools=list(tools), **more)]
    for index, item in enumerate(items):
        events += pieces(index, item)
    events.append(terminal(kind, response_id, items))
    return numbered(events)


def sse(events: Iterable[Json], *, named: bool = True, close: bool = True) -> str:
    """Server-Sent-Events text of these events."""
    frames = [(f"event: {event['type']}\n" if named else "") + f"data: {text(event)}\n\n" for event in events]
    return "".join(frames) + ("data: [DONE]\n\n" if close else "")


def _indexed(kind: str, index: int | None, **fields: Any) -> Json:
    place = {} if index is None else {"output_index": index}
    return {"type": kind, **place, **fields}
