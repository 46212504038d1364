"""Makes interleaved streams and says, from how each call was made, what must be decided of it.

Owns the shapes and the truth about them. It never runs callgate's code: what is expected follows from what was put in.
"""

import json
import random
from dataclasses import dataclass, field
from typing import Any

TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "name": "book_table",
        "parameters": {
            "type": "object",
            "properties": {
                "guests": {"type": "integer", "minimum": 1, "maximum": 12},
                "at": {"type": "string", "maxLength": 40},
            },
            "required": ["guests", "at"],
            "additionalProperties": False,
        },
    },
    {
        "type": "function",
        "name": "leave_note",
        "parameters": {
            "type": "object",
            "properties": {"text": {"type": "string"}, "tags": {"type": "array", "items": {"type": "string"}}},
            "required": ["text"],
            "additionalProperties": False,
        },
    },
]
STEP_MS = 20
"""Time between two records of a partition: the workload brings its own clock, so that expiry is part of the log."""
STREAM_TIMEOUT_MS, CLOSED_MEMORY_MS = 30_000, 5_000
"""Settings under which the expectations hold."""
OPEN_AT_ONCE = 12
WORDS = (
    *("please", "the", "table", "by", "window", "for", "guests", "and", "note"),
    *("that", "Zoë", "arrives", "late", "from", "東京", "with", "two", "dogs"),
)
FAULTS = (
    *["ok"] * 10,
    "arguments_schema",
    "arguments_parse",
    "unknown_tool",
    "conflict",
    "arguments_type",
    "namespaced",
    "not_function_call",
    "status",
)
ENDINGS = (*["completed"] * 12, "failed", "incomplete", "silent", "cancelled")


@dataclass(frozen=True)
class Call:
    """What is expected of one call."""

    reason: str
    arguments: str | None
    """The exact string, where it is approved."""


@dataclass
class Workload:
    """Records in the order in which they are to be written, and what must come of them."""

    records: list[tuple[int, bytes, bytes, int]] = field(default_factory=list)
    """Partition, key, value, timestamp before the last one in ms."""
    calls: dict[tuple[str, str, str], Call] = field(default_factory=dict)
    """By stream, response and call_id."""
    dead_letters: list[bytes] = field(default_factory=list)
    """Values that cannot be read; each is there once."""


def make(seed: int, events: int, partitions: int, prefix: str = "") -> Workload:
    """Make so many events, about, on so many partitions. `prefix`: of the stream ids, to keep workloads apart."""
    rng = random.Random(seed)
    work = Workload()
    lanes = [_lane(rng, work, number, events // partitions, prefix) for number in range(partitions)]
    for row in range(max(map(len, lanes))):
        for number, lane in enumerate(lanes):
            if row < len(lane):
                key, value = lane[row]
                # The last record shows that time went on: what is silent then has expired.
                late = STREAM_TIMEOUT_MS if row == len(lane) - 1 else 0
                work.records.append((number, key, value, row * STEP_MS + late))
    return work


def _lane(rng: random.Random, work: Workload, number: int, events: int, prefix: str) -> list[tuple[bytes, bytes]]:
    """One partition's records: streams interleaved, a few records that nobody can read."""
    active: list[tuple[bytes, list[bytes]]] = []
    lane: list[tuple[bytes, bytes]] = []
    streams = 0
    while len(lane) < events or active:
        while len(active) < OPEN_AT_ONCE and len(lane) < events:
            key = f"{prefix}conversation-{number}-{streams}"
            streams += 1
            # A stream that falls silent late would still be open at the end.
            may_fall_silent = (events - len(lane)) * STEP_MS > 2 * STREAM_TIMEOUT_MS
            active.append((key.encode(), _stream(rng, work, key, may_fall_silent)))
        key_bytes, queue = rng.choice(active)
        lane.append((key_bytes, queue.pop(0)))
        if not queue:
            active.remove((key_bytes, queue))
        if rng.random() < 0.004:
            value = f"no event {prefix}{number} {len(lane)} {{".encode() + bytes([0xFF] if rng.random() < 0.5 else [])
            work.dead_letters.append(value)
            lane.append((key_bytes, value))
    lane.append((b"clock", b'{"type": "keepalive"}'))
    return lane


def _event(kind: str, number: int, **fields: Any) -> bytes:
    return json.dumps({"type": kind, "sequence_number": number, **fields}, ensure_ascii=False).encode()


def _stream(rng: random.Random, work: Workload, key: str, may_fall_silent: bool) -> list[bytes]:
    """One or two responses under one key."""
    values: list[bytes] = []
    for turn in range(rng.choice((1, 1, 2))):
        response = f"resp-{key}-{turn}"
        ending = rng.choice([e for e in ENDINGS if may_fall_silent or e != "silent"])
        events = _response(rng, work, key, response, ending)
        values += events
        if ending == "silent":
            break
        if rng.random() < 0.15:
            # A client that reconnects sends everything again, perhaps cut off: nothing new is decided.
            values += events[: rng.randint(1, len(events))]
            if rng.random() < 0.5:
                values.append(events[-1])
    return values


def _response(rng: random.Random, work: Workload, key: str, response: str, ending: str) -> list[bytes]:
    events: list[bytes] = []

    def say(kind: str, **fields: Any) -> None:
        events.append(_event(kind, len(events), **fields))

    say("response.created", response={"id": response, "status": "in_progress", "output": [], "model": "some-model"})
    output: list[dict[str, Any]] = []
    calls = rng.randint(1, 4)
    if rng.random() < 0.5:
        output.append({"type": "message", "id": "m", "role": "assistant", "content": [], "status": "completed"})
        say("response.output_item.added", output_index=0, item={"type": "message", "id": "m", "role": "assistant"})
        for word in rng.sample(WORDS, 4):
            say("response.output_text.delta", output_index=0, item_id="m", content_index=0, delta=word)
        say("response.output_item.done", output_index=0, item=output[0])
    for place in range(calls):
        last = place == calls - 1
        fault = rng.choice(FAULTS)
        unfinished = ending in {"silent", "failed", "incomplete"} and last and rng.random() < 0.6
        item, expected = _item(rng, fault, f"call-{place}-{rng.randrange(10**6)}")
        told = _tell(rng, say, len(output), item, fault, unfinished)
        # Rule 17: the last entry of the list counts as cut off, so the one that was is in it.
        output.append({**item, "arguments": told, "status": "incomplete"} if unfinished else item)
        work.calls[key, response, item["call_id"]] = Call(*_expected(fault, expected, ending, last, unfinished))
        if unfinished:
            break
    if ending != "silent":
        status = {"completed": "completed", "incomplete": "incomplete"}.get(ending, ending)
        kind = {"cancelled": "response.failed"}.get(ending, f"response.{ending}")
        listed = [] if ending in {"failed", "cancelled"} else output
        say(kind, response={"id": response, "status": status, "model": "some-model", "output": listed})
    return events


def _expected(fault: str, arguments: str, ending: str, last: bool, unfinished: bool) -> tuple[str, str | None]:
    """Reason and arguments by the order of reasons (design section 5)."""
    if fault in {"namespaced", "not_function_call"}:
        return fault, None
    if ending == "silent":
        # Rule 20: unfinished ones too; only a finished one may have another status.
        return ("status" if fault == "status" and not unfinished else "timeout"), None
    if fault == "status" or unfinished or ending in {"failed", "cancelled"} or (ending == "incomplete" and last):
        return "status", None
    return fault, arguments if fault == "ok" else None


def _item(rng: random.Random, fault: str, call_id: str) -> tuple[dict[str, Any], str]:
    """The finished item of a call with this fault, and its arguments."""
    name = rng.choice(("book_table", "leave_note"))
    value: dict[str, Any] = {"guests": rng.randint(1, 12), "at": f"{rng.randint(10, 22)}:00"}
    if name == "leave_note":
        value = {"text": " ".join(rng.choices(WORDS, k=rng.randint(3, 30)))}
    if fault == "arguments_schema":
        value["surplus"] = True
    text = json.dumps(value, ensure_ascii=rng.random() < 0.5)
    if fault == "arguments_parse":
        text = text[:-1]
    item: dict[str, Any] = {"type": "function_call", "id": f"fc_{call_id}", "call_id": call_id, "name": name}
    item |= {"arguments": text, "status": "completed"}
    if fault == "unknown_tool":
        item["name"] = "no_such_tool"
    elif fault == "arguments_type":
        item["arguments"] = value
    elif fault == "namespaced":
        item["type"] = "vendor:lookup"
    elif fault == "not_function_call":
        item["type"] = "custom_tool_call"
    elif fault == "status":
        item["status"] = "in_progress"
    return item, text


def _tell(rng: random.Random, say: Any, index: int, item: dict[str, Any], fault: str, unfinished: bool) -> str:
    """The events of one item; returns the arguments that were told."""
    text = item["arguments"] if isinstance(item["arguments"], str) else json.dumps(item["arguments"])
    say("response.output_item.added", output_index=index, item={**item, "arguments": "", "status": "in_progress"})
    told = ""
    if item["type"] == "function_call" and fault != "arguments_type":
        pieces = [text[at : at + 7] for at in range(0, len(text), 7)]
        if fault == "conflict":
            pieces[-1] += " "
        if unfinished:
            pieces = pieces[: rng.randint(0, len(pieces) - 1)]
        for piece in pieces:
            say("response.function_call_arguments.delta", output_index=index, item_id=item["id"], delta=piece)
        told = "".join(pieces)
        if not unfinished:
            say("response.function_call_arguments.done", output_index=index, item_id=item["id"], arguments=text)
    if not unfinished:
        say("response.output_item.done", output_index=index, item=item)
    return told
