"""The oracle's own decoding: what a record's value and key say, in the forms that the generator writes.

Owns bytes to parts. A part is a dict with one of `event`, `whole`, `request` or `journal`.
"""

import json
from collections.abc import Sequence
from typing import Any

from tests.factories import Json, Record


def stream_of(record: Record, parts: Sequence[Json], key_header: str) -> str | None:
    """The record key, else the configured header, else the payload's response id."""
    if record.key is not None:
        return record.key.decode()
    for name, value in record.headers:
        if key_header and name == key_header and value is not None:
            return value.decode()
    bodies = [p["whole"] if "whole" in p else p.get("event", {}).get("response") for p in parts]
    return next((b["id"] for b in bodies if isinstance(b, dict) and isinstance(b.get("id"), str)), None)


def parts_of(value: bytes | None) -> list[Json] | None:
    """What a record's value says, in the forms that the generator writes; None for a dead letter."""
    if not value:
        return None
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return None
    if any(line.startswith("data:") for line in text.splitlines()):
        return frames_of(text)
    try:
        body = STRICT.decode(text)
    except ValueError:
        return None
    if isinstance(body, list):
        if not body or not all(isinstance(entry, dict) for entry in body):
            return None
        return [{"event": e} for e in body] if _is_event(body[0]) else [{"journal": body}]
    if not isinstance(body, dict) or str(body.get("object")).startswith("chat.completion"):
        return None
    if body.get("object") == "response":
        return [{"whole": body}]
    if body.get("type") == "response.create":
        return [{"request": body.get("response") or body}]
    if not isinstance(body.get("type"), str):
        return None
    return [{"event": body}] if _is_event(body) else [{"journal": [body], "single": True}]


def frames_of(text: str) -> list[Json] | None:
    """Server-Sent-Events text; one unreadable frame makes the whole record unreadable (rule 26)."""
    parts: list[Json] = []
    for frame in text.replace("\r\n", "\n").split("\n\n"):
        lines = [line for line in frame.split("\n") if line and not line.startswith(":")]
        data = "\n".join(line[5:].removeprefix(" ") for line in lines if line.startswith("data:"))
        label = next((line[6:].strip() for line in lines if line.startswith("event:")), None)
        if not data or data == "[DONE]":
            continue
        try:
            event = STRICT.decode(data)
        except ValueError:
            return None
        parts.append({"event": event, "mislabelled": label is not None and label != event["type"]})
    return parts


def _is_event(body: Json) -> bool:
    kind = body.get("type")
    if not isinstance(kind, str):
        return False
    if ":" in kind:
        return "sequence_number" in body and "call_id" not in body
    return kind.startswith("response.") or kind in ("error", "keepalive")


def _refuse(word: str) -> Any:
    raise ValueError(word)


STRICT = json.JSONDecoder(parse_constant=_refuse)
"""Made once: making it takes as long as reading an event."""
