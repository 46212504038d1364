"""What one key says in a generated log: responses as providers stream them, requests, and things that belong to no stream.

Owns the contents; how they travel, and with which settings they are read, is drawn in `generate.py`.
"""

import json
import random

from tests import factories as make
from tests.factories import Json
from tests.oracle.faults import ALL, FAULTS, rotated

ALERTS = make.tool("list_alerts", {})
BROKEN = {"type": "function", "name": "list_alerts", "parameters": {"type": "no such type"}}

TEXTS: dict[str, tuple[str, ...]] = {
    "get_weather": ('{"city":"Leeds"}', '{"city":"York"}', '{"city":""}', '{"city":"\U0001f600 Hull"}', '{"town":"Bath"}'),
    "list_alerts": ("{}", "{ }", '{"a":1}'),
    "pay_invoice": ('{"invoice":"inv_7","amount":12.5}', '{"invoice":"inv_7","amount":5000}', '{"invoice":7,"amount":1}'),
    "drop_table": ('{"name":"users"}',),
}
ODD_TEXTS = ("", "[]", "null", '"{}"', '{"city":"Leeds"', '{"city":"Leeds"}{}', '{"city":"a","city":"b"}', '{"city":NaN}', "{}")


class Scripts:
    """Draws what is said under one key."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.calls = 0
        self.responses = 0
        self.objects = False
        """Arguments may come as objects, where a text should be."""
        self.rotates = False
        """Ids of responses may change from event to event."""
        self.keyless = 0.0
        """Share of the records that have no key."""

    def chance(self, share: float) -> bool:
        """True with this probability."""
        return self.rng.random() < share

    def script(self) -> list[Json | str | bytes]:
        """Everything under one key, in order: events, and values of other forms."""
        rng = self.rng
        said: list[Json | str | bytes] = []
        for _ in range(rng.choice((1, 1, 2, 3))):
            if self.chance(0.1):
                said.append(self.request())
            clean = self.response()
            events = rotated(clean) if self.rotates and self.chance(0.7) else clean
            for _ in range(rng.choice((0, 0, 1, 1, 2, 3))):
                events = rng.choice(FAULTS)(self, list(events)) or events
            said += events
            if self.chance(0.2):
                said += self.again(clean)
            if self.chance(0.12):
                said.append(self.aside())
        return said

    def request(self) -> Json:
        """A `response.create`."""
        tools = self.rng.choice(([make.WEATHER], list(ALL), []))
        choice = self.rng.choice((None, None, "auto", "none"))
        extra = {"tool_choice": choice} if choice else {}
        return {"type": "response.create", "response": {"model": "m-1", "tools": tools, **extra}}

    def call(self) -> Json:
        """A function call, most often a good one."""
        rng = self.rng
        self.calls += 1
        name = rng.choice(
            (
                "get_weather",
                "get_weather",
                "get_weather",
                "list_alerts",
                "list_alerts",
                "pay_invoice",
                "pay_invoice",
                "drop_table",
            )
        )
        text = rng.choice(TEXTS[name][:2] if self.chance(0.8) else TEXTS[name])
        if name == "get_weather" and self.chance(0.08):
            text = TEXTS[name][3]
        if self.chance(0.06):
            text = rng.choice(ODD_TEXTS)
        item = make.function_call(f"c{self.calls}", name, text, id=f"fc_{self.calls}")
        if self.chance(0.03):
            item["namespace"] = rng.choice(("functions", "other", name))
        return item

    def item(self) -> Json:
        """An item of any type."""
        if self.chance(0.86):
            return self.call()
        self.calls += 1
        number = self.calls
        return self.rng.choice((
            make.message(id=f"msg_{number}"),
            {"type": "reasoning", "id": f"rs_{number}", "summary": []},
            {"type": "custom_tool_call", "id": f"ct_{number}", "call_id": f"c{number}", "name": "sql", "input": "select 1",
             "status": "completed"},
            {"type": "mcp_approval_request", "id": f"ma_{number}", "name": "fetch", "arguments": "{}", "server_label": "s"},
            {"type": "acme:search_call", "id": f"ac_{number}", "call_id": f"c{number}", "status": "completed"},
            {"type": "web_search_call", "id": f"ws_{number}", "status": "completed"},
        ))  # fmt: skip

    def response(self) -> list[Json]:
        """The events of one response as a good provider sends them, numbered or not."""
        rng = self.rng
        self.responses += 1
        rid = f"r{self.responses}"
        tools = rng.choice((*[list(ALL)] * 6, [make.WEATHER], [ALERTS, ALERTS], [make.WEATHER, BROKEN], [], None))
        body: Json = {} if tools is None else {"tools": tools}
        if self.chance(0.15):
            body["tool_choice"] = rng.choice((
                "none", "required", "wild", {"type": "function", "name": "get_weather"}, {"type": "web_search"},
                {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "get_weather"}]},
            ))  # fmt: skip
        if self.chance(0.08):
            body["parallel_tool_calls"] = False
        items = [self.item() for _ in range(rng.choice((1, 1, 1, 2, 2, 3)))]
        if len(items) > 1 and self.chance(0.06):
            items[1] = {**items[1], "call_id": items[0].get("call_id")}
        kind = rng.choices(("completed", "incomplete", "failed", "cancelled"), (80, 9, 8, 3))[0]
        events = [make.created(rid, **body)]
        if self.chance(0.4):
            events.append({"type": "response.in_progress", "response": make.response(rid, output=[], **body)})
        events += self.body(items)
        output = rng.choice((items, items, items, [], None))
        echo = body if self.chance(0.7) else {}
        events.append(make.terminal(kind, rid, output, **echo))
        return self.number(events)

    def body(self, items: list[Json]) -> list[Json]:
        """The events of all items: one after the other, or interleaved."""
        parts = [self.pieces(index, item) for index, item in enumerate(items)]
        if len(parts) > 1 and self.chance(0.3):
            merged: list[Json] = []
            while any(parts):
                merged.append(self.rng.choice([p for p in parts if p]).pop(0))
            return merged
        return [event for part in parts for event in part]

    def pieces(self, index: int, item: Json) -> list[Json]:
        """The events of one item; providers leave some of them out."""
        if item["type"] != "function_call":
            extra = [{"type": "response.output_text.delta", "output_index": index, "delta": "x"}] if self.chance(0.3) else []
            return [make.added(index, item), *extra, make.done(index, item)]
        style = self.rng.random()
        if style < 0.08:
            return [make.done(index, item)]
        text = item["arguments"]
        cuts = sorted(self.rng.randint(0, len(text)) for _ in range(self.rng.choice((0, 1, 2))))
        chunks = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
        if style < 0.16:
            chunks = []
        events = make.pieces(index, item, chunks)
        if style > 0.92:
            events.pop(-2)
        if self.objects and self.chance(0.4) and text in ('{"city":"Leeds"}', "{}", '{"invoice":"inv_7","amount":12.5}'):
            item["arguments"] = json.loads(text)
        if self.chance(0.05):
            events[0]["item"].update(self.rng.choice(({"arguments": "{}"}, {"name": ""}, {"call_id": ""}, {"call_id": None})))
        return events

    def number(self, events: list[Json]) -> list[Json]:
        """Sequence numbers, in the ways that providers have."""
        style = self.rng.random()
        if style < 0.7:
            return make.numbered(events, self.rng.choice((0, 0, 0, 1)))
        if style < 0.85:
            return events
        if style < 0.9:
            return [{**event, "sequence_number": 0} for event in events]
        if style < 0.95:
            return [{**event, "sequence_number": 2 * i} for i, event in enumerate(events)]
        half = len(events) // 2
        return make.numbered(events[:half]) + make.numbered(events[half:])

    def again(self, events: list[Json]) -> list[Json | str | bytes]:
        """The stream sent again after it ended, or a second terminal event."""
        choice = self.rng.random()
        if choice < 0.4:
            return list(events[: self.rng.randint(1, len(events))])
        last = events[-1]
        if choice < 0.7:
            return [last]
        rid = last["response"].get("id")
        if choice < 0.85:
            return [make.terminal("completed", rid, last["response"].get("output"))]
        return [{**last["response"], "object": "response"}]

    def aside(self) -> Json | str | bytes:
        """Something under the key that belongs to no stream, or is not readable."""
        self.responses += 1
        calls = [self.call(), self.call()]
        journal: list[Json] = [
            {"role": "user", "content": "hello"},
            calls[0],
            make.call_output(calls[0]["call_id"]),
            {k: v for k, v in calls[1].items() if k != "status" or self.chance(0.5)},
            make.call_output(self.rng.choice(calls)["call_id"]),
        ]
        status = self.rng.choice(("completed", "completed", "incomplete", None))
        return self.rng.choice((
            b"not json",
            b"\xff\xfe",
            b'{"type":"response.created","response":{"id":"x"',
            json.dumps({"id": "cc", "object": "chat.completion.chunk", "choices": []}),
            {"type": "keepalive"},
            {"type": "acme:thing.progress", "sequence_number": 3},
            json.dumps(journal),
            make.response(f"w{self.responses}", status, output=calls, tools=list(ALL)),
            json.dumps(calls[0]),
        ))  # fmt: skip
