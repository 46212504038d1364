"""The shape of the code, held by machine: who may import whom, how long things may be, what no file may name."""

import ast
import subprocess
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "processor"
MODULES = sorted(path for path in PACKAGE.rglob("*.py"))

MODULE_LINES = 300
FUNCTION_LINES = 60

CORE_MAY_IMPORT = frozenset(
    """
    msgspec jsonschema_rs fastjsonschema
    __future__ abc array base64 binascii bisect codecs collections contextlib copy dataclasses datetime decimal enum fnmatch
    functools hashlib heapq itertools json math operator re string struct types typing unicodedata urllib.parse
    """.split()  # noqa: SIM905 - forty quoted names are a wall
)
"""By whole name or top-level package: msgspec, the two validators, and modules that compute and do nothing else. A list of
what is allowed, since a list of what is forbidden forgets something. (datetime has a clock: CLOCKS.)"""

CLOCKS = frozenset({"now", "utcnow", "today", "fromtimestamp"})
"""Methods of datetime that read the clock, or the time zone, of the machine: `fromtimestamp` only without `tz`."""

FORBIDDEN_IN_CORE = ("asyncio", "aiokafka", "prometheus_client", "structlog", "os", "time")
"""Named by the issue: kept beside the list above so that nobody can widen it to these."""

ARROWS: dict[str, frozenset[str]] = {
    "core": frozenset({"core"}),
    "broker": frozenset({"broker"}),
    "errors": frozenset({"errors"}),
    "ports": frozenset({"core", "errors", "ports"}),
    "values": frozenset({"core", "errors", "values"}),
    "settings": frozenset({"core", "errors", "values", "settings"}),
    "config": frozenset({"core", "errors", "values", "settings", "config"}),
    "observe": frozenset({"core", "errors", "ports", "values", "settings", "config", "observe"}),
    "adapters": frozenset({"core", "errors", "ports", "values", "settings", "config", "observe", "adapters"}),
    "testing": frozenset({"core", "errors", "ports", "testing"}),
}
"""Part of the package to the parts that it may import. Parts that are not listed (app, cli, demo, docs, ...) put others
together and may import all, but nobody who is listed imports them."""

REGISTRIES = tuple(
    ".".join(parts)
    for parts in (
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("maven", "apache", "org"),
        ("repo1", "maven"),
        ("npmjs", "org"),
        ("crates", "io"),
        ("proxy", "golang"),
        ("jitpack", "io"),
        ("deb", "debian"),
        ("docker", "io"),
        ("ghcr", "io"),
        ("quay", "io"),
    )
)
"""Put together here, so that this file does not name them either."""


@cache
def tree(path: Path) -> ast.Module:
    """Parse one file."""
    return ast.parse(path.read_text(), str(path))


def imports(path: Path) -> Iterator[tuple[str, int]]:
    """Full names of what a file imports, anywhere in it, with their lines."""
    package = path.relative_to(ROOT).with_suffix("").parts
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from ((name.name, node.lineno) for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: -node.level]) if node.level else ""
            module = ".".join(part for part in (base, node.module) if part)
            # `from processor import config` imports processor.config.
            names = [f"{module}.{name.name}" for name in node.names] if module == "processor" else [module]
            yield from ((name, node.lineno) for name in names)


def part(name: str) -> str:
    """Part of the package that a module name belongs to: `processor.core.machine` is in `core`."""
    pieces = name.split(".")
    return pieces[1] if len(pieces) > 1 else ""


def place(path: Path, line: int) -> str:
    """Render a position for a person."""
    return f"{path.relative_to(ROOT)}:{line}"


def allowed(name: str) -> bool:
    """Whether the core may import a module from outside the package."""
    pieces = name.split(".")
    return any(".".join(pieces[:end]) in CORE_MAY_IMPORT for end in range(1, len(pieces) + 1))


def test_the_core_is_pure() -> None:
    """The core imports nothing that can do I/O, read a clock or keep a global: only what is on its list."""
    found = [
        f"{place(path, line)} imports {name}"
        for path in MODULES
        if path.is_relative_to(PACKAGE / "core")
        for name, line in imports(path)
        if not name.startswith("processor") and not allowed(name)
    ]
    assert not found, "\n".join(found)
    assert not CORE_MAY_IMPORT & set(FORBIDDEN_IN_CORE)


def test_the_core_waits_for_nobody() -> None:
    """The core has no `async`, opens no file, and prints nothing."""
    waiting = (ast.AsyncFunctionDef, ast.AsyncFor, ast.AsyncWith, ast.Await)
    found = [
        place(path, node.lineno)
        for path in MODULES
        if path.is_relative_to(PACKAGE / "core")
        for node in ast.walk(tree(path))
        if isinstance(node, waiting) or (isinstance(node, ast.Call) and calls(node, {"open", "print", "input", "exec", "eval"}))
    ]
    assert not found, "\n".join(found)


def test_the_core_reads_no_clock() -> None:
    """The core never asks what time it is: times are arguments."""
    found = [
        place(path, node.lineno)
        for path in MODULES
        if path.is_relative_to(PACKAGE / "core")
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CLOCKS
        if not (node.func.attr == "fromtimestamp" and (len(node.args) > 1 or node.keywords))
    ]
    assert not found, "\n".join(found)


def calls(node: ast.Call, names: set[str]) -> bool:
    """Whether a call goes to a builtin of one of these names."""
    return isinstance(node.func, ast.Name) and node.func.id in names


def test_no_arrow_is_reversed() -> None:
    """Imports point one way: core knows itself, adapters and observe know core, only what puts things together knows all."""
    found = []
    for path in MODULES:
        own = part(".".join(path.relative_to(ROOT).with_suffix("").parts))
        for name, line in imports(path):
            target = part(name)
            if name.startswith("processor.") and own in ARROWS and target not in ARROWS[own] and target != "__version__":
                found.append(f"{place(path, line)}: {own} imports {target}")
    assert not found, "\n".join(found)


def test_a_reversed_arrow_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reader of imports sees every spelling, nested and relative ones too."""
    monkeypatch.setattr(f"{__name__}.ROOT", tmp_path)
    path = tmp_path / "processor" / "core" / "bad.py"
    path.parent.mkdir(parents=True)
    path.write_text("import os.path as p, processor.cli\ndef f():\n from ..adapters import x\n from processor import app\n")
    assert [name for name, _ in imports(path)] == ["os.path", "processor.cli", "processor.adapters", "processor.app"]
    assert not allowed("os.path")
    assert not allowed("urllib.request")
    assert allowed("collections.abc")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_modules_are_short(path: Path) -> None:
    """A module has fewer than 300 lines, a function fewer than 60."""
    lines = len(path.read_text().splitlines())
    assert lines < MODULE_LINES, f"{path.relative_to(ROOT)} has {lines} lines"
    long = [
        f"{place(path, node.lineno)} {node.name} has {length} lines"
        for node in ast.walk(tree(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (length := (node.end_lineno or node.lineno) - node.lineno + 1) >= FUNCTION_LINES
    ]
    assert not long, "\n".join(long)


def test_everything_public_is_explained() -> None:
    """Every module, public class, function and method has a docstring."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    found = [str(path.relative_to(ROOT)) for path in MODULES if not ast.get_docstring(tree(path))]
    for path in MODULES:
        classes = [node for node in tree(path).body if isinstance(node, ast.ClassDef) and not node.name.startswith("_")]
        holders: list[ast.Module | ast.ClassDef] = [tree(path), *classes]
        found += [
            f"{place(path, node.lineno)} {node.name}"
            for holder in holders
            for node in holder.body
            if isinstance(node, kinds) and not node.name.startswith("_") and not ast.get_docstring(node)
        ]
    assert not found, "\n".join(found)


def test_only_the_command_line_prints() -> None:
    """`print` belongs to the command line and the broker's own; a processor writes structured logs."""
    speakers = {PACKAGE / "__main__.py", PACKAGE / "docs.py", PACKAGE / "broker" / "__main__.py"}
    found = [
        place(path, node.lineno)
        for path in MODULES
        if path not in speakers and not {"cli", "docs"} & set(path.relative_to(PACKAGE).parts)
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call) and calls(node, {"print"})
    ]
    assert not found, "\n".join(found)


def tracked() -> list[Path]:
    """Files under version control; in an unpacked archive without one, all files that are not hidden."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode == 0:
        return [ROOT / name for name in listed.stdout.split("\0") if name]
    return [
        path for path in ROOT.rglob("*") if path.is_file() and not any(p.startswith(".") for p in path.relative_to(ROOT).parts)
    ]


def test_no_registry_is_named() -> None:
    """No file under version control names the host of a package registry: each user's own settings say where to fetch."""
    found = []
    for path in tracked():
        if not path.is_file():
            continue
        text = path.read_bytes().lower()
        found += [f"{path.relative_to(ROOT)} names a registry" for host in REGISTRIES if host.encode() in text]
    assert not found, "\n".join(found)


def test_everything_is_pinned() -> None:
    """Development, CI and the image install exact versions, of everything that pyproject.toml asks for."""
    pinned = {}
    for name in ("run.txt", "build.txt", "dev.txt"):
        for line in (ROOT / "requirements" / name).read_text().splitlines():
            if line and not line.startswith(("#", "-r ")):
                requirement = Requirement(line)
                assert [only.operator for only in requirement.specifier] == ["=="], line
                pinned[canonicalize_name(requirement.name)] = next(iter(requirement.specifier)).version
    asked = tomllib.loads((ROOT / "pyproject.toml").read_text())
    project = asked["project"]
    for line in [*asked["build-system"]["requires"], *project["dependencies"], *project["optional-dependencies"]["dev"]]:
        wanted = Requirement(line)
        assert wanted.specifier.contains(pinned[canonicalize_name(wanted.name)]), line
