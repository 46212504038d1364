"""`docs/traps.md` names, for every point and every trap of issue 6, the test that holds it: each of them exists."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "traps.md"
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
TRANSACTIONS = {"begin_transaction", "send_offsets_to_transaction", "commit_transaction", "abort_transaction"}


@cache
def names_in(path: Path) -> frozenset[str]:
    """Names of a file's tests."""
    body = ast.parse(path.read_text(encoding="utf-8")).body
    return frozenset(node.name for node in body if isinstance(node, ast.FunctionDef))


def rows() -> list[str]:
    """Lines of the page's tables, without their heads."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line.startswith("| ") and not line.startswith(("| what", "| trap", "| ---"))]


@pytest.mark.parametrize("row", rows())
def test_every_test_that_is_named_exists(row: str) -> None:
    """Each row names at least one test, and all that it names are there."""
    named = NAMED.findall(row)
    assert named
    for file, name in named:
        assert name in names_in(ROOT / file), f"{file}::{name}"


def test_only_one_module_touches_transactions() -> None:
    """Section 7: a commit outside the partition's transactional producer could set P back: `publish.py` makes all of them."""
    found: dict[str, set[str]] = {}
    for path in (ROOT / "processor").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and node.attr in {*TRANSACTIONS, "commit"}:
                found.setdefault(path.relative_to(ROOT / "processor").as_posix(), set()).add(node.attr)
    # The consumer's own commit is for `at_least_once` alone: `source.py` has it, the plain publisher calls it.
    assert {name for name, calls in found.items() if calls & TRANSACTIONS} == {"adapters/publish.py"}
    assert {name for name, calls in found.items() if "commit" in calls} == {"adapters/publish.py", "adapters/source.py"}
