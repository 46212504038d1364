"""What the gate costs, by size of schema and arguments, against msgspec parsing the text plus jsonschema-rs called bare.

Then the classic patterns that take a backtracking engine for ever, each over 100 kB, against a harmless one.

Measures CPU time of its own process, by many short turns of each, so that the machine's mood hits both alike. Floor and gate
are both called as a function of one argument, the text and the call; the gate's call is as assembly makes it. Run it with
`python -m benchmarks.gate`; it writes its section of RESULTS.md.
"""

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jsonschema_rs
import msgspec

from processor.core.candidate import AUTO, Candidate
from processor.core.decide import Decider
from processor.core.engines import RustEngine
from processor.core.gate import Gate, GateSettings
from processor.core.registry import ToolFile, build
from processor.core.toolsets import Compiler

ROUNDS = 301
"""Measurements of each side, by turns; the median counts."""
TURN_NS = 1_000_000
"""Of a measurement: long for the clock's grain, short for the moods of a shared machine."""
FACTS = """Floor: msgspec parses the text, jsonschema-rs called bare judges the value; the second case is the median call of the
recordings. CPU time, medians of 301 turns of each side; a ratio is the median of those of two turns next to each other."""
NOW_MS = 1_790_000_000_000


class Case(NamedTuple):
    """One tool and arguments that fit it."""

    name: str
    parameters: dict[str, Any]
    arguments: str


class Row(NamedTuple):
    """What one side of a case takes."""

    floor: float
    ns: float
    ratio: float


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
    """Measure, print, and write the section of RESULTS.md."""
    from benchmarks import harness  # noqa: PLC0415 - brings a broker along, which nothing else here needs

    parser = argparse.ArgumentParser(prog="python -m benchmarks.gate")
    harness.add_options(parser, broker=False)
    options = parser.parse_args()
    os.sched_setaffinity(0, set(map(int, options.core.split(","))))
    found = [_row(case, sides(case)[:2]) for case in cases()]
    # Apart from the above: the interpreter fits its code to the one engine that a process has.
    both = [_row(case, [_floor(case), partial(_gate(case, "both").judge, _call(case.arguments))]) for case in cases()]
    whole = [_row(case, sides(case)[::2]) for case in cases()]
    lines = [
        "| case | floor, ns | gate, ns | ratio | engine both, ns | ratio | whole decision, ns | ratio |",
        "| --- " * 8 + "|",
    ]
    for case, gate, doubly, decided in zip(cases(), found, both, whole, strict=True):
        cells = [f"{gate.floor:,.0f}"] + [
            cell for row in (gate, doubly, decided) for cell in (f"{row.ns:,.0f}", f"{row.ratio:.2f}")
        ]
        lines.append(f"| {case.name} | {' | '.join(cells)} |")
    harness.publish(options, "gate", "The gate alone, and patterns", FACTS, "\n".join([*lines, "", *redos()]))


def _row(case: Case, measured: Sequence[Callable[[], object]]) -> Row:
    """Measure the floor and another side of one case."""
    floor, side = _measure(measured)
    row = Row(statistics.median(floor), statistics.median(side), _ratio(side, floor))
    print(f"{case.name:24}{row.floor:12.0f}{row.ns:12.0f}{row.ratio:8.2f}", flush=True)
    return row


def sides(case: Case) -> tuple[Callable[[], object], Callable[[], object], Callable[[], object]]:
    """The floor, the gate, and the whole decision of one case."""
    call, gate = _call(case.arguments), _gate(case, "jsonschema-rs")
    return _floor(case), partial(gate.judge, call), partial(Decider(gate), call, "responses.events", 0, NOW_MS)


def redos() -> list[str]:
    """Table of milliseconds a validation and the ratio to a harmless pattern, for the classic patterns over 100 kB."""
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
    lines = ["| pattern over 100 kB | ms | ratio to the first |", "| --- | --- | --- |"]
    for pattern, taken in zip(patterns, times, strict=True):
        shown = pattern.replace("|", "\\|")
        lines.append(f"| `{shown}` | {statistics.median(taken) / 1e6:.3f} | {_ratio(taken, times[0]):.2f} |")
    return lines


def _object(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _floor(case: Case) -> Callable[[], object]:
    """Parse and validate, and nothing else."""
    decode = msgspec.json.Decoder().decode
    options = jsonschema_rs.RegexOptions()
    is_valid = jsonschema_rs.validator_for(case.parameters, offline=True, pattern_options=options).is_valid

    def parse_and_validate(text: str) -> bool:
        return is_valid(decode(text))

    # Called as the gate is: a function of one argument.
    return partial(parse_and_validate, case.arguments)


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
        tool_choices=AUTO,
        usual=True,
        first_offset=1,
        last_offset=40,
        event_time=NOW_MS,
    )


def _measure(sides: Sequence[Callable[[], object]]) -> list[list[float]]:
    """Nanoseconds of each side, measured by turns."""
    count = [_fitting(side) for side in sides]
    found: list[list[float]] = [[] for _ in sides]
    for _ in range(ROUNDS):
        for side, number, times in zip(sides, count, found, strict=True):
            began = time.process_time_ns()
            for _ in range(number):
                side()
            times.append((time.process_time_ns() - began) / number)
    return found


def _ratio(side: Sequence[float], floor: Sequence[float]) -> float:
    """Median of the ratios, each of two measurements next to each other: what else the machine does then hits both."""
    return statistics.median(one / other for one, other in zip(side, floor, strict=True))


def _fitting(side: Callable[[], object]) -> int:
    """Calls that take some TURN_NS."""
    number = 1
    while True:
        began = time.process_time_ns()
        for _ in range(number):
            side()
        if time.process_time_ns() - began > TURN_NS:
            return number
        number *= 2


if __name__ == "__main__":
    main()
