"""A list of tools that was read before is cut out of an event that echoes it: what is read stays the same, to the letter."""

import json
import random
from typing import Any

import pytest

from processor.core import decode as stage
from processor.core.decode import decode
from processor.core.events import Decoded, Event
from processor.core.limits import SHARED_BYTES
from processor.core.slow_json import MAX_DEPTH
from processor.core.tool_lists import LEAST_BYTES, MARK, ToolLists

WORDS = "w" * LEAST_BYTES


def tools_text(name: str = "f", *, spaced: bool = False, extra: Any = None) -> bytes:
    """A list that is long enough, as JSON."""
    separators = (", ", ": ") if spaced else (",", ":")
    tools = [{"type": "function", "name": name, "description": WORDS, "parameters": {"type": "object"}}]
    return json.dumps([*tools, *([extra] if extra is not None else [])], separators=separators).encode()


def event(tools: bytes, *, before: bytes = b"", after: bytes = b"", kind: bytes = b"response.created") -> bytes:
    """A lifecycle event, other members of its response before and after the tools."""
    return b'{"type":"%b","sequence_number":0,"response":{"id":"resp_1",%b"tools":%b%b}}' % (kind, before, tools, after)


def told(decoded: Decoded) -> Any:
    """All that a value says, unparsed parts as their bytes."""
    if isinstance(decoded, list):
        return [told_part(part) for part in decoded]
    return told_part(decoded)


def told_part(part: Any) -> Any:
    """All that one part says."""
    if not hasattr(part, "__struct_fields__"):
        return [told_part(one) for one in part] if isinstance(part, list) else part
    fields = {}
    for name in part.__struct_fields__:
        value = getattr(part, name)
        raw = name in {"tools", "tool_choice", "content"} and value is not None
        fields[name] = bytes(value) if raw else told_part(value)
    return type(part).__name__, fields


def known(*lists: bytes) -> ToolLists:
    """What a partition knows after it read these."""
    found = ToolLists()
    for tools in lists:
        assert isinstance(decode(event(tools), found), Event)
    return found


def test_a_list_said_again_is_the_same_object_and_is_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second event of a response is read without its tools, and hands over the first one's."""
    tools = tools_text()
    lists = known(tools)
    sizes = []
    typed = stage._decode_event

    def measured(value: bytes) -> Event:
        sizes.append(len(value))
        return typed(value)

    monkeypatch.setattr(stage, "_decode_event", measured)
    one = decode(event(tools, kind=b"response.in_progress"), lists)
    two = decode(event(tools, kind=b"response.completed"), lists)
    assert isinstance(one, Event)
    assert isinstance(two, Event)
    assert one.response is not None
    assert two.response is not None
    assert one.response.tools == tools
    assert one.response.tools is two.response.tools
    assert len(sizes) == 2
    assert max(sizes) < LEAST_BYTES


DEEP = b"[" * (MAX_DEPTH - 3)
OTHER = tools_text("another")
BEGUN = tools_text()[:-1] + b',{"type":"custom","name":"g"}]'
CASES = {
    "plain": event(tools_text()),
    "blank before the list": event(b" " + tools_text()),
    "blanks before the list": event(b" \n" + tools_text()),
    "spelled with blanks": event(tools_text(spaced=True)),
    "another list": event(OTHER),
    "a longer list that begins alike": event(BEGUN),
    "cut off after the list": event(tools_text())[:-2],
    "garbage after the list": event(tools_text() + b"x"),
    "the list twice over": event(tools_text() + tools_text()),
    "a second tools, null": event(tools_text(), after=b',"tools":null'),
    "a second tools, escaped": event(tools_text(), after=b',"\\u0074ools":[]'),
    "a second tools, the mark": event(tools_text(), after=b',"tools":' + MARK),
    "the mark for a list": event(MARK, after=b',"instructions":"%b"' % WORDS.encode()),
    "the mark elsewhere": event(tools_text(), before=b'"instructions":%b,' % MARK),
    "a first tools, another": event(tools_text(), before=b'"tools":[],'),
    "in metadata only": event(b"[]", before=b'"metadata":{"tools":%b},' % tools_text()),
    "in metadata too": event(tools_text(), before=b'"metadata":{"tools":%b},' % tools_text()),
    "in an entry of the output": event(tools_text(), before=b'"output":[{"type":"mcp_list_tools","tools":%b}],' % tools_text()),
    "in arguments that are an object": event(
        b"[]", before=b'"output":[{"type":"function_call","arguments":{"tools":%b}}],' % tools_text()
    ),
    "in a text": event(b"[]", before=b'"instructions":"\\"tools\\":%b",' % tools_text().replace(b'"', b'\\"')),
    "in a text that ends before": event(b"[]", before=b'"instructions":"x"tools":%b,' % tools_text()),
    "in a name that ends so": event(b"[]", before=b'"x\\"tools":%b,' % tools_text()),
    "beside the response": b'{"type":"response.created","tools":%b,"response":{"id":"r"}}' % tools_text(),
    "in an item": b'{"type":"response.output_item.added","item":{"type":"x","tools":%b},"output_index":0}' % tools_text(),
    "in a request": b'{"type":"response.create","tools":%b}' % tools_text(),
    "in an envelope": b'{"specversion":"1.0","type":"response.created","id":"1","source":"s","data":%b}' % event(tools_text()),
    "in frames": b"event: response.created\ndata: %b\n\n" % event(tools_text()),
    "in a batch": b"[%b,%b]" % (event(tools_text()), event(tools_text(), kind=b"response.in_progress")),
    "a whole response": b'{"object":"response","id":"r","status":"completed","output":[],"tools":%b}' % tools_text(),
    "too deep beside it": event(tools_text(), before=b'"metadata":%b%b,' % (DEEP + b"[[", b"]]" + b"]" * len(DEEP))),
    "deep beside it": event(tools_text(), before=b'"metadata":%b%b,' % (DEEP, b"]" * len(DEEP))),
    "no UTF-8 beside it": event(tools_text(), before=b'"user":"\xff",'),
    "no UTF-8 in its choice": event(tools_text(), before=b'"tool_choice":"\xff",'),
    "an unknown type": event(tools_text(), kind=b"response.unheard_of"),
    "no response": b'{"type":"response.created","response":null,"x":{"tools":%b}}' % tools_text(),
}


@pytest.mark.parametrize("name", CASES)
def test_a_value_says_the_same_whatever_was_read_before(name: str) -> None:
    """Lists that are known change nothing that a value says."""
    value = CASES[name]
    assert len(value) > LEAST_BYTES
    lists = known(tools_text(), tools_text(spaced=True))
    assert told(decode(value, lists)) == told(decode(value))
    assert told(decode(value, lists)) == told(decode(value))  # and again, with what it was learned from itself


def test_nothing_is_learned_from_what_cannot_be_read() -> None:
    """A list that is no text, nested too deep or no list at all is not known afterwards."""
    refused = [
        event(tools_text()[:-1] + b',"\xff"]'),
        event(b"%b%b" % (b"[" * (MAX_DEPTH - 1) + b'"%b"' % WORDS.encode(), b"]" * (MAX_DEPTH - 1))),
        event(tools_text(), before=b'"metadata":%b%b,' % (DEEP + b"[[", b"]]" + b"]" * len(DEEP))),
        event(b'"%b"' % WORDS.encode()),
        event(tools_text()[:-1]),
    ]
    for value in refused:
        lists = ToolLists()
        decode(value, lists)
        assert lists._by_start == {}
    lists = ToolLists()
    decode(event(b"%b%b" % (b"[" * (MAX_DEPTH - 2) + b'"%b"' % WORDS.encode(), b"]" * (MAX_DEPTH - 2))), lists)
    assert len(lists._by_start) == 1  # as deep as may be


def test_damaged_values_say_the_same() -> None:
    """Whatever a byte is changed to, left out or put in: known lists change nothing."""
    draw = random.Random(7)
    base = event(tools_text(), before=b'"metadata":{"tools":[]},"output":[],')
    lists = known(tools_text())
    edges = [*range(120), *range(len(base) - 120, len(base)), base.index(b'"description"')]
    alphabet = [b"", b'"', b"\\", b"[", b"]", b"{", b"}", b",", b":", b" ", b"\xff", b"0", MARK, b'"tools":', tools_text()]
    for _ in range(3_000):
        place = draw.choice(edges)
        value = base[:place] + draw.choice(alphabet) + base[place + draw.choice((0, 1)) :]
        assert told(decode(value, lists)) == told(decode(value)), value[:200]


def test_lists_are_bounded() -> None:
    """Whoever echoes another list each time fills no memory; those that begin alike are few."""
    lists = ToolLists()
    for number in range(50):
        lists.learn(b"[%b]" % (b"%03d" % number + b"0" * (SHARED_BYTES // 20)))
        kept = [one for alike in lists._by_start.values() for one in alike]
        assert sum(map(len, kept)) == lists._size <= SHARED_BYTES
    lists = ToolLists()
    for number in range(50):
        tools = b"[%b%d]" % (b"0" * LEAST_BYTES, number)
        lists.learn(tools)
        lists.learn(tools)
        [alike] = lists._by_start.values()
        assert alike[0] == tools
        assert len(alike) == len(set(alike)) <= 8
        assert sum(map(len, alike)) == lists._size
