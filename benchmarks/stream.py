"""One streamed response of the benchmark's workload: its events, and what must be decided for each of its calls.

Owns the shape of a stream. A verdict comes from how the call was made (which fault was put into it), never from a validator or
from the code under test.
"""

import itertools
import json
import random
from typing import Any, TypeAlias

import msgspec

from benchmarks import tools

Fields: TypeAlias = dict[str, Any]

FAULTS = ("arguments_schema", "arguments_parse", "unknown_tool", "conflict")
"""Faults put into single calls, by the reason that they must be rejected with."""


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of the generator."""

    events: int = 300_000
    """No stream is opened once about this many events are made."""
    seed: int = 1
    open_streams: int = 64
    """Streams open at the same time: the next event is of one of them, at random."""
    calls: tuple[int, int] = (1, 4)
    """Fewest and most calls a response; fewer are likelier."""
    parallel: float = 0.3
    """Share of the responses with several calls whose events are interleaved."""
    deltas: tuple[int, int] = (8, 16)
    """Fewest and most argument deltas a call."""
    text: float = 0.5
    """Share of the responses with a message, and share with reasoning, before the calls."""
    tools: tuple[int, int] = (1, 3)
    """Fewest and most tools that a response echoes three times."""
    idle_tools: int = 0
    """Further tools echoed that nobody calls: 40 of 1 kB is what agent platforms do."""
    idle_tool_bytes: int = 1_000
    cut: float = 0.02
    """Share of the responses that end as incomplete, in the middle of their last call."""
    failed: float = 0.01
    """Share of the responses that end as failed, in the middle of their last call."""
    faults: tuple[float, float, float, float] = (0.10, 0.01, 0.01, 0.01)
    """Share of the calls with each of FAULTS."""


class Expected(msgspec.Struct, frozen=True):
    """What must be decided for one call."""

    key: str
    reason: str
    """`ok`, or the reason of the rejection."""
    name: str
    arguments: str
    """Exact text that an approval must carry."""


class Stream:
    """The events of one response, made at once."""

    def __init__(self, rng: random.Random, shape: Shape, number: int, idle_tools: list[Fields]) -> None:
        self.rng = rng
        self.shape = shape
        self.key = "resp_" + tools.digits(rng, 48)
        self.events: list[Fields] = []
        self.output: list[Fields] = []
        self.calls: dict[str, Expected] = {}
        self.names = rng.sample(sorted(tools.SCHEMAS), rng.randint(*shape.tools))
        self.body = {
            "id": self.key,
            "object": "response",
            "created_at": 1_780_000_000 + number,
            "status": "in_progress",
            "error": None,
            "incomplete_details": None,
            "instructions": None,
            "max_output_tokens": None,
            "model": "bench-1",
            "output": [],
            "parallel_tool_calls": True,
            "previous_response_id": None,
            "store": False,
            "temperature": 1.0,
            "tool_choice": "auto",
            "tools": tools.declarations(self.names, rng) + idle_tools,
            "top_p": 1.0,
            "truncation": "disabled",
            "usage": None,
            "metadata": {},
        }
        self.items = 0
        self._make()

    def _event(self, kind: str, **fields: Any) -> None:
        self.events.append({"type": kind, "sequence_number": len(self.events), **fields})

    def _make(self) -> None:
        self._event("response.created", response=self.body)
        self._event("response.in_progress", response=self.body)
        if self.rng.random() < self.shape.text:
            self._reasoning()
        if self.rng.random() < self.shape.text:
            self._message()
        draw = self.rng.random()
        end = "incomplete" if draw < self.shape.cut else "failed" if draw < self.shape.cut + self.shape.failed else "completed"
        fewest, most = self.shape.calls
        # Halving shares: half of the responses have the fewest calls, a quarter one more, and so on.
        count = self.rng.choices(range(fewest, most + 1), [0.5**n for n in range(most - fewest + 1)])[0]
        last = count - 1
        calls = [self._call(cut=end != "completed" and n == last, all_lost=end == "failed") for n in range(count)]
        if count > 1 and end == "completed" and self.rng.random() < self.shape.parallel:
            self._interleave(calls)
        else:
            for call in calls:
                for kind, fields in call:
                    self._event(kind, **fields)
        spent = {"input_tokens": 640, "output_tokens": 9 * len(self.events), "total_tokens": 640 + 9 * len(self.events)}
        error = {"code": "server_error", "message": "The model failed."} if end == "failed" else None
        detail = {"reason": "max_output_tokens"} if end == "incomplete" else None
        body = self.body | {"status": end, "output": self.output, "usage": spent, "error": error, "incomplete_details": detail}
        self._event("response." + end, response=body)

    def _interleave(self, calls: list[list[tuple[str, Fields]]]) -> None:
        """Parallel calls: each in its own order, the next event from any of them; they start in order."""
        for call in calls:
            kind, fields = call[0]
            self._event(kind, **fields)
        rests = [call[1:] for call in calls]
        while rests:
            rest = self.rng.choice(rests)
            kind, fields = rest.pop(0)
            self._event(kind, **fields)
            if not rest:
                rests.remove(rest)

    def _item_index(self) -> int:
        self.items += 1
        return self.items - 1

    def _padding(self) -> str:
        return tools.digits(self.rng, self.rng.randint(4, 16))

    def _reasoning(self) -> None:
        index = self._item_index()
        name = "rs_" + tools.digits(self.rng, 48)
        pieces = [tools.words(self.rng, 3, 8) + " " for _ in range(self.rng.randint(4, 8))]
        self._event("response.output_item.added", output_index=index, item={"id": name, "type": "reasoning", "summary": []})
        at = {"item_id": name, "output_index": index, "summary_index": 0}
        for piece in pieces:
            self._event("response.reasoning_summary_text.delta", **at, delta=piece, obfuscation=self._padding())
        self._event("response.reasoning_summary_text.done", **at, text="".join(pieces))
        item = {"id": name, "type": "reasoning", "summary": [{"type": "summary_text", "text": "".join(pieces)}]}
        self._event("response.output_item.done", output_index=index, item=item)
        self.output.append(item)

    def _message(self) -> None:
        index = self._item_index()
        name = "msg_" + tools.digits(self.rng, 48)
        pieces = [tools.words(self.rng, 1, 4) + " " for _ in range(self.rng.randint(5, 10))]
        item: Fields = {"id": name, "type": "message", "status": "in_progress", "content": [], "role": "assistant"}
        part = {"type": "output_text", "annotations": [], "logprobs": [], "text": ""}
        at = {"item_id": name, "output_index": index, "content_index": 0}
        self._event("response.output_item.added", output_index=index, item=item)
        self._event("response.content_part.added", **at, part=part)
        for piece in pieces:
            self._event("response.output_text.delta", **at, delta=piece, logprobs=[], obfuscation=self._padding())
        part = part | {"text": "".join(pieces)}
        self._event("response.output_text.done", **at, text="".join(pieces), logprobs=[])
        self._event("response.content_part.done", **at, part=part)
        item = item | {"status": "completed", "content": [part]}
        self._event("response.output_item.done", output_index=index, item=item)
        self.output.append(item)

    def _call(self, *, cut: bool, all_lost: bool) -> list[tuple[str, Fields]]:
        """The events of one call, and what must be decided for it."""
        index = self._item_index()
        name = self.rng.choice(self.names)
        call_id = "call_" + tools.digits(self.rng, 24)
        fault = "ok" if cut else self.rng.choices((*FAULTS, "ok"), (*self.shape.faults, 1 - sum(self.shape.faults)))[0]
        if fault == "unknown_tool":
            arguments, name = tools.MAKERS[name](self.rng), "erase_everything"
        else:
            arguments = tools.broken(self.rng, name) if fault == "arguments_schema" else tools.MAKERS[name](self.rng)
        text = json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))
        if fault == "arguments_parse":
            text = text[:-1] + self.rng.choice(("", ",}", "}}", "]"))
        pieces = self._split(text)
        base = {"id": "fc_" + tools.digits(self.rng, 48), "type": "function_call", "call_id": call_id, "name": name}
        at = {"item_id": base["id"], "output_index": index}
        events: list[tuple[str, Fields]] = [
            (
                "response.output_item.added",
                {"output_index": index, "item": base | {"arguments": "", "status": "in_progress"}},
            )
        ]
        if cut:
            pieces = pieces[: self.rng.randint(1, len(pieces) - 1)]
        elif fault == "conflict":
            del pieces[self.rng.randrange(len(pieces))]
        events += [
            ("response.function_call_arguments.delta", {**at, "delta": piece, "obfuscation": self._padding()})
            for piece in pieces
        ]
        if cut:
            # One way to be cut off says so at once, the other leaves it to the terminal event.
            item = base | {"arguments": "".join(pieces), "status": "incomplete"}
            if self.rng.random() < 0.5:
                events.append(("response.output_item.done", {"output_index": index, "item": item}))
        else:
            item = base | {"arguments": text, "status": "completed"}
            events.append(("response.function_call_arguments.done", {**at, "name": name, "arguments": text}))
            events.append(("response.output_item.done", {"output_index": index, "item": item}))
        self.output.append(item)
        self.calls[call_id] = Expected(self.key, "status" if cut or all_lost else fault, name, text)
        return events

    def _split(self, text: str) -> list[str]:
        """Cut into as many deltas as the shape says, at random places."""
        count = min(self.rng.randint(*self.shape.deltas), len(text))
        cuts = [0, *sorted(self.rng.sample(range(1, len(text)), count - 1)), len(text)]
        return [text[a:b] for a, b in itertools.pairwise(cuts)]
