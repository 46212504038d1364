"""The slow, strict reader of I-JSON: the authority on what is wrong with a text, and where (rule 31).

Owns the grammar to the letter. It recurses nowhere, so depth costs memory only; it must never raise for any text and never
quote from it: a fault names a kind and a byte offset.
"""

import re
from typing import Any, Final

from msgspec import Struct

from processor.core.numerals import NUMBER, number_of, survivor
from processor.core.reasons import Reason


class Fault(Struct, frozen=True):
    """Why a text is not the arguments of an approved call."""

    reason: Reason
    """`limit` or `arguments_parse`."""
    detail: str
    """For people: what was wrong and at which byte, never a value."""


class _Wrong(Exception):
    def __init__(self, what: str, at: int) -> None:
        self.what = what
        self.at = at


_BLANK: Final = re.compile(r"[ \t\n\r]*+")
_STRING: Final = re.compile(r'"((?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+)"')
_STRING_START: Final = re.compile(r'"(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+')
_PART: Final = re.compile(
    r"""
    [ \t\n\r]*+ (?: ([\]}])
      | (,[ \t\n\r]*+)?
        (?: "((?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+)" [ \t\n\r]*+ : [ \t\n\r]*+ )?
        (?: "((?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+)"
          | (-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?)
          | (true|false|null)
          | ([\[{]) )
    )
    """,
    re.VERBOSE,
)
"""A closing bracket, or one member or item with its comma: a string, a number, a word, or what opens."""
_CLOSER, _TEXT, _DIGITS, _WORD = 1, 4, 5, 6
_ESCAPE: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))")
_LONE: Final = re.compile("[\ud800-\udfff]")
_SHORT: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\", "/": "/"}
_WORDS: Final = (("true", True), ("false", False), ("null", None))
_VALUES: Final = dict(_WORDS)


def read_strictly(text: str) -> Any:
    """Read one text: the value, or a `Fault` with reason `arguments_parse`."""
    lone = None if text.isascii() else _LONE.search(text)
    if lone:
        return _fault(text, "a lone surrogate", lone.start())
    try:
        return _Reader(text).document()
    except _Wrong as wrong:
        return _fault(text, wrong.what, wrong.at)


def _fault(text: str, what: str, at: int) -> Fault:
    return Fault(Reason.ARGUMENTS_PARSE, f"{what} at byte {len(text[:at].encode('utf-8', 'surrogatepass'))}")


class _Reader:
    """One pass over one text, with the open containers on a stack of its own."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def document(self) -> Any:
        """Value of the whole text."""
        root: list[Any] = []
        stack: list[dict[str, Any] | list[Any]] = [root]
        self.blank()
        self.value(stack)
        while len(stack) > 1:
            self.parts(stack)
            if len(stack) > 1:
                self.step(stack)
        self.blank()
        if self.at < len(self.text):
            raise _Wrong("something after the value", self.at)
        return root[0]

    def parts(self, stack: list[Any]) -> None:
        """Read common parts, up to the first that is not: a match each, a third to a seventh of what `step` takes for them.

        It stops before whatever needs a closer look, every fault among it, and has then changed nothing for that part.
        """
        text, at, match_at = self.text, self.at, _PART.match
        top = stack[-1]
        named = type(top) is dict
        while match := match_at(text, at):
            kind = match.lastindex
            if kind == _CLOSER:
                if (match[1] == "}") is not named:
                    break
                stack.pop()
                at = match.end()
                top = stack[-1]
                named = type(top) is dict
                if len(stack) == 1:
                    break
                continue
            _, comma, name, value, digits, word, opener = match.groups()
            if (comma is None) is bool(top) or (name is None) is named:
                break
            if named and "\\" in name:
                name = _resolved(name)
            if named and (name is None or name in top):
                break
            if kind == _TEXT and "\\" in value:
                value = _resolved(value)
                if value is None:
                    break
            elif kind == _DIGITS:
                value = number_of(digits)
                if value is None:
                    break
            elif kind == _WORD:
                value = _VALUES[word]
            elif kind != _TEXT:
                value = {} if opener == "{" else []
            if named:
                top[name] = value
            else:
                top.append(value)
            at = match.end()
            if opener is not None:
                stack.append(value)
                top, named = value, opener == "{"
        self.at = at

    def step(self, stack: list[Any]) -> None:
        """Go on inside the innermost container: after one of its values, or at its start."""
        top = stack[-1]
        closer = "}" if type(top) is dict else "]"
        self.blank()
        mark = self.text[self.at : self.at + 1]
        if mark == closer:
            self.at += 1
            stack.pop()
            return
        if top:
            if mark != ",":
                raise _Wrong(self.missing(f"a comma or {closer}"), self.at)
            self.at += 1
            self.blank()
        if type(top) is dict:
            self.member(stack, top)
        else:
            self.value(stack)

    def member(self, stack: list[Any], top: dict[str, Any]) -> None:
        """Read a name, its colon and its value."""
        begin = self.at
        if self.text[begin : begin + 1] != '"':
            raise _Wrong(self.missing("a member name"), begin)
        name = self.string()
        if name in top:
            raise _Wrong("a duplicate member name", begin)
        self.blank()
        if self.text[self.at : self.at + 1] != ":":
            raise _Wrong(self.missing("a colon"), self.at)
        self.at += 1
        self.blank()
        top[name] = None
        self.value(stack, name)

    def value(self, stack: list[Any], name: str | None = None) -> None:
        """Read a scalar, or open a container, as the next value of the innermost one."""
        mark = self.text[self.at : self.at + 1]
        value: Any
        opened = mark in {"{", "["}
        if opened:
            value = {} if mark == "{" else []
            self.at += 1
        elif mark == '"':
            value = self.string()
        else:
            value = self.scalar()
        if name is None:
            stack[-1].append(value)
        else:
            stack[-1][name] = value
        if opened:
            stack.append(value)

    def scalar(self) -> Any:
        """Read a number or one of the three words."""
        match = NUMBER.match(self.text, self.at)
        if match:
            number = survivor(match)
            if number is None:
                raise _Wrong("a number that a double does not carry", self.at)
            self.at = match.end()
            return number
        for word, value in _WORDS:
            if self.text.startswith(word, self.at):
                self.at += len(word)
                return value
        raise _Wrong(self.missing("a value"), self.at)

    def string(self) -> str:
        """Read a string, escapes resolved."""
        begin = self.at
        match = _STRING.match(self.text, begin)
        if match is None:
            start = _STRING_START.match(self.text, begin)
            at = start.end() if start else begin
            if at >= len(self.text):
                raise _Wrong("the text ends inside a string,", at)
            raise _Wrong("a bad escape" if self.text[at] == "\\" else "a control character in a string", at)
        self.at = match.end()
        body = match.group(1)
        if "\\" not in body:
            return body
        plain = _resolved(body)
        if plain is None:
            raise _Wrong("a lone surrogate escape in the string", begin)
        return plain

    def blank(self) -> None:
        """Skip white space."""
        match = _BLANK.match(self.text, self.at)
        if match:
            self.at = match.end()

    def missing(self, what: str) -> str:
        """Say what was expected; never what was there."""
        return f"the text ends where {what} should be," if self.at >= len(self.text) else f"{what} expected"


def _resolved(body: str) -> str | None:
    """A string with its escapes resolved; None where one is half of a surrogate pair."""
    plain = _ESCAPE.sub(_unescape, body)
    if _LONE.search(plain):
        try:
            return plain.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
        except UnicodeDecodeError:
            return None
    return plain


def _unescape(match: re.Match[str]) -> str:
    code = match.group(1)
    return chr(int(code, 16)) if code else _SHORT[match.group(2)]
