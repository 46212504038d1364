"""`callgate check`: the field's published example, every item's verdict, and what it says to people and programs."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import callgate

FIXTURES = Path(__file__).parents[1] / "fixtures"
EXAMPLE = [json.loads(line) for line in (FIXTURES / "published_example.jsonl").read_text().splitlines()]
TOOLS = f"schemas={FIXTURES / 'published_example_tools'}"


def verdicts(content: str | list[Any] | dict[str, Any], *sets: str) -> tuple[int, list[dict[str, Any]]]:
    """Exit code and verdicts, as programs get them."""
    text = content if isinstance(content, str) else json.dumps(content)
    options = [part for each in (TOOLS, *sets) for part in ("--set", each)]
    ended = callgate("check", "--json", *options, stdin=text.encode())
    assert ended.err == ""
    return ended.code, [json.loads(line) for line in ended.out.splitlines()]


def call(**fields: Any) -> dict[str, Any]:
    """The example's call, changed."""
    example: dict[str, Any] = json.loads(EXAMPLE[0]["payload"])
    return example | fields


@pytest.mark.parametrize("case", EXAMPLE, ids=lambda case: case["case"])
def test_published_example(case: dict[str, Any]) -> None:
    """Issue 3, item 10: the field's published example is decided as published, and the exit code says so."""
    code, found = verdicts(case["payload"])
    decided = [[each.get("call_id"), each["reason"]] for each in found if each["verdict"] in {"approved", "rejected"}]
    assert decided == case["expect"]
    assert code == (0 if all(reason == "ok" for _, reason in case["expect"]) else 1)


def test_output_that_answers_is_fine() -> None:
    """A journal in which `function_call_output` follows its call has a verdict for both, and none is a fault."""
    code, found = verdicts([call(), {"type": "function_call_output", "call_id": "call_123", "output": "1"}])
    assert (code, [each["verdict"] for each in found]) == (0, ["approved", "fine"])


@pytest.mark.parametrize("item", [{"type": "message", "role": "user"}, {"type": "reasoning"}, {"type": "web_search_call"}])
def test_single_counted_item(item: dict[str, str]) -> None:
    """Rule 33: what a stream only counts is `not_function_call` when it is checked by itself."""
    code, found = verdicts(item | {"status": "completed", "content": []})
    assert (code, [each["reason"] for each in found]) == (1, ["not_function_call"])


def test_counted_items_of_a_response() -> None:
    """Rule 33: inside of a response every item has a verdict too, in its place; the exit code is that of the calls."""
    output = [{"type": "reasoning", "id": "rs_1"}, call(), {"type": "message", "role": "assistant", "content": []}]
    code, found = verdicts({"object": "response", "id": "r", "status": "completed", "output": output})
    assert [each["reason"] for each in found] == ["not_function_call", "ok", "not_function_call"]
    assert code == 0


def test_same_call_again() -> None:
    """The same call delivered again is one decision, and the second is said to be a repeat."""
    code, found = verdicts([call(), call()])
    assert (code, [each["verdict"] for each in found]) == (0, ["approved", "fine"])


@pytest.mark.parametrize(
    ("content", "tolerance"),
    [
        (call(arguments={"region": "apac"}), "arguments_object"),
        (call(namespace="functions"), "namespace_functions"),
        ({key: value for key, value in call().items() if key != "status"}, "status_absent"),
        (call(arguments='{"region":"mars"}'), None),
    ],
)
def test_names_the_tolerance(content: dict[str, Any], tolerance: str | None) -> None:
    """A rejection says which tolerance would have let it through, and with that one it is let through."""
    code, (found,) = verdicts(content)
    assert (code, found.get("tolerance")) == (1, tolerance)
    if tolerance:
        code, (found,) = verdicts(content, f"tolerate={tolerance}")
        assert (code, found["verdict"]) == (0, "approved")


def test_stream_as_server_sent_events() -> None:
    """A raw SSE text is read as the stream that it is."""
    done = {"type": "response.output_item.done", "output_index": 0, "item": call()}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": {"id": "r"}},
        done,
        {"type": "response.completed", "response": {"id": "r", "status": "completed", "output": [call()]}},
    ]
    text = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"
    assert [each["verdict"] for each in verdicts(text)[1]] == ["approved"]
    lines = "\n".join(json.dumps(event) for event in events)
    assert [each["verdict"] for each in verdicts(lines)[1]] == ["approved"]
    cut = "\n".join(json.dumps(event) for event in events[:2])
    assert [each["reason"] for each in verdicts(cut)[1]] == ["timeout"]


@pytest.mark.parametrize("content", ["", "{", "nonsense", '{"object":"chat.completion","choices":[]}'])
def test_unreadable(content: str) -> None:
    """What cannot be read is said to be so, with its cause, and is no approval."""
    code, found = verdicts(content)
    assert (code, [each["verdict"] for each in found]) == (1, ["unreadable"])


def test_for_people() -> None:
    """People read the reason, what it means, and where the arguments do not fit; never an argument value."""
    ended = callgate("check", "--set", TOOLS, stdin=json.dumps(call(arguments='{"region":"atlantis"}')).encode())
    assert ended.code == 1
    assert "✗ rejected arguments_schema get_latest_sales_report call_123" in ended.out
    assert "do not fit the tool's schema" in ended.out
    assert 'at /region: must be one of "apac", "emea", "amer" (schema: /properties/region/enum)' in ended.out
    assert "atlantis" not in ended.out


def test_for_people_with_the_tools_of_the_stream() -> None:
    """What a schema of the stream asks for is said as well, and a missing member is named, once."""
    tool = {"type": "function", "name": "pay", "parameters": {"type": "object", "required": ["amount"]}}
    output = [call(name="pay", arguments="{}")]
    content = {"object": "response", "id": "r", "status": "completed", "tools": [tool], "output": output}
    ended = callgate("check", "--set", "tools=stream", stdin=json.dumps(content).encode())
    assert ended.code == 1
    assert ended.out.splitlines()[-1] == '  at the top: is missing: "amount" (schema: /required)'
    assert ended.out.count("amount") == 1


def test_a_message_asks_nobody_to_act() -> None:
    """Rule 33: of a message it is said that streams only count it, and not that it asks the client to act."""
    ended = callgate("check", "--set", TOOLS, stdin=b'{"type": "message", "role": "user", "content": []}')
    assert ended.out.splitlines() == [
        "✗ rejected not_function_call message",
        "  A stream only counts such items: nobody executes them.",
    ]
    asks = callgate("check", "--set", TOOLS, stdin=b'{"type": "custom_tool_call", "call_id": "c", "name": "x", "input": ""}')
    assert "It asks the client to act" in asks.out


def test_markup_in_names_is_not_obeyed() -> None:
    """Names come from the wire: brackets in them are text."""
    ended = callgate("check", "--set", TOOLS, stdin=json.dumps(call(name="[red]x[/nope]", call_id="[b]")).encode())
    assert ended.code == 1
    assert "[red]x[/nope] [b]" in ended.out


def test_control_characters_are_shown_not_sent() -> None:
    """Names come from the wire: escape sequences for the terminal, and lone surrogates, are shown as escapes."""
    content = json.dumps(call(name="\x1b[2Jx\ud83d")).encode()
    ended = callgate("check", "--set", TOOLS, stdin=content)
    assert (ended.code, ended.err) == (1, "")
    assert "\\x1b[2Jx\\ud83d" in ended.out
    assert "\x1b" not in ended.out
    (line,) = callgate("check", "--json", "--set", TOOLS, stdin=content).out.splitlines()
    assert json.loads(line)["name"] == "\x1b[2Jx\ud83d"


def test_file(tmp_path: Path) -> None:
    """A file is read as standard input is; one that is not there is a sentence and its exit code."""
    path = tmp_path / "call.json"
    path.write_text(json.dumps(call(), indent=2))
    assert callgate("check", str(path), "--set", TOOLS).code == 0
    missing = callgate("check", str(tmp_path / "none.json"), "--set", TOOLS)
    assert (missing.code, missing.err) == (6, f"callgate: {tmp_path / 'none.json'}: No such file or directory.\n")


@pytest.mark.parametrize("command", ["check", "replay"])
def test_a_folder_without_tools_is_warned_of(command: str, tmp_path: Path) -> None:
    """An empty folder, or the wrong one, is said on standard error, with the files that are not read."""
    (tmp_path / "README.md").write_text("Tools.")
    (tmp_path / "refund.jsn").write_text("{}")
    item = tmp_path / ".call.json"
    item.write_text(json.dumps(call()))
    said = callgate(command, str(item), "--set", f"schemas={tmp_path}").err.splitlines()
    assert said[:2] == [
        f"Warning: no tools in {tmp_path}: every call will be unknown_tool.",
        "Warning: refund.jsn is not read: files of tools end in .json, .yaml, .yml.",
    ]
    assert "Warning" not in callgate(command, str(item), "--set", f"schemas={tmp_path}", "--set", "tools=stream").err
    assert "Warning" not in callgate(command, str(item), "--set", TOOLS).err
