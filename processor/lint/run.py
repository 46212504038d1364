"""A registry's files to findings: every check on every tool, in order of place.

Owns which checks run where. It reads no files and prints nothing.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from processor.core.engines import RustEngine, SchemaFault, Validator
from processor.core.registry import BadRegistry, LoadFault, ToolFile, build, declarations
from processor.core.schema_walk import MAX_NESTED, depth_of
from processor.core.toolsets import NO_PARAMETERS, Compiler
from processor.lint import checks
from processor.lint.compare import differences
from processor.lint.declared import declared, folder
from processor.lint.findings import Finding, Level, Rule, finding
from processor.lint.strictness import forbidden

CASES: Final = 300
"""Cases a schema on which validators are compared."""


def lint(
    files: Sequence[ToolFile],
    faults: Sequence[LoadFault],
    skipped: Sequence[str] = (),
    *,
    formats: bool = False,
    cases: int = CASES,
) -> list[Finding]:
    """Everything that is found in a registry, worst first within a file and in order of place.

    `skipped` are the files of its folder that are not read.
    """
    found = [each for file in files for each in (*declared(file), *_file(file, formats=formats, cases=cases))]
    found += folder(files, skipped, broken=bool(faults))
    told = {(each.file, each.pointer) for each in found if each.rule is Rule.PATTERN}
    found += [
        finding(Rule.UNUSABLE, fault.file, fault.pointer, "", fault.cause)
        for fault in _unusable(files, faults, formats=formats)
        if (fault.file, fault.pointer) not in told
    ]
    return sorted(found, key=lambda each: (each.file, -each.level.rank, each.pointer, each.rule, each.detail))


def _unusable(files: Sequence[ToolFile], faults: Sequence[LoadFault], *, formats: bool) -> Sequence[LoadFault]:
    try:
        build(files, Compiler(formats=formats), faults)
    except BadRegistry as error:
        return error.faults
    return ()


def _file(file: ToolFile, *, formats: bool, cases: int) -> Iterator[Finding]:
    for at, namespace, tool in declarations(file, []):
        name = f"{namespace}/{tool['name']}" if namespace else tool["name"]
        schema = tool.get("parameters")
        schema = NO_PARAMETERS if schema is None else schema
        if not isinstance(schema, dict | bool) or depth_of(schema, MAX_NESTED) > MAX_NESTED:
            continue
        strict = tool.get("strict") is True
        for rule, below, detail, level in _schema(schema, strict=strict, formats=formats, cases=cases):
            yield finding(rule, file.path, f"{at}/parameters{below}", name, detail, level)


def _schema(schema: Any, *, strict: bool, formats: bool, cases: int) -> Iterator[tuple[Rule, str, str, Level | None]]:
    for rule, check in checks.TEXTUAL:
        for at, detail in check(schema):
            yield rule, at, detail, None
    against = list(forbidden(schema))
    if strict:
        yield from ((Rule.STRICT_MODE, at, detail, Level.WARNING) for at, detail in against)
    elif against:
        more = f" (and {len(against) - 1} more)" if len(against) > 1 else ""
        yield Rule.STRICT_MODE, against[0][0], against[0][1] + more, None
    validator = _compiled(schema, formats=formats)
    if validator is None:
        return
    for at, detail in checks.not_only_objects(validator):
        yield Rule.NOT_ONLY_OBJECTS, at, detail, None
    for at, detail in checks.one_engine(schema, formats=formats):
        yield Rule.ONE_ENGINE, at, detail, None
    for each in differences(schema, validator, cases, formats=formats):
        yield Rule.ENGINES_DIFFER, each.at, each.detail, None


def _compiled(schema: Any, *, formats: bool) -> Validator | None:
    try:
        return RustEngine(formats=formats).compile(schema)
    except SchemaFault:
        return None
