"""What many streams say alike is held once, and what comes in many small pieces is not held in them."""

import json
from typing import Any

import pytest

from processor.core.limits import SHARED_BYTES, Bounds
from processor.core.pipeline import Partition
from processor.core.shared import Shared
from tests.core.test_rebuild import Recorder
from tests.factories import WEATHER, created, function_call, records, text, whole_stream


def test_equal_values_are_one_object() -> None:
    """The second of two equal texts is the first one, and another one stays itself."""
    shared: Shared[str] = Shared()
    first, second = b"get_weather".decode(), b"get_weather".decode()
    assert first is not second
    assert shared.of(first) is first
    assert shared.of(second) is first
    assert shared.of("other") == "other"


def test_what_is_shared_is_bounded() -> None:
    """Whoever says something else each time fills no memory: past the bound it begins anew."""
    shared: Shared[bytes] = Shared()
    size = SHARED_BYTES // 8
    for number in range(100):
        value = bytes([number]) * size
        assert shared.of(value) is value
        assert sum(map(len, shared._kept)) <= SHARED_BYTES


def test_open_responses_hold_their_tools_once() -> None:
    """Two streams of one agent echo the same tools and the same model: one object each."""
    partition = Partition("events", 0, Bounds(), Recorder())
    partition.resume(None, 0)
    for number, key in enumerate(("one", "two")):
        event = created(f"resp_{key}", tools=[WEATHER], model="model-1", tool_choice="required")
        partition.feed(records([event], key=key, offset=number), 0)
    first, second = (stream.open.open for stream in partition._streams.by_key.values() if stream.open)
    assert first is not None
    assert second is not None
    assert first.tools == text([WEATHER]).encode()
    assert first.tools is second.tools
    assert first.model is second.model
    assert first.choice is second.choice


@pytest.mark.parametrize("character", ["a", "é", "🌊"])
def test_small_deltas_are_joined_on_the_way(character: str) -> None:
    """However small the pieces, halves of a surrogate pair too: the same text is decided, and few pieces are held meanwhile."""
    arguments = text({"city": character * 4000})
    whole = [_unnumbered(event) for event in whole_stream([function_call("call_1", "get_weather", arguments)])]
    at = next(place for place, event in enumerate(whole) if event["type"].endswith("arguments.delta"))
    small = [whole[at] | {"delta": json.loads(f'"{escape}"')} for escape in _escapes(arguments)]
    partition = Partition("events", 0, Bounds(), Recorder())
    partition.resume(None, 0)
    most = 0
    for record in records([*whole[:at], *small, *whole[at + 2 :]]):
        partition.feed([record], 0)
        for stream in partition._streams.by_key.values():
            if stream.open is not None and stream.open.open is not None:
                most = max([most, *(len(call.loose or ()) for call in stream.open.open.items)])
    assert 1 < most < 100
    (decided,) = partition.take()
    # Of assembly's making: it found no fault.
    assert decided.reason == "None"


def _unnumbered(event: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in event.items() if name != "sequence_number"}


def _escapes(value: str) -> list[str]:
    """A text as JSON escapes of single UTF-16 units, surrogate halves by themselves."""
    raw = value.encode("utf-16-be", "surrogatepass")
    return [f"\\u{raw[i]:02x}{raw[i + 1]:02x}" for i in range(0, len(raw), 2)]
