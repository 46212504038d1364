"""What may be called at all: the response's own `tool_choice`, and the operator's allow and deny lists.

Owns the reading of `tool_choice` (rules 22 and 24) and of the patterns of the policy. It knows nothing of schemas.
"""

import re
from collections.abc import Iterable
from fnmatch import translate
from typing import Any, Final

from msgspec import Struct

from processor.core.canonical import parse


class Choice(Struct, frozen=True):
    """One `tool_choice`, read."""

    forbids: str
    """Why functions are forbidden that are not in `allowed`; empty: it forbids nothing."""
    allowed: frozenset[tuple[str | None, str]] = frozenset()
    """Functions that it allows nevertheless, by (namespace, name)."""
    namespaces: frozenset[str] = frozenset()
    """Namespaces that it allows as a whole."""
    known: bool = True
    """False for a text that nobody here knows: it forbids nothing and is counted."""

    def verdict(self, namespace: Any, name: Any) -> str:
        """Why a call of this name is forbidden; empty where it is not."""
        if not self.forbids:
            return ""
        try:
            return "" if (namespace, name) in self.allowed or namespace in self.namespaces else self.forbids
        except TypeError:
            return self.forbids


_FREE: Final = Choice("")
_NONE: Final = Choice("tool_choice is none")
_UNKNOWN: Final = Choice("", known=False)
_WORDS: Final = {"none": _NONE, "auto": _FREE, "required": _FREE}
_MAX_KEPT: Final = 1024
_MAX_KEPT_BYTES: Final = 4096
"""Longer texts are read each time: what is kept is bounded."""


class Choices:
    """Reads `tool_choice` texts, and remembers them: most responses repeat a handful."""

    def __init__(self) -> None:
        self._kept: dict[bytes, Choice] = {}
        self._last: tuple[tuple[bytes, ...], list[Choice], int] = ((), [], 0)

    def binding(self, texts: tuple[bytes, ...]) -> tuple[list[Choice], int]:
        """Those of many that may forbid something, and how many of them nobody knows: read once for the calls of a response."""
        if texts is not self._last[0]:
            choices = [self.get(text) for text in texts]
            self._last = texts, [choice for choice in choices if choice.forbids], sum(not choice.known for choice in choices)
        return self._last[1:]

    def get(self, text: bytes) -> Choice:
        """One `tool_choice`, read. Never raises."""
        choice = self._kept.get(text)
        if choice is None:
            try:
                choice = read_choice(parse(text))
            except (ValueError, RecursionError):
                choice = _UNKNOWN
            if len(text) <= _MAX_KEPT_BYTES:
                if len(self._kept) >= _MAX_KEPT:
                    self._kept.clear()
                self._kept[text] = choice
        return choice

    def binds(self, text: bytes) -> bool:
        """Whether there is anything to say of a call under this `tool_choice`: it may forbid it, or nobody knows it."""
        choice = self.get(text)
        return bool(choice.forbids) or not choice.known


def read_choice(value: Any) -> Choice:
    """Read the value of a `tool_choice`.

    Words and forms that nobody knows forbid nothing. An object of a known form that is malformed, and one that forces anything
    but a function, forbid every function: whoever sent it did want to restrict.
    """
    if isinstance(value, str):
        return _WORDS.get(value, _UNKNOWN)
    kind = value.get("type") if isinstance(value, dict) else None
    if not isinstance(kind, str):
        return _UNKNOWN
    if kind in _WORDS:
        return _WORDS[kind]
    if kind == "function":
        key = _key(value)
        return Choice("tool_choice forces another function", frozenset({key}) if key else frozenset())
    if kind == "allowed_tools":
        return _read_allowed(value)
    return Choice("tool_choice forces a tool that is no function")


def _read_allowed(value: dict[str, Any]) -> Choice:
    tools = value.get("tools")
    entries = [tool for tool in tools if isinstance(tool, dict)] if isinstance(tools, list) else []
    names = {key for tool in entries if tool.get("type") == "function" and (key := _key(tool))}
    namespaces = {tool["name"] for tool in entries if tool.get("type") == "namespace" and isinstance(tool.get("name"), str)}
    if value.get("mode") == "none":
        return _NONE
    return Choice("allowed_tools does not list it", frozenset(names), frozenset(namespaces))


def _key(value: dict[str, Any]) -> tuple[str | None, str] | None:
    """(namespace, name) of an entry, where it has a usable name."""
    namespace, name = value.get("namespace"), value.get("name")
    return (namespace, name) if isinstance(name, str) and isinstance(namespace, str | None) else None


class Patterns:
    """Tools by glob pattern: `name` for flat tools, `namespace/name` for those in a namespace; `*` in either part.

    `*` alone means every flat tool, `*/*` every tool in a namespace: a pattern never reaches across the slash.
    """

    def __init__(self, patterns: Iterable[str]) -> None:
        self._patterns: list[tuple[re.Pattern[str] | None, re.Pattern[str]]] = []
        for pattern in patterns:
            namespace, slash, name = pattern.rpartition("/")
            self._patterns.append((re.compile(translate(namespace)) if slash else None, re.compile(translate(name))))

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self._patterns)

    def match(self, namespace: Any, name: Any) -> bool:
        """Whether one of them fits this call's name."""
        if not isinstance(name, str) or not isinstance(namespace, str | None):
            return False
        for wanted, pattern in self._patterns:
            fits = namespace is None if wanted is None else namespace is not None and bool(wanted.match(namespace))
            if fits and pattern.match(name):
                return True
        return False
