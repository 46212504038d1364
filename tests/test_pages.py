"""The pages and contracts that are written by hand know everything that the code names."""

import json
import re
from pathlib import Path

import pytest

from processor.core.reasons import Reason
from tests.test_rules_named import RULES, numbers

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
RULES_TEXT = (DOCS / "rules.md").read_text(encoding="utf-8")
SECTION = re.compile(r"\b[Ss]ections? (\d+(?:(?:, | and |, and )\d+)*)")
LINK = re.compile(r"\]\((?!https?:)([^)]+)\)")


def sources() -> list[str]:
    """Text of every module of the package and of the tests, each on one line, so that a citation may be broken over two."""
    paths = [path for folder in ("processor", "tests") for path in sorted((ROOT / folder).rglob("*.py"))]
    return [re.sub(r"\s+#?\s*", " ", path.read_text(encoding="utf-8")) for path in paths if path.name != "test_rules_named.py"]


def test_every_rule_that_is_cited_is_on_the_page() -> None:
    """The page has the rules 1 to 35, each once and in order, and the code cites no other."""
    on_page = [int(number) for number in re.findall(r"^- \*\*Rule (\d+)\.\*\*", RULES_TEXT, re.MULTILINE)]
    assert on_page == list(range(1, RULES + 1))
    cited = {number for text in sources() for number in numbers(text)}
    assert cited
    assert cited <= set(on_page)


def test_every_section_that_is_cited_is_on_the_page() -> None:
    """Every section of the design that the code cites has its row in the table."""
    on_page = set(re.findall(r"^\| (\d+) \|", RULES_TEXT, re.MULTILINE))
    cited = {number for text in sources() for listed in SECTION.findall(text) for number in re.findall(r"\d+", listed)}
    assert cited
    assert cited <= on_page


@pytest.mark.parametrize("page", ["architecture.md", "operations.md", "reliability.md", "rules.md"])
def test_links(page: str) -> None:
    """Every link of the page leads to a file, and to a heading of it where it names one."""
    for target in LINK.findall((DOCS / page).read_text(encoding="utf-8")):
        name, _, anchor = target.partition("#")
        path = (DOCS / name).resolve() if name else DOCS / page
        assert path.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in {heading.lower().replace(" ", "-") for heading in headings}, target


@pytest.mark.parametrize("folder", ["core", "adapters"])
def test_every_module_is_in_the_file_map(folder: str) -> None:
    """The file map of `architecture.md` names every module of the core and of the adapters, and none that is gone."""
    text = (DOCS / "architecture.md").read_text(encoding="utf-8")
    _, _, rest = text.partition(f"\n`processor/{folder}`")
    table = rest.partition("\n`processor/")[0].partition("\n## ")[0].partition("\nAround it")[0]
    named = re.findall(r"`(\w+\.py)`", "\n".join(line.split("|")[1] for line in table.splitlines() if line.startswith("|")))
    there = {path.name for path in (ROOT / "processor" / folder).glob("*.py")} - {"__init__.py"}
    assert sorted(named) == sorted(there)


@pytest.mark.parametrize("contract", ["decision.json", "decision-headers.json"])
def test_the_contracts_list_every_reason(contract: str) -> None:
    """The reasons of the published contracts are those of the code, in its order."""
    schema = json.loads((ROOT / "schemas" / "topics" / contract).read_text(encoding="utf-8"))
    assert schema["properties"]["reason"]["enum"] == [str(reason) for reason in Reason]
