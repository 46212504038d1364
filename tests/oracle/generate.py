"""Seeded logs of a partition, with faults of every kind injected: what the differential test feeds to core and oracle.

One seed is one case. It owns what is likely: most logs have one or two faults, some none, a few many.
"""

import json
import random
from dataclasses import dataclass, replace
from typing import Any

from tests import factories as make
from tests.factories import Json, Record
from tests.oracle.faults import ALL, FAULTS
from tests.oracle.values import Settings
from tests.oracle.verdict import Toolset

TIMEOUT_MS = 10_000
MEMORY_MS = 4_000
KEYS = ("k0", "k1", "k2")

ALERTS = make.tool("list_alerts", {})
BROKEN = {"type": "function", "name": "list_alerts", "parameters": {"type": "no such type"}}

TEXTS: dict[str, tuple[str, ...]] = {
    "get_weather": ('{"city":"Leeds"}', '{"city":"York"}', '{"city":""}', '{"city":"\U0001f600 Hull"}', '{"town":"Bath"}'),
    "list_alerts": ("{}", "{ }", '{"a":1}'),
    "pay_invoice": ('{"invoice":"inv_7","amount":12.5}', '{"invoice":"inv_7","amount":5000}', '{"invoice":7,"amount":1}'),
    "drop_table": ('{"name":"users"}',),
}
ODD_TEXTS = ("", "[]", "null", '"{}"', '{"city":"Leeds"', '{"city":"Leeds"}{}', '{"city":"a","city":"b"}', '{"city":NaN}', "{}")


@dataclass(frozen=True)
class Case:
    """One log and the settings that it is read with."""

    seed: int
    settings: Settings
    toolset: Toolset
    log: tuple[Record, ...]
    idle: tuple[tuple[int, int], ...]
    """Moves of the watermark by the wall clock: (place in the log, ms)."""


def case(seed: int) -> Case:
    """The case of this seed; the same on every machine."""
    return Builder(random.Random(seed)).build(seed)


class Builder:
    """Draws one case."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.calls = 0
        self.responses = 0

    def chance(self, share: float) -> bool:
        """True with this probability."""
        return self.rng.random() < share

    def build(self, seed: int) -> Case:
        """Settings, scripts of every key, their interleaving on the wire, and idle moves."""
        rng = self.rng
        settings = self.settings()
        registry = {t["name"]: t["parameters"] for t in ALL}
        toolset = Toolset(rng.choice(("registry", "registry", "stream", "both")), registry)
        keys = KEYS[: rng.choice((1, 1, 2, 3))]
        scripts = {key: self.script() for key in keys}
        log = self.wire(scripts)
        log = log[:90]
        idle: list[tuple[int, int]] = []
        for place in sorted(rng.sample(range(len(log) + 1), min(len(log), rng.choice((0, 0, 0, 1, 3))))):
            near = log[min(place, len(log) - 1)].timestamp
            idle.append((place, near + rng.choice((1_000, MEMORY_MS, TIMEOUT_MS, TIMEOUT_MS + MEMORY_MS, 60_000))))
        return Case(seed, settings, toolset, tuple(log), tuple(idle))

    def settings(self) -> Settings:
        """Mostly the defaults with short times."""
        rng = self.rng
        base = Settings(rng.choice(("response", "item")), TIMEOUT_MS, MEMORY_MS)
        # One bound at a time: what is buffered for a call that is limited already is nobody's concern.
        which = rng.random()
        if which < 0.05:
            base = replace(base, max_argument_bytes=rng.choice((10, 20)))
        elif which < 0.1:
            base = replace(base, max_calls=rng.choice((1, 2)))
        elif which < 0.15:
            base = replace(base, max_streams=rng.choice((1, 2)))
        elif which < 0.25:
            base = replace(base, max_response_bytes=20_000)
        if self.chance(0.15):
            names = ("status_absent", "empty_arguments", "call_id_renamed", "namespace_functions", "added_again")
            base = replace(base, tolerate=tuple(sorted(rng.sample(names, rng.choice((1, 1, 2))))))
        return base

    # What one key says.

    def script(self) -> list[Json | str | bytes]:
        """Everything under one key, in order: events, and values of other forms."""
        rng = self.rng
        said: list[Json | str | bytes] = []
        for _ in range(rng.choice((1, 1, 2, 3))):
            if self.chance(0.1):
                said.append(self.request())
            clean = self.response()
            events = clean
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

    # How it travels.

    def wire(self, scripts: dict[str, list[Json | str | bytes]]) -> list[Record]:
        """Interleave the keys; put some neighbours into one record; give times."""
        rng = self.rng
        now = 1_000_000
        log: list[Record] = []
        offset = 0
        while any(scripts.values()):
            key = rng.choice([k for k, said in scripts.items() if said])
            value = scripts[key].pop(0)
            if isinstance(value, dict) and _is_event(value):
                batch = [value]
                while scripts[key] and self.chance(0.06) and isinstance(scripts[key][0], dict) and _is_event(scripts[key][0]):
                    batch.append(scripts[key].pop(0))  # type: ignore[arg-type]
                if len(batch) > 1:
                    body = make.sse(batch, named=self.chance(0.5), close=self.chance(0.5))
                    value = body if self.chance(0.5) else json.dumps(batch)
                elif self.chance(0.02):
                    value = f"event: response.other\ndata: {json.dumps(value)}\n\n"
            now += rng.choice((0, 5, 50, 500))
            if self.chance(0.012):
                now += rng.choice((MEMORY_MS, TIMEOUT_MS - 1, TIMEOUT_MS, TIMEOUT_MS + MEMORY_MS))
            skew = rng.choice((-3_000, -20_000)) if self.chance(0.02) else 0
            log.append(make.record(offset, value, key=key, timestamp=now + skew))
            offset += rng.choice((1, 1, 1, 2))
        return log


def _is_event(value: Any) -> bool:
    return value.get("type") != "response.create" and str(value.get("type", "")).startswith(("response.", "keepalive", "error"))
