"""What is odd in the declaration of a tool, around its schema: names, members, and what is not there.

Owns the members that a tool file may have. It looks at no schema.
"""

import difflib
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from processor.core.registry import ToolFile, declarations
from processor.core.schema_walk import pointer, words
from processor.lint.findings import Finding, Rule, finding

MEMBERS: Final = words("type name description parameters strict defer_loading output_schema allowed_callers")
"""Members of a function tool in the Responses API; callgate needs the first four and `defer_loading`."""
WRAPPER: Final = words("type name description tools")
"""Members of a namespace."""
ELSEWHERE: Final = {"inputSchema": "parameters", "input_schema": "parameters", "function": "name"}
"""Members that other APIs have (Model Context Protocol, Messages, Chat Completions), and what has their place here."""
NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""Names that every provider takes."""


def declared(file: ToolFile) -> Iterator[Finding]:
    """Findings in the declarations of a file."""
    for at, namespace, tool in declarations(file, []):
        name = f"{namespace}/{tool['name']}" if namespace else tool["name"]
        for rule, below, detail in _tool(tool):
            yield finding(rule, file.path, at + below, name, detail)
    if file.namespace is not None and (wrong := _name(file.namespace)):
        yield finding(Rule.NAME, file.path, "", "", f"the folder {wrong}")
    for place, entry in enumerate(file.content if isinstance(file.content, list) else [file.content]):
        if isinstance(entry, dict) and entry.get("type") == "namespace" and isinstance(entry.get("name"), str):
            at = pointer((place,)) if isinstance(file.content, list) else ""
            for below, detail in _unknown(entry, WRAPPER):
                yield finding(Rule.UNKNOWN_MEMBER, file.path, at + below, entry["name"], detail)
            if wrong := _name(entry["name"]):
                yield finding(Rule.NAME, file.path, at + "/name", entry["name"], wrong)


def folder(files: Sequence[ToolFile], skipped: Sequence[str], *, broken: bool) -> Iterator[Finding]:
    """Findings in a folder as a whole: files that are not read, and that there is no tool, where no file is broken."""
    for name in skipped:
        yield finding(Rule.SKIPPED_FILE, name, "", "", "it is not read: files of tools end in .json, .yaml or .yml")
    if not broken and not any(True for file in files for _ in declarations(file, [])):
        yield finding(Rule.NO_TOOLS, ".", "", "", "no tools: every call will be unknown_tool")


def _tool(tool: dict[str, Any]) -> Iterator[tuple[Rule, str, str]]:
    for below, detail in _unknown(tool, MEMBERS):
        yield Rule.UNKNOWN_MEMBER, below, detail
    if "parameters" not in tool:
        yield Rule.NO_PARAMETERS, "", "no parameters: a call with any argument is rejected; write null where that is meant"
    if wrong := _name(tool["name"]):
        yield Rule.NAME, "/name", wrong


def _unknown(entry: dict[str, Any], known: frozenset[str]) -> Iterator[tuple[str, str]]:
    for member in entry:
        if member not in known:
            near = [ELSEWHERE[member]] if member in ELSEWHERE else difflib.get_close_matches(member, sorted(known), n=1)
            meant = f"; did you mean {near[0]}?" if near else ""
            yield pointer((member,)), f"{member} is no member of it, and ignored{meant}"


def _name(name: str) -> str:
    """What is wrong with a name; empty: nothing is."""
    if NAME.fullmatch(name):
        return ""
    return f"name is not made of 1 to 64 of A-Z, a-z, 0-9, _ and -: {len(name)} characters"
