"""Pins what pyproject.toml asks for, from what is installed here, into run.txt, build.txt and dev.txt.

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


def write(name: str, purpose: str, lines: list[str], under: tuple[str, ...] = ()) -> None:
    """Write one file, that reads the files `under` it first."""
    text = HEADER.format(purpose) + "".join(f"-r {other}\n" for other in under) + "".join(f"{line}\n" for line in sorted(lines))
    (HERE / name).write_text(text)


def main() -> int:
    """Write the three files."""
    asked = tomllib.loads((HERE.parent / "pyproject.toml").read_text())
    run = closure(asked["project"]["dependencies"])
    build = closure(asked["build-system"]["requires"])
    dev = closure(asked["project"]["optional-dependencies"]["dev"])
    write("run.txt", "what callgate needs to run", list(run.values()))
    write("build.txt", "what builds the package", list(build.values()))
    more = [line for name, line in dev.items() if name not in run and name not in build]
    write("dev.txt", "what tests and tools need on top", more, under=("run.txt", "build.txt"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
