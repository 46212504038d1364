"""The oracle's reading of one response: its events, all at once, to the verdicts on its calls (rules 1 to 12 and 17 to 19).

Written for reading, not for speed: the events of a response are walked again from its first one, with nothing kept between
records. It never imports the code under test.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tests.factories import Json
from tests.oracle.use import (
    COMPARED,
    COUNTED_ONLY,
    Token,
    Use,
    anonymous,
    contradicts,
    disagree,
    same_entry,
    same_id,
    says,
    take,
    twin,
    whole,
)

ITEM_EVENTS = (
    "response.output_item.added",
    "response.output_item.done",
    "response.function_call_arguments.delta",
    "response.function_call_arguments.done",
)
LIFECYCLE = ("response.created", "response.queued", "response.in_progress")
TERMINAL = ("response.completed", "response.incomplete", "response.failed", "response.cancelled")
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
        self.last_at: dict[int | None, Use] = {}
        """By index, what came last there; what a repeat repeats, where it was one."""
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
                for use in self.uses:
                    use.before_restart = True
                self.last_at, self.highest_index = {}, -1
                self.calls_seen = [u for u in self.calls_seen if u.decided]
            self._controls(data.get("response") or {})
        elif kind == "response.output_item.added":
            if data.get("item") is not None:
                self._added(event, index, data["item"])
        elif kind == "response.output_item.done":
            if data.get("item") is not None:
                self._done(event, index, data["item"])
        elif kind == "response.function_call_arguments.delta":
            target = self._latest(index)
            if target is not None:
                if isinstance(data.get("delta"), str):
                    target.deltas.append(data["delta"])
                else:
                    target.spoiled = True
                if len(whole("".join(target.deltas)).encode("utf-8", "surrogatepass")) > self.bounds.max_argument_bytes:
                    self._limit(target, event.token)
        elif kind == "response.function_call_arguments.done":
            target = self._latest(index)
            if target is not None:
                target.before.append({name: data.get(name) for name in ("arguments", "name", "call_id")})

    def _controls(self, body: Json) -> None:
        tools = body.get("tools")
        if isinstance(tools, list) and tools and body is not self.response.request:
            self.echoed.append(tools)
        if body.get("tool_choice") is not None:
            self.choices.append(body["tool_choice"])
        if body.get("parallel_tool_calls") is False:
            self.parallel = False

    def _open(self, index: int | None) -> list[Use]:
        return [u for u in self.uses if u.index == index and u.done is None and not u.before_restart]

    def _latest(self, index: int | None) -> Use | None:
        """Where a delta goes: the latest open item; nowhere on a closed index; else kept for the item to come (rule 2)."""
        opened = self._open(index)
        if opened:
            return opened[-1]
        if index in self.last_at:
            return None
        return self._begin(index)

    def _begin(self, index: int | None) -> Use:
        use = self.last_at[index] = Use(index)
        self.uses.append(use)
        return use

    def _added(self, event: Event, index: int | None, item: Json) -> None:
        opened = self._open(index)
        if opened and not opened[-1].identified and not opened[-1].limited:
            use = opened[-1]
        elif opened and "added_again" in self.bounds.tolerate and same_id(opened[-1], item):
            use = opened[-1]
            use.before, use.deltas, use.spoiled = [], [], False
        else:
            use = self._begin(index)
            for other in opened:
                other.spoiled = use.spoiled = True
        use.identified = True
        use.before.append(dict(item))
        self._count(use, event.token)

    def _done(self, event: Event, index: int | None, item: Json) -> None:
        call_id = item.get("call_id")
        opened = [u for u in self.uses if u.done is None and not u.before_restart] if index is None else self._open(index)
        named = [u for u in opened if call_id and call_id in u.ids]
        if named:
            use = named[-1]
        elif opened and index is not None:
            use = opened[-1]
        else:
            use = self._begin(index)
        if use.limited:  # Late; its call_id is used up by what was decided.
            use.done = dict(item)
            self._use_up(use)
            return
        use.identified = True
        use.done = dict(item)
        use.done_at = event.token
        before = self._repeated(use) if len(set(use.ids)) < 2 else None
        if before is not None:
            self.uses.remove(use)
            self.last_at.update({i: before for i, last in self.last_at.items() if last is use})
            return
        self._count(use, event.token)
        if self.release == "item" and not use.decided:
            self._decide(use, event.token, "")

    def _repeated(self, use: Use) -> Use | None:
        """What it repeats: the same content, or anything under a call_id that has no content (rules 8 and 9)."""
        earlier = [u for u in self.uses if u is not use and u.done is not None]
        if not use.call_id:
            return next((u for u in earlier if u.index == use.index and not u.ids and u.content() == use.content()), None)
        earlier = [u for u in earlier if use.call_id in u.claims and not u.silent]
        void = any(u.limited or disagree(u, self.bounds.tolerate) for u in earlier)
        return next((u for u in earlier if void or u.content() == use.content()), None)

    def _count(self, use: Use, token: Token) -> None:
        # Whatever was announced as a call, or ends as one.
        if "function_call" in (use.first_type, use.type) and not any(u is use for u in self.calls_seen):
            self.calls_seen.append(use)
            if len(self.calls_seen) > self.bounds.max_calls:
                self._limit(use, token)

    def _limit(self, use: Use, token: Token) -> None:
        if not use.decided:
            use.limited = True
            use.decided = True
            use.silent = not self._use_up(use)
            if not use.silent:
                self._publish(use, (*token, -1), "limit")

    def _use_up(self, use: Use) -> bool:
        """Nothing more is said under the ids of a limited call, but what finished under one stands; False: one did."""
        finished = [c for u in self.uses if u is not use and u.done is not None for c in u.claims]
        free = [c for c in use.claims if c not in finished and c not in self.used]
        self.used.update(dict.fromkeys(free, LATE))
        return set(free) == use.claims

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
                use.cut = how == "incomplete" and (use is cut or (bool(entries) and same_entry(use, entries[-1])))
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
        # A second use of a finished call_id that passed a bound is none to be listed.
        streamed = [u for u in self.uses if not u.silent]
        free = list(entries)
        for call_id in dict.fromkeys(e["call_id"] for e in entries if e.get("call_id")):
            sharing = [u for u in streamed if call_id in u.ids]
            # What is finished has the first claim to the entry that agrees with it.
            for use in [u for u in sharing if u.done is not None]:
                mine = [e for e in free if e.get("call_id") == call_id]
                agreeing = [e for e in mine if not contradicts(use, e, self.bounds.tolerate)]
                if agreeing:
                    use.entry = agreeing[0]
                    take(free, agreeing[0])
            for use in sharing:
                mine = [e for e in free if e.get("call_id") == call_id]
                if use.entry is None and mine:
                    use.entry = mine[0]
                    take(free, mine[0])
                elif use.entry is None:
                    use.spoiled = True
        for entry in [e for e in free if not e.get("call_id") and e.get("type") not in COUNTED_ONLY]:
            place = [e for e in entries if e.get("type") == entry.get("type")]
            nth = next(i for i, e in enumerate(place) if e is entry)
            alike = [u for u in streamed if u.identified and entry.get("type") == u.first_type]
            alike.sort(key=lambda u: (u.index is None, u.index))
            if nth < len(alike) and alike[nth].entry is None:
                alike[nth].entry = entry
                take(free, entry)
        for use in streamed:
            listed = any(e.get("call_id") in use.ids for e in entries if e.get("type") not in COUNTED_ONLY)
            twins = [] if listed or use.limited else [e for e in free if e.get("call_id") and twin(use, e)]
            if use.entry is None and use.identified and use.is_call and twins:
                # A call that had no call_id so far is not renamed by its entry, but named.
                use.renamed_to = twins[0]["call_id"] if use.ids or use.done is not None else None
                use.entry = twins[0]
                for same in [t for t in twins if t["call_id"] == twins[0]["call_id"]]:
                    take(free, same)
        said = [u.entry for u in streamed if u.entry is not None]
        for number, entry in enumerate(free):
            again = any(says(entry) == says(other) for other in [*said, *free[:number]] if entry.get("call_id"))
            if entry.get("type") in COUNTED_ONLY or again:
                continue
            use = Use(None, entry=entry, identified=True)
            self.uses.append(use)
            self._count(use, token)

    def _cut_off(self) -> Use | None:
        """The item with the highest index seen; of several there, the latest (rule 17)."""
        return self.last_at.get(self.highest_index)

    def _decided_elsewhere(self, use: Use) -> bool:
        ready = [u for u in self.uses if (u.final is not None or u.decided) and u.type not in COUNTED_ONLY]
        others = [u for u in ready if u is not use and u.claims & use.claims]
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
        if use.renamed_to is not None and "call_id_renamed" in self.bounds.tolerate and reason not in ("status", "timeout"):
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
            use = Use(use.index, [{**p, "call_id": None} for p in use.before], use.deltas, done=anonymous(use.done))
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
