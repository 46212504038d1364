"""The gate: ordered checks on one call, from policy over toolset and I-JSON to schema (design section 5).

Owns the order, the modes and the tolerances that concern arguments and names. It is a pure function of the call and of the
toolset in force (but for how much it says of what does not fit: the calls of one record share an allowance); it publishes and
counts nothing, and never raises for anything that is in a call.
"""

from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from processor.core.arguments import LONG, QUICK_DEPTH, compact, read, read_closely
from processor.core.candidate import Candidate
from processor.core.canonical import sha256
from processor.core.choices import Choices, Patterns
from processor.core.engines import Allowance, Flaw
from processor.core.in_band import InBandCache
from processor.core.quick import NUMBERS, Judge, Passed, approver
from processor.core.reasons import Reason
from processor.core.strict import Fault
from processor.core.toolsets import EMPTY, Compiler, Tool, Toolset
from processor.core.verdict import GateSettings, Verdict

__all__ = ["GATE_TOLERANCES", "Gate", "GateSettings", "Verdict"]

MAX_FREE: Final = 1024
"""Combinations of tool_choice that are kept as forbidding nothing, and bytes of each."""
GATE_TOLERANCES: Final = ("empty_arguments", "arguments_object", "namespace_functions")
"""Tolerances (rule 34) that the gate applies; the others are assembly's."""


class _InForce:
    """A registry, and what calls have shown under it."""

    def __init__(self, registry: Toolset) -> None:
        self.registry = registry
        self.passed: Passed = {}
        """Of its tools."""
        self.free: dict[tuple[bytes, ...], Passed] = {}
        """Values of tool_choice that forbade nothing, as calls carry them, each with all of the above."""


class Gate:
    """Judges calls by the settings and by the toolset in force."""

    def __init__(self, settings: GateSettings, compiler: Compiler | None = None, registry: Toolset = EMPTY) -> None:
        """Judge with these; `registry` can be changed later with `use`."""
        self.settings = settings
        self.compiler = compiler or Compiler(settings.engine, formats=settings.formats)
        self.in_band = InBandCache(self.compiler)
        """Toolsets of streams, with its hits and misses."""
        self._choices = Choices()
        self._allow = Patterns(settings.allow)
        self._deny = Patterns(settings.deny)
        self._observed = Patterns(settings.observe)
        self._registry_only = settings.tools == "registry"
        self._quick_chars = min(settings.max_argument_bytes // 4, LONG) if settings.max_argument_depth >= QUICK_DEPTH else -1
        self._max_bytes = settings.max_argument_bytes
        self._max_depth = settings.max_argument_depth
        self._max_effort_ns = settings.max_in_band_effort_ms * 1_000_000
        self._empty = "empty_arguments" in settings.tolerate
        self._object = "arguments_object" in settings.tolerate
        self._functions = "namespace_functions" in settings.tolerate
        self._joined: dict[tuple[str, str], str] = {}
        self._explained: Any = None
        self._allowance = Allowance()
        self.judge: Judge
        """Judges one call; another one with each registry."""
        self.use(registry)

    @property
    def registry(self) -> Toolset:
        """The registry in force."""
        return self._in_force.registry

    def use(self, registry: Toolset) -> None:
        """Put another registry in force, from the next call on: one assignment, so that a call sees one or the other."""
        self._in_force = in_force = _InForce(registry)
        closely = partial(self._closely, in_force)
        self.judge = approver(in_force.passed, closely) if self._registry_only else closely

    def _closely(self, in_force: _InForce, call: Candidate) -> Verdict:
        """Judge by a proof as well, where it takes a closer look: namespaces, tools of a stream, long texts, numbers."""
        try:
            if call.fault is None and call.tool_choices in in_force.free and call.parallel and not call.tolerated:
                namespace, text = call.namespace, call.arguments
                passed = self._passed(call, in_force)
                quick_chars, is_valid, verdict = passed[call.name if namespace is None else (namespace, call.name)]
                tried = self._registry_only and namespace is None and len(text) <= quick_chars
                reader = read_closely if tried or quick_chars == NUMBERS else read
                value = reader(text, self._max_bytes, self._max_depth)
                # What may cost too much is left to the ordered checks, which count: no text under this size can.
                effort = verdict.tools[0].effort
                cheap = effort is None or len(text) * effort.most_a_char <= self._max_effort_ns
                if type(value) is dict and cheap and is_valid(value):
                    return verdict
        except Exception:  # noqa: BLE001, S110 - no proof, as before
            pass
        return self.judge_in_order(call, in_force)

    def judge_in_order(self, call: Candidate, in_force: _InForce | None = None) -> Verdict:
        """Judge one call by the ordered checks: `judge` without the short cut, and with the same verdicts."""
        if call.fault is not None:
            return Verdict(reason=call.fault, detail=call.detail, tolerated=call.tolerated)
        in_force = in_force or self._in_force
        namespace = call.namespace
        toolset, tools, why = self._find(call, namespace, in_force.registry)
        verdict = Verdict(reason=Reason.OK, toolset=toolset, tools=tools, tolerated=call.tolerated)
        if not tools and self._functions and namespace == "functions":
            namespace = None
            _, verdict.tools, why = self._find(call, namespace, in_force.registry)
            verdict.tolerated = (*call.tolerated, "namespace_functions")
        verdict.detail = self._forbidden(call, namespace, verdict)
        if verdict.detail:
            verdict.reason = Reason.NOT_ALLOWED
        elif not verdict.tools:
            verdict.reason = Reason.UNKNOWN_TOOL
            verdict.detail = why
        if verdict.reason is not Reason.OK and not self._observes(namespace, call.name):
            return verdict
        self._check_arguments(call, verdict, namespace)
        if verdict.reason is not Reason.OK:
            # Only what is approved is published in another form than it came in.
            verdict.normalised = False
        if verdict.reason is Reason.OK and verdict.would_reject is None and not verdict.normalised:
            self._remember(call, verdict, in_force)
        return verdict

    def _passed(self, call: Candidate, in_force: _InForce) -> Passed:
        """Tools of which a call has passed, in the toolset of this call."""
        if self._registry_only:
            return in_force.passed
        if self.settings.tools == "both" or call.tools is None:
            return {}
        return self.in_band.get(call.tools).passed

    def _remember(self, call: Candidate, verdict: Verdict, in_force: _InForce) -> None:
        """Keep what an approval has shown for later calls of the same name: only choice and arguments can differ."""
        if sum(map(len, call.tool_choices)) <= MAX_FREE and not any(map(self._choices.binds, call.tool_choices)):
            if len(in_force.free) >= MAX_FREE:
                in_force.free.clear()
            in_force.free[call.tool_choices] = in_force.passed
        tools = verdict.tools
        if len(tools) == 1 and tools[0].namespace == call.namespace and not verdict.tolerated:
            namespace = call.namespace
            name = call.name if namespace is None else (namespace, call.name)
            kept = Verdict(reason=Reason.OK, toolset=verdict.toolset, tools=tools, plain=True)
            self._passed(call, in_force)[name] = NUMBERS if tools[0].numbers else self._quick_chars, tools[0].passes(), kept

    def would_help(self, call: Candidate) -> tuple[str, ...]:
        """Tolerances of the gate, each of which by itself would have let a rejected call through (for `check`)."""
        helpful = []
        for name in GATE_TOLERANCES:
            if name not in self.settings.tolerate:
                settings = replace(self.settings, tolerate=(*self.settings.tolerate, name))
                if Gate(settings, self.compiler, self.registry).judge(call).reason is Reason.OK:
                    helpful.append(name)
        return tuple(helpful)

    def _check_arguments(self, call: Candidate, verdict: Verdict, namespace: Any) -> None:
        """Go on with `arguments_type`; a verdict that has a reason already is one that is only observed."""
        text = call.arguments
        if type(text) is not str or not text:
            text = self._tolerate(text, verdict)
            if text is None:
                _refuse(verdict, Reason.ARGUMENTS_TYPE, "arguments are not a string")
                return
        value = read(text, self._max_bytes, self._max_depth)
        if type(value) is Fault:
            _refuse(verdict, value.reason, value.detail)
            return
        if type(value) is not dict:
            _refuse(verdict, Reason.ARGUMENTS_SCHEMA, "the arguments are no JSON object")
            return
        effort_ns = self._effort_ns(verdict.tools, text, value)
        if effort_ns > self._max_effort_ns:
            _refuse(
                verdict,
                Reason.LIMIT,
                f"judging it may take {effort_ns // 1_000_000} ms, the bound is {self._max_effort_ns // 1_000_000}",
            )
            return
        for tool in verdict.tools:
            fits = tool.is_valid(value)
            if tool.second is not None and tool.second(value) is not fits:
                verdict.disagreement = True
                fits = False
            if not fits and verdict.reason is Reason.OK:
                _misfit(verdict, tool, value, self._allowed(call.record))
        if verdict.reason is not Reason.OK and self._observes(namespace, call.name):
            verdict.would_reject = verdict.reason
            verdict.reason = Reason.OK
        return

    def _allowed(self, record: Any) -> Allowance:
        """What is left for explaining the calls of this record; a record that is read again is another object."""
        if record is None or record is not self._explained:
            self._explained, self._allowance = record, Allowance()
        return self._allowance

    def _effort_ns(self, tools: tuple[Tool, ...], text: str, value: dict[str, Any]) -> int:
        """Nanoseconds that judging by untrusted tools may take; counted only where a text of that size can take too many."""
        efforts = [tool.effort for tool in tools if tool.effort is not None]
        most = len(text) * sum(effort.most_a_char for effort in efforts)
        return most if most <= self._max_effort_ns else sum(effort.of(value) for effort in efforts)

    def _tolerate(self, arguments: Any, verdict: Verdict) -> str | None:
        """Text of arguments that are empty or no string: itself, what a tolerance makes of it, or None."""
        name, text = "", arguments if isinstance(arguments, str) else None
        if self._empty and arguments == "":
            name, text = "empty_arguments", "{}"
        elif self._object and isinstance(arguments, dict):
            name, text = "arguments_object", compact(arguments)
        if name and text is not None:
            verdict.tolerated = (*verdict.tolerated, name)
            verdict.normalised = True
            verdict.arguments = text
        return text

    def _forbidden(self, call: Candidate, namespace: Any, verdict: Verdict) -> str:
        """Why the response or the policy forbids the call; empty where neither does."""
        choices, verdict.unknown_choices = self._choices.binding(call.tool_choices)
        # A flat tool that was called under a namespace of its own name (rule 25) is meant by its flat name.
        flat = namespace == call.name and any(tool.namespace is None for tool in verdict.tools)
        exact = not flat or any(tool.namespace is not None for tool in verdict.tools)
        for meant in ([namespace] if exact else []) + ([None] if flat else []):
            for choice in choices:
                if found := choice.verdict(meant, call.name):
                    return found
            if self._deny and self._deny.match(meant, call.name):
                return "the local deny list has it"
            if self._allow and not self._allow.match(meant, call.name):
                return "the local allow list does not have it"
        if not call.parallel and call.position > 0:
            return "parallel_tool_calls is false, and this is not the first call of its response"
        return ""

    def _observes(self, namespace: Any, name: Any) -> bool:
        return self.settings.mode == "observe" or self._observed.match(namespace, name)

    def _find(self, call: Candidate, namespace: Any, registry: Toolset) -> tuple[str | None, tuple[Tool, ...], str]:
        """Name of the toolset, tools that the call must satisfy, and why there are none."""
        source = self.settings.tools
        if source == "registry":
            found = registry.find(namespace, call.name)
            return registry.sha256, found, "" if found else registry.why_not(namespace, call.name)
        if call.tools is None:
            return None, (), "the response says nothing of its tools"
        stream = self.in_band.get(call.tools)
        echoed = stream.find(namespace, call.name)
        if source == "stream":
            return stream.sha256, echoed, "" if echoed else stream.why_not(namespace, call.name)
        name = self._join(registry.sha256, stream.sha256)
        registered = registry.find(namespace, call.name)
        if not registered:
            return name, (), "registry: " + registry.why_not(namespace, call.name)
        if not echoed:
            return name, (), "stream: " + stream.why_not(namespace, call.name)
        return name, registered + echoed, ""

    def _join(self, registry: str, stream: str) -> str:
        """Name of two toolsets that must both be satisfied."""
        key = (registry, stream)
        if key not in self._joined:
            if len(self._joined) >= MAX_FREE:
                self._joined.clear()
            self._joined[key] = sha256(list(key))
        return self._joined[key]


def _refuse(verdict: Verdict, reason: Reason, detail: str) -> None:
    """Reject what cannot be executed, observed or not; the first reason found stays (order of the reasons)."""
    if verdict.reason is Reason.OK:
        verdict.reason = reason
        verdict.detail = detail


def _misfit(verdict: Verdict, tool: Tool, value: Any, allowance: Allowance) -> None:
    """Say where the value does not fit the tool, as far as the allowance goes."""
    verdict.reason = Reason.ARGUMENTS_SCHEMA
    if verdict.disagreement:
        verdict.detail = "the two engines disagree on these arguments"
    verdict.flaws = tool.explain(value, allowance)
    if not verdict.detail:
        flaw = verdict.flaws[0] if verdict.flaws else Flaw("", "", "")
        at = f"at {flaw.at}" if flaw.at else "as a whole"
        verdict.detail = f"the arguments do not fit the tool's schema {at}" + (f" ({flaw.keyword})" if flaw.keyword else "")
