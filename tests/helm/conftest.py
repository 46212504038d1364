"""The chart as Helm renders it, and the programs of Prometheus: once for all tests of this folder.

A tool that cannot be had skips what needs it, and says why; Helm comes the way that Kafka comes, and in CI fails without it.
"""

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest
import yaml

from tests.helm import tools
from tests.helm.cases import REFUSED, RENDERED

T = TypeVar("T")


@dataclass(frozen=True)
class Rendered:
    """What Helm made of the chart."""

    folder: Path

    @property
    def lint(self) -> str:
        """What `helm lint --strict` says, `passed` or `failed` first."""
        return (self.folder / "lint.txt").read_text()

    def objects(self, case: str) -> list[dict[str, Any]]:
        """The objects of a case."""
        made = self.folder / f"{case}.out"
        assert made.exists(), (self.folder / f"{case}.err").read_text()
        return [each for each in yaml.safe_load_all(made.read_text()) if each]

    def one(self, case: str, kind: str, ending: str = "") -> dict[str, Any]:
        """The only object of a kind whose name ends so."""
        (found,) = [one for one in self.objects(case) if one["kind"] == kind and one["metadata"]["name"].endswith(ending)]
        return found

    def refused(self, case: str) -> str:
        """Helm's complaint about a case."""
        return (self.folder / f"{case}.err").read_text()


def needed(get: Callable[[], T], *, always: bool) -> T:
    """Get a tool; without it the test is skipped, but not in CI where it is `always` to be had."""
    try:
        return get()
    except tools.ToolUnavailable as missing:
        if always and os.environ.get("CI"):
            raise
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def rendered(tmp_path_factory: pytest.TempPathFactory) -> Rendered:
    """Render every case at once."""
    folder = tmp_path_factory.mktemp("rendered")
    for case, values in (RENDERED | {case: values for case, (values, _) in REFUSED.items()}).items():
        (folder / f"{case}.yaml").write_text(json.dumps(values))
    # NOTES.txt is only rendered by an install: here it is a template like the others, of a copy.
    chart = folder / "chart" / "callgate"
    shutil.copytree(tools.CHART, chart)
    notes = (chart / "templates" / "NOTES.txt").read_text()
    text = "".join(f"  {line}" for line in notes.splitlines(keepends=True))
    (chart / "templates" / "notes.yaml").write_text(f"kind: Notes\nmetadata: {{name: notes}}\ntext: |\n{text}")
    needed(lambda: tools.render(chart, folder), always=True)
    return Rendered(folder)


@pytest.fixture(scope="session")
def prometheus() -> tools.Prometheus:
    """Give the programs of Prometheus; not every machine reaches Debian's packages."""
    return needed(tools.prometheus, always=False)
