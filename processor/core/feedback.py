"""What a model is told about a call that was complete and yet rejected, so that it can correct it.

Owns the text. It names places, keywords and what the schema says there, never a value of the arguments.
"""

from typing import Any, Final

import msgspec

from processor.core.engines import Flaw
from processor.core.gate import Verdict
from processor.core.reasons import Reason
from processor.core.schema_walk import resolve, words

_LEADS: Final = {
    Reason.NOT_ALLOWED: "This tool may not be called here",
    Reason.UNKNOWN_TOOL: "There is no tool of this name",
    Reason.ARGUMENTS_TYPE: "The arguments must be a string that holds a JSON object",
    Reason.LIMIT: "The call is too large",
    Reason.ARGUMENTS_PARSE: "The arguments are not valid JSON",
    Reason.ARGUMENTS_SCHEMA: "The arguments do not fit the schema of the tool",
}
_MAX_EXPECTED: Final = 300
"""Characters of what the schema says at one place."""
_SAYABLE: Final = words(
    "type enum const required minimum maximum exclusiveMinimum exclusiveMaximum minLength maxLength minItems maxItems "
    "pattern format multipleOf additionalProperties minProperties maxProperties uniqueItems dependentRequired"
)
"""Keywords whose value in the schema tells a model what to write."""


def feedback_text(verdict: Verdict) -> str | None:
    """Text for the model, or None where the reason is not one that it can do anything about."""
    lead = _LEADS.get(verdict.reason)
    if lead is None:
        return None
    if verdict.reason is Reason.ARGUMENTS_SCHEMA and verdict.flaws:
        schema = verdict.tools[0].schema if len(verdict.tools) == 1 else None
        places = "; ".join(_place(flaw, schema) for flaw in verdict.flaws)
        return f"The call was not executed. {lead}: {places}. Correct the arguments and call the tool again."
    detail = f" ({verdict.detail})" if verdict.detail else ""
    return f"The call was not executed. {lead}{detail}."


def _place(flaw: Flaw, schema: Any) -> str:
    """One flaw in words."""
    at = f"at {flaw.at}" if flaw.at else "at the top"
    if not flaw.keyword:
        return at
    if flaw.keyword not in _SAYABLE or schema is None:
        return f"{at}, {flaw.keyword} is not satisfied"
    wanted = resolve(schema, "#" + flaw.schema)
    if wanted is None or isinstance(wanted, dict):
        return f"{at}, {flaw.keyword} is not satisfied"
    try:
        text = msgspec.json.encode(wanted).decode()
    except (ValueError, TypeError, OverflowError, RecursionError):
        return f"{at}, {flaw.keyword} is not satisfied"
    return f"{at}, {flaw.keyword} must hold: {text}" if len(text) <= _MAX_EXPECTED else f"{at}, {flaw.keyword} is not satisfied"
