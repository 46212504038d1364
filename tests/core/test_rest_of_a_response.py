"""What is left of a response behind W: it began before, is over by P, and a rebuild must not take its rest for something new.

Section 7. Each log ends a response minutes before the process is replaced; W is held by something else, in the middle of it.
"""

import json
from typing import Any

import pytest

from processor.core.limits import Bounds
from processor.core.pipeline import Partition
from tests.core.test_rebuild import Recorder, begin, play
from tests.factories import Record

Json = dict[str, Any]
LATER_MS = 180_000


def created(rid: str) -> Json:
    """`response.created`."""
    return {"type": "response.created", "response": {"id": rid, "status": "in_progress"}}


def done(call_id: str, index: int = 0) -> Json:
    """`response.output_item.done` of a completed call."""
    item = {"type": "function_call", "call_id": call_id, "name": "f", "arguments": "{}", "status": "completed"}
    return {"type": "response.output_item.done", "output_index": index, "item": item}


def ended(rid: str, status: str = "completed") -> Json:
    """A terminal event."""
    return {"type": f"response.{status}", "response": {"id": rid, "status": status}}


def whole(rid: str, status: str) -> Json:
    """A whole response without output."""
    return {"object": "response", "id": rid, "status": status, "output": []}


REQUEST: Json = {"type": "response.create", "response": {"tool_choice": "none"}}
OTHER = "o"
KEEPALIVE: Json = {"type": "keepalive"}

CASES: dict[str, tuple[list[tuple[str, Json]], list[tuple[str, Json]]]] = {
    "a failed whole response ended it": (
        [("k", created("R")), (OTHER, created("Z")), ("k", done("c1")), ("k", whole("R", "failed"))],
        [("k", ended("T"))],
    ),
    "a completed whole response ended it": (
        [("k", created("R")), (OTHER, created("Z")), ("k", done("c1")), ("k", whole("R", "completed"))],
        [("k", ended("T"))],
    ),
    "a request waits for the next one": (
        [("k", created("R")), ("k", REQUEST), ("k", done("c1")), ("k", ended("R"))],
        [("k", created("S")), ("k", done("c2")), ("k", ended("S"))],
    ),
    "a request waits while it is sent again": (
        [("k", created("R")), ("k", ended("R")), ("k", REQUEST), ("k", created("R")), ("k", ended("R"))],
        [("k", created("S")), ("k", done("c2")), ("k", ended("S"))],
    ),
    "another one's end was repeated while ids rotate": (
        [("k", created("S")), ("k", ended("S")), ("k", created("R")), ("k", done("c1")), ("k", ended("S"))],
        [("k", ended("R"))],
    ),
    "it was announced again": (
        [
            ("k", created("R")),
            (OTHER, created("Z")),
            ("k", done("c0")),
            ("k", created("R")),
            ("k", done("c0")),
            ("k", ended("R")),
        ],
        [("k", done("c1")), ("k", ended("U"))],
    ),
    "a foreign end came in the middle": (
        [
            ("k", created("R")),
            (OTHER, created("Z")),
            ("k", done("c0")),
            ("k", ended("S", "failed")),
            ("k", done("c9", 1)),
            ("k", ended("R")),
        ],
        [("k", created("S")), ("k", done("c1")), ("k", ended("S"))],
    ),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("release", ["response", "item"])
def test_the_rest_of_a_response_begins_nothing(name: str, release: str) -> None:
    """Section 7: after a takeover in the middle of what is over, the same is decided as without one."""
    before, after = CASES[name]
    bounds = Bounds(release=release, tolerate=("response_id_rotates",) if "rotate" in name else ())
    told = [*before, (OTHER, KEEPALIVE), *after]
    log = [
        Record(at, 1_000 + at + (LATER_MS if at >= len(before) else 0), key.encode(), json.dumps(event).encode())
        for at, (key, event) in enumerate(told)
    ]
    place = len(before) + 1
    here = begin(bounds)
    here.feed(log[:place], 0)
    here.take()
    commit = here.commit_point()
    there = Partition("events", 0, bounds, Recorder())
    there.resume(commit, commit.offset)
    there.feed(log[commit.offset : place], 0)
    there.reached(place)
    assert not there.rebuilding
    assert play(there, log, (), place) == play(here, log, (), place)
    assert commit.offset < place, "nothing held W: the case tests nothing"
