"""What fastjsonschema is proven to honour, as a table: keywords by draft, made and tested against the JSON Schema Test Suite.

Owns that table and nothing else. It may only ever be too narrow: whatever is not listed is refused at load, never half-checked.
"""

from typing import Any, Final

from processor.core.schema_walk import children, draft_of, pointer, words

ANNOTATIONS: Final = words("$schema $comment title description default examples deprecated readOnly writeOnly")
"""Keywords that no validator acts upon."""

_ALWAYS: Final = words(
    "type enum properties required additionalProperties items minLength maxLength minimum maximum minItems maxItems "
    "minProperties maxProperties uniqueItems allOf anyOf oneOf not $ref definitions"
)
_FOUR: Final = _ALWAYS | frozenset(["exclusiveMinimum", "exclusiveMaximum", "additionalItems", "dependencies"])
_SIX: Final = _FOUR | frozenset({"const", "contains", "propertyNames"})
_SEVEN: Final = _SIX | frozenset({"if", "then", "else"})
_LATER: Final = (_SEVEN | {"$defs"}) - {"additionalItems", "dependencies"}

HONOURED: Final = {
    "draft4": _FOUR,
    "draft6": _SIX,
    "draft7": _SEVEN,
    "draft2019-09": _LATER,
    "draft2020-12": _LATER,
}
"""Keywords by draft. Left out on purpose: `pattern` and `patternProperties` (they backtrack), `multipleOf` (rounded division),
everything with identifiers, `dependencies` from 2019-09 on (no keyword any more), and all that it does not know."""

_REWRITTEN: Final = ("$ref", "$id", "id")
"""Names that it rewrites wherever they stand, in plain values too."""


def unproven(schema: Any, *, formats: bool = False) -> tuple[str, str] | None:
    """Pointer and name of the first keyword that is not proven, or None where all are.

    With `formats` asserted `format` is none of them: the two engines know different formats.
    """
    draft = draft_of(schema)
    if draft is None:
        return "/$schema", "an unknown $schema"
    honoured = HONOURED[draft]
    todo: list[tuple[tuple[str | int, ...], Any]] = [((), schema)]
    while todo:
        path, part = todo.pop()
        if isinstance(part, bool):
            if draft == "draft4" and not (path and path[-1] in {"additionalProperties", "additionalItems"}):
                return pointer(path), "a boolean schema"
            continue
        if not isinstance(part, dict):
            return pointer(path), "what is no schema"
        found = _unproven_here(part, path, draft, honoured, formats=formats)
        if found:
            return pointer((*path, found)), found
        todo.extend(((*path, *below), child) for _, below, child in children(part))
    return None


def _unproven_here(
    part: dict[str, Any], path: tuple[str | int, ...], draft: str, honoured: frozenset[str], *, formats: bool
) -> str | None:
    """First keyword of one schema that is not proven."""
    for keyword, value in part.items():
        if keyword == "format":
            if formats:
                return keyword
        elif keyword == "$schema":
            if path:
                return keyword
        elif (keyword not in honoured and keyword not in ANNOTATIONS and not keyword.startswith("x-")) or not _plain(
            keyword, value
        ):
            return keyword
    reference = part.get("$ref")
    if reference is not None:
        if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")) or "%" in reference:
            return "$ref"
        beside = part.keys() - ANNOTATIONS - {"$ref", "$defs", "definitions"}
        # Up to draft 7 what stands beside a reference is ignored, by both engines; later it counts, and fastjsonschema
        # would not look at it.
        if draft in {"draft2019-09", "draft2020-12"} and beside:
            return "$ref"
    return None


def _plain(keyword: str, value: Any) -> bool:
    """Whether the value has a form that both engines read: lists of schemas as such, no rewritten names in plain values."""
    if keyword == "items":
        return isinstance(value, dict | bool)
    if keyword in {"enum", "const", "default", "examples"} or keyword.startswith("x-"):
        return not _names_rewritten(value)
    return True


def _names_rewritten(value: Any) -> bool:
    if isinstance(value, dict):
        return any(name in value for name in _REWRITTEN) or any(map(_names_rewritten, value.values()))
    return isinstance(value, list) and any(map(_names_rewritten, value))
