"""What must hold for whatever comes out of a partition, checked from the records alone.

Owns a small, independent reading of "approved": the call was written, word for word, where the decision says; the pieces at
its place agree where that can be told without a state machine; the record that released it ends a response well (or is one);
and its text is I-JSON that fits the schema, by another parser and another validator. It never imports the code under test.
"""

import json
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema

from tests.core.readers import other_reader
from tests.factories import Json, Record

TOOLS = Path(__file__).resolve().parents[2] / "processor" / "demo" / "tools"
SCHEMAS: dict[str, Json] = {
    tool["name"]: tool["parameters"]
    for tool in (json.loads(path.read_text(encoding="utf-8")) for path in sorted(TOOLS.glob("*.json")))
}
"""Parameters by tool name, as the registry under test has them."""
_VALID = {name: jsonschema.Draft202012Validator(schema).is_valid for name, schema in SCHEMAS.items()}
GOOD_ENDS = ("response.completed", "response.incomplete")
GOOD_STATUSES = ("completed", "incomplete")
RENAMED = "call_id_renamed"
FRAGMENTS = ("response.function_call_arguments.delta", "response.function_call_arguments.done")
ITEM_EVENTS = ("response.output_item.added", "response.output_item.done", *FRAGMENTS)


class Wrong(AssertionError):
    """Something was approved that must not be."""


def check_approval(body: Json, log: Sequence[Record], release: str) -> None:
    """Hold one approval against the log. Raises Wrong."""
    source = body["source"]
    span = [r for r in log if source["first_offset"] <= r.offset <= source["last_offset"] and _under(body, r)]
    _fits(body)
    _was_written(body, span)
    _ended_well(body, span, release)
    _place_agrees(body, span)


def check_once(bodies: Sequence[tuple[int, Json]], closed_memory_ms: int) -> None:
    """No call of a response is approved twice while the response is known; `bodies`: (timestamp, approval), in order."""
    seen: dict[str, int] = {}
    for at, body in bodies:
        if body["response_id"] is None:
            continue
        before = seen.get(body["id"])
        _hold(before is None or at - before >= closed_memory_ms, "the same call was approved twice", body)
        seen[body["id"]] = at


def _fits(body: Json) -> None:
    """The text is I-JSON, and its value fits the schema of the tool of its name."""
    text = body["arguments"]
    _hold(isinstance(text, str) and body["name"] in SCHEMAS, "no text, or no tool of that name", body)
    try:
        value = other_reader(text)
    except ValueError:
        raise Wrong(f"another parser refuses it: {body}") from None
    _hold(isinstance(value, dict) and _VALID[body["name"]](value), "another validator refuses it", body)
    _hold(
        body["item"]["arguments"] == text and body["item"]["call_id"] == body["call_id"], "the item says something else", body
    )


def _was_written(body: Json, span: Sequence[Record]) -> None:
    """Some record of the call's own span has the whole call, completed."""
    tolerated = body.get("tolerated", ())
    for record in span:
        for found in objects(record.value):
            status = found.get("status")
            done = status == "completed" or (status is None and "status_absent" in tolerated)
            same = found.get("name") == body["name"] and (found.get("call_id") == body["call_id"] or RENAMED in tolerated)
            if found.get("type") == "function_call" and done and same and _same_text(found.get("arguments"), body):
                return
    raise Wrong(f"nobody wrote it: {body}")


def _same_text(written: Any, body: Json) -> bool:
    if written == body["arguments"]:
        return True
    tolerated = body.get("tolerated", ())
    if written == "" and "empty_arguments" in tolerated:
        return bool(body["arguments"] == "{}")
    return isinstance(written, dict) and "arguments_object" in tolerated and json.loads(body["arguments"]) == written


def _ended_well(body: Json, span: Sequence[Record], release: str) -> None:
    """The record that released it ends a response well, is whole by itself, or (`item`) finishes an item."""
    last = span[-1]
    _hold(last.offset == body["source"]["last_offset"], "the record that released it is not under its key", body)
    released = False
    for found in objects(last.value):
        kind = found.get("type")
        released |= kind in GOOD_ENDS or (found.get("object") == "response" and found.get("status") in GOOD_STATUSES)
        released |= kind == "function_call" and body["response_id"] is None
        released |= release == "item" and kind == "response.output_item.done"
    _hold(released, "what released it is no good end", body)
    for record in span[1:-1]:
        _hold(all(found.get("type") != "error" for found in objects(record.value)), "an error came before its end", body)


def _place_agrees(body: Json, span: Sequence[Record]) -> None:
    """Where its output index was used by one announced call and nothing else, every piece there says the same."""
    events = [found for record in span for found in objects(record.value) if found.get("type") in ITEM_EVENTS]
    places = [
        e.get("output_index")
        for e in events
        if e["type"] == "response.output_item.done" and isinstance(e.get("item"), dict) and _is(e["item"], body)
    ]
    if len(places) != 1 or type(places[0]) is not int or any(type(e.get("output_index")) is not int for e in events):
        return
    mine = [e for e in events if e["output_index"] == places[0]]
    kinds = "".join("adfe"[ITEM_EVENTS.index(e["type"])] for e in mine)
    numbers = [e.get("sequence_number") for e in mine]
    # One announcement, fragments, the end; numbers that drop a repeat, and a stream that starts again, are another matter.
    plain = all(number is None for number in numbers) or len(set(map(repr, numbers))) == len(numbers)
    again = any(found.get("type") == "response.created" for record in span[1:] for found in objects(record.value))
    if re.fullmatch("af*e?d", kinds) is None or not plain or again:
        return
    joined = "".join(e["delta"] for e in mine if e["type"] == FRAGMENTS[0] and isinstance(e.get("delta"), str))
    _hold(all(isinstance(e.get("delta"), str) for e in mine if e["type"] == FRAGMENTS[0]), "a fragment is no text", body)
    said = [e["item"] if isinstance(e.get("item"), dict) else e for e in mine if e["type"] != FRAGMENTS[0]]
    for name in ("name", "call_id"):
        texts = {repr(piece.get(name)) for piece in said if piece.get(name) not in (None, "")}
        _hold(len(texts) <= 1, f"two pieces differ in {name}", body)
    whole = [piece.get("arguments") for piece in said if piece.get("arguments") not in (None, "", "{}", {})]
    for text in (*whole, *([_paired(joined)] if joined else [])):
        _hold(_same_text(text, body) or text == body["arguments"], "two pieces differ in arguments", body)


def _is(item: Json, body: Json) -> bool:
    return item.get("type") == "function_call" and item.get("call_id") == body["call_id"]


def _under(body: Json, record: Record) -> bool:
    return record.key is None or record.key.decode("utf-8", "replace") == body["stream"]


def _paired(text: str) -> str:
    """Join the halves of surrogate pairs."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


def _hold(condition: bool, why: str, body: Json) -> None:
    if not condition:
        raise Wrong(f"{why}: {body}")


def objects(value: bytes | None) -> Sequence[Json]:
    """Every JSON object that a value holds at any depth, in order, whatever the form of the record."""
    return _objects(value or b"")


@cache
def _objects(value: bytes) -> Sequence[Json]:
    found: list[Json] = []
    for text in _texts(value.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace")):
        try:
            found += _walk(json.loads(text))
        except (ValueError, RecursionError):
            continue
    return found


def _texts(text: str) -> Iterator[str]:
    """The text itself, and the data of each Server-Sent-Events frame in it."""
    yield text
    if "data" in text:
        for frame in re.split(r"(?:\r\n|\r|\n){2}", text):
            lines = [line[5:].removeprefix(" ") for line in re.split(r"\r\n|\r|\n", frame) if line.startswith("data:")]
            if lines:
                yield "\n".join(lines)


def _walk(value: Any) -> Iterator[Json]:
    if isinstance(value, dict):
        yield value
        for member in value.values():
            yield from _walk(member)
        # CloudEvents carry the event as text, too.
        if isinstance(value.get("data"), str):
            yield from _objects(value["data"].encode("utf-8", "surrogatepass"))
    elif isinstance(value, list):
        for member in value:
            yield from _walk(member)
