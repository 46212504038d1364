"""What a model is told about a call that was complete and yet rejected, so that it can correct it.

Owns the text. It names places, keywords and what the schema says there, never a value of the arguments.
"""

from typing import Any, Final

import msgspec

from processor.core.engines import Flaw
from processor.core.gate import Verdict
from processor.core.reasons import Reason
from processor.core.schema_walk import resolve

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


def feedback_text(verdict: Verdict) -> str | None:
    """Text for the model, or None where the reason is not one that it can do anything about."""
    lead = _LEADS.get(verdict.reason)
    if lead is None:
        return None
    if verdict.reason is Reason.ARGUMENTS_SCHEMA and verdict.flaws:
        schema = verdict.tools[0].schema if len({tool.sha256 for tool in verdict.tools}) == 1 else None
        places = "; ".join(place(flaw, schema) for flaw in verdict.flaws)
        return f"The call was not executed. {lead}: {places}. Correct the arguments and call the tool again."
    detail = f" ({verdict.detail})" if verdict.detail else ""
    return f"The call was not executed. {lead}{detail}."


def place(flaw: Flaw, schema: Any) -> str:
    """One flaw in words, where it is and what the schema asks for."""
    at = f"at {flaw.at}" if flaw.at else "at the top"
    return f"{at}: {wanted(flaw, schema)}" if flaw.keyword else at


def wanted(flaw: Flaw, schema: Any) -> str:
    """What the schema asks for where the arguments do not fit, to be read after the place; no value of the arguments."""
    if flaw.missing:
        return f"is missing: {', '.join(filter(None, map(_json, flaw.missing)))}"
    if flaw.keyword in PHRASES:
        return PHRASES[flaw.keyword]
    says = resolve(schema, "#" + flaw.schema)
    if flaw.keyword == "type" and isinstance(says, str | list):
        return f"must be of type {says if isinstance(says, str) else ' or '.join(map(str, says))}"
    if flaw.keyword == "enum" and isinstance(says, list):
        values = ", ".join(map(_json, says[:_MAX_EXPECTED]))  # each takes a character and more: no more of them would fit
        return f"must be one of {values}" if len(values) <= _MAX_EXPECTED else "must be one of the values that the schema lists"
    if flaw.keyword == "const" and says is not None and len(value := _json(says)) <= _MAX_EXPECTED:
        return f"must be {value}"
    if flaw.keyword in _BOUNDS and isinstance(says, int | float) and not isinstance(says, bool):
        return _BOUNDS[flaw.keyword].format(_json(says), "" if says == 1 else "s")
    if flaw.keyword in _TEXTS and isinstance(says, str) and len(says) <= _MAX_EXPECTED:
        return _TEXTS[flaw.keyword].format(_json(says))
    return f"{flaw.keyword} is not satisfied"


PHRASES: Final = {
    "additionalProperties": "has members that the schema does not allow",
    "unevaluatedProperties": "has members that the schema does not allow",
    "additionalItems": "has more items than the schema allows",
    "unevaluatedItems": "has items that the schema does not allow",
    "uniqueItems": "must not have the same item twice",
    "anyOf": "fits none of the forms that the schema allows",
    "oneOf": "must fit exactly one of the forms that the schema allows",
    "not": "has a form that the schema forbids",
    "contains": "lacks an item that the schema asks for",
    "propertyNames": "has a member whose name the schema does not allow",
}
"""Keywords that are said without what the schema has there."""
_BOUNDS: Final = {
    "minimum": "must be at least {}",
    "maximum": "must be at most {}",
    "exclusiveMinimum": "must be more than {}",
    "exclusiveMaximum": "must be less than {}",
    "multipleOf": "must be a multiple of {}",
    "minLength": "must have at least {} character{}",
    "maxLength": "must have at most {} character{}",
    "minItems": "must have at least {} item{}",
    "maxItems": "must have at most {} item{}",
    "minProperties": "must have at least {} member{}",
    "maxProperties": "must have at most {} member{}",
}
"""Keywords whose value is a number."""
_TEXTS: Final = {"pattern": "must match the pattern {}", "format": "must have the format {}"}
"""Keywords whose value is a text."""


def _json(value: Any) -> str:
    """JSON text; empty for what has none that can be published."""
    try:
        return msgspec.json.encode(value).decode()
    except (ValueError, TypeError, OverflowError, RecursionError):
        return ""
