"""The registry: what files may say, every fault at once, names of toolsets; and the reading of its folder."""

import json
from pathlib import Path
from typing import Any

import pytest

from processor.adapters.schema_files import load
from processor.core.canonical import canonical, sha256
from processor.core.in_band import MAX_CACHED, InBandCache
from processor.core.registry import BadRegistry, ToolFile, build, listing
from processor.core.toolsets import Compiler
from tests.core.calls import PARAMETERS, REPORT, registry


def faults(*tools: Any, engine: str = "jsonschema-rs", namespace: str | None = None) -> list[str]:
    """Faults of a registry of one file."""
    with pytest.raises(BadRegistry) as caught:
        registry(*tools, engine=engine, namespace=namespace)
    return [str(fault) for fault in caught.value.faults]


def written(folder: Path, files: dict[str, Any]) -> Path:
    """A folder with these files; values that are no text are written as JSON."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))
    return folder


def folder_faults(folder: Path) -> list[str]:
    """Faults of a folder."""
    with pytest.raises(BadRegistry) as caught:
        load(folder, Compiler())
    return [str(fault) for fault in caught.value.faults]


YAML = """
- type: function
  name: lead
  parameters: &shared
    type: object
    properties: {id: {type: string}}
- type: namespace
  name: crm
  tools:
    - {type: function, name: lead, parameters: *shared}
"""


def test_reads_a_folder(tmp_path: Path) -> None:
    """Section 10: JSON and YAML; one tool, an array, a namespace wrapper; a folder is a namespace."""
    files = {"a.json": REPORT, "b.yaml": YAML, "erp/c.json": [REPORT, {**REPORT, "name": "order"}], "README.md": "no tool"}
    tools = load(written(tmp_path, files), Compiler())
    assert [(row.namespace, row.name, row.file) for row in listing(tools)] == [
        (None, "lead", "b.yaml"),
        (None, "report", "a.json"),
        ("crm", "lead", "b.yaml"),
        ("erp", "order", "erp/c.json"),
        ("erp", "report", "erp/c.json"),
    ]
    assert listing(tools)[1].sha256 == sha256(PARAMETERS)
    assert listing(tools)[1].draft == "draft2020-12"
    assert listing(tools)[1].engines == ("jsonschema-rs",)


def test_reads_what_kubernetes_mounts(tmp_path: Path) -> None:
    """The files of a ConfigMap are links into a hidden folder, which is not read a second time."""
    written(tmp_path, {"..2026_01/a.json": REPORT})
    (tmp_path / "..data").symlink_to("..2026_01")
    (tmp_path / "a.json").symlink_to("..data/a.json")
    assert len(load(tmp_path, Compiler()).tools) == 1


def test_every_fault_of_a_registry_is_reported_at_once(tmp_path: Path) -> None:
    """Issue: file, pointer and cause of everything that is wrong, and no toolset."""
    files = {
        "a.json": [REPORT, REPORT, 7, {"type": "custom", "name": "x"}, {"type": "function"}],
        "b.json": {**REPORT, "name": "b", "parameters": {"properties": {"a": {"type": "text"}}}},
        "c.json": [{**REPORT, "name": "c", "parameters": {"$ref": "#/nowhere"}}],
        "d.json": '{"type":"function","type":"function"}',
        "e.yaml": "a: 1\na: 2\n",
        "f.json": {"type": "namespace", "name": "n", "tools": [{**REPORT, "parameters": {"$schema": "urn:x"}}]},
        "g/h/i.json": REPORT,
        "g/w.json": {"type": "namespace", "name": "n", "tools": []},
        "j.yml": "when: 2026-01-01\n",
        "k.json": {**REPORT, "name": "k", "parameters": {"type": "array"}},
        "l.yaml": "&a [*a]\n",
        "m.yaml": "{1: x}\n",
        "n.json": {"type": "namespace", "tools": []},
        "o.json": {"type": "namespace", "name": "o"},
        "p.json": {**REPORT, "name": "p", "parameters": {"$ref": "https://127.0.0.1:9/x"}},
    }
    found = folder_faults(written(tmp_path, files))
    starts = [
        "g/h: a namespace is one folder",
        "d.json: a duplicate member name at byte 19",
        "e.yaml: it is not YAML at line 2, column 1: a key comes twice",
        "j.yml: it says something that JSON cannot",
        "l.yaml: it says something that JSON cannot",
        "m.yaml: it says something that JSON cannot",
        "a.json#/1: report is declared twice, first in a.json#/0",
        "a.json#/2: a tool is an object",
        'a.json#/3/type: a tool has "type": "function"',
        "a.json#/4/name: a tool needs a name",
        "b.json#/parameters/properties/a/type: ",
        "c.json#/0/parameters/$ref: ",
        "f.json#/tools/0/parameters/$schema: ",
        "g/w.json: a namespace inside of the folder g",
        "k.json#/parameters: no object can satisfy it",
        "n.json#/name: a namespace needs a name",
        "o.json#/tools: a namespace needs a list of tools",
        "p.json#/parameters/$ref: ",
    ]
    missing = [start for start in starts if not any(fault.startswith(start) for fault in found)]
    assert missing == []
    assert len(found) == len(starts)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    """A missing folder is a fault with a sentence, not a traceback."""
    assert "cannot be read" in folder_faults(tmp_path / "none")[0]


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    """A file that is not UTF-8 is a fault of that file."""
    (tmp_path / "a.json").write_bytes(b'{"a":"\xff"}')
    assert folder_faults(tmp_path) == ["a.json: it is not UTF-8 at byte 6"]


@pytest.mark.parametrize(
    "schema",
    [
        False,
        {"type": "string"},
        {"type": "object", "required": ["a"], "additionalProperties": False},
        {"type": "object", "required": ["a"], "properties": {"a": {"type": "string", "enum": [1]}}},
        {"$schema": "http://json-schema.org/draft-07/schema#", "type": "integer"},
        {"allOf": [{"type": "object"}, {"$ref": "#/$defs/x"}], "$defs": {"x": {"type": "array"}}},
    ],
)
def test_a_schema_that_accepts_no_object_is_a_fault(schema: Any) -> None:
    """Issue: no call of such a tool could ever be approved."""
    assert "no object can satisfy it" in faults({**REPORT, "parameters": schema})[0]


def test_the_engines_of_each_tool_are_listed() -> None:
    """Section 6: `both` leaves to jsonschema-rs alone what the other is not proven for, and the list says so."""
    pattern = {**REPORT, "name": "pattern", "parameters": {"properties": {"a": {"pattern": "^a$"}}}}
    rows = listing(registry(REPORT, pattern, engine="both"))
    assert [row.engines for row in rows] == [("jsonschema-rs",), ("jsonschema-rs", "fastjsonschema")]
    assert "not proven to honour pattern" in faults(pattern, engine="fastjsonschema")[0]
    assert listing(registry(engine="fastjsonschema"))[0].engines == ("fastjsonschema",)


def test_a_toolset_is_named_by_its_content() -> None:
    """The name depends on tools and schemas alone: not on order, files or spelling."""
    other = {**REPORT, "name": "other"}
    name = registry(REPORT, other).sha256
    assert registry(other, REPORT).sha256 == name
    respelled = json.loads(json.dumps({**REPORT, "parameters": dict(reversed(PARAMETERS.items()))}))
    assert build([ToolFile("x.json", None, respelled), ToolFile("y.json", None, other)], Compiler()).sha256 == name
    assert registry(REPORT).sha256 != name
    assert registry(REPORT, {**other, "parameters": {}}).sha256 != name
    assert registry(REPORT, other, namespace="crm").sha256 != name


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (b'{"a":1,"b":[true,null]}', b' { "b" : [ true , null ] , "a" : 1.0 } ', True),
        (b'{"a":"\\u00e9\\/"}', '{"a":"é/"}'.encode(), True),
        (b'{"a":1e2}', b'{"a":100}', True),
        (b'["\\ud800"]', b'[ "\\ud800" ]', True),
        (b"[1,2]", b"[2,1]", False),
        (b"[1]", b"[true]", False),
        (b'["1"]', b"[1]", False),
        (b"[100000000000000000000]", b"[100000000000000000001]", False),
        (b'["\\ud800"]', b'["\\ud801"]', False),
        (b"[" * 249 + b" 1" + b"]" * 249, b"[" * 249 + b"1.0" + b"]" * 249, True),
        (b"[" * 400 + b" 1" + b"]" * 400, b"[" * 400 + b"1.0" + b"]" * 400, False),
        (b"[" * 90_000 + b"1", b"[" * 90_000 + b"2", False),
        (b"[" * 90_000 + b"1" + b"]" * 90_000, b"[" * 90_000 + b"2" + b"]" * 90_000, False),
        (b"\xff", b"\xfe", False),
    ],
    ids=range(14),
)
def test_canonical_form(one: bytes, other: bytes, *, same: bool) -> None:
    """Rule 10: two texts have one canonical form exactly where they say the same."""
    assert (canonical(one) == canonical(other)) is same


def test_the_cache_of_in_band_tools_is_bounded() -> None:
    """In-band toolsets are kept by their bytes, the least recently used one goes first."""
    cache = InBandCache(Compiler())
    texts = [json.dumps([{**REPORT, "name": f"tool{n}"}]).encode() for n in range(MAX_CACHED + 1)]
    first = cache.get(texts[0])
    assert cache.get(bytes(texts[0])) is first
    for text in texts:
        cache.get(text)
    assert cache.get(texts[0]) is not first
    assert cache.get(texts[-1]).find(None, f"tool{MAX_CACHED}")
    assert (cache.hits, cache.misses) == (3, MAX_CACHED + 2)
