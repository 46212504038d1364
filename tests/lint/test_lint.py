"""`callgate schemas lint` and `export`: each finding where it is and where it is not, the forms, the exit code."""

import json
from pathlib import Path
from typing import Any

import pytest

from processor.adapters.schema_files import load
from processor.cli.exits import Exit
from processor.core.engines import RustEngine
from processor.core.registry import LoadFault, ToolFile
from processor.core.toolsets import Compiler
from processor.lint.cases import Cases
from processor.lint.findings import Finding, Level, Rule
from processor.lint.run import lint
from tests.cli.command import callgate

CLOSED = {"type": "object", "additionalProperties": False}


def found(parameters: Any, rule: Rule, **declared: Any) -> list[Finding]:
    """Findings of one rule in a tool with these parameters."""
    tool = {"type": "function", "name": "tool", "parameters": parameters, **declared}
    return [each for each in lint([ToolFile("a.json", None, tool)], ()) if each.rule is rule]


def of(**properties: Any) -> dict[str, Any]:
    """A closed object with these properties, all required."""
    return {**CLOSED, "properties": properties, "required": list(properties)}


CLEAN: dict[str, Any] = of(
    region={"type": "string", "enum": ["apac", "emea"]}, count={"type": "integer", "minimum": 0, "maximum": 9}
)
"""Nothing is odd with it."""
TREE = {**of(below={"type": "array", "items": {"$ref": "#/$defs/tree"}})}

CASES: list[tuple[Rule, Any, str]] = [
    (Rule.UNUSABLE, of(a={"$ref": "#/$defs/none"}), "/parameters/properties/a/$ref"),
    (Rule.UNUSABLE, of(a=False), "/parameters"),
    (Rule.PATTERN, of(a={"type": "string", "pattern": "(?=x)"}), "/parameters/properties/a/pattern"),
    (Rule.PATTERN, {**CLOSED, "patternProperties": {"(a)\\1": {}}}, "/parameters/patternProperties/(a)\\1"),
    (Rule.ENGINES_DIFFER, of(a={"type": "string", "pattern": "^\\d+$"}), "/parameters/properties/a/pattern"),
    (
        Rule.ENGINES_DIFFER,
        of() | {"dependentRequired": {"a": ["b"]}, "additionalProperties": True},
        "/parameters/dependentRequired",
    ),
    (
        Rule.ENGINES_DIFFER,
        {"type": "object", "properties": {"a": {}}, "unevaluatedProperties": False},
        "/parameters/unevaluatedProperties",
    ),
    (Rule.OPEN_OBJECT, {"type": "object", "properties": {"a": {"type": "string"}}}, "/parameters"),
    (Rule.OPEN_OBJECT, of(a={"type": "object"}), "/parameters/properties/a"),
    (Rule.COSTLY, of(a={"type": "array", "items": {"anyOf": [{"const": f"{n}"} for n in range(900)]}}), "/parameters"),
    (Rule.COSTLY, of(a={"type": "string", "pattern": "a[ab]{1200}c"}), "/parameters"),
    (Rule.NOT_ONLY_OBJECTS, {"properties": {}, "additionalProperties": False}, "/parameters"),
    (
        Rule.UNREACHABLE,
        of(a={"anyOf": [{"type": "null"}, {"type": "integer", "minimum": 5, "maximum": 3}]}),
        "/parameters/properties/a/anyOf/1",
    ),
    (Rule.UNREACHABLE, of(a={"type": "string", "enum": ["x", 1]}), "/parameters/properties/a/enum/1"),
    (Rule.UNREACHABLE, of(a={"type": ["string", "null"], "const": 1}), "/parameters/properties/a"),
    (Rule.STRICT_MODE, of(a={"allOf": [{"type": "string"}]}), "/parameters/properties/a/allOf"),
    (Rule.STRICT_MODE, {**CLOSED, "properties": {"a": {"type": "string"}}}, "/parameters"),
    (
        Rule.CYCLE,
        {**of(top={"$ref": "#/$defs/tree"}), "$defs": {"tree": TREE}},
        "/parameters/$defs/tree/properties/below/items/$ref",
    ),
    (Rule.CYCLE, of(again={"$ref": "#"}), "/parameters/properties/again/$ref"),
    (Rule.UNBOUNDED_INTEGER, of(a={"type": "integer", "minimum": 0}), "/parameters/properties/a"),
    (Rule.UNBOUNDED_INTEGER, of(a={"type": ["integer", "null"]}), "/parameters/properties/a"),
    (Rule.ONE_ENGINE, of(a={"type": "number", "multipleOf": 0.01}), "/parameters/properties/a/multipleOf"),
]


@pytest.mark.parametrize(
    ("rule", "parameters", "at"), CASES, ids=[f"{rule}-{place}" for place, (rule, _, _) in enumerate(CASES)]
)
def test_each_rule_finds_its_own(rule: Rule, parameters: Any, at: str) -> None:
    """Issue 5: each kind of finding is reported in its place, with a sentence."""
    findings = found(parameters, rule)
    assert at in [each.pointer for each in findings]
    assert all(each.detail and each.file == "a.json" for each in findings)
    assert not found(CLEAN, rule)


def test_every_rule_has_a_case() -> None:
    """No rule is without a test."""
    assert {rule for rule, _, _ in CASES} | AROUND == set(Rule)


AROUND = {Rule.NO_TOOLS, Rule.SKIPPED_FILE, Rule.UNKNOWN_MEMBER, Rule.NO_PARAMETERS, Rule.NAME}
"""Rules that are of what is around a schema, with tests of their own."""


@pytest.mark.parametrize(
    ("member", "meant"),
    [("paramters", "parameters"), ("inputSchema", "parameters"), ("defer-loading", "defer_loading"), ("zzz", "")],
)
def test_unknown_members(member: str, meant: str) -> None:
    """A member that tools do not have is found, with the one that was meant."""
    (finding,) = found(CLEAN, Rule.UNKNOWN_MEMBER, **{member: {}})
    assert (finding.pointer, finding.level) == (f"/{member}", Level.WARNING)
    assert finding.detail.endswith(f"did you mean {meant}?" if meant else "ignored")
    assert not found(CLEAN, Rule.UNKNOWN_MEMBER, description="", strict=True, defer_loading=True)


def test_a_tool_without_parameters() -> None:
    """`parameters` that are not there are found; those that are null are meant so."""
    for declared, expected in (({}, [Rule.NO_PARAMETERS]), ({"parameters": None}, [])):
        findings = lint([ToolFile("a.json", None, {"type": "function", "name": "tool", **declared})], ())
        assert [each.rule for each in findings if each.level is Level.WARNING] == expected


@pytest.mark.parametrize("name", ["get weather", "a.b", "wetter_ü", "a" * 65])
def test_names_that_providers_refuse(name: str) -> None:
    """A name of a tool or a namespace that no provider takes is found."""
    assert [each.pointer for each in found(CLEAN, Rule.NAME, name=name)] == ["/name"]
    tool = {"type": "function", "name": "a" * 64, "parameters": CLEAN}
    wrapper = [{"type": "namespace", "name": name, "tools": [tool], "tool": 1}]
    findings = [each for each in lint([ToolFile("a.json", None, wrapper)], ()) if each.level is Level.WARNING]
    assert sorted((each.rule, each.pointer) for each in findings) == [(Rule.NAME, "/0/name"), (Rule.UNKNOWN_MEMBER, "/0/tool")]
    assert [each.rule for each in lint([ToolFile(f"{name}/a.json", name, tool)], ())] == [Rule.NAME]


def test_a_folder_without_tools(tmp_path: Path) -> None:
    """A folder in which nothing is read has two findings: the file that was meant, and that there are no tools."""
    (tmp_path / "crm").mkdir()
    for name in ("README.md", ".hidden.jsn", "crm/refund.jsn"):
        (tmp_path / name).write_text("{}")
    ended = callgate("schemas", "lint", "--set", f"schemas={tmp_path}")
    assert ended.out.splitlines() == [
        "warning: .: no tools: every call will be unknown_tool [no-tools]",
        "warning: crm/refund.jsn: it is not read: files of tools end in .json, .yaml or .yml [skipped-file]",
        "0 errors, 2 warnings, 0 notes.",
    ]


def test_broken_yaml_is_told_in_one_sentence(tmp_path: Path) -> None:
    """A YAML file's fault has its line and cause, and nothing of the parser's own layout."""
    (tmp_path / "a.yaml").write_text("type: function\nname: [a\nx: 1\n")
    (tmp_path / "b.yaml").write_text("a: 1\na: 2\n")
    ended = callgate("schemas", "lint", "--set", f"schemas={tmp_path}")
    assert "error: a.yaml: it is not YAML at line 3, column 2: expected ',' or ']', but got ':' [unusable]" in ended.out
    assert "no-tools" not in ended.out
    assert "error: b.yaml: it is not YAML at line 2, column 1: a key comes twice [unusable]" in ended.out
    assert "unicode string" not in ended.out
    assert "^" not in ended.out


@pytest.mark.parametrize(
    ("rule", "parameters"),
    [
        (Rule.OPEN_OBJECT, {"type": "object", "properties": {"a": {}}, "unevaluatedProperties": False}),
        (Rule.OPEN_OBJECT, {"type": "object", "additionalProperties": {"type": "string"}}),
        (Rule.OPEN_OBJECT, {**CLOSED, "if": {"properties": {"a": {"const": 1}}}}),
        (Rule.NOT_ONLY_OBJECTS, {"$ref": "#/$defs/a", "$defs": {"a": {"type": "object"}}}),
        (Rule.UNREACHABLE, of(a=True) | {"properties": {"a": True, "never": False}}),
        (Rule.CYCLE, {**of(a={"$ref": "#/$defs/x"}, b={"$ref": "#/$defs/x"}), "$defs": {"x": {"type": "string"}}}),
        (Rule.UNBOUNDED_INTEGER, of(a={"type": "integer", "enum": [1, 2]})),
        (Rule.COSTLY, of(a={"type": "array", "items": {"type": "number", "minimum": 0.5}, "uniqueItems": True})),
        (Rule.UNBOUNDED_INTEGER, of(a={"type": "integer", "exclusiveMinimum": 1, "exclusiveMaximum": 9})),
        (Rule.ENGINES_DIFFER, of(a={"type": "integer"}, b={"type": "array", "items": {"type": "string"}, "uniqueItems": True})),
    ],
)
def test_what_is_no_finding(rule: Rule, parameters: Any) -> None:
    """What only looks like one is none."""
    assert found(parameters, rule) == []


def test_strict_mode_matters_more_where_it_is_asked_for() -> None:
    """A tool that says `strict` gets every finding as a warning, another one the first as a note."""
    parameters = {"type": "object", "properties": {"a": {"type": "string"}}}
    assert [each.level for each in found(parameters, Rule.STRICT_MODE, strict=True)] == [Level.WARNING, Level.WARNING]
    assert [each.level for each in found(parameters, Rule.STRICT_MODE)] == [Level.NOTE]


def test_a_fault_is_told_once() -> None:
    """A pattern that keeps a tool from loading is one finding; faults of files are findings too."""
    tool = {"type": "function", "name": "tool", "parameters": of(a={"type": "string", "pattern": "(?!x)"})}
    findings = lint([ToolFile("a.json", "crm", tool)], [LoadFault("b.json", "", "it is not UTF-8 at byte 3")])
    errors = [(each.rule, each.file, each.tool) for each in findings if each.level is Level.ERROR]
    assert errors == [(Rule.PATTERN, "a.json", "crm/tool"), (Rule.UNUSABLE, "b.json", "")]


def test_the_cases_are_worth_a_comparison() -> None:
    """The generator makes values that fit and values that do not, the same ones each time."""
    schema = of(
        place={"type": "string", "pattern": "^([a-z]{2,3}-)?\\d+[^x-z]*(a|b)?$"},
        size={"anyOf": [{"const": "all"}, {"type": "integer", "minimum": 3, "maximum": 8}]},
        tags={"type": "array", "items": {"$ref": "#/$defs/tag"}, "minItems": 1},
    )
    schema["$defs"] = {"tag": {"type": "string", "maxLength": 3}}
    validator = RustEngine().compile(schema)
    cases = list(Cases(schema).take(300))
    fitting = sum(map(validator.is_valid, cases))
    assert 30 < fitting < 270
    assert repr(cases) == repr(list(Cases(schema).take(300)))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two tools, one of them in a namespace, and one of them odd."""
    (tmp_path / "crm").mkdir()
    (tmp_path / "a.json").write_text(json.dumps({"type": "function", "name": "a", "description": "An a.", "parameters": CLEAN}))
    odd = {"type": "function", "name": "b", "parameters": {"type": "object", "properties": {"a": {"type": "string"}}}}
    (tmp_path / "crm" / "b.yaml").write_text(json.dumps([odd]))
    wrapper = {
        "type": "namespace",
        "name": "hr",
        "description": "People.",
        "tools": [{"type": "function", "name": "c", "parameters": None}],
    }
    (tmp_path / "c.json").write_text(json.dumps(wrapper))
    return tmp_path


@pytest.mark.parametrize(("fail_on", "code"), [("error", 0), ("warning", Exit.FINDINGS), ("note", Exit.FINDINGS), ("never", 0)])
def test_the_exit_code_is_for_ci(folder: Path, fail_on: str, code: int) -> None:
    """`--fail-on` says which level fails; the folder has warnings and no errors."""
    ended = callgate("schemas", "lint", "--set", f"schemas={folder}", "--fail-on", fail_on)
    assert ended.code == code, ended.err
    assert "warning: crm/b.yaml#/0/parameters: additionalProperties is left open [open-object]\n" in ended.out
    assert ended.out.endswith("0 errors, 1 warning, 1 note.\n")


def test_json_and_sarif(folder: Path) -> None:
    """Programs read an array; code scanning reads SARIF 2.1.0, with every rule declared and every result placed."""
    (folder / "bad.json").write_text("{")
    listed = json.loads(callgate("schemas", "lint", "--set", f"schemas={folder}", "-f", "json").out)
    ended = callgate("schemas", "lint", "--set", f"schemas={folder}", "--format", "sarif")
    assert ended.code == Exit.FINDINGS
    log = json.loads(ended.out)
    run = log["runs"][0]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert (log["version"], rules) == ("2.1.0", [rule.value for rule in Rule])
    assert all(rule["shortDescription"]["text"] for rule in run["tool"]["driver"]["rules"])
    assert [(each["ruleId"], each["level"]) for each in run["results"]] == [(each["rule"], each["level"]) for each in listed]
    for result, plain in zip(run["results"], listed, strict=True):
        place = result["locations"][0]
        assert rules[result["ruleIndex"]] == result["ruleId"]
        assert place["physicalLocation"]["artifactLocation"]["uri"].endswith(plain["file"])
        assert place["logicalLocations"][0]["fullyQualifiedName"] == (plain["pointer"] or "/")
    assert {each["file"] for each in listed} == {"bad.json", "crm/b.yaml"}


def test_export_is_another_spelling_of_the_same_toolset(folder: Path, tmp_path: Path) -> None:
    """The list is the `tools` of a request, and as a registry it has the same SHA-256."""
    ended = callgate("schemas", "export", "--set", f"schemas={folder}")
    assert ended.code == 0, ended.err
    tools = json.loads(ended.out)
    assert [(tool["type"], tool["name"]) for tool in tools] == [("function", "a"), ("namespace", "crm"), ("namespace", "hr")]
    assert (tools[0]["description"], tools[2]["description"]) == ("An a.", "People.")
    again = tmp_path / "again"
    again.mkdir()
    (again / "tools.json").write_text(ended.out)
    assert load(again, Compiler()).sha256 == _without(folder, again)
    (folder / "bad.json").write_text("{")
    assert callgate("schemas", "export", "--set", f"schemas={folder}").code == Exit.SCHEMAS


def _without(folder: Path, again: Path) -> str:
    """SHA-256 of the folder's toolset, less what was written into it since."""
    hidden = again.rename(again.with_name(".again"))
    try:
        return load(folder, Compiler()).sha256
    finally:
        hidden.rename(again)
