"""What a model is told: a phrase for each keyword, made of the schema's words alone."""

from typing import Any

import pytest

from processor.core.engines import MAX_FLAWS, MAX_MISSING, Flaw, RustEngine
from processor.core.feedback import feedback_text, wanted
from processor.core.reasons import Reason
from processor.core.toolsets import Compiler
from processor.core.verdict import Verdict

SECRET = "hunter2"
PHRASES: list[tuple[Any, Any, str]] = [
    ({"type": "string"}, 1, "must be of type string"),
    ({"type": ["string", "null"]}, 1, "must be of type string or null"),
    ({"enum": ["a", 1]}, SECRET, 'must be one of "a", 1'),
    ({"enum": ["a" * 400]}, SECRET, "must be one of the values that the schema lists"),
    ({"const": "a"}, SECRET, 'must be "a"'),
    ({"maximum": 10000}, 10001, "must be at most 10000"),
    ({"exclusiveMinimum": 0.5}, 0, "must be more than 0.5"),
    ({"maxLength": 1}, SECRET, "must have at most 1 character"),
    ({"minItems": 2}, [SECRET], "must have at least 2 items"),
    ({"pattern": "^a+$"}, SECRET, 'must match the pattern "^a+$"'),
    ({"additionalProperties": False}, {SECRET: 1}, "has members that the schema does not allow"),
    ({"uniqueItems": True}, [SECRET, SECRET], "must not have the same item twice"),
    ({"anyOf": [{"type": "null"}, {"type": "integer"}]}, SECRET, "fits none of the forms that the schema allows"),
    ({"not": {"type": "string"}}, SECRET, "has a form that the schema forbids"),
    ({"required": ["a", "b", "c"]}, {"b": SECRET}, 'is missing: "a", "c"'),
    ({"dependentRequired": {"a": ["b"]}}, {"a": SECRET}, 'is missing: "b"'),
    ({"if": {"type": "string"}, "then": False}, SECRET, "then is not satisfied"),
    ({"$ref": "#/$defs/a", "$defs": {"a": {"type": "null"}}}, SECRET, "must be of type null"),
]


@pytest.mark.parametrize(("schema", "value", "phrase"), PHRASES, ids=[phrase for _, _, phrase in PHRASES])
def test_phrases(schema: dict[str, Any], value: Any, phrase: str) -> None:
    """Each keyword is said in words, with what the schema has there and without what the arguments have."""
    (flaw,) = RustEngine().compile(schema).flaws(value)
    assert wanted(flaw, schema) == phrase
    assert SECRET not in repr(flaw)


def test_a_missing_member_is_told_once() -> None:
    """All members missing at one place are one error that names them, and the empty pointer is said in words."""
    schema = {"type": "object", "required": ["a", "b"]}
    tool = Compiler().tool(None, "t", schema)
    flaws = tool.explain({})
    assert flaws == (Flaw("", "/required", "required", ("a", "b")),)
    text = feedback_text(Verdict(reason=Reason.ARGUMENTS_SCHEMA, flaws=flaws, tools=(tool,)))
    assert text is not None
    assert 'tool: at the top: is missing: "a", "b". Correct' in text


def test_the_same_schema_twice_is_one() -> None:
    """`tools = "both"`: where registry and stream have the same schema, what it asks for is said as with one."""
    tool = Compiler().tool(None, "t", {"properties": {"a": {"type": "null"}}})
    other = Compiler().tool(None, "t", {"properties": {"a": {"type": "null"}}, "required": ["b"]})
    flaws = tool.explain({"a": 1})
    for tools, said in (((tool, tool), "must be of type null"), ((tool, other), "type is not satisfied")):
        text = feedback_text(Verdict(reason=Reason.ARGUMENTS_SCHEMA, flaws=flaws, tools=tools))
        assert text is not None
        assert f"at /a: {said}. Correct" in text


def test_missing_members_are_bounded() -> None:
    """However many are missing, an error names a few; and it takes the place of one error among the others."""
    (flaw,) = RustEngine().compile({"required": [f"a{number}" for number in range(3000)]}).flaws({})
    assert len(flaw.missing) == MAX_MISSING
    schema = {"required": ["a", "b"], "additionalProperties": {"type": "null"}}
    assert len(RustEngine().compile(schema).flaws({str(number): 1 for number in range(20)})) == MAX_FLAWS
