"""Strings that fit a pattern, for the cases on which lint compares two validators.

Owns the reading of patterns that `core/patterns.py` lets through. A sample may miss (the pattern's classes are read roughly);
it only has to hit often enough to be worth a comparison.
"""

import random
import re
from typing import Final

_REPEAT: Final = re.compile(r"([*+?]|\{(\d+)(,(\d*))?\})\??")
_KINDS: Final = {"d": "0159٣", "w": "azZ_9é", "s": " \t\n\u00a0", "D": "a-", "W": "-é ", "S": "a9"}
_CONTROLS: Final = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v", "0": "\0"}
_MOST: Final = 12
"""Repetitions at most: other validators backtrack, and samples must stay short."""


class Sampler:
    """Makes strings that fit one pattern."""

    def __init__(self, pattern: str, draw: random.Random) -> None:
        self._pattern = pattern
        self._draw = draw
        self._at = 0

    def sample(self) -> str:
        """One string; a plain one where the pattern is not understood."""
        self._at = 0
        try:
            return self._either()
        except (IndexError, ValueError, RecursionError):
            return "a"

    def _more(self, *ends: str) -> bool:
        return self._at < len(self._pattern) and self._pattern[self._at] not in ends

    def _either(self) -> str:
        branches = [self._sequence()]
        while self._at < len(self._pattern) and self._pattern[self._at] == "|":
            self._at += 1
            branches.append(self._sequence())
        return self._draw.choice(branches)

    def _sequence(self) -> str:
        parts = []
        while self._more("|", ")"):
            begin = self._at
            part = self._atom()
            end = self._at
            repeat = _REPEAT.match(self._pattern, self._at)
            count = 1
            if repeat:
                count = self._count(repeat)
            for again in range(count):
                if again:
                    self._at = begin
                    part = self._atom()
                parts.append(part)
            self._at = repeat.end() if repeat else end
        return "".join(parts)

    def _count(self, repeat: re.Match[str]) -> int:
        mark = repeat[1]
        least = {"*": 0, "+": 1, "?": 0}.get(mark, int(repeat[2] or 0))
        most = 1 if mark == "?" else least + 3
        if repeat[2] is not None:
            most = least if repeat[3] is None else int(repeat[4]) if repeat[4] else least + 3
        return self._draw.randint(least, min(max(most, least), least + _MOST))

    def _atom(self) -> str:
        mark = self._pattern[self._at]
        self._at += 1
        if mark in "^$":
            return ""
        if mark == ".":
            return self._draw.choice("aé\u2028-")
        if mark == "\\":
            return self._draw.choice(self._escape())
        if mark == "[":
            return self._class()
        if mark == "(":
            opened = re.compile(r"\?(?::|<\w+>)").match(self._pattern, self._at)
            self._at = opened.end() if opened else self._at
            inner = self._either()
            self._at += 1
            return inner
        return mark

    def _escape(self) -> str:
        """Characters that an escape stands for."""
        mark = self._pattern[self._at]
        self._at += 1
        code = re.compile(r"u\{([0-9a-fA-F]+)\}|u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})").match(self._pattern, self._at - 1)
        if code:
            self._at = code.end()
            return chr(int(code[1] or code[2] or code[3], 16))
        return _KINDS.get(mark) or _CONTROLS.get(mark) or mark

    def _class(self) -> str:
        negated = self._pattern[self._at] == "^"
        self._at += negated
        found: list[str] = []
        while self._pattern[self._at] != "]":
            mark = self._pattern[self._at]
            self._at += 1
            members = self._escape() if mark == "\\" else mark
            if self._pattern[self._at] == "-" and self._pattern[self._at + 1] != "]":
                last = self._pattern[self._at + 1]
                self._at += 2
                last = self._escape() if last == "\\" else last
                members = chr(self._draw.randint(ord(members[0]), max(ord(members[0]), ord(last[0]))))
            found.extend(members)
        self._at += 1
        return (
            self._draw.choice([each for each in "a0-é ~" if each not in found] or ["\u2603"])
            if negated
            else self._draw.choice(found)
        )
