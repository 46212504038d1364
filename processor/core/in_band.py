"""Tools that a response or its request brings along: read lazily, compiled one by one, cached by their bytes.

Owns the bounds on schemas that nobody has looked at (design section 6). They are never compiled by generating code, and
whatever is wrong with one makes it no tool (rule 23), never an exception.
"""

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

from processor.core.canonical import canonical, parse, sha256
from processor.core.engines import SchemaFault
from processor.core.toolsets import Compiler, Tool

MAX_TEXT_BYTES: Final = 1 << 20
"""JSON text of one list of tools; the whole list is no tools beyond it."""
MAX_SCHEMA_BYTES: Final = 256 << 10
"""The same for a single schema, in canonical form."""
MAX_CACHED_BYTES: Final = 8 << 20
"""Texts in the cache, together; parsed and compiled they take many times as much."""
MAX_CACHED: Final = 1024
"""Lists of tools in the cache."""
MAX_DECLARED: Final = 2048
"""Names of function tools in one list; those beyond it are none."""
MAX_SAME: Final = 8
"""Declarations of one name, each of which must be satisfied; more of them are no tool."""

_Key = tuple[str | None, str]


class InBandToolset:
    """The function tools of one JSON text."""

    def __init__(self, text: bytes, compiler: Compiler) -> None:
        self._compiler = compiler
        self._declared: dict[_Key, list[dict[str, Any]]] = {}
        self._compiled: dict[_Key, tuple[Tool, ...]] = {}
        self._causes: dict[_Key, str] = {}
        self.passed: dict[Any, Any] = {}
        """For whoever uses it: what it has found out about these tools."""
        self._broken = ""
        """Why there are no tools at all, where the text as a whole is none."""
        entries = None
        if len(text) <= MAX_TEXT_BYTES:
            with suppress(ValueError, RecursionError):
                entries = parse(text)
        self.sha256 = sha256(text if entries is None else entries)
        if len(text) > MAX_TEXT_BYTES:
            self._broken = f"the tools of the response are over {MAX_TEXT_BYTES} bytes"
            return
        if not isinstance(entries, list):
            self._broken = "the tools of the response are no list"
            return
        for entry in entries:
            if isinstance(entry, dict):
                self._read(entry)

    def find(self, namespace: Any, name: Any) -> tuple[Tool, ...]:
        """Tools that a call of this name must all satisfy: one declared twice counts twice (rule 22)."""
        if not isinstance(name, str) or not (namespace is None or isinstance(namespace, str)):
            return ()
        key = (namespace, name)
        if key not in self._compiled:
            declared = self._declared.get(key, [])
            if namespace == name:
                declared = declared + [tool for tool in self._declared.get((None, name), ()) if _deferred(tool)]
            if not declared:
                return ()
            # Kept under names that are declared only: calls can name anything, and must not fill the memory.
            self._compiled[key] = self._compile(key, declared)
        return self._compiled[key]

    def compiled(self) -> Iterator[Tool]:
        """Tools that calls have asked for."""
        for tools in self._compiled.values():
            yield from tools

    def why_not(self, namespace: Any, name: Any) -> str:
        """Why nothing was found."""
        key = (namespace, name)
        if self._broken:
            return self._broken
        if isinstance(name, str) and isinstance(namespace, str | None) and key in self._causes:
            return f"its schema cannot be used: {self._causes[key]}"
        return "the response declares no tool of that namespace and name"

    def _read(self, entry: dict[str, Any]) -> None:
        """Note one entry of the list: a function tool, or a namespace of them."""
        kind, name = entry.get("type"), entry.get("name")
        if kind == "function":
            self._note(None, entry)
        elif kind == "namespace" and isinstance(name, str) and name and isinstance(entry.get("tools"), list):
            for tool in entry["tools"]:
                if isinstance(tool, dict) and tool.get("type") == "function":
                    self._note(name, tool)

    def _note(self, namespace: str | None, tool: dict[str, Any]) -> None:
        name = tool.get("name")
        if not isinstance(name, str) or not name:
            return
        key = (namespace, name)
        if key in self._declared or len(self._declared) < MAX_DECLARED:
            self._declared.setdefault(key, []).append(tool)

    def _compile(self, key: _Key, declared: list[dict[str, Any]]) -> tuple[Tool, ...]:
        """Compile all declarations of a name, or none: each of them would have to be satisfied."""
        tools: list[Tool] = []
        if len(declared) > MAX_SAME:
            self._causes[key] = f"declared over {MAX_SAME} times"
            return ()
        exact = len(self._declared.get(key, ()))
        for place, tool in enumerate(declared):
            try:
                tools.append(self._tool(key if place < exact else (None, key[1]), tool))
            except SchemaFault as fault:
                self._causes[key] = str(fault)
                return ()
        return tuple(tools)

    def _tool(self, key: _Key, declared: dict[str, Any]) -> Tool:
        schema = declared.get("parameters")
        if len(canonical(schema)) > MAX_SCHEMA_BYTES:
            raise SchemaFault("", f"over {MAX_SCHEMA_BYTES} bytes")
        return self._compiler.tool(*key, schema, deferred=_deferred(declared), trusted=False)


class InBandCache:
    """Toolsets by their text, the least recently used one dropped first."""

    def __init__(self, compiler: Compiler) -> None:
        self._compiler = compiler
        self._kept: OrderedDict[bytes, InBandToolset] = OrderedDict()
        self._bytes = 0
        self.hits = 0
        """Look-ups that found the text."""
        self.misses = 0
        """Look-ups that had to read it."""

    def compiled(self) -> Iterator[Tool]:
        """Tools that calls have asked for, of every text that is kept."""
        for kept in self._kept.values():
            yield from kept.compiled()

    def get(self, text: bytes) -> InBandToolset:
        """The toolset of a text."""
        kept = self._kept.get(text)
        if kept is not None:
            self.hits += 1
            self._kept.move_to_end(text)
            return kept
        self.misses += 1
        made = InBandToolset(text, self._compiler)
        if len(text) > MAX_TEXT_BYTES:
            return made
        self._kept[text] = made
        self._bytes += len(text)
        while len(self._kept) > MAX_CACHED or self._bytes > MAX_CACHED_BYTES:
            dropped, _ = self._kept.popitem(last=False)
            self._bytes -= len(dropped)
        return made


def _deferred(tool: dict[str, Any]) -> bool:
    return tool.get("defer_loading") is True
