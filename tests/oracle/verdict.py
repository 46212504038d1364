"""The oracle's own gate: policy, toolset, I-JSON and schema for one call, read from the rules a second time.

Uses the standard library's JSON and the `jsonschema` package, never the code under test.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import jsonschema

Json = dict[str, Any]

HOSTED_CHOICES = ("auto", "none", "required")


@dataclass(frozen=True)
class Toolset:
    """Where tools come from, and the registry's tools by name."""

    mode: str = "registry"
    """`registry`, `stream` or `both`."""
    registry: Json = field(default_factory=dict)
    """Parameters schema by tool name."""


class NotIJson(ValueError):
    """The text is not I-JSON."""


def judge(
    toolset: Toolset,
    call: Json,
    *,
    tools: Sequence[Json] | None,
    choices: Sequence[Any],
    parallel: bool,
    position: int,
    max_bytes: int,
    tolerate: Sequence[str] = (),
) -> str:
    """The reason for a call that assembly found whole: from `not_allowed` to `ok`, in the order of the table."""
    name = call["name"]
    namespace = call.get("namespace")
    if namespace == "functions" and "namespace_functions" in tolerate:
        namespace = None
    if not parallel and position > 0:
        return "not_allowed"
    if not all(permits(choice, name) for choice in choices):
        return "not_allowed"
    schemas = schemas_of(toolset, namespace, name, tools or ())
    if not schemas:
        return "unknown_tool"
    text = call.get("arguments")
    if isinstance(text, dict) and "arguments_object" in tolerate:
        text = json.dumps(text, separators=(",", ":"), ensure_ascii=False)
    if text == "" and "empty_arguments" in tolerate:
        text = "{}"
    if not isinstance(text, str):
        return "arguments_type"
    if len(text.encode("utf-8", "surrogatepass")) > max_bytes:
        return "limit"
    try:
        value = ijson(text)
    except ValueError:
        return "arguments_parse"
    if not isinstance(value, dict):
        return "arguments_schema"
    return "ok" if all(_fits(json.dumps(schema), json.dumps(value)) for schema in schemas) else "arguments_schema"


def permits(choice: Any, name: str) -> bool:
    """Whether a tool_choice lets a function of this name be called (rules 22 and 24)."""
    if choice is None or isinstance(choice, str):
        return choice != "none"
    if not isinstance(choice, dict):
        return True
    kind = choice.get("type")
    if kind == "function":
        return bool(choice.get("name") == name)
    if kind == "allowed_tools":
        return any(t.get("type") == "function" and t.get("name") == name for t in choice.get("tools", ()))
    return False


def schemas_of(toolset: Toolset, namespace: Any, name: str, tools: Sequence[Json]) -> list[Json]:
    """Every schema that the call must satisfy; empty where a source that must know the tool does not."""
    flat = namespace in (None, "")
    inband = [
        t["parameters"]
        for t in tools
        if t.get("type") == "function" and t.get("name") == name and (flat or (namespace == name and t.get("defer_loading")))
    ]
    kept = [toolset.registry[name]] if flat and name in toolset.registry else []
    if not all(compiles(schema) for schema in inband):
        inband = []
    if toolset.mode == "registry":
        return kept
    if toolset.mode == "stream":
        return inband
    return kept + inband if kept and inband else []


def compiles(schema: Any) -> bool:
    """Whether an in-band schema is one (rule 23)."""
    return _compiles(json.dumps(schema))


@lru_cache(maxsize=100)  # the metaschema takes longer than all the rest, and the logs have few schemas
def _compiles(schema: str) -> bool:
    try:
        jsonschema.Draft202012Validator.check_schema(json.loads(schema))
    except jsonschema.SchemaError:
        return False
    return True


@lru_cache(maxsize=1000)
def _fits(schema: str, value: str) -> bool:
    return bool(jsonschema.Draft202012Validator(json.loads(schema)).is_valid(json.loads(value)))


def ijson(text: str) -> Any:
    """Parse I-JSON; raises NotIJson, or ValueError from the parser."""
    try:
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse, parse_float=_float, parse_int=_int)
        json.dumps(value, ensure_ascii=False).encode()
    except (RecursionError, UnicodeEncodeError) as error:
        raise NotIJson(type(error).__name__) from error
    return value


def _unique(pairs: list[tuple[str, Any]]) -> Json:
    if len({name for name, _ in pairs}) < len(pairs):
        msg = "duplicate name"
        raise NotIJson(msg)
    return dict(pairs)


def _refuse(word: str) -> Any:
    raise NotIJson(word)


def _float(digits: str) -> float:
    # Ordinary decimals are the shortest form of their double; the generator writes no others but overflows.
    value = float(digits)
    if value in (float("inf"), float("-inf")):
        msg = "overflow"
        raise NotIJson(msg)
    return value


def _int(digits: str) -> int:
    if len(digits) > 400:
        msg = "digits"
        raise NotIJson(msg)
    value = int(digits)
    if abs(value) > 2**1023 or int(float(value)) != value:
        msg = "digits"
        raise NotIJson(msg)
    return value
