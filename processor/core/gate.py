"""The gate: ordered checks on one call, from policy over toolset and I-JSON to schema (design section 5).

Owns the order, the modes and the tolerances that concern arguments and names. It is a pure function of the call and of the toolset
in force; it publishes and counts nothing, and never raises for anything that is in a call.
"""

from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from processor.core.arguments import DEEPEST, MAX_BYTES, MAX_DEPTH, compact, read
from processor.core.candidate import Candidate
from processor.core.canonical import sha256
from processor.core.choices import Choices, Patterns
from processor.core.engines import Flaw
from processor.core.in_band import InBandCache
from processor.core.reasons import Reason
from processor.core.strict import Fault
from processor.core.toolsets import EMPTY, Compiler, Tool, Toolset

MAX_DECISION_BYTES: Final = 4 * MAX_BYTES + (64 << 10)
"""Default bound on an encoded decision: the arguments twice, escaped, and room for the rest."""
GATE_TOLERANCES: Final = ("empty_arguments", "arguments_object", "namespace_functions")
"""Tolerances (rule 34) that the gate applies; the others are assembly's."""


class GateSettings(Struct, frozen=True, kw_only=True):
    """Settings on which a verdict depends, and nothing else does."""

    tools: str = "registry"
    """Where tools come from: `registry`, `stream` or `both` (a call must satisfy both)."""
    mode: str = "enforce"
    """`enforce` or `observe`."""
    observe: tuple[str, ...] = ()
    """Tools that are only observed although the mode is `enforce`, as patterns."""
    allow: tuple[str, ...] = ()
    """Patterns of the tools that may be called; empty: all."""
    deny: tuple[str, ...] = ()
    """Patterns of the tools that may not."""
    engine: str = "jsonschema-rs"
    """`jsonschema-rs`, `fastjsonschema` or `both`."""
    formats: bool = False
    """Whether `format` is an assertion."""
    arguments: str = "omit"
    """What a rejection says of its arguments: `omit`, `hash` or `include`."""
    max_argument_bytes: int = MAX_BYTES
    """UTF-8 bytes of arguments a call; over, not at, the bound is `limit`."""
    max_argument_depth: int = MAX_DEPTH
    """Nesting of arguments; over, not at, the bound is `limit`. At most DEEPEST."""
    tolerate: tuple[str, ...] = ()
    """Names of tolerances; those of assembly are ignored here."""
    max_decision_bytes: int = MAX_DECISION_BYTES
    """An approval whose record is larger is `limit`."""

    def __post_init__(self) -> None:
        """Refuse settings that cannot be. Raises ValueError."""
        for setting, value, allowed in (
            ("tools", self.tools, ("registry", "stream", "both")),
            ("mode", self.mode, ("enforce", "observe")),
            ("engine", self.engine, ("jsonschema-rs", "fastjsonschema", "both")),
            ("arguments", self.arguments, ("omit", "hash", "include")),
        ):
            if value not in allowed:
                message = f"{setting} is one of {', '.join(allowed)}"
                raise ValueError(message)
        if self.engine == "fastjsonschema" and self.tools != "registry":
            message = 'engine = "fastjsonschema" needs tools = "registry": it generates code, never from schemas of a stream'
            raise ValueError(message)
        if not 1 <= self.max_argument_depth <= DEEPEST:
            message = f"max_argument_depth is from 1 to {DEEPEST}"
            raise ValueError(message)


class Verdict(Struct, kw_only=True):
    """What the gate says of one call."""

    reason: Reason
    """OK: approved."""
    detail: str = ""
    """For people; never an argument value."""
    flaws: tuple[Flaw, ...] = ()
    """Where the arguments do not fit the schema."""
    toolset: str | None = None
    """SHA-256 of the toolset by which it was judged; None where it did not come to that."""
    tools: tuple[Tool, ...] = ()
    """Tools that it was checked against."""
    arguments: str | None = None
    """The text that was checked; None where there was none."""
    normalised: bool = False
    """The text is not the one that the call carried."""
    tolerated: tuple[str, ...] = ()
    """Tolerances that it needed, assembly's included."""
    would_reject: Reason | None = None
    """Approved in observe mode: the reason that enforce would have given."""
    disagreement: bool = False
    """The two engines disagree on it."""
    unknown_choices: int = 0
    """Values of tool_choice that nobody knows."""


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
        self._policy = bool(settings.allow or settings.deny)
        self._empty = "empty_arguments" in settings.tolerate
        self._object = "arguments_object" in settings.tolerate
        self._functions = "namespace_functions" in settings.tolerate
        self._joined: dict[tuple[str, str], str] = {}
        self.registry = registry
        """The toolset in force; assigning another is the whole of a hot reload."""

    def use(self, registry: Toolset) -> None:
        """Put another registry in force, from the next call on."""
        self.registry = registry

    def judge(self, call: Candidate) -> Verdict:
        """Judge one call."""
        if call.fault is not None:
            return Verdict(reason=call.fault, detail=call.detail, tolerated=call.tolerated)
        namespace = call.namespace
        toolset, tools, why = self._find(call, namespace)
        verdict = Verdict(reason=Reason.OK, toolset=toolset, tools=tools, tolerated=call.tolerated)
        if not tools and self._functions and namespace == "functions":
            namespace = None
            _, verdict.tools, why = self._find(call, namespace)
            verdict.tolerated = (*call.tolerated, "namespace_functions")
        if call.tool_choices or self._policy or not call.parallel:
            verdict.detail = self._forbidden(call, namespace, verdict)
            if verdict.detail:
                verdict.reason = Reason.NOT_ALLOWED
        if not verdict.tools and verdict.reason is Reason.OK:
            verdict.reason = Reason.UNKNOWN_TOOL
            verdict.detail = why
        if verdict.reason is not Reason.OK and not self._observes(namespace, call.name):
            return verdict
        return self._check_arguments(call, verdict, namespace)

    def would_help(self, call: Candidate) -> tuple[str, ...]:
        """Tolerances of the gate, each of which by itself would have let a rejected call through (for `check`)."""
        helpful = []
        for name in GATE_TOLERANCES:
            if name not in self.settings.tolerate:
                settings = replace(self.settings, tolerate=(*self.settings.tolerate, name))
                if Gate(settings, self.compiler, self.registry).judge(call).reason is Reason.OK:
                    helpful.append(name)
        return tuple(helpful)

    def _check_arguments(self, call: Candidate, verdict: Verdict, namespace: Any) -> Verdict:
        """Go on with `arguments_type`; a verdict that already has a reason is one that is only observed."""
        text = call.arguments
        if type(text) is not str or not text:
            text = self._tolerate(text, verdict)
            if text is None:
                return _refuse(verdict, Reason.ARGUMENTS_TYPE, "arguments are not a string")
        verdict.arguments = text
        value = read(text, self.settings.max_argument_bytes, self.settings.max_argument_depth)
        if type(value) is not dict:
            if type(value) is Fault:
                return _refuse(verdict, value.reason, value.detail)
            return _refuse(verdict, Reason.ARGUMENTS_SCHEMA, "the arguments are no JSON object")
        for tool in verdict.tools:
            fits = tool.is_valid(value)
            if tool.second is not None and tool.second(value) is not fits:
                verdict.disagreement = True
                fits = False
            if not fits and verdict.reason is Reason.OK:
                _misfit(verdict, tool, value)
        if verdict.reason is not Reason.OK and self._observes(namespace, call.name):
            verdict.would_reject = verdict.reason
            verdict.reason = Reason.OK
        return verdict

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
        return text

    def _forbidden(self, call: Candidate, namespace: Any, verdict: Verdict) -> str:
        """Why the response or the policy forbids the call; empty where neither does."""
        choices = [self._choices.get(text) for text in call.tool_choices]
        verdict.unknown_choices = sum(not choice.known for choice in choices)
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

    def _find(self, call: Candidate, namespace: Any) -> tuple[str | None, tuple[Tool, ...], str]:
        """Name of the toolset, tools that the call must satisfy, and why there are none."""
        source = self.settings.tools
        registry = self.registry
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
            if len(self._joined) > MAX_DEPTH:
                self._joined.clear()
            self._joined[key] = sha256(list(key))
        return self._joined[key]


def _refuse(verdict: Verdict, reason: Reason, detail: str) -> Verdict:
    """Reject what cannot be executed, observed or not; the first reason found stays (order of the reasons)."""
    if verdict.reason is Reason.OK:
        verdict.reason = reason
        verdict.detail = detail
    return verdict


def _misfit(verdict: Verdict, tool: Tool, value: Any) -> None:
    """Say where the value does not fit the tool."""
    verdict.reason = Reason.ARGUMENTS_SCHEMA
    if verdict.disagreement:
        verdict.detail = "the two engines disagree on these arguments"
    verdict.flaws = tool.explain(value)
    if not verdict.detail:
        flaw = verdict.flaws[0] if verdict.flaws else Flaw("", "", "")
        at = f"at {flaw.at}" if flaw.at else "as a whole"
        verdict.detail = f"the arguments do not fit the tool's schema {at}" + (f" ({flaw.keyword})" if flaw.keyword else "")
