"""Every rule of `rules.md` has a test that names it, so that a rule can be found in the tests by its number."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).resolve().parent
RULES = 35
"""Rules are numbered from 1 to this."""
NAMED = re.compile(r"\b[Rr]ules? (\d+(?:(?:, | and |, and | to )\d+)*)")
PART = re.compile(r"(to )?(\d+)")


def numbers(words: str) -> Iterator[int]:
    """The rules that a sentence names: `rule 3`, `rules 3, 4 and 7`, `rules 3 to 7`."""
    for listed in NAMED.findall(words):
        last = 0
        for to, digits in PART.findall(listed):
            yield from range(last + 1 if to else int(digits), int(digits) + 1)
            last = int(digits)


def named() -> set[int]:
    """Every rule that the docstring of a test names."""
    found: set[int] = set()
    for path in TESTS.rglob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                found.update(numbers(ast.get_docstring(node) or ""))
    return found


def test_every_rule_is_named_by_a_test() -> None:
    """Each rule has at least one test whose docstring names it."""
    missing = sorted(set(range(1, RULES + 1)) - named())
    assert not missing, f"no test names rule {', '.join(map(str, missing))}"


def test_every_spelling_is_read() -> None:
    """One rule, several and a range are read; numbers that belong to something else are not."""
    assert list(numbers("Rule 3: x. See rules 4, 7 and 9, rules 11 to 13, and section 14.")) == [3, 4, 7, 9, 11, 12, 13]
