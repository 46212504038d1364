"""The closed lists of outcomes: why a call is rejected, why a record cannot be read.

One enum each feeds the published record, the metric label, the generated documentation and the alerts. Free text is never a
label.
"""

from enum import StrEnum
from typing import Self


class Stage(StrEnum):
    """The stage of the data flow that finds a fault."""

    DECODE = "decode"
    ASSEMBLE = "assemble"
    GATE = "gate"


class Reason(StrEnum):
    """Why a call got its decision, in the order in which the reasons are checked (design section 5)."""

    stage: Stage

    def __new__(cls, code: str, stage: Stage, meaning: str) -> Self:
        """Make a member whose value is `code` and whose docstring is `meaning`."""
        member = str.__new__(cls, code)
        member._value_ = code
        member.stage = stage
        member.__doc__ = meaning
        return member

    NAMESPACED = (
        "namespaced",
        Stage.ASSEMBLE,
        "Its type is missing, not a string, or has a colon: a provider's extension, not portable.",
    )
    NOT_FUNCTION_CALL = (
        "not_function_call",
        Stage.ASSEMBLE,
        "It asks the client to act but is no function call.",
    )
    STATUS = "status", Stage.ASSEMBLE, "It is not completed, or its response ended before it was."
    TIMEOUT = "timeout", Stage.ASSEMBLE, "Its stream fell silent."
    IDENTITY = (
        "identity",
        Stage.ASSEMBLE,
        "call_id or name is missing or empty, or call_id was used before in this response for something else.",
    )
    CONFLICT = "conflict", Stage.ASSEMBLE, "Its pieces disagree."
    NOT_ALLOWED = (
        "not_allowed",
        Stage.GATE,
        "tool_choice or allowed_tools of its own response forbids it, or the local policy does.",
    )
    UNKNOWN_TOOL = "unknown_tool", Stage.GATE, "No tool of that namespace and name is in force."
    ARGUMENTS_TYPE = "arguments_type", Stage.GATE, "Its arguments are not a string."
    LIMIT = "limit", Stage.GATE, "It is too large or too deep, or a schema of its stream may take too long to judge it."
    ARGUMENTS_PARSE = "arguments_parse", Stage.GATE, "Its arguments are not I-JSON (RFC 7493)."
    ARGUMENTS_SCHEMA = (
        "arguments_schema",
        Stage.GATE,
        "Its arguments are not a JSON object, or do not fit the tool's schema.",
    )
    OK = "ok", Stage.GATE, "Approved."


class Explained(StrEnum):
    """A name with a meaning, for enums that feed records, metrics and people alike."""

    def __new__(cls, code: str, meaning: str) -> Self:
        """Make a member whose value is `code` and whose docstring is `meaning`."""
        member = str.__new__(cls, code)
        member._value_ = code
        member.__doc__ = meaning
        return member


class Cause(Explained):
    """Why a record is a dead letter: it cannot be read at all (design section 3, rules 26 and 27)."""

    EMPTY = "empty", "The value is null or empty."
    NOT_TEXT = "not_text", "The value is not UTF-8."
    NOT_JSON = "not_json", "The value is neither JSON nor Server-Sent Events, or a part of it is not."
    TOO_DEEP = "too_deep", "The value is nested deeper than any reader here goes."
    CHAT_COMPLETIONS = "chat_completions", "A Chat Completions object or chunk: another envelope."
    UNKNOWN_FORM = "unknown_form", "JSON, but none of the forms that a record may have."
    NO_KEY = "no_key", "An event with no record key, no configured header and no response id."
