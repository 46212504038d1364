"""The oracle's reading of one response: its events, all at once, to the verdicts on its calls (rules 1 to 12 and 17 to 19).

Written for reading, not for speed: the events of a response are walked again from its first one, with nothing kept between
records. It never imports the code under test.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from tests.oracle.collecting import LATE, Collecting
from tests.oracle.events import Response, counted
from tests.oracle.listing import match
from tests.oracle.use import COUNTED_ONLY, Token, Use, as_texts, disagree, same_entry


@dataclass
class Verdict:
    """What is decided for one call."""

    token: Token
    call_id: str | None
    reason: str
    use: Use


Judge: TypeAlias = Callable[..., str]


class Reading(Collecting):
    """One walk over the events of one response."""

    def __init__(self, response: Response, release: str, bounds: Any, gate: Judge) -> None:
        super().__init__(response, release, bounds)
        self.gate = gate
        self.verdicts: list[Verdict] = []

    def run(self) -> list[Verdict]:
        """All verdicts on the calls of the response, each with its place in the log."""
        for event in counted(self.response.events):
            self.read(event)
        if self.response.ended_by:
            self._end()
        return self.verdicts

    # The end of the response.

    def _end(self) -> None:
        token = self.response.ended_at
        how = self.response.ended_by
        if how in ("completed", "incomplete", "failed"):
            last = self.response.events[-1].data
            last = as_texts(last) if "arguments_object" in self.bounds.tolerate else last
            listed = (last.get("response") or {}).get("output")
            entries = [e for e in listed if isinstance(e, dict)] if isinstance(listed, list) else []
            cut = self._cut_off() if how == "incomplete" else None
            own = match(self.uses, entries)
            for number, use in enumerate(self.uses):
                use.renames = self._may_rename(use, self.uses[:number])
                if use.entry is not None and use.identified:
                    self.count(use, token)  # Its entry may be the first piece that calls it a call.
            for use in own:
                if self._repeated(use) is None:
                    self.uses.append(use)
                    self.count(use, token)
            for use in self.uses:
                use.cut = how == "incomplete" and (use is cut or (bool(entries) and same_entry(use, entries[-1])))
        place = {id(use): number for number, use in enumerate(self.uses)}
        # The first use that finished stands; the order of publication is another one (rule 19).
        for use in sorted(self.uses, key=lambda u: (u.final is None, u.done is None, u.done_at, place[id(u)])):
            if use.decided:
                continue
            if use.final is None and use.call_id and use.call_id in self.published(use):
                self.uses.remove(use)
                continue
            self.decide(use, (*token, place[id(use)]), how)

    def _cut_off(self) -> Use | None:
        """The item with the highest index seen; of several there, the latest (rule 17). Where no event had one: the last."""
        if self.highest_index < 0:
            return self.uses[-1] if self.uses else None
        return self.last_at.get(self.highest_index)

    def _may_rename(self, use: Use, before: list[Use]) -> bool:
        """Rule 34; an id that another call of the response has, or was given, is no name for this one."""
        if use.renamed_to is None or not use.ids or use.decided or "call_id_renamed" not in self.bounds.tolerate:
            return False
        others = [u for u in self.uses if u is not use and u.final is not None and u.renamed_to is None]
        taken = any(use.renamed_to in u.claims for u in others) or any(
            u.renames and u.renamed_to == use.renamed_to for u in before
        )
        return not taken and use.renamed_to not in self.used

    # One verdict.

    def decide(self, use: Use, token: Token, how: str) -> None:
        """Decide a call with the reason that comes first."""
        reason = self._reason(use, how)
        if reason == "":
            return
        if reason == LATE:  # its entry in the list is its own all the same
            use.decided = use.late = True
            return
        self.publish(use, token, reason)

    def publish(self, use: Use, token: Token, reason: str) -> None:
        """Decide a call with this reason."""
        use.decided = True
        call_id = use.call_id
        if use.renames:
            call_id = use.renamed_to
        void = reason == "conflict" or (reason == "limit" and use.final is None) or self._disagrees(use)
        if not use.limited:  # Else they are used up already, as far as nothing finished under them.
            for claimed in use.claims | ({call_id} if call_id else set()):
                self.used.setdefault(claimed, LATE if void else use.content())
        self.verdicts.append(Verdict((*token, len(self.verdicts)), call_id, reason, use))

    def _reason(self, use: Use, how: str) -> str:
        kind = use.type
        earlier = [self.used[c] for c in sorted(use.claims) if c in self.used]
        told = [u.content() for u in self.uses if u.decided and not u.limited and use.claims & u.claims]
        same = use.final is not None and use.content() in (*earlier, *told) and use.call_id == use.final.get("call_id")
        if (self.used.get(use.call_id or "") == LATE and use.final is not None) or same:
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
        return self._status(use, how) or self._identity(use, bool(earlier)) or self._conflict(use) or self._gate(use)

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

    def _conflict(self, use: Use) -> str:
        return "conflict" if self._disagrees(use) else ""

    def _disagrees(self, use: Use) -> bool:
        return self._tools_clash() or disagree(use)

    def _tools_clash(self) -> bool:
        """Rule 10."""
        return any(tools != self.echoed[0] for tools in self.echoed)

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
