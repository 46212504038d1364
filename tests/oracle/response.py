"""The oracle's reading of one response: its events, all at once, to the verdicts on its calls (rules 1 to 12 and 17 to 19).

Written for reading, not for speed: the events of a response are walked again from its first one, with nothing kept between
records. It never imports the code under test.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

Json: TypeAlias = dict[str, Any]
Token: TypeAlias = tuple[int, ...]
"""Where in the log something happens: place of the record, phase, then order within."""

ITEM_EVENTS = (
    "response.output_item.added",
    "response.output_item.done",
    "response.function_call_arguments.delta",
    "response.function_call_arguments.done",
)
LIFECYCLE = ("response.created", "response.queued", "response.in_progress")
TERMINAL = ("response.completed", "response.incomplete", "response.failed", "response.cancelled")
COUNTED_ONLY = (
    "message",
    "reasoning",
    "web_search_call",
    "file_search_call",
    "code_interpreter_call",
    "image_generation_call",
    "mcp_call",
    "mcp_list_tools",
    "function_call_output",
)
COMPARED = ("type", "namespace", "name", "call_id", "arguments")
LATE = "late"
"""What is used up under a call_id that was rejected for `conflict` or `limit`: it has no content (rule 9)."""


@dataclass
class Event:
    """One event, with where it was read."""

    token: Token
    offset: int
    data: Json
    mislabelled: bool = False
    """Its SSE `event:` says something else than its JSON type (rule 29)."""


@dataclass
class Response:
    """One response: what its stream said, and how it ended."""

    key: str | None
    rid: str | None
    first_offset: int
    last: int
    """Watermark at its last record, in ms."""
    events: list[Event] = field(default_factory=list)
    request: Json | None = None
    """The `response.create` that it answers."""
    ended_by: str = ""
    """`completed`, `incomplete`, `failed`, `superseded`, `timeout`, `limit`; empty while open."""
    ended_at: Token = ()
    last_was_terminal: bool = False
    named_at: Token = ()
    """Where a nameless response got its name from its terminal event (rule 15)."""

    def name_at(self, token: Token) -> str | None:
        """Its id as far as it was known there."""
        return self.rid if token >= self.named_at else None


@dataclass
class Verdict:
    """What is decided for one call."""

    token: Token
    call_id: str | None
    reason: str
    use: "Use"


@dataclass
class Use:
    """One appearance of an item at an index: every piece that belongs to it."""

    index: int | None
    before: list[Json] = field(default_factory=list)
    """`added` and `arguments.done`, in order."""
    deltas: list[str] = field(default_factory=list)
    done: Json | None = None
    entry: Json | None = None
    """Its entry in the terminal list."""
    identified: bool = False
    """`added` or a final piece was seen; else there are only deltas and `arguments.done`."""
    spoiled: bool = False
    """Pieces cannot be told apart, or one is no text: in conflict."""
    renamed_to: str | None = None
    decided: bool = False
    cut: bool = False
    done_at: Token = ()

    @property
    def final(self) -> Json | None:
        """The piece that must say everything by itself (rule 7)."""
        return self.done if self.done is not None else self.entry

    @property
    def ids(self) -> list[str]:
        """Every non-empty call_id that was seen for it, in order."""
        listed = None if self.renamed_to is not None else self.entry
        pieces = [*self.before, *(p for p in (self.done, listed) if p is not None)]
        return [p["call_id"] for p in pieces if isinstance(p.get("call_id"), str) and p["call_id"]]

    @property
    def call_id(self) -> str | None:
        """Rule 6."""
        if self.ids:
            return self.ids[0]
        pieces = [*self.before, *(p for p in (self.done, self.entry) if p is not None)]
        return "" if any(p.get("call_id") == "" for p in pieces) else None

    @property
    def claims(self) -> set[str]:
        """The ids that it uses up: the one it is published under, and that of its final piece."""
        final = (self.final or {}).get("call_id")
        return {c for c in (self.call_id, final) if isinstance(c, str) and c}

    @property
    def type(self) -> Any:
        """Of the final piece, else of the first that had one; pieces of arguments can only be a function call's."""
        if not self.identified:
            return "function_call"
        pieces = [*([self.final] if self.final is not None else []), *self.before]
        return next((p["type"] for p in pieces if p.get("type") is not None), None)

    @property
    def types(self) -> list[Any]:
        """Every type that was seen for it."""
        return [p.get("type") for p in [*self.before, *([self.done] if self.done is not None else [])]]

    def is_call(self) -> bool:
        """A function call, as far as one can tell."""
        return bool(self.type == "function_call")

    def content(self) -> str:
        """What it says, for telling a repeat from another use of its call_id."""
        final = self.final or {}
        return json.dumps([final.get(name) for name in COMPARED], sort_keys=True)


def whole(text: Any) -> Any:
    """Join surrogate pairs that were split between two deltas."""
    if isinstance(text, str):
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass") if _paired(text) else text
    return text


def _paired(text: str) -> bool:
    try:
        text.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        return False
    return True


def disagree(use: Use, tolerate: Sequence[str]) -> bool:
    """Whether a piece contradicts the final one (rule 7)."""
    if use.spoiled or use.renamed_to is not None:
        return True
    final = use.final or {}
    for name in COMPARED:
        said = [p.get(name) for p in use.before]
        said = [s for s in said if s not in (None, "") and not (name == "arguments" and s == "{}")]
        if name == "arguments" and "".join(use.deltas):
            said.append("".join(use.deltas))
        if use.entry is not None and use.entry.get(name) is not None:
            said.append(use.entry[name])
        said = [s for s in [final.get(name), *said] if not (s == "functions" and "namespace_functions" in tolerate)]
        if name == "arguments" and "arguments_object" in tolerate:
            said = [json.dumps(s, separators=(",", ":"), ensure_ascii=False) if isinstance(s, dict) else s for s in said]
        if said and final.get(name) is not None and any(whole(s) != whole(said[0]) for s in said):
            return True
    return False


Judge: TypeAlias = Callable[..., str]


class Reading:
    """One walk over the events of one response."""

    def __init__(self, response: Response, release: str, bounds: Any, gate: Judge) -> None:
        self.response = response
        self.release = release
        self.bounds = bounds
        self.gate = gate
        self.uses: list[Use] = []
        self.used: dict[str, str] = {}
        self.verdicts: list[Verdict] = []
        self.echoed: list[list[Json]] = []
        self.choices: list[Any] = []
        self.parallel = True
        self.highest_index = -1
        self.calls_seen: list[Use] = []
        if response.request is not None:
            self._controls(response.request)

    def run(self) -> list[Verdict]:
        """All verdicts on the calls of the response, each with its place in the log."""
        for event in self._not_repeated():
            self._read(event)
        if self.response.ended_by:
            self._end()
        return self.verdicts

    # Which events count (rules 11 and 12).

    def _not_repeated(self) -> list[Event]:
        kept: list[Event] = []
        seen: dict[int, str] = {}
        highest: int | None = None
        unnumbered = False
        for event in self.response.events:
            data = event.data
            kind = data["type"]
            number = data.get("sequence_number")
            if isinstance(number, int) and not unnumbered:
                compared = kind in ITEM_EVENTS or kind in LIFECYCLE or kind in TERMINAL or kind == "error"
                if highest is None or number > highest:
                    highest = number
                    if compared:
                        seen[number] = _signature(data)
                elif compared:
                    if seen.get(number) == _signature(data):
                        continue
                    unnumbered = True
            # A created for the response that is open starts an unnumbered one again.
            if kind == "response.created" and kept and (unnumbered or highest is None):
                event.data = {**data, "again": True}
            kept.append(event)
        return kept

    # What each event adds.

    def _read(self, event: Event) -> None:
        data = event.data
        kind = data["type"]
        index = data.get("output_index")
        if isinstance(index, int):
            self.highest_index = max(self.highest_index, index)
        if kind in LIFECYCLE or kind in TERMINAL:
            if data.get("again"):
                self.uses = [u for u in self.uses if u.decided]
                self.calls_seen = [u for u in self.calls_seen if u.decided]
            self._controls(data.get("response") or {})
        elif kind == "response.output_item.added":
            if data.get("item") is not None:
                self._added(event, index, data["item"])
        elif kind == "response.output_item.done":
            if data.get("item") is not None:
                self._done(event, index, data["item"])
        elif kind == "response.function_call_arguments.delta":
            use = self._latest(index)
            if use is not None:
                if isinstance(data.get("delta"), str):
                    use.deltas.append(data["delta"])
                else:
                    use.spoiled = True
                if len(whole("".join(use.deltas)).encode("utf-8", "surrogatepass")) > self.bounds.max_argument_bytes:
                    self._limit(use, event.token)
        elif kind == "response.function_call_arguments.done":
            use = self._latest(index)
            if use is not None:
                use.before.append({name: data.get(name) for name in ("arguments", "name", "call_id")})

    def _controls(self, body: Json) -> None:
        tools = body.get("tools")
        if isinstance(tools, list) and tools and body is not self.response.request:
            self.echoed.append(tools)
        if body.get("tool_choice") is not None:
            self.choices.append(body["tool_choice"])
        if body.get("parallel_tool_calls") is False:
            self.parallel = False

    def _open(self, index: int | None) -> list[Use]:
        return [u for u in self.uses if u.index == index and u.done is None]

    def _latest(self, index: int | None) -> Use | None:
        """Where a delta goes: the latest open item; nowhere on a closed index; else kept for the item to come (rule 2)."""
        opened = self._open(index)
        if opened:
            return opened[-1]
        if any(u.index == index for u in self.uses):
            return None
        self.uses.append(Use(index))
        return self.uses[-1]

    def _added(self, event: Event, index: int | None, item: Json) -> None:
        opened = self._open(index)
        if opened and not opened[-1].identified:
            use = opened[-1]
        elif opened and "added_again" in self.bounds.tolerate and _same_id(opened[-1], item):
            use = opened[-1]
            use.before, use.deltas, use.spoiled = [], [], False
        else:
            use = Use(index)
            for other in opened:
                other.spoiled = use.spoiled = True
            self.uses.append(use)
        use.identified = True
        use.before.append(dict(item))
        self._count(use, event.token)

    def _done(self, event: Event, index: int | None, item: Json) -> None:
        call_id = item.get("call_id")
        opened = [u for u in self.uses if u.done is None] if index is None else self._open(index)
        named = [u for u in opened if call_id and call_id in u.ids]
        if named:
            use = named[-1]
        elif opened and index is not None:
            use = opened[-1]
        else:
            use = Use(index)
            self.uses.append(use)
        use.identified = True
        use.done = dict(item)
        use.done_at = event.token
        finished = [u for u in self.uses if u is not use and u.done is not None and u.call_id == use.call_id]
        earlier = [u for u in finished if use.call_id or u.index == index]
        if any(u.content() == use.content() for u in earlier) or self.used.get(use.call_id or "") == use.content():
            self.uses.remove(use)  # The same call delivered again with the same content is one decision.
            return
        self._count(use, event.token)
        if self.release == "item" and not use.decided:
            self._decide(use, event.token, "")

    def _count(self, use: Use, token: Token) -> None:
        if use.is_call() and use not in self.calls_seen:
            self.calls_seen.append(use)
            if len(self.calls_seen) > self.bounds.max_calls:
                self._limit(use, token)

    def _limit(self, use: Use, token: Token) -> None:
        if not use.decided:
            self._publish(use, token, "limit")

    # The end of the response.

    def _end(self) -> None:
        token = self.response.ended_at
        how = self.response.ended_by
        if how in ("completed", "incomplete", "failed"):
            last = self.response.events[-1].data
            listed = (last.get("response") or {}).get("output")
            entries = [e for e in listed if isinstance(e, dict)] if isinstance(listed, list) else []
            cut = self._cut_off() if how == "incomplete" else None
            self._match(entries, token)
            for use in self.uses:
                use.cut = how == "incomplete" and (use is cut or (bool(entries) and use.entry is entries[-1]))
        place = {id(use): number for number, use in enumerate(self.uses)}
        # The first use that finished stands; the order of publication is another one (rule 19).
        for use in sorted(self.uses, key=lambda u: (u.final is None, u.done is None, u.done_at, place[id(u)])):
            if use.decided:
                continue
            if use.final is None and use.call_id and self._decided_elsewhere(use):
                self.uses.remove(use)
                continue
            self._decide(use, (*token, place[id(use)]), how)

    def _match(self, entries: Sequence[Json], token: Token) -> None:
        """Rule 4."""
        streamed = list(self.uses)
        free = list(entries)
        for call_id in dict.fromkeys(e["call_id"] for e in entries if e.get("call_id")):
            sharing = [u for u in streamed if call_id in u.ids]
            # What is finished has the first claim to the entry that agrees with it.
            for use in [u for u in sharing if u.done is not None]:
                mine = [e for e in free if e.get("call_id") == call_id]
                agreeing = [e for e in mine if not _contradicts(use, e, self.bounds.tolerate)]
                if agreeing:
                    use.entry = agreeing[0]
                    _take(free, agreeing[0])
            for use in sharing:
                mine = [e for e in free if e.get("call_id") == call_id]
                if use.entry is None and mine:
                    use.entry = mine[0]
                    _take(free, mine[0])
                elif use.entry is None:
                    use.spoiled = True
            said = [u.entry for u in sharing if u.entry is not None]
            for entry in [e for e in free if e.get("call_id") == call_id]:
                if any(all(entry.get(n) == other.get(n) for n in COMPARED) for other in said):
                    _take(free, entry)  # The same call delivered again.
        for entry in [e for e in free if not e.get("call_id") and e.get("type") not in COUNTED_ONLY]:
            place = [e for e in entries if e.get("type") == entry.get("type")]
            nth = next(i for i, e in enumerate(place) if e is entry)
            alike = sorted((u for u in streamed if u.identified and entry.get("type") in u.types), key=lambda u: (u.index is None, u.index))
            if nth < len(alike) and alike[nth].entry is None:
                alike[nth].entry = entry
                _take(free, entry)
        for use in streamed:
            listed = any(e.get("call_id") in use.ids for e in entries if e.get("type") not in COUNTED_ONLY)
            twins = [] if listed else [e for e in free if e.get("call_id") and _twin(use, e)]
            if use.entry is None and use.identified and use.is_call() and twins:
                # A call that had no call_id so far is not renamed by its entry, but named.
                use.renamed_to = twins[0]["call_id"] if use.ids or use.done is not None else None
                use.entry = twins[0]
                for twin in [t for t in twins if t["call_id"] == twins[0]["call_id"]]:
                    _take(free, twin)
        for entry in free:
            if entry.get("type") in COUNTED_ONLY:
                continue
            use = Use(None, entry=entry, identified=True)
            self.uses.append(use)
            self._count(use, token)

    def _cut_off(self) -> Use | None:
        """The item with the highest index seen; of several there, the latest (rule 17)."""
        at = [u for u in self.uses if u.index == self.highest_index and self.highest_index >= 0]
        return at[-1] if at else None

    def _decided_elsewhere(self, use: Use) -> bool:
        others = [u for u in self.uses if u is not use and u.final is not None and u.claims & use.claims]
        return bool(others) or any(c in self.used for c in use.claims)

    # One verdict.

    def _decide(self, use: Use, token: Token, how: str) -> None:
        reason = self._reason(use, how)
        if reason == "":
            return
        if reason == LATE:
            self.uses.remove(use)
            return
        self._publish(use, token, reason)

    def _publish(self, use: Use, token: Token, reason: str) -> None:
        use.decided = True
        call_id = use.call_id
        if reason == "ok" and use.renamed_to is not None:
            call_id = use.renamed_to
        void = reason == "conflict" or (reason == "limit" and use.final is None) or disagree(use, self.bounds.tolerate)
        for claimed in use.claims | ({call_id} if call_id else set()):
            self.used.setdefault(claimed, LATE if void else use.content())
        self.verdicts.append(Verdict((*token, len(self.verdicts)), call_id, reason, use))

    def _reason(self, use: Use, how: str) -> str:
        kind = use.type
        earlier = [self.used[c] for c in sorted(use.claims) if c in self.used]
        if LATE in earlier or (use.final is not None and use.content() in earlier):
            return LATE
        if kind in COUNTED_ONLY and all(t is None or t in COUNTED_ONLY for t in use.types):
            return ""
        if how == "limit":
            return "limit"
        if not isinstance(kind, str) or ":" in kind:
            return "namespaced"
        if kind != "function_call" and kind not in COUNTED_ONLY:
            known = kind in ("custom_tool_call", "mcp_approval_request", "local_shell_call", "computer_call")
            return "not_function_call" if known or use.call_id else ""
        return self._status(use, how) or self._identity(use, bool(earlier)) or self._agreement(use) or self._gate(use)

    def _status(self, use: Use, how: str) -> str:
        lenient = "status_absent" in self.bounds.tolerate
        if use.done is not None and use.done.get("status") not in (None, "completed"):
            return "status"
        if how == "timeout":
            return "timeout"
        if how in ("failed", "superseded") or use.final is None or use.cut:
            return "status"
        if use.entry is not None and use.entry.get("status") not in (None, "completed"):
            return "status"
        if use.final.get("status") is None and not lenient:
            return "status"
        return ""

    def _identity(self, use: Use, again: bool) -> str:
        final = use.final or {}
        named = all(isinstance(final.get(name), str) and final[name] for name in ("call_id", "name"))
        return "identity" if again or not named else ""

    def _agreement(self, use: Use) -> str:
        canonical = {json.dumps(tools, sort_keys=True) for tools in self.echoed}
        if use.renamed_to is not None and "call_id_renamed" in self.bounds.tolerate:
            use = Use(use.index, [{**p, "call_id": None} for p in use.before], use.deltas, done=_anonymous(use.done))
        return "conflict" if len(canonical) > 1 or disagree(use, self.bounds.tolerate) else ""

    def _gate(self, use: Use) -> str:
        request = self.response.request or {}
        spaces = [p["namespace"] for p in [use.final or {}, *use.before] if p.get("namespace") is not None]
        return self.gate(
            {**(use.final or {}), "namespace": next(iter(spaces), None)},
            tools=self.echoed[0] if self.echoed else request.get("tools"),
            choices=self.choices,
            parallel=self.parallel,
            position=next((i for i, u in enumerate(self.calls_seen) if u is use), len(self.calls_seen)),
            max_bytes=self.bounds.max_argument_bytes,
            tolerate=self.bounds.tolerate,
        )


def _signature(data: Json) -> str:
    item = data.get("item")
    if isinstance(item, dict):
        item = [item.get(name) for name in (*COMPARED, "status")]
    said = [data.get(name) for name in ("type", "output_index", "delta", "arguments", "name", "call_id")]
    return json.dumps([said, item])


def _same_id(use: Use, item: Json) -> bool:
    return bool(item.get("call_id")) and item.get("call_id") in use.ids


def _contradicts(use: Use, entry: Json, tolerate: Sequence[str]) -> bool:
    pieces = [use.done] if use.done is not None else use.before
    bare = Use(use.index, [p for p in pieces if p is not use.done], [] if use.done else use.deltas, done=use.done, entry=entry)
    return disagree(bare, tolerate)


def _twin(use: Use, entry: Json) -> bool:
    """Whether an entry under another call_id has this call's name and arguments."""
    final = use.final or {}
    names = [final.get("name"), *(p.get("name") for p in use.before)]
    texts = [final.get("arguments"), *(p.get("arguments") for p in use.before if p.get("arguments")), "".join(use.deltas)]
    name = next((n for n in names if n), None)
    text = next((whole(t) for t in texts if t), None)
    return name is not None and text is not None and entry.get("name") == name and entry.get("arguments") == text


def _take(free: list[Json], entry: Json) -> None:
    del free[next(i for i, e in enumerate(free) if e is entry)]


def _anonymous(piece: Json | None) -> Json | None:
    return None if piece is None else {**piece, "call_id": None}
