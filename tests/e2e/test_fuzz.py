"""Bad input, end to end: any bytes as key, value and header never crash a member and never hold up a partition."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from tests.conftest import MakeTopic
from tests.e2e.rig import Rig
from tests.e2e.workload import Workload, make

RECORDS = 3_000
Headers = list[tuple[str, str | bytes | None]]


def odd_json(rng: random.Random) -> bytes:
    """JSON text, or nearly: of no form, or of a known one with wrong types in it."""
    scalars: list[Any] = [None, True, -1, 0.5, 10**40, "", "text", "\ud800", [], {}, [[]], {"type": None}]
    keys = (
        "type",
        "response",
        "item",
        "output_index",
        "delta",
        "sequence_number",
        "object",
        "tools",
        "choices",
        "id",
        "arguments",
    )
    kinds = (
        *("response.created", "response.output_item.added", "response.output_item.done", "response.completed", "error"),
        *("response.function_call_arguments.delta", "function_call", "function_call_output", "response.create", "a:b"),
    )
    value: object = {key: rng.choice([*scalars, *kinds]) for key in rng.sample(keys, rng.randint(0, len(keys)))}
    if rng.random() < 0.3:
        value = [value, rng.choice(scalars)]
    if rng.random() < 0.3:
        value = {"type": rng.choice(kinds), "response": value, "item": value, "output_index": 0}
    text = json.dumps(value).encode()
    return text if rng.random() < 0.7 else text[: rng.randint(0, len(text))]


def odd_value(rng: random.Random) -> bytes | None:
    """Any bytes."""
    shape = rng.randrange(9)
    if shape == 0:
        return None
    if shape == 1:
        return b"[" * rng.choice((10, 5_000, 200_000))
    if shape == 2:
        return b"\n".join(b"data: " + odd_json(rng) for _ in range(3)) + b"\n\n"
    if shape == 3:
        return b'{"type": "response.output_text.delta", "delta": "' + b"x" * rng.choice((1, 900_000)) + b'"}'
    if shape == 4:
        return rng.randbytes(rng.randint(0, 300))
    return odd_json(rng)


def odd_headers(rng: random.Random) -> Headers:
    """Any header."""
    names = ("", "traceparent", "tracestate", "callgate-cause", "é\u0000", "x" * 300)
    return [(rng.choice(names), rng.choice((None, b"", rng.randbytes(20)))) for _ in range(rng.randint(0, 4))]


@pytest.mark.timeout(240)
def test_any_bytes(bootstrap: str, make_topic: MakeTopic, tmp_path: Path) -> None:
    """Rule 26 and the issue's "any bytes at all": all of it is passed, and what comes after it is decided as ever."""
    rng = random.Random(3)
    good = make(7, 400, 2)
    with Rig(bootstrap, make_topic, tmp_path, partitions=2).running() as rig:
        producer = Producer({"bootstrap.servers": bootstrap, "queue.buffering.max.kbytes": 500_000})
        keys = (None, b"", b"k", b"\xff\xfe", b"\x00" * 50)
        for count in range(RECORDS):
            value, key = odd_value(rng), rng.choice(keys)
            producer.produce(rig.topics.events, value, key, count % 2, headers=odd_headers(rng))
            producer.poll(0)
        assert producer.flush(60) == 0
        member = rig.start()
        rig.settle()
        after_good(rig, good)
        assert member.process.poll() is None, member.log()
        assert member.stop() == 0
        assert "partition_stopped" not in member.log()
        assert len(rig.read(rig.topics.dead_letter)) > RECORDS / 10


def after_good(rig: Rig, good: Workload) -> None:
    """Write good streams, and find them decided."""
    # Without its records that cannot be read: here it is the calls that count.
    records = [record for record in good.records if record[2] not in good.dead_letters]
    rig.write(Workload(records, good.calls, []))
    rig.settle()
    found = {(d["stream"], d["response_id"], d["call_id"]): d["reason"] for d in rig.decisions()}
    assert {name: found.get(name) for name in good.calls} == {name: call.reason for name, call in good.calls.items()}
