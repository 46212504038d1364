"""Builders for what the gate judges: candidates, toolsets, gates."""

from typing import Any

from processor.core.candidate import Candidate
from processor.core.gate import Gate, GateSettings
from processor.core.registry import ToolFile, build
from processor.core.toolsets import EMPTY, Compiler, FixedToolset, Toolset

REGION = {"type": "string", "enum": ["apac", "emea", "amer"]}
PARAMETERS = {"type": "object", "properties": {"region": REGION}, "required": ["region"], "additionalProperties": False}
REPORT = {"type": "function", "name": "report", "parameters": PARAMETERS}
"""The tool that most tests call."""
ARGUMENTS = '{"region":"apac"}'
"""Arguments that fit it."""


def candidate(**changes: Any) -> Candidate:
    """A good call of `report`, with changes."""
    fields: dict[str, Any] = {
        "stream": "stream-1",
        "response_id": "resp_1",
        "model": "model-1",
        "call_id": "call_1",
        "output_index": 0,
        "type": "function_call",
        "namespace": None,
        "name": "report",
        "arguments": ARGUMENTS,
        "item_id": "fc_1",
        "fault": None,
        "detail": "",
        "position": 0,
        "parallel": True,
        "tools": None,
        "tool_choices": (),
        "first_offset": 3,
        "last_offset": 9,
        "event_time": 1_790_000_000_123,
    }
    return Candidate(**{**fields, **changes})


def registry(*tools: Any, namespace: str | None = None, engine: str = "jsonschema-rs") -> FixedToolset:
    """A registry of one file with these tools; `report` where none is given."""
    return build([ToolFile("tools.json", namespace, list(tools or (REPORT,)))], Compiler(engine))


def gate(toolset: Toolset | None = None, **settings: Any) -> Gate:
    """A gate with these settings and the registry of `report`; no registry where the tools are those of the stream."""
    made = GateSettings(**settings)
    if toolset is None:
        toolset = EMPTY if made.tools == "stream" else registry(engine=made.engine)
    return Gate(made, registry=toolset)
