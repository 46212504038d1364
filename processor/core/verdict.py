"""What the gate is told and what it says: its settings, and the verdict on one call.

Owns these two values. It judges nothing.
"""

from typing import Any, Final

from msgspec import Struct

from processor.core.arguments import DEEPEST, MAX_BYTES, MAX_DEPTH
from processor.core.engines import Flaw
from processor.core.reasons import Reason
from processor.core.toolsets import Tool

MAX_DECISION_BYTES: Final = 4 * MAX_BYTES + (64 << 10)
"""Default bound on an encoded decision: the arguments twice, escaped, and room for the rest."""


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
    max_in_band_effort_ms: int = 1_000
    """Time that judging a call by schemas of its stream may take at the worst, as `effort` estimates it; over, not at, it is
    `limit`."""
    tolerate: tuple[str, ...] = ()
    """Names of tolerances; those of assembly are ignored here."""
    max_decision_bytes: int = MAX_DECISION_BYTES
    """An approval whose record is larger is `limit`."""
    max_rejection_bytes: int = MAX_DECISION_BYTES
    """A rejection whose record is larger is cut down."""

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
    """The text that was checked, where it is not the one that the call carried."""
    normalised: bool = False
    """It is not."""
    tolerated: tuple[str, ...] = ()
    """Tolerances that it needed, assembly's included."""
    would_reject: Reason | None = None
    """Approved in observe mode: the reason that enforce would have given."""
    disagreement: bool = False
    """The two engines disagree on it."""
    unknown_choices: int = 0
    """Values of tool_choice that nobody knows."""
    plain: bool = False
    """An approval with nothing else to say, the same object for all such calls of its tool."""
    form: Any = None
    """For whoever writes decisions: what it has prepared for a plain approval."""
