"""The engine port: patterns as ECMA-262 has them, nothing fetched, bounded errors without values, and what is proven."""

from typing import Any

import pytest

from processor.core.engines import MAX_FLAWS, MAX_POINTER, Engine, FastEngine, Flaw, RustEngine, SchemaFault
from processor.core.patterns import fault_of_pattern
from processor.core.proven import unproven
from processor.core.schema_walk import TooLarge, expanded_size, weight

ENGINES = [pytest.param(RustEngine(), id="jsonschema-rs"), pytest.param(FastEngine(explain=RustEngine()), id="fastjsonschema")]
RUST = RustEngine()


def fault_of(engine: Engine, schema: Any) -> SchemaFault:
    """The fault that compiling finds."""
    with pytest.raises(SchemaFault) as caught:
        engine.compile(schema)
    return caught.value


@pytest.mark.parametrize("engine", ENGINES)
def test_says_what_fits(engine: Engine) -> None:
    """Both engines judge a small tool schema alike."""
    region = {"type": "string", "enum": ["apac", "emea"]}
    checked = engine.compile({"type": "object", "properties": {"region": region}, "required": ["region"]})
    assert checked.is_valid({"region": "apac"})
    assert not checked.is_valid({"region": "global"})
    assert checked.flaws({"region": "global"}) == (Flaw("/region", "/properties/region/enum", "enum"),)
    assert not checked.is_valid({})
    assert not checked.is_valid([])


@pytest.mark.parametrize("engine", ENGINES)
def test_values_are_json_not_python(engine: Engine) -> None:
    """True is not 1, 1.0 is an integer, and 1 equals 1.0, as JSON Schema has it."""
    assert not engine.compile({"enum": [1]}).is_valid(True)
    assert not engine.compile({"const": [False]}).is_valid([0])
    assert engine.compile({"type": "integer"}).is_valid(1.0)
    assert engine.compile({"const": 1}).is_valid(1.0)
    assert not engine.compile({"type": "number"}).is_valid(True)


@pytest.mark.parametrize(
    ("schema", "at", "cause"),
    [
        ({"properties": {"a": {"type": "text"}}}, "/properties/a/type", "not valid under any"),
        ({"$schema": "https://example.org/mine", "type": "object"}, "/$schema", "meta-schema"),
        ({"properties": {"a/b": {"$ref": "#/$defs/none"}}}, "/properties/a~1b/$ref", "does not exist"),
        ({"$ref": "http://127.0.0.1:9/remote.json"}, "/$ref", "disabled"),
        ({"$ref": "file:///etc/hostname"}, "/$ref", "disabled"),
        ({"items": {"pattern": "(?=a)"}}, "/items/pattern", "backtracking"),
        ({"patternProperties": {"(a)\\1": {}}}, "/patternProperties/(a)\\1", "back references"),
        ({"properties": {"a": {"pattern": "a{1000}{1000}"}}}, "/properties/a/pattern", "quantifier"),
        ("string", "", "an object or a boolean"),
    ],
)
def test_a_faulty_schema_is_named_with_pointer_and_cause(schema: Any, at: str, cause: str) -> None:
    """Section 6: no compile, unknown `$schema`, dangling or remote `$ref`, each with its place."""
    fault = fault_of(RUST, schema)
    assert fault.at == at
    assert cause in fault.cause


def test_nothing_is_fetched_by_the_second_engine() -> None:
    """Remote references are no part of what fastjsonschema is proven to honour."""
    assert "$ref" in fault_of(FastEngine(), {"$ref": "http://127.0.0.1:9/remote.json"}).cause
    assert "$id" in fault_of(FastEngine(), {"$id": "http://127.0.0.1:9/", "properties": {"a": {"$ref": "b.json"}}}).cause


def test_dollar_does_not_match_before_a_last_newline() -> None:
    """Patterns have their ECMA-262 meaning in every engine that runs any: fastjsonschema runs none."""
    checked = RUST.compile({"pattern": "^a$"})
    assert checked.is_valid("a")
    assert not checked.is_valid("a\n")
    assert not checked.is_valid("b\na")
    assert "pattern" in fault_of(FastEngine(), {"pattern": "^a$"}).cause
    assert "patternProperties" in fault_of(FastEngine(), {"patternProperties": {"^a$": {}}}).cause


@pytest.mark.parametrize(
    ("pattern", "fits", "not_fits"),
    [
        (r"^\d$", "7", "٣"),
        (r"^\w$", "a", "é"),
        (r"^\s$", "\ufeff", "a"),
        (r"^.$", "😀", "\u2028"),
        (r"^[a&&b]$", "&", "c"),
        (r"^[a-z--b]$", "0", "\x00"),
        (r"^\p{Lu}$", "É", "é"),
        (r"^\u{1F600}$", "😀", "u"),
        (r"^(?<year>[0-9]{4})-\x41$", "2026-A", "2026-B"),
        (r"^\cA\0?$", "\x01", "A"),
    ],
)
def test_patterns_mean_what_ecma_262_says(pattern: str, fits: str, not_fits: str) -> None:
    """Classes are ASCII, `.` knows the line ends of ECMA-262, and nothing of Rust's own dialect leaks in."""
    if "\\0" in pattern:
        assert "pattern" in fault_of(RUST, {"pattern": pattern}).at
        return
    assert RUST.compile({"pattern": pattern}).is_valid(fits)
    assert not RUST.compile({"pattern": pattern}).is_valid(not_fits)


@pytest.mark.parametrize(
    "pattern",
    [
        r"(?i)a",
        r"\Aa",
        r"a\z",
        r"a\Z",
        r"(?P<n>a)",
        r"(?#c)a",
        r"a++",
        r"a{1}{2}",
        r"[[:alpha:]]",
        r"\x{41}",
        r"\pL",
        r"\bword",
        r"\<a",
        r"(?=a)",
        r"(?<!a)",
        r"(a)\1",
        r"\k<n>",
        r"[]",
        r"[^]",
        r"[a",
        r"a{,2}",
        r"*a",
        r"\Qa\E",
        r"\a",
        r"(?>a)",
        r"(?i:a)",
        r"(?x)",
    ],
)
def test_patterns_of_other_dialects_are_refused(pattern: str) -> None:
    """What ECMA-262 does not know, or what needs backtracking, is refused at load, never given another meaning."""
    assert fault_of_pattern(pattern)
    assert fault_of(RUST, {"pattern": pattern}).at == "/pattern"


@pytest.mark.parametrize(
    "pattern",
    [r"^[A-Za-z0-9_.+-]+@[a-z]+\.[a-z]{2,}$", r"^\d{4}-\d{2}$", r"^(?:a|b)*?c+$", r"^[^\s/\]\\]+$", r"\_\@\#\-\/", "^$", ""],
)
def test_everyday_patterns_are_taken(pattern: str) -> None:
    """The restriction does not touch what tool schemas use."""
    assert fault_of_pattern(pattern) is None
    RUST.compile({"pattern": pattern})


@pytest.mark.parametrize("pattern", ["^(a+)+$", "^(a|a)*$", "^(.*)*$", "^([a-zA-Z]+)*$", "^(a?){30}a{30}$"])
def test_classic_redos_patterns_run_in_linear_time(pattern: str) -> None:
    """ReDoS: 100 kB that a backtracking engine would never finish with."""
    checked = RUST.compile({"pattern": pattern})
    assert not checked.is_valid("a" * 100_000 + "!\n")


def test_formats_are_annotations_unless_set() -> None:
    """Section 6: formats assert by setting only."""
    assert RUST.compile({"format": "email"}).is_valid("x")
    assert not RustEngine(formats=True).compile({"format": "email"}).is_valid("x")
    assert FastEngine().compile({"format": "email"}).is_valid("x")
    assert "format" in fault_of(FastEngine(formats=True), {"format": "email"}).cause


def test_drafts_are_honoured() -> None:
    """`$schema` decides how a schema is read; without it, it is 2020-12."""
    draft7 = {"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "string"}], "additionalItems": False}
    assert not RUST.compile(draft7).is_valid(["a", "b"])
    assert not RUST.compile({"prefixItems": [{"type": "string"}], "items": False}).is_valid(["a", "b"])


def test_errors_are_bounded_and_hold_no_values() -> None:
    """At most 8 errors, pointers of at most 200 characters, and no argument value in any."""
    checked = RUST.compile({"items": {"type": "string"}, "additionalProperties": {"type": "string"}})
    flaws = checked.flaws([12345678] * 1000)
    assert len(flaws) == MAX_FLAWS
    assert flaws[1] == Flaw("/1", "/items/type", "type")
    assert all("12345678" not in repr(flaw) for flaw in flaws)
    (flaw,) = checked.flaws({"n" * 1000: 1})
    assert len(flaw.at) == MAX_POINTER


def test_no_instance_breaks_an_engine() -> None:
    """Nesting over an engine's own bound does not fit; nothing is raised."""
    deep: Any = 1
    for _ in range(5000):
        deep = {"a": deep}
    recursive = {"type": "object", "properties": {"a": {"$ref": "#"}}}
    for engine in (RUST, FastEngine()):
        checked = engine.compile(recursive)
        assert not checked.is_valid(deep)
        assert checked.flaws(deep)


def test_the_second_engine_leaves_schemas_as_they_are() -> None:
    """Fastjsonschema rewrites references inside of what it compiles, and fills in defaults; neither is seen outside."""
    schema = {"properties": {"a": {"$ref": "#/definitions/b"}, "c": {"default": 1}}, "definitions": {"b": {"type": "string"}}}
    before = repr(schema)
    value: dict[str, Any] = {"a": "x"}
    assert FastEngine().compile(schema).is_valid(value)
    assert repr(schema) == before
    assert value == {"a": "x"}


@pytest.mark.parametrize(
    ("schema", "at"),
    [
        ({"unevaluatedProperties": False}, "/unevaluatedProperties"),
        ({"allOf": [{"minContains": 2}]}, "/allOf/0/minContains"),
        ({"$ref": "#/$defs/a", "type": "object", "$defs": {"a": {}}}, "/$ref"),
        ({"properties": {"a": {"$anchor": "x"}}}, "/properties/a/$anchor"),
        ({"enum": [{"$ref": "x"}]}, "/enum"),
        ({"nullable": True}, "/nullable"),
        ({"multipleOf": 0.1}, "/multipleOf"),
        ({"$schema": "https://example.org/"}, "/$schema"),
    ],
)
def test_the_table_refuses_what_is_not_proven(schema: Any, at: str) -> None:
    """Section 6: a keyword that fastjsonschema is not proven to honour is named, wherever it stands."""
    found = unproven(schema)
    assert found is not None
    assert found[0] == at
    assert fault_of(FastEngine(), schema).at == at


def test_names_that_look_like_keywords_are_not() -> None:
    """A property may be called like any keyword."""
    schema = {"properties": {"pattern": {"type": "string"}, "$id": {"type": "string"}, "unevaluatedItems": True}}
    assert unproven(schema) is None


def doubled(levels: int) -> dict[str, Any]:
    """A schema whose references double with each level: 2 kB at 30."""
    definitions: dict[str, Any] = {"d0": {"type": "string"}}
    for level in range(1, levels + 1):
        below = {"$ref": f"#/$defs/d{level - 1}"}
        definitions[f"d{level}"] = {"allOf": [below, dict(below)]}
    return {"$ref": f"#/$defs/d{levels}", "$defs": definitions}


def test_expanded_size_counts_references_written_out() -> None:
    """30 levels of doubled `$ref` are over any bound, and are found to be at once."""
    assert expanded_size({"type": "object", "properties": {"a": True, "b": {"items": {}}}}, 100) == 4
    assert expanded_size(doubled(3), 100) == 30
    with pytest.raises(TooLarge, match="over 10000 schemas"):
        expanded_size(doubled(30), 10_000)


def test_cycles_may_descend_but_not_stand_still() -> None:
    """A tree is a cycle that ends with the arguments; a reference to itself on one spot never ends."""
    tree = {"type": "object", "properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}}}
    assert expanded_size(tree, 100) == 5
    assert weight(tree) == 5
    defined = {"$defs": {"a": {"$anchor": "x", "$ref": "#x"}}, "$ref": "#/$defs/a"}
    for still in ({"$ref": "#"}, {"anyOf": [{"$ref": "#"}, {"type": "string"}]}, defined):
        with pytest.raises(TooLarge, match="without descending"):
            expanded_size(still, 100)


@pytest.mark.parametrize(
    ("keyword", "lists", "item"),
    [
        ("required", [f"x{number}" for number in range(1000)], {}),
        ("dependentRequired", {"a": [f"x{number}" for number in range(1000)]}, {"a": 1}),
        ("enum", [[number] for number in range(1000)], {}),
    ],
)
def test_what_a_schema_lists_counts_where_errors_are_listed(keyword: str, lists: Any, item: Any) -> None:
    """Each missing name is an error of its own: 16 million of them, from a schema of 10 kB, are never listed."""
    checked = RUST.compile({"items": {keyword: lists}})
    value = [item] * 300
    assert not checked.is_valid(value)
    assert [(flaw.at, flaw.keyword) for flaw in checked.flaws(value)] == [("/0", keyword)]


def test_a_cycle_that_doubles_is_judged_and_not_explained() -> None:
    """Listing the errors of such a cycle takes exponential time in the depth of the arguments; saying no does not."""
    branches = [{"properties": {"a": {"$ref": "#"}}, "minProperties": n} for n in (1, 2, 3)]
    schema: dict[str, Any] = {"type": "object", "anyOf": branches}
    assert weight(schema) is None
    value: Any = 5
    for _ in range(60):
        value = {"a": value}
    checked = RUST.compile(schema)
    assert not checked.is_valid(value)
    assert checked.flaws(value) == (Flaw("", "", ""),)


def test_large_values_are_not_explained_in_full() -> None:
    """The engine lists all errors before it gives the first: of many, one is named, or none where alternatives are tried."""
    many = list(range(100_000))
    plain = RUST.compile({"items": {"enum": [f"v{number}" for number in range(2000)]}})
    assert plain.flaws(many) == (Flaw("/0", "/items/enum", "enum"),)
    assert len(plain.flaws(many[:20])) == MAX_FLAWS
    branching = RUST.compile({"items": {"anyOf": [{"type": "string"}, {"type": "null"}]}})
    assert branching.flaws(many) == (Flaw("", "", ""),)
    assert branching.flaws(many[:20])[0] == Flaw("/0", "/items/anyOf", "anyOf")
