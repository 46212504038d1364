"""What each event of a response adds to its items (rules 1 to 3, 8, 9 and 18).

Owns the walk over the events; what is decided, and why, is read in `response.py`.
"""

from abc import ABC, abstractmethod
from typing import Any

from tests.factories import Json
from tests.oracle.events import LIFECYCLE, TERMINAL, Event, Response
from tests.oracle.use import COUNTED_ONLY, Token, Use, as_texts, disagree, same_id, whole

LATE = "late"
"""What is used up under a call_id that was rejected for `conflict` or `limit`: it has no content (rule 9)."""


class Collecting(ABC):
    """The items of one response and what was said of them."""

    def __init__(self, response: Response, release: str, bounds: Any) -> None:
        self.response = response
        self.release = release
        self.bounds = bounds
        self.uses: list[Use] = []
        self.used: dict[str, str] = {}
        self.echoed: list[list[Json]] = []
        self.choices: list[Any] = []
        self.parallel = True
        self.highest_index = -1
        self.held = 0
        """Characters of all deltas that belong to a call."""
        self.last_at: dict[int | None, Use] = {}
        """By index, what came last there; what a repeat repeats, where it was one."""
        self.calls_seen: list[Use] = []
        if response.request is not None:
            self.controls(response.request)

    @abstractmethod
    def decide(self, use: Use, token: Token, how: str) -> None:
        """Decide a call with the reason that comes first."""

    @abstractmethod
    def publish(self, use: Use, token: Token, reason: str) -> None:
        """Decide a call with this reason."""

    def read(self, event: Event) -> None:
        """One event."""
        data = as_texts(event.data) if "arguments_object" in self.bounds.tolerate else event.data
        kind = data["type"]
        index = data.get("output_index")
        if isinstance(index, int) and not ("item" in data and data["item"] is None):
            self.highest_index = max(self.highest_index, index)
        if kind in LIFECYCLE or kind in TERMINAL:
            if data.get("again"):
                self.uses = [u for u in self.uses if u.decided and not u.silent]
                for use in self.uses:
                    use.before_restart = True
                self.last_at, self.highest_index = {}, -1
                self.calls_seen = [u for u in self.calls_seen if u.decided and not u.silent]
            self.controls(data.get("response") or {})
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
                    self.held += len(data["delta"])
                else:
                    target.spoiled = True
                if len(whole("".join(target.deltas)).encode("utf-8", "surrogatepass")) > self.bounds.max_argument_bytes:
                    self._limit(target, event.token)
        elif kind == "response.function_call_arguments.done":
            target = self._latest(index)
            if target is not None and not (target.limited and target.ids):  # Late; but it may name what nothing has named yet.
                target.before.append({name: data.get(name) for name in ("arguments", "name", "call_id")})

    def controls(self, body: Json) -> None:
        """What a request or a lifecycle event says of tools and limits."""
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
            return opened[-1] if opened[-1].type not in COUNTED_ONLY else None
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
            # Its arguments begin again. What contradicted itself before, or does now, is not made good by that.
            use.spoiled = disagree(use)
            use.before, use.deltas = [{**piece, "arguments": None} for piece in use.before], []
        else:
            use = self._begin(index)
            for other in opened:
                other.spoiled = use.spoiled = True
        use.identified = True
        use.before.append(dict(item))
        self.count(use, event.token)

    def _done(self, event: Event, index: int | None, item: Json) -> None:
        call_id = item.get("call_id")
        opened = [u for u in self.uses if u.done is None and not u.before_restart] if index is None else self._open(index)
        named = [u for u in opened if call_id and call_id in u.ids]
        stood = None if opened else self.last_at.get(index)
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
        before = self._repeated(use) if use.call_id in (item.get("call_id"), "", None) else None
        if before is not None:
            self.uses.remove(use)
            self.last_at.update({i: stood or before for i, last in self.last_at.items() if last is use})
            return
        self.count(use, event.token)
        if self.release == "item" and not use.decided:
            self.decide(use, event.token, "")

    def _repeated(self, use: Use) -> Use | None:
        """What it repeats: the same content, or anything under a call_id that has no content (rules 8 and 9)."""
        earlier = [u for u in self.uses if u is not use and (u.final is not None or u.limited) and not u.counted_only]
        if use.call_id:
            earlier = [u for u in earlier if use.call_id in u.claims]
        else:
            earlier = [u for u in earlier if u.index == use.index and not u.ids and use.done is not None]
        # Of a limited call that is not decided by itself another was there first.
        first = min(earlier, key=lambda u: (u.silent, not u.done_at, u.done_at), default=None)
        if first is not None and use.call_id:
            # What contradicts a call that is decided comes too late to take its content away.
            void = self.used.get(use.call_id) == LATE if first.decided else disagree(first)
            if first.limited or void:
                return first
        return next((u for u in earlier if not u.limited and u.content() == use.content()), None)

    def count(self, use: Use, token: Token) -> None:
        """Count calls: whatever was announced as one, or ends as one."""
        if "function_call" in (use.first_type, use.type) and not any(u is use for u in self.calls_seen):
            self.calls_seen.append(use)
            if len(self.calls_seen) > self.bounds.max_calls:
                self._limit(use, token)

    def _limit(self, use: Use, token: Token) -> None:
        if not use.decided:
            use.limited = True
            use.decided = True
            use.done_at = token
            use.silent = bool(use.call_id) and use.call_id in self.published(use)
            self._use_up(use)
            if not use.silent:
                self.publish(use, (*token, -1), "limit")

    def _use_up(self, use: Use) -> None:
        """Nothing more is said under the ids of a limited call, but what finished under one stands."""
        finished = [c for u in self.uses if u is not use and u.final is not None for c in u.claims]
        free = [c for c in use.claims if c not in finished and c not in self.used]
        self.used.update(dict.fromkeys(free, LATE))

    def published(self, but: Use | None = None) -> set[str | None]:
        """Ids under which something is or will be decided: nothing else is, where it never finishes (rule 3)."""
        sure = [u for u in self.uses if u is not but and (u.decided or (u.final is not None and not u.counted_only))]
        return {u.renamed_to if u.renames else u.call_id for u in sure if not u.silent and not u.late}
