"""Logs for fuzzing: any bytes, events with fields of any type, and the shipped fixtures with something done to them."""

import json
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from processor.adapters.archive import Archive
from processor.core.limits import TOLERANCES, Bounds
from tests.factories import START_MS, Record
from tests.quirks import FIXTURES

SHIPPED: dict[str, list[bytes]] = {
    path.name: [record.value or b"" for record in Archive("t").read(str(path))] for path in sorted(FIXTURES.glob("*.jsonl"))
}
"""Values of every fixture's records, by its file."""

bounds = st.builds(
    lambda tolerate, **sizes: Bounds(tolerate=tuple(sorted(tolerate)), **sizes),
    release=st.sampled_from(["response", "item"]),
    tolerate=st.sets(st.sampled_from(TOLERANCES)) | st.just(set()),
    max_calls=st.sampled_from([128, 128, 1, 2]),
    max_argument_bytes=st.sampled_from([1 << 20, 1 << 20, 64, 8]),
    max_response_bytes=st.sampled_from([8 << 20, 8 << 20, 4000, 400]),
    max_streams=st.sampled_from([100_000, 100_000, 2, 1]),
)
"""Settings, with bounds small enough to be hit."""

EVENT_TYPES = (
    *(f"response.{name}" for name in ("created", "in_progress", "completed", "incomplete", "failed", "cancelled", "queued")),
    *(f"response.output_item.{name}" for name in ("added", "done", "added", "done", "added", "done")),
    *(f"response.function_call_arguments.{name}" for name in ("delta", "done", "delta", "done")),
    *("error", "keepalive", "a:b", "response.output_text.delta", "response.create", "response.completed"),
)

words = st.sampled_from(
    [
        "", "call_1", "call_2", "get_weather", "list_alerts", "refund_order", "completed", "in_progress", "incomplete",
        "{}", '{"city":"Leeds"}', '{"city":', '"Leeds"}', '{"city":"Bergen"}', "functions", "resp_1", "resp_2", "failed",
        "\ud83d", "\udf0a", "function_call", "message", "a:b", "x" * 200,
    ]
)  # fmt: skip
scalars = words | st.none() | st.booleans() | st.integers(-2, 3) | st.just(1 << 70) | st.floats(allow_nan=False)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(words, inner, max_size=2), max_leaves=4
)
indexes = st.sampled_from([0, 0, 0, 1, 1, 2]) | values


def mostly(usual: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """What a server would send, and now and then anything at all."""
    return st.integers(0, 7).flatmap(lambda n: values if n == 0 else usual)


items = st.fixed_dictionaries(
    {
        "type": mostly(st.sampled_from(["function_call", "function_call", "function_call", "message", "custom_tool_call"])),
        "call_id": mostly(st.sampled_from(["call_1", "call_1", "call_2"])),
        "name": mostly(st.sampled_from(["get_weather", "get_weather", "list_alerts"])),
        "arguments": mostly(st.sampled_from(['{"city":"Leeds"}', '{"city":"Leeds"}', "{}", "", {"city": "Leeds"}])),
        "status": mostly(st.sampled_from(["completed", "completed", "in_progress"])),
    },
    optional={"namespace": values, "id": values, "content": values, "role": values, "execution": values},
)
responses = st.fixed_dictionaries(
    {"id": mostly(st.just("resp_1")), "status": mostly(st.sampled_from(["completed", "in_progress"]))},
    optional={
        "object": mostly(st.just("response")),
        "output": mostly(st.lists(items | st.none(), max_size=2)),
        "tools": values,
        "tool_choice": values,
        "parallel_tool_calls": values,
        "model": values,
    },
)
events = st.fixed_dictionaries(
    {"type": mostly(st.sampled_from(EVENT_TYPES)), "output_index": indexes},
    optional={
        "sequence_number": st.integers(0, 9) | values,
        "item": mostly(items),
        "response": mostly(responses),
        "delta": mostly(st.sampled_from(['{"city":', '"Leeds"}', '{"city":"Leeds"}', ""])),
        "arguments": mostly(st.just('{"city":"Leeds"}')),
        "name": values,
        "call_id": values,
    },
)
forms = events | events | events | items | responses | st.lists(events, max_size=3) | st.lists(items, max_size=3) | values


def written(value: Any) -> bytes:
    """JSON text; lone surrogates as escapes."""
    return json.dumps(value, separators=(",", ":")).encode()


@st.composite
def placed(draw: st.DrawFn, contents: st.SearchStrategy[list[bytes]]) -> list[Record]:
    """Give values offsets, keys and times."""
    at, offset = START_MS, 0
    log: list[Record] = []
    keys = st.sampled_from([b"a", b"a", b"a", b"b", b"c"])
    for value in draw(contents):
        at += draw(st.sampled_from([1, 1, 1, 1, 60_000, 21 * 60_000, -60_000]))
        offset += draw(st.sampled_from([1, 1, 1, 5]))
        log.append(Record(offset, max(at, 0), draw(keys | st.none() if not log else keys), value))
    return log


MOVES = ("drop", "double", "swap", "move")
"""Changes that leave every record as a server wrote it."""
HOWS = (*MOVES, "value", "value", "value", "name", "cut", "bytes")


def changes(hows: Sequence[str]) -> st.SearchStrategy[tuple[str, int, int, Any, bytes]]:
    """Something to do to a log: what, where, where to, and with what."""
    return st.tuples(st.sampled_from(hows), st.integers(0, 60), st.integers(0, 60), values, st.binary(max_size=3))


def change(log: list[bytes], one: tuple[str, int, int, Any, bytes]) -> list[bytes]:
    """Do one thing to a log."""
    how, first, second, value, raw = one
    if not log:
        return log
    a, b = first % len(log), second % len(log)
    out = list(log)
    if how == "drop":
        del out[a]
    elif how == "double":
        out.insert(b, out[a])
    elif how == "swap":
        out[a], out[b] = out[b], out[a]
    elif how == "move":
        out.insert(b, out.pop(a))
    elif how == "cut":
        out[a] = out[a][: second * len(out[a]) // 61]
    elif how == "bytes":
        at = second * len(out[a]) // 61
        out[a] = out[a][:at] + raw + out[a][at + len(raw) :]
    else:
        out[a] = altered(out[a], second, value, rename=how == "name")
    return out


def altered(text: bytes, place: int, value: Any, *, rename: bool) -> bytes:
    """Put another value at one place of a JSON text, or another name in its place."""
    try:
        whole = json.loads(text)
    except ValueError:
        return text
    places = list(spots(whole))
    if not places:
        return text
    holder, name = places[place % len(places)]
    if rename and isinstance(holder, dict):
        holder[str(value)] = holder.pop(name)
    else:
        holder[name] = value
    return written(whole)


def spots(value: Any) -> Sequence[tuple[Any, Any]]:
    """Every (holder, name or index) in a JSON value."""
    found: list[tuple[Any, Any]] = []
    pairs = list(value.items()) if isinstance(value, dict) else list(enumerate(value)) if isinstance(value, list) else []
    for name, member in pairs:
        found.append((value, name))
        found += spots(member)
    return found


@st.composite
def changed(draw: st.DrawFn, names: Sequence[str] = tuple(SHIPPED), one_of: Sequence[str] = HOWS) -> list[bytes]:
    """One to three fixtures, one after the other, with up to four changes."""
    log: list[bytes] = []
    for name in draw(st.lists(st.sampled_from(names), min_size=1, max_size=3)):
        log += SHIPPED[name]
    for one in draw(st.lists(changes(one_of), max_size=4)):
        log = change(log, one)
    return log


anything = placed(st.lists(st.binary(max_size=40), max_size=6))
structured = placed(st.lists(forms.map(written), max_size=10))
mutated = placed(changed())

BEYOND_REFERENCE = (
    "cloudevents",
    "sse-event-message",
    "sse-several-data-lines",
    "delta-without-index",
    "response-without-status",
)
"""Fixtures whose forms the naive reference does not read."""
REFERENCE_NAMES = tuple(name for name in SHIPPED if name.removesuffix(".jsonl") not in BEYOND_REFERENCE)
reordered = placed(changed(REFERENCE_NAMES, MOVES))
reference_bounds = st.builds(
    lambda release, tolerate: Bounds(release=release, tolerate=tuple(sorted(tolerate))),
    st.sampled_from(["response", "item"]),
    # Whether `response_id_rotates` holds for response.created too, core and reference read differently: rule 13 says no.
    st.sets(st.sampled_from(sorted({*TOLERANCES} - {"response_id_rotates"})), max_size=2),
)
