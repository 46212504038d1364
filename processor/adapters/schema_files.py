"""The registry's folder, read: JSON and YAML files to parsed tool files, with every fault noted.

Owns the file system side of the registry: which files count, which namespace a folder is, how a text becomes a value. What the
value may say is `core/registry.py`'s business.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

from processor.core.arguments import DEEPEST, compact, read
from processor.core.reasons import Reason
from processor.core.registry import LoadFault, ToolFile, build
from processor.core.strict import Fault
from processor.core.toolsets import Compiler, FixedToolset

SUFFIXES: Final = (".json", ".yaml", ".yml")
"""Files that are read; anything else in the folder is not looked at."""
FOR_PEOPLE: Final = (".md", ".txt", ".rst", "")
"""Files that nobody takes for tools: a README, a LICENSE."""
MAX_FILE_BYTES: Final = 16 << 20
"""Bytes of one file: no folder of tools comes near it."""
_MAX_CAUSE: Final = 300


def load(folder: Path, compiler: Compiler) -> FixedToolset:
    """Read and compile a registry, whole or not at all.

    Raises BadRegistry with every fault: of the folder, the files and the tools.
    """
    files, faults = read_folder(folder)
    return build(files, compiler, faults)


def read_folder(folder: Path) -> tuple[list[ToolFile], list[LoadFault]]:
    """Parse the tool files of a folder and of its sub-folders, which are namespaces. Never raises for what is in them."""
    files: list[ToolFile] = []
    faults: list[LoadFault] = []
    try:
        for path, namespace in tool_paths(folder, faults):
            name = path.relative_to(folder).as_posix()
            parsed = _parse(path)
            if isinstance(parsed, Fault):
                faults.append(LoadFault(name, "", parsed.detail))
            else:
                files.append(ToolFile(name, namespace, parsed))
    except OSError as error:
        faults.append(LoadFault(str(folder), "", f"the folder cannot be read: {error.strerror or error}"))
    return files, faults


def tool_paths(folder: Path, faults: list[LoadFault]) -> Iterator[tuple[Path, str | None]]:
    """Files with their namespace, in order of name.

    Names with a leading dot are passed over: Kubernetes keeps the real files of a ConfigMap under `..data`, and links to them.
    """
    for entry in sorted(folder.iterdir()):
        if entry.name.startswith("."):
            continue
        if not entry.is_dir():
            if entry.suffix.lower() in SUFFIXES:
                yield entry, None
            continue
        for inner in sorted(entry.iterdir()):
            if inner.name.startswith("."):
                continue
            if inner.is_dir():
                faults.append(
                    LoadFault(f"{entry.name}/{inner.name}", "", "a namespace is one folder, there are none inside of it")
                )
            elif inner.suffix.lower() in SUFFIXES:
                yield inner, entry.name


def skipped_files(folder: Path) -> list[str]:
    """Files of a folder and its namespaces that nobody reads, for the end of their name; texts for people are no tools.

    Never raises for what is in the folder.
    """
    found: list[str] = []
    with contextlib.suppress(OSError):
        for path in sorted((*folder.iterdir(), *folder.glob("*/*"))):
            name = path.relative_to(folder)
            hidden = any(part.startswith(".") for part in name.parts)
            if not hidden and path.is_file() and path.suffix.lower() not in {*SUFFIXES, *FOR_PEOPLE}:
                found.append(name.as_posix())
    return found


def _parse(path: Path) -> Any:
    """Value of one file, or a Fault."""
    try:
        text = path.read_bytes().decode()
    except OSError as error:
        return _fault(f"it cannot be read: {error.strerror or error}")
    except UnicodeDecodeError as error:
        return _fault(f"it is not UTF-8 at byte {error.start}")
    if path.suffix.lower() == ".json":
        return read(text, MAX_FILE_BYTES, DEEPEST)
    try:
        value = yaml.load(text, _Loader)  # noqa: S506 - it is a safe one
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        return _fault(_yaml_cause(error))
    # What YAML can mean beyond JSON (dates, other keys than strings, infinities, a list inside of itself) shows when it is
    # written as JSON.
    again = compact(value) if _only_string_keys(value, ()) else None
    return _fault("it says something that JSON cannot") if again is None else read(again, MAX_FILE_BYTES, DEEPEST)


def _fault(detail: str) -> Fault:
    return Fault(Reason.ARGUMENTS_PARSE, detail)


def _yaml_cause(error: Exception) -> str:
    """What is wrong and where, without the excerpt that PyYAML puts below it."""
    problem, mark = getattr(error, "problem", None), getattr(error, "problem_mark", None)
    what = problem or getattr(error, "reason", None) or ("nested too deep" if isinstance(error, RecursionError) else str(error))
    where = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
    return f"it is not YAML{where}: {' '.join(str(what).split())}"[:_MAX_CAUSE]


def _only_string_keys(value: Any, above: tuple[int, ...]) -> bool:
    """Whether all keys are strings, and no value lies inside of itself."""
    if not isinstance(value, dict | list):
        return True
    if id(value) in above or len(above) > DEEPEST:
        return False
    above = (*above, id(value))
    if isinstance(value, dict):
        return all(isinstance(key, str) for key in value) and all(_only_string_keys(part, above) for part in value.values())
    return all(_only_string_keys(part, above) for part in value)


class _Loader(yaml.SafeLoader):
    """A safe loader that refuses a key that comes twice, as the JSON reader does."""


def _mapping(loader: _Loader, node: yaml.MappingNode) -> dict[Any, Any]:
    seen: set[Any] = set()
    for key_node, _ in node.value:
        key = loader.construct_object(key_node, deep=True)
        if isinstance(key, str | int | float | bool | None):
            if key in seen:
                raise yaml.constructor.ConstructorError(None, None, "a key comes twice", key_node.start_mark)
            seen.add(key)
    return loader.construct_mapping(node, deep=True)


_Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)
