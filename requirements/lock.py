"""Pins what pyproject.toml asks for, from what is installed here, into run.txt and dev.txt.

`make lock` runs it in a fresh environment. It names no host and reads nothing but the installed distributions.
"""

import sys
import tomllib
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

HERE = Path(__file__).resolve().parent
HEADER = "# Pinned for development, CI and the image: {}.\n# Made by `make lock` from pyproject.toml; edit that, not this.\n"


def wanted(requirement: Requirement, extras: frozenset[str]) -> bool:
    """Whether a requirement holds on this platform, for a distribution installed with these extras."""
    marker = requirement.marker
    return marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *extras))


def closure(roots: list[str]) -> dict[str, str]:
    """Pinned lines of the roots and everything under them, by canonical name."""
    lines: dict[str, str] = {}
    seen: set[tuple[str, frozenset[str]]] = set()
    todo = [Requirement(root) for root in roots]
    while todo:
        requirement = todo.pop()
        name, extras = canonicalize_name(requirement.name), frozenset(requirement.extras)
        if (name, extras) in seen:
            continue
        seen.add((name, extras))
        found = distribution(name)
        marker = f"; {requirement.marker}" if requirement.marker and "platform" in str(requirement.marker) else ""
        lines.setdefault(name, f"{name}=={found.version}{marker}")
        todo += [under for under in map(Requirement, found.requires or []) if wanted(under, extras)]
    return lines


def main() -> int:
    """Write both files."""
    project = tomllib.loads((HERE.parent / "pyproject.toml").read_text())["project"]
    run = closure(project["dependencies"])
    dev = closure(project["optional-dependencies"]["dev"])
    (HERE / "run.txt").write_text(HEADER.format("what callgate needs to run") + "".join(f"{run[n]}\n" for n in sorted(run)))
    more = [dev[name] for name in sorted(dev) if name not in run]
    (HERE / "dev.txt").write_text(HEADER.format("what tests and tools need on top") + "-r run.txt\n" + "\n".join(more) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
