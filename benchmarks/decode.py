"""What decode costs, form by form: nanoseconds of CPU a value, beside msgspec's typed decode of the same bytes alone.

`python -m benchmarks.decode`. The last column says what the fast path adds to the decode that it cannot do without, or how much
dearer a form is that goes to the slow reader. `benchmarks/core.py` has the whole core on the workload.
"""

import argparse
import base64
import json
import time
from collections.abc import Callable
from typing import Any

import msgspec

from processor.core.decode import decode
from processor.core.events import Event, Unreadable

TARGET_NS = 1_000
"""A delta event of some 370 bytes must stay below this on the machine of the README."""


def tool(number: int) -> dict[str, Any]:
    """A tool of ordinary size."""
    words = {"type": "string", "description": "what a person would want to know about it [in brackets]", "maxLength": 80}
    parameters = {"type": "object", "properties": {"city": words, "days": {"type": "array", "items": words}}}
    return {"type": "function", "name": f"tool_{number}", "description": "looks it up\n", "parameters": parameters}


def values() -> dict[str, bytes]:
    """One value of each form that platforms send."""
    item = {"type": "function_call", "id": "fc_" + "0" * 48, "call_id": "call_" + "0" * 24, "name": "get_weather"}
    item |= {"arguments": '{"city":"Zürich","unit":"celsius","days":3}', "status": "completed"}
    delta = {
        "type": "response.function_call_arguments.delta",
        "sequence_number": 17,
        "response_id": "resp_" + "0" * 48,
        "item_id": "fc_" + "0" * 48,
        "output_index": 1,
        "delta": '"city":"Zürich',
        "obfuscation": "k" * 110,
    }
    done = {"type": "response.output_item.done", "sequence_number": 18, "output_index": 1, "item": item}
    body = {"id": "resp_" + "0" * 48, "object": "response", "status": "completed", "model": "m", "output": [item] * 3}
    small = {"type": "response.completed", "response": body | {"tools": [tool(n) for n in range(8)], "tool_choice": "auto"}}
    large = {"type": "response.completed", "response": body | {"tools": [tool(n) for n in range(100)]}}
    plain = text(delta)
    frame = b"event: response.function_call_arguments.delta\ndata: " + plain + b"\n\n"
    envelope = {"specversion": "1.0", "id": "1", "source": "/a", "type": "t"}
    return {
        "delta": plain,
        "delta with half a surrogate pair (slow)": plain.replace(b'"k', b'"\\ud83d'),
        "output_item.done": text(done),
        "completed, 8 tools": text(small),
        "completed, 100 tools": text(large),
        "batch of 50 deltas": b"[" + b",".join([plain] * 50) + b"]",
        "one SSE frame": frame,
        "50 SSE frames": frame * 50,
        "whole response, 8 tools (slow)": text(small["response"]),
        "journal of 4 (slow)": text([item, item, item, item]),
        "CloudEvents, data (slow)": text(envelope | {"data": delta}),
        "CloudEvents, base64 (slow)": text(envelope | {"data_base64": base64.b64encode(plain).decode()}),
    }


def text(value: object) -> bytes:
    """Compact JSON, as platforms write it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def cost_ns(call: Callable[[bytes], object], value: bytes, repeats: int) -> float:
    """CPU nanoseconds of one call: the best of some runs, since a neighbour can only make it slower."""
    number = max(20, 20_000_000 // (len(value) * 40))
    best = float("inf")
    for _ in range(repeats):
        began = time.process_time_ns()
        for _ in range(number):
            call(value)
        best = min(best, (time.process_time_ns() - began) / number)
    return best


def bare(value: bytes) -> object:
    """Decode with msgspec alone into the type that the fast path uses; what that refuses is read untyped."""
    try:
        return BATCH.decode(value) if value[:1] == b"[" else EVENT.decode(value)
    except msgspec.ValidationError:
        return ANY.decode(value)
    except msgspec.DecodeError:
        return json.loads(value)


EVENT, BATCH, ANY = msgspec.json.Decoder(Event), msgspec.json.Decoder(list[Event]), msgspec.json.Decoder()


def main() -> None:
    """Measure every form and print the table; exit 1 where the delta misses its target."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    print(f"{'form':42}{'bytes':>8}{'decode ns':>12}{'msgspec ns':>12}{'ratio':>8}")
    measured = {}
    for name, value in values().items():
        if isinstance(decode(value), Unreadable):
            raise SystemExit(f"{name}: not readable")
        ours = measured[name] = cost_ns(decode, value, options.repeats)
        data = value.partition(b"data: ")[2].partition(b"\n")[0] if value.startswith(b"event:") else value
        alone = cost_ns(bare, data, options.repeats) * max(1, value.count(b"\ndata: "))
        print(f"{name:42}{len(value):8}{ours:12.0f}{alone:12.0f}{ours / alone:8.2f}")
    if measured["delta"] > TARGET_NS:
        raise SystemExit(f"a delta takes {measured['delta']:.0f} ns, the target is {TARGET_NS}")


if __name__ == "__main__":
    main()
