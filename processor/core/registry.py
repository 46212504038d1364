"""The registry: tool files to a toolset, whole or not at all, with every fault reported at once.

Owns what a registry file may say (the Responses `tools` form, design section 10). It reads no files: adapters hand in what they
parsed.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import jsonschema_rs
from msgspec import Struct

from processor.core.engines import Schema, SchemaFault
from processor.core.schema_walk import pointer
from processor.core.toolsets import Compiler, FixedToolset, Tool


class ToolFile(Struct, frozen=True):
    """One parsed file."""

    path: str
    """Relative to the folder, for messages."""
    namespace: str | None
    """Name of the sub-folder it lies in."""
    content: Any
    """One tool, an array of tools, or namespace wrappers among them."""


class LoadFault(Struct, frozen=True):
    """One thing that is wrong with a registry."""

    file: str
    pointer: str
    """JSON Pointer into the file; empty: the file as a whole."""
    cause: str

    def __str__(self) -> str:
        """One line for people."""
        return f"{self.file}{'#' + self.pointer if self.pointer else ''}: {self.cause}"


class BadRegistry(ValueError):
    """A registry that cannot be used: all of its faults."""

    def __init__(self, faults: Sequence[LoadFault]) -> None:
        super().__init__("\n".join(map(str, faults)))
        self.faults = tuple(faults)


class Listed(Struct, frozen=True):
    """One line of `callgate schemas list`."""

    namespace: str | None
    name: str
    sha256: str
    draft: str
    engines: tuple[str, ...]
    file: str


def build(files: Sequence[ToolFile], compiler: Compiler, faults: Sequence[LoadFault] = ()) -> FixedToolset:
    """Make the toolset of a registry.

    Raises BadRegistry with every fault, those that reading the files gave included.
    """
    found = list(faults)
    tools: list[Tool] = []
    seen: dict[tuple[str | None, str], str] = {}
    for file in files:
        for at, namespace, declared in declarations(file, found):
            tool = _compile(file, at, namespace, declared, compiler, found)
            if tool is None:
                continue
            key = (tool.namespace, tool.name)
            place = f"{file.path}{'#' + at if at else ''}"
            if key in seen:
                name = f"{namespace}/{tool.name}" if namespace else tool.name
                found.append(LoadFault(file.path, at, f"{name} is declared twice, first in {seen[key]}"))
                continue
            seen[key] = place
            tools.append(tool)
    if found:
        raise BadRegistry(found)
    return FixedToolset(tools)


def listing(toolset: FixedToolset) -> list[Listed]:
    """Rows of `callgate schemas list`."""
    return [Listed(tool.namespace, tool.name, tool.sha256, tool.draft, tool.engines, tool.file) for tool in toolset.tools]


def exported(files: Sequence[ToolFile]) -> list[dict[str, Any]]:
    """All tools as one list in the Responses `tools` form, namespaces last: another spelling of the same toolset.

    For files of which `build` made a toolset: what is no tool is left out.
    """
    flat: list[dict[str, Any]] = []
    spaces: dict[str, dict[str, Any]] = {}
    for file in files:
        for entry in file.content if isinstance(file.content, list) else [file.content]:
            if isinstance(entry, dict) and entry.get("type") == "namespace" and isinstance(entry.get("name"), str):
                spaces.setdefault(entry["name"], {**entry, "tools": []})
        for _, namespace, declared in declarations(file, []):
            if namespace is None:
                flat.append(declared)
            else:
                space = spaces.setdefault(namespace, {"type": "namespace", "name": namespace, "tools": []})
                space["tools"].append(declared)
    return flat + [spaces[name] for name in sorted(spaces)]


def declarations(file: ToolFile, faults: list[LoadFault]) -> Iterator[tuple[str, str | None, dict[str, Any]]]:
    """Function tools of a file: pointer, namespace, declaration."""
    entries = file.content if isinstance(file.content, list) else [file.content]
    for index, entry in enumerate(entries):
        at = pointer((index,)) if isinstance(file.content, list) else ""
        if isinstance(entry, dict) and entry.get("type") == "namespace":
            yield from _wrapped(file, at, entry, faults)
        else:
            yield from _function(file, at, file.namespace, entry, faults)


def _wrapped(
    file: ToolFile, at: str, entry: dict[str, Any], faults: list[LoadFault]
) -> Iterator[tuple[str, str | None, dict[str, Any]]]:
    """Function tools of a namespace wrapper."""
    name, tools = entry.get("name"), entry.get("tools")
    if file.namespace is not None:
        faults.append(LoadFault(file.path, at, f"a namespace inside of the folder {file.namespace}: there is only one level"))
    elif not isinstance(name, str) or not name:
        faults.append(LoadFault(file.path, at + "/name", "a namespace needs a name"))
    elif not isinstance(tools, list):
        faults.append(LoadFault(file.path, at + "/tools", "a namespace needs a list of tools"))
    else:
        for index, tool in enumerate(tools):
            yield from _function(file, f"{at}/tools/{index}", name, tool, faults)


def _function(
    file: ToolFile, at: str, namespace: str | None, entry: Any, faults: list[LoadFault]
) -> Iterator[tuple[str, str | None, dict[str, Any]]]:
    """The entry itself, if it is a function tool with a name."""
    if not isinstance(entry, dict):
        faults.append(LoadFault(file.path, at, "a tool is an object"))
    elif entry.get("type") != "function":
        faults.append(LoadFault(file.path, at + "/type", 'a tool has "type": "function"'))
    elif not isinstance(entry.get("name"), str) or not entry["name"]:
        faults.append(LoadFault(file.path, at + "/name", "a tool needs a name"))
    else:
        yield at, namespace, entry


def _compile(
    file: ToolFile, at: str, namespace: str | None, declared: dict[str, Any], compiler: Compiler, faults: list[LoadFault]
) -> Tool | None:
    """Compile one declaration, or note its fault."""
    try:
        tool = compiler.tool(
            namespace,
            declared["name"],
            declared.get("parameters"),
            deferred=declared.get("defer_loading") is True,
            file=file.path,
        )
    except SchemaFault as fault:
        faults.append(LoadFault(file.path, f"{at}/parameters{fault.at}", fault.cause))
        return None
    if _accepts_no_object(tool.schema):
        faults.append(LoadFault(file.path, f"{at}/parameters", "no object can satisfy it, so no call ever could"))
        return None
    return tool


def _accepts_no_object(schema: Schema) -> bool:
    """Whether it is proven that no object fits; what cannot be proven is taken to accept some."""
    options: dict[str, Any] = {"offline": True, "pattern_options": jsonschema_rs.RegexOptions()}
    draft = {"$schema": schema["$schema"]} if isinstance(schema, dict) and "$schema" in schema else {}
    try:
        both = jsonschema_rs.canonicalize(schema, **options).intersect(
            jsonschema_rs.canonicalize({**draft, "type": "object"}, **options)
        )
        return both.satisfiability() == jsonschema_rs.canonical.Satisfiability.NO
    except Exception:  # noqa: BLE001 - no proof
        return False
