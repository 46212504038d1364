"""The generated pages say what the code says."""

import pytest

from processor import docs
from processor.core import machine
from processor.core.limits import TOLERANCES
from processor.settings import catalogue


@pytest.mark.parametrize("name", sorted(docs.pages()))
def test_generated_pages_are_fresh(name: str) -> None:
    """A page that is stale fails: `make docs` writes it again."""
    assert (docs.FOLDER / name).read_text(encoding="utf-8") == docs.pages()[name]


def test_nothing_is_left_out() -> None:
    """Every setting, tolerance, state, input and action has its row and its sentence."""
    pages = docs.pages()
    assert all(f"| `{setting.key}` |" in pages["settings.md"] for setting in catalogue())
    assert set(docs.QUIRKS) == set(TOLERANCES)
    for kind in (machine.State, machine.Input, machine.Action):
        assert [name for name, _ in docs.meanings(kind)] == [f"`{member.name}`" for member in kind]
