"""What strict mode of the providers forbids in a schema.

Owns that table: the subset of JSON Schema that providers compile a grammar from. Providers widen it from time to time; callgate
itself takes all of JSON Schema.
"""

from collections.abc import Iterator
from typing import Any, Final

from processor.core.schema_walk import children, pointer, subschemas, words

FORBIDDEN: Final = words(
    "allOf oneOf not if then else dependentRequired dependentSchemas dependencies patternProperties propertyNames prefixItems "
    "unevaluatedProperties unevaluatedItems contains minContains maxContains minProperties maxProperties uniqueItems"
)
"""Keywords that no grammar is made from."""
_WHO: Final = "strict mode of the providers"
MAX_LEVELS: Final = 10
"""Levels of objects and lists."""
MAX_PROPERTIES: Final = 5_000
"""Properties of all objects."""
MAX_VALUES: Final = 1_000
"""Enumerated values, all together."""


def forbidden(schema: Any) -> Iterator[tuple[str, str]]:
    """Pointer and sentence of each thing that strict mode forbids."""
    if not isinstance(schema, dict):
        yield "", f"{_WHO} wants a schema that is an object"
        return
    if schema.get("type") != "object" or "anyOf" in schema:
        yield "", f'{_WHO} wants "type": "object" and no anyOf in the schema as a whole'
    properties = values = 0
    for path, part in sorted(subschemas(schema), key=lambda each: pointer(each[0])):
        for keyword in sorted(FORBIDDEN & part.keys()):
            yield pointer((*path, keyword)), f"{_WHO} does not have {keyword}"
        named = part.get("properties")
        if isinstance(named, dict) or part.get("type") == "object":
            if part.get("additionalProperties") is not False:
                yield pointer(path), f"{_WHO} wants additionalProperties false"
            required = part.get("required")
            known = set(required) if isinstance(required, list) else set()
            optional = [name for name in (named or {}) if name not in known]
            if optional:
                yield pointer(path), f"{_WHO} wants every property required; optional is {', '.join(map(str, optional[:5]))}"
            properties += len(named or {})
        if isinstance(part.get("enum"), list):
            values += len(part["enum"])
    if properties > MAX_PROPERTIES:
        yield "", f"{_WHO} takes at most {MAX_PROPERTIES} properties, here are {properties}"
    if values > MAX_VALUES:
        yield "", f"{_WHO} takes at most {MAX_VALUES} enumerated values, here are {values}"
    if (levels := _levels(schema)) > MAX_LEVELS:
        yield "", f"{_WHO} takes at most {MAX_LEVELS} levels of nesting, here are {levels}"


def _levels(schema: dict[str, Any]) -> int:
    """Levels of objects and lists, references not followed."""
    deepest = 0
    todo: list[tuple[int, Any]] = [(0, schema)]
    while todo:
        level, part = todo.pop()
        if isinstance(part, dict):
            level += part.get("type") in ("object", "array")
            deepest = max(deepest, level)
            todo.extend((level, child) for _, _, child in children(part))
    return deepest
