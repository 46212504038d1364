"""Regular expressions in schemas: only what ECMA-262 and the linear-time engine read alike.

Owns the answer to "does this pattern mean in the engine what JSON Schema says it means?". The engine's own dialect takes more
than ECMA-262 does (inline flags, its own anchors, possessive quantifiers, ...) and would give such texts another meaning than
the executor's validator does; they are refused at load, never reinterpreted.
"""

import re
from typing import Final

_PIECE: Final = re.compile(
    r"""
      (?P<escape>\\(?:u\{[0-9a-fA-F]{1,6}\}|u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|c[A-Za-z]|[pP]\{[A-Za-z0-9_=]+\}|.))
    | (?P<group>\((?:\?(?:<[=!]|[=!:]|<[A-Za-z_$][A-Za-z0-9_$]*>|.?))?)
    | (?P<repeat>(?:[*+?]|\{[0-9]+(?:,[0-9]*)?\})\??)
    | (?P<class>\[\^?)
    | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_CLASS_PIECE: Final = re.compile(
    r"\\(?:u\{[0-9a-fA-F]{1,6}\}|u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|c[A-Za-z]|[pP]\{[A-Za-z0-9_=]+\}|.)|\]|.", re.DOTALL
)
_GROUPS: Final = re.compile(r"\((\?:|\?<[A-Za-z_$][A-Za-z0-9_$]*>)?\Z")
_LOOK: Final = ("(?=", "(?!", "(?<=", "(?<!")
_ESCAPES: Final = frozenset("dDwWsSfnrtv") | frozenset("^$\\.*+?()[]{}|/-!\"#%&',:;=@_`~ ") | frozenset("0123456789bB")
"""What may follow a backslash: the `u` flag's own, and punctuation that no engine reads otherwise; angle brackets are left out,
since some read them as word boundaries."""


def fault_of_pattern(pattern: str) -> str | None:
    """Say why a pattern is refused, or None where it is fine."""
    at = 0
    repeated = True
    """Nothing to repeat at the start, and a repeat of a repeat is another dialect's possessive quantifier."""
    while at < len(pattern):
        match = _PIECE.match(pattern, at)
        if match is None:
            return "it is no regular expression"
        kind, piece = match.lastgroup, match.group()
        at = match.end()
        if kind == "repeat":
            if repeated:
                return "a quantifier has nothing to repeat"
            repeated = True
            continue
        repeated = kind == "group" or piece in {"|", "^"}
        fault = None
        if kind == "escape":
            fault = _fault_of_escape(piece)
        elif kind == "group":
            fault = _fault_of_group(piece)
        elif kind == "class":
            fault, at = _read_class(pattern, at)
        elif piece in {"{", "}", "]"}:
            fault = f"a bare {piece} is no ECMA-262 under the u flag"
        if fault:
            return fault
    return None


def states(pattern: str) -> int:
    """Size of the machine that runs a pattern, with its repetitions written out: a character of text may take a step in each.

    Rounded up; for what `fault_of_pattern` refuses it is some number.
    """
    at = 0
    open_groups: list[int] = []
    total = last = 0
    while match := _PIECE.match(pattern, at):
        kind, piece = match.lastgroup, match.group()
        begin, at = at, match.end()
        if kind == "repeat":
            total += last * (_times(piece) - 1) + 1
            last = 0
            continue
        if kind == "group":
            open_groups.append(total)
            total = last = 0
            continue
        if piece == ")" and open_groups:
            last = total
            total += open_groups.pop()
            continue
        if kind == "class":
            _, at = _read_class(pattern, at)
            piece = pattern[begin:at]
        last = _states_of_piece(piece)
        total += last
    return total + sum(open_groups)


def _times(piece: str) -> int:
    """How often a repetition writes out what it repeats."""
    return (
        max((int(number) if len(number) < _DIGITS else 10**_DIGITS for number in re.findall("[0-9]+", piece)), default=1) or 1
    )


def _states_of_piece(piece: str) -> int:
    """States of one character, escape or class: those beyond ASCII take several bytes, those of Unicode's tables many."""
    found = _TABLE_STATES * len(_TABLES.findall(piece))
    if not piece.isascii() or piece == "." or piece.startswith("[^") or _WIDE.search(piece):
        found += 4
    return found + 1


_TABLES: Final = re.compile(r"\\[pP]\{")
_WIDE: Final = re.compile(r"\\(?:[sSDWuxc]|u\{)")
_DIGITS: Final = 10
"""Longer numbers are no number that an engine takes."""
_TABLE_STATES: Final = 50
"""Of a Unicode property: what it takes to compile, rather than to run."""


def _fault_of_group(piece: str) -> str | None:
    if piece in _LOOK:
        return "look-around needs a backtracking engine"
    return None if _GROUPS.match(piece) else "a group of another dialect than ECMA-262"


def _fault_of_escape(piece: str) -> str | None:
    mark = piece[1:2]
    if len(piece) > 2:
        return None
    if mark in set("123456789k"):
        return "back references need a backtracking engine"
    if mark in set("bB"):
        return "\\b and \\B mean other words in other engines"
    if mark == "0":
        return None
    return None if mark in _ESCAPES else f"the escape \\{mark} is no ECMA-262 under the u flag"


def _read_class(pattern: str, at: int) -> tuple[str | None, int]:
    """Read a character class from behind its bracket: its fault, and where it ends."""
    members: list[str] = []
    while at < len(pattern):
        match = _CLASS_PIECE.match(pattern, at)
        if match is None:
            break
        piece = match.group()
        at = match.end()
        if piece == "]":
            return _fault_of_class(members), at
        members.append(piece)
    return "a character class has no end", at


def _fault_of_class(members: list[str]) -> str | None:
    if not members:
        return "an empty character class"
    for piece in members:
        if piece.startswith("\\") and len(piece) == 2 and piece[1] not in _ESCAPES - set("123456789bB"):
            return f"the escape {piece} in a character class is no ECMA-262 under the u flag"
    return None
