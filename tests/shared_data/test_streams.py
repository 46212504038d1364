"""Every recording beside the repository goes through the core; what is demanded comes from its manifest and the rules.

The demands are computed here a second time, from the manifest's list of calls, the tools that the recording echoes and the
`jsonschema` package, never from the code under test.
"""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.factories import START_MS, Record
from tests.shared_data.reader import SHARED, answer, lines

FOLDER = SHARED / "streams"
MANIFEST = lines(FOLDER / "manifest.jsonl") if FOLDER.is_dir() else []
pytestmark = pytest.mark.skipif(not MANIFEST, reason="the recordings are not here")

ACTING = (
    "custom_tool_call", "mcp_approval_request", "local_shell_call", "shell_call", "apply_patch_call", "computer_call",
)  # fmt: skip
"""Item types that ask the client to act and are no function calls, as they come up in the recordings."""

Json = dict[str, Any]


def payloads(entry: Json) -> list[str]:
    """The recording's lines, as they were sent."""
    path: Path = FOLDER / entry["file"]
    return path.read_text(encoding="utf-8").splitlines()


def log_of(entry: Json) -> list[Record]:
    """The recording on a topic: a record for each line; a journal is one record."""
    sent = payloads(entry)
    if entry["kind"] == "journal":
        sent = ["[" + ",".join(sent) + "]"]
    values = ["data: [DONE]\n\n" if line == "[DONE]" else line for line in sent]
    return [Record(i, START_MS + i, entry["file"].encode(), value.encode()) for i, value in enumerate(values)]


def bodies(entry: Json) -> list[Json]:
    """Every JSON object of the recording."""
    return [json.loads(line) for line in payloads(entry) if line != "[DONE]"]


def echoed(entry: Json) -> list[Json]:
    """The function tools that the recording's responses echo."""
    found = []
    for body in bodies(entry):
        response = body if body.get("object") == "response" else body.get("response") or {}
        found += [t for t in response.get("tools") or [] if t.get("type") == "function"]
    return list({t["name"]: t for t in found}.values())


def made_for(entry: Json) -> list[tuple[str | None, Json]]:
    """A registry in which every call of the recording fits its tool: (namespace, tool)."""
    properties: dict[tuple[str | None, str], Json] = {}
    for call in entry["function_calls"]:
        try:
            names = json.loads(call["arguments"])
        except ValueError:
            names = {}
        properties.setdefault((call.get("namespace"), call["name"]), {}).update(dict.fromkeys(names, True))
    return [
        (namespace, {
            "type": "function",
            "name": name,
            "parameters": {"type": "object", "properties": allowed, "additionalProperties": False},
        })
        for (namespace, name), allowed in properties.items()
    ]  # fmt: skip


def demanded(entry: Json, release: str, schemas: dict[str, Json] | None) -> Counter[tuple[str | None, str]]:
    """What must be decided: (call_id, reason). `schemas`: by tool name; None where every call fits."""
    wanted: Counter[tuple[str | None, str]] = Counter()
    seen: dict[tuple[str, int], tuple[Any, ...]] = {}
    calls: list[Json] = entry["function_calls"]
    listed = entry.get("terminal_function_calls") or calls
    renamed = {c["call_id"] for c in calls} - {c["call_id"] for c in listed}
    for place, call in enumerate(calls):
        content = (call["name"], call["arguments"], call.get("namespace"))
        # Across responses a call_id may come again; the manifest does not say which response a call is of.
        first = seen.setdefault((call["call_id"], 0), content) == content or entry["responses"] > 1
        held = release == "response" or entry["kind"] == "response"
        if call["status"] != "completed" or (held and entry["terminal"] in ("response.failed", "none")):
            reason = "status"
            if entry["kind"] == "stream" and entry["terminal"] == "none":
                reason = "timeout"
            if entry["kind"] == "journal" and call["status"] == "completed":
                reason = _gate(entry, call, schemas)
        elif not first:
            reason = "identity"
        elif call["call_id"] in renamed and release == "response":
            reason = "conflict"
        else:
            reason = _gate(entry, call, schemas)
        last = place == len(calls) - 1 and not entry["other_item_types"]
        if entry["terminal"] == "response.incomplete" and last and release == "response":
            reason = "status"
        wanted[call["call_id"], reason] += 1
    return wanted


def _gate(entry: Json, call: Json, schemas: dict[str, Json] | None) -> str:
    choice = entry["tool_choice"]
    if entry["kind"] != "journal" and isinstance(choice, dict) and choice.get("name") != call["name"]:
        return "not_allowed"
    if schemas is not None and call["name"] not in schemas:
        return "unknown_tool"
    try:
        value = json.loads(call["arguments"])
    except ValueError:
        return "arguments_parse"
    fits = schemas is None or jsonschema.Draft202012Validator(schemas[call["name"]]).is_valid(value)
    return "ok" if fits and isinstance(value, dict) else "arguments_schema"


def outputs_without_calls(entry: Json) -> Counter[tuple[str | None, str]]:
    """Rule 30: in a journal, each output that follows no completed call of its call_id."""
    wanted: Counter[tuple[str | None, str]] = Counter()
    completed = set()
    for item in bodies(entry) if entry["kind"] == "journal" else []:
        if item.get("type") == "function_call" and item.get("status") == "completed":
            completed.add(item["call_id"])
        if item.get("type") == "function_call_output" and item["call_id"] not in completed:
            wanted[item["call_id"], "identity"] += 1
    return wanted


def acting(entry: Json) -> int:
    """How many finished items of the recording ask the client to act without being function calls."""
    done = [body["item"] for body in bodies(entry) if body.get("type") == "response.output_item.done" and body.get("item")]
    whole = [item for body in bodies(entry) if body.get("object") == "response" for item in body.get("output") or []]
    journal = bodies(entry) if entry["kind"] == "journal" else []
    items = [*done, *whole, *journal]
    # A tool search that the provider leaves to the client is named by a call_id.
    searches = [i for i in items if i.get("type") == "tool_search_call" and i.get("execution") == "client"]
    return sum(item.get("type") in ACTING for item in items) + len(searches)


def check(entry: Json, release: str, tools: str) -> None:
    """Compare what the core decides with what is demanded."""
    schemas = {t["name"]: t["parameters"] for t in echoed(entry)} if tools == "stream" else None
    got = answer(log_of(entry), release=release, tools=tools, registry=made_for(entry) if tools == "registry" else [])
    decided = Counter(d for d in got.decisions if d[1] != "not_function_call")
    others = sum(reason == "not_function_call" for _, reason in got.decisions)
    assert got.dead_letters == 0
    assert decided == demanded(entry, release, schemas) + outputs_without_calls(entry)
    assert others == acting(entry)


@pytest.mark.parametrize("release", ["response", "item"])
@pytest.mark.parametrize("entry", MANIFEST, ids=[e["file"] for e in MANIFEST])
def test_recording_with_tools_made_for_it(entry: Json, release: str) -> None:
    """With a registry in which every call fits, a recording's calls are decided by their state alone (sections 4 and 5)."""
    check(entry, release, "registry")


@pytest.mark.parametrize("release", ["response", "item"])
@pytest.mark.parametrize(
    "entry",
    [e for e in MANIFEST if e["kind"] != "journal" and e["response_tools"]],
    ids=lambda e: e["file"],
)
def test_recording_with_the_tools_it_echoes(entry: Json, release: str) -> None:
    """With `tools = "stream"`, a recording's calls are judged by the tools that its responses echo."""
    check(entry, release, "stream")
