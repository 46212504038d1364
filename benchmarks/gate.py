"""What the gate costs, by size of schema and arguments, against msgspec parsing the text plus jsonschema-rs called bare.

Then the classic patterns that take a backtracking engine for ever, each over 100 kB, against a harmless one.

Measures CPU time of its own process, gate and floor by turns, so that the machine's mood hits both alike. Run it with
`python -m benchmarks.gate`.
"""

import json
import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jsonschema_rs
import msgspec

from processor.core.candidate import Candidate
from processor.core.decide import Decider
from processor.core.engines import RustEngine
from processor.core.gate import Gate, GateSettings
from processor.core.registry import ToolFile, build
from processor.core.toolsets import Compiler

ROUNDS = 31
"""Measurements of each side, by turns; the median counts."""
NOW_MS = 1_790_000_000_000


class Case(NamedTuple):
    """One tool and arguments that fit it."""

    name: str
    parameters: dict[str, Any]
    arguments: str


def cases() -> list[Case]:
    """Sizes from the smallest tool to a large one; the second is the median call of the recordings: 26 bytes, one member."""
    region = {"type": "string", "enum": ["apac", "emea", "amer"]}
    report = _object({"region": region}, ["region"])
    weather = _object({"city": {"type": "string", "minLength": 1}, "days": {"type": "integer", "minimum": 1}}, ["city"])
    place = _object(
        {"lat": {"type": "number"}, "lng": {"type": "number"}, "tags": {"type": "array", "items": {"type": "string"}}}, []
    )
    search = _object({"query": {"type": "string"}, "near": place, "limit": {"type": "integer"}}, ["query"])
    many = _object({f"field_{number}": {"type": ["string", "null"], "maxLength": 80} for number in range(100)}, [])
    patch = _object({"path": {"type": "string", "pattern": "^[a-z./]+$"}, "text": {"type": "string"}}, ["path", "text"])
    near = {"query": "coffee: open now", "near": {"lat": 53.8008, "lng": -1.5491, "tags": ["quiet", "wifi"]}, "limit": 5}
    return [
        Case("published example", report, '{"region":"apac"}'),
        Case("median of recordings", weather, '{"city":"Wells next the"}'),
        Case("two members", weather, '{"city":"Leeds","days":3}'),
        Case("with blanks", weather, '{"city": "Leeds", "days": 3}'),
        Case("nested, with numbers", search, json.dumps(near, separators=(",", ":"))),
        Case("100 members", many, json.dumps({f"field_{number}": f"value {number}" for number in range(100)})),
        Case("10 kB of text", patch, json.dumps({"path": "src/main", "text": "line of code;\n" * 700})),
        Case("1 MB of text", patch, json.dumps({"path": "src/main", "text": "x" * 1_000_000})),
    ]


def main() -> None:
    """Print nanoseconds a call and ratios to the floor."""
    print(f"{'case':24}{'floor ns':>12}{'gate ns':>12}{'ratio':>8}{'both ns':>12}{'decision ns':>14}")
    for case in cases():
        both = partial(_gate(case, "both").judge, _call(case.arguments))
        floor, judged, decided, doubly = _measure([*sides(case), both])
        print(f"{case.name:24}{floor:12.0f}{judged:12.0f}{judged / floor:8.2f}{doubly:12.0f}{decided:14.0f}")


def sides(case: Case) -> tuple[Callable[[], object], Callable[[], object], Callable[[], object]]:
    """The floor, the gate, and the whole decision of one case."""
    call, gate = _call(case.arguments), _gate(case, "jsonschema-rs")
    return _floor(case), partial(gate.judge, call), partial(Decider(gate), call, "responses.events", 0, NOW_MS)


def redos() -> None:
    """Print milliseconds a validation and the ratio to a harmless pattern."""
    text = "a" * 100_000 + "!"
    patterns = [
        "^[a-z]+$",
        "^(a+)+$",
        "^(a|a)*$",
        "^(a|aa)+$",
        "^(.*a){12}$",
        "^([a-zA-Z0-9]+)*$",
        # Without the last bound the engine sees at once that the text is too long for it, and there is nothing to measure.
        "^(a?){30}a{30,}$",
        "^(a?){30}a{30}[^b]*b",
        "(a+a+)+b",
        "^(a*)*b$",
    ]
    sides = [partial(RustEngine().compile({"pattern": pattern}).is_valid, text) for pattern in patterns]
    times = _measure(sides)
    print(f"\n{'pattern over 100 kB':24}{'ms':>12}{'ratio':>12}")
    for pattern, taken in zip(patterns, times, strict=True):
        print(f"{pattern:24}{taken / 1e6:12.3f}{taken / times[0]:12.2f}")


def _object(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _floor(case: Case) -> Callable[[], object]:
    """Parse and validate, and nothing else."""
    decode = msgspec.json.Decoder().decode
    options = jsonschema_rs.RegexOptions()
    is_valid = jsonschema_rs.validator_for(case.parameters, offline=True, pattern_options=options).is_valid
    return lambda: is_valid(decode(case.arguments))


def _gate(case: Case, engine: str) -> Gate:
    """A gate with one tool in its registry."""
    compiler = Compiler(engine)
    tool = {"type": "function", "name": "tool", "parameters": case.parameters}
    return Gate(GateSettings(engine=engine), compiler, build([ToolFile("tool.json", None, tool)], compiler))


def _call(arguments: str) -> Candidate:
    return Candidate(
        stream="stream-1",
        response_id="resp_0123456789abcdef",
        model="model-1",
        call_id="call_0123456789abcdef",
        output_index=0,
        type="function_call",
        namespace=None,
        name="tool",
        arguments=arguments,
        item_id="fc_0123456789abcdef",
        fault=None,
        detail="",
        position=0,
        parallel=True,
        tools=None,
        tool_choices=(b'"auto"',),
        first_offset=1,
        last_offset=40,
        event_time=NOW_MS,
    )


def _measure(sides: Sequence[Callable[[], object]]) -> list[float]:
    """Median nanoseconds of each side, measured by turns."""
    count = [_fitting(side) for side in sides]
    found: list[list[float]] = [[] for _ in sides]
    for _ in range(ROUNDS):
        for side, number, times in zip(sides, count, found, strict=True):
            began = time.process_time_ns()
            for _ in range(number):
                side()
            times.append((time.process_time_ns() - began) / number)
    return [statistics.median(times) for times in found]


def _fitting(side: Callable[[], object]) -> int:
    """Calls that take some 5 ms, so that the clock's own grain does not count."""
    number = 1
    while True:
        began = time.process_time_ns()
        for _ in range(number):
            side()
        taken = time.process_time_ns() - began
        if taken > 5_000_000:
            return number
        number *= 4


if __name__ == "__main__":
    main()
    redos()
