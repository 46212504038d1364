"""Rebuilds amid loose events: ends of responses that nobody began, beginnings said again, events that belong to nothing.

Design section 7. Streams as servers send them hardly ever lead here; what a record means then hangs on what else is known under
its key, and a rebuild that begins later must come to the same.
"""

import json
import os
import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from processor.core.limits import Bounds
from tests.core.test_rebuild import begin, play, points, successor, undisturbed
from tests.core.test_rest_of_a_response import created, done, ended, whole
from tests.factories import Record

LOGS = int(os.environ.get("CALLGATE_TEST_REBUILD_N", "150")) // 3

Json = dict[str, Any]
Drawn = Callable[[random.Random], Json]


def _delta(rng: random.Random) -> Json:
    return {"type": "response.function_call_arguments.delta", "output_index": rng.choice((0, 0, 1)), "delta": "{}"}


def _added(rng: random.Random) -> Json:
    item = {"type": "function_call", "call_id": rng.choice(("c1", "c2")), "name": "f", "arguments": ""}
    return {"type": "response.output_item.added", "output_index": rng.choice((0, 0, 1)), "item": item}


def _done(rng: random.Random) -> Json:
    return done(rng.choice(("c1", "c2")), rng.choice((0, 0, 1)))


def _listing(rng: random.Random) -> Json:
    event = ended(_rid(rng))
    event["response"]["output"] = rng.choice((None, [], [_done(rng)["item"]]))
    return event


def _choosing(rng: random.Random) -> Json:
    event = created(_rid(rng))
    event["response"]["tool_choice"] = rng.choice(("none", "auto"))
    return event


def _whole(rng: random.Random) -> Json:
    return whole(_rid(rng), "completed") | {"output": [_done(rng)["item"]]}


def _nameless(rng: random.Random) -> Json:
    return {"object": "response", "status": "completed", "output": [_done(rng)["item"]]}


def _rid(rng: random.Random) -> str:
    return rng.choice("RST")


def _always(event: Json) -> Drawn:
    return lambda _: dict(event)


EVENTS: tuple[Drawn, ...] = (
    lambda rng: created(_rid(rng)),
    lambda rng: created(_rid(rng)),
    _choosing,
    _added,
    _delta,
    _done,
    _done,
    _listing,
    _listing,
    lambda rng: ended(_rid(rng), "failed"),
    lambda rng: {"type": "response.in_progress", "response": {"id": _rid(rng)}},
    _always({"type": "response.completed", "response": None}),
    _always({"type": "error"}),
    _always({"type": "keepalive"}),
)
MORE: dict[str, tuple[Drawn, ...]] = {
    "events": (),
    "requests": (lambda rng: {"type": "response.create", "response": {"tool_choice": rng.choice(("none", "auto"))}},),
    "whole responses": (_whole,),
    "journals": (lambda rng: dict(_done(rng)["item"]), _nameless),
}


def draw(rng: random.Random, kinds: Sequence[Drawn]) -> tuple[list[Record], list[tuple[int, int]], Bounds]:
    """Make a log with idle moves, and the settings: times so short that everything is forgotten at some point."""
    tolerances = rng.sample(("added_again", "call_id_renamed", "response_id_rotates"), rng.choice((0, 0, 0, 1, 3)))
    bounds = Bounds(
        stream_timeout_ms=rng.choice((50, 100, 300)),
        closed_memory_ms=rng.choice((5, 20, 60, 200)),
        release=rng.choice(("response", "response", "item")),
        max_calls=rng.choice((2, 128)),
        max_streams=rng.choice((2, 3, 1_000)),
        tolerate=tuple(sorted(tolerances)),
    )
    at_ms, log, moves = 0, [], []
    for number in range(rng.randint(6, 28)):
        at_ms += rng.choice((0, 1, 1, 1, 2, 5, 10, 25, 70))
        event = rng.choice(kinds)(rng)
        if rng.random() < 0.3 and event.get("type", "function_call") != "function_call":
            event["sequence_number"] = rng.randint(0, 9)
        value = b"{" if rng.random() < 0.06 else json.dumps(event).encode()
        if rng.random() < 0.15 and "object" not in event and event.get("type") not in {"function_call", "response.create"}:
            value = json.dumps([event, *(rng.choice(EVENTS)(rng) for _ in range(rng.randint(1, 3)))]).encode()  # one record
        log.append(Record(number, at_ms, rng.choice((b"k", b"k", b"k", b"j", b"h")), value))
        if rng.random() < 0.15:
            moves.append((number + 1, at_ms + rng.choice((5, 30, 80, 200))))
            if rng.random() < 0.5:
                at_ms = moves[-1][1]
    return log, moves, bounds


@pytest.mark.parametrize("mix", MORE)
def test_no_decision_differs_wherever_it_is_replaced(mix: str) -> None:
    """Section 7: at each place of logs of loose events, another process goes on as this one would have."""
    held = 0
    for seed in range(LOGS):
        rng = random.Random(f"{mix} {seed}")
        log, moves, bounds = draw(rng, EVENTS + MORE[mix])
        for place, skip in points(log, moves):
            here = undisturbed(log, moves, bounds, place, skip)
            held += here.commit_point().offset < place
            there = successor(here, log, bounds, rng)
            assert play(there, log, moves, place, skip) == play(here, log, moves, place, skip), (
                f"{mix}, log {seed}: replaced before record {place}, after {skip} idle moves there"
            )
    assert held > 0, "no point held W back: the logs test nothing"


def test_a_beginning_that_was_said_again_stays_no_beginning() -> None:
    """Section 7: W stays before a response that is forgotten by P, where the other under its key was renewed in its stead."""
    bounds = Bounds(stream_timeout_ms=300, closed_memory_ms=5)
    told: list[tuple[int, Json]] = [
        (0, created("T")),
        (10, created("S")),
        (20, created("T")),  # known and closed: it closes S, and begins nothing
        (30, ended("S")),
        (31, done("c1")),  # late: S is the one that was heard of last
        (330, {"type": "keepalive"}),  # T is forgotten by now, S is not
        (330, done("c2", 1)),
        (330, ended("T")),
    ]
    log = [Record(at, ms, b"k", json.dumps(event).encode()) for at, (ms, event) in enumerate(told)]
    here = begin(bounds)
    here.feed(log[:6], 0)
    assert here.take() == []
    there = successor(here, log, bounds, random.Random(0))
    assert play(there, log, (), 6) == play(here, log, (), 6)


CREATED_AGAIN: list[tuple[int, bytes, Json]] = [
    (0, b"k", created("k")),
    (2, b"R", created("R")),  # holds W behind the first
    (17, b"k", created("T")),  # closes k
    (24, b"k", ended("T", "failed")),
    (25, b"k", {"type": "response.output_item.added", "output_index": 0, "item": {"type": "x:y", "name": "f"}}),  # of k, late
    (32, b"k", created("k")),  # late
    (48, b"k", {"type": "response.incomplete", "response": {}}),  # of k
    (49, b"k", {"type": "keepalive"}),
    (64, b"k", {"type": "response.function_call_arguments.delta", "output_index": 1, "delta": "yy"}),  # begins another one
]
"""Whoever does not know k any more, but T, must not begin a response at the stray item."""
RENEWED_IN_ITS_STEAD: list[tuple[int, bytes, Json]] = [
    (107, b"k", ended("R", "completed")),
    (107, b"j", done("c8", 0)),  # holds W behind the first
    (107, b"k", whole("S", "completed") | {"output": [done("c8", 0)["item"]]}),
    (107, b"k", {"type": "response.in_progress", "response": {"id": "R"}}),  # renews R, or S for who does not know R
    (107, b"k", whole("R", "completed") | {"output": [done("c8", 0)["item"]]}),
    (139, b"k", _added(random.Random(1))),  # begins a response: R and S are forgotten
]
"""Whoever does not know R has S for minutes more, and would take what begins here for a late event."""


@pytest.mark.parametrize("told", [CREATED_AGAIN, RENEWED_IN_ITS_STEAD])
def test_what_began_a_response_begins_it_again(told: list[tuple[int, bytes, Json]]) -> None:
    """Section 7: only what H names begins a response without its head, and that whatever seems to be known under its key."""
    bounds = Bounds(stream_timeout_ms=60, closed_memory_ms=1)
    log = [Record(place, at, key, json.dumps(event).encode()) for place, (at, key, event) in enumerate(told)]
    for place in range(len(log) + 1):
        here = undisturbed(log, (), bounds, place, 0)
        there = successor(here, log, bounds, random.Random(place))
        assert play(there, log, (), place) == play(here, log, (), place), f"replaced before record {place}"


def test_a_record_in_which_a_response_begins_and_ends_is_read_alike() -> None:
    """Section 7: H names the record of a headless beginning; what comes behind its end in that record is late all the same."""
    failed = ended("r", "failed")
    failed["response"]["output"] = [done("c")["item"]]
    told: list[Any] = [[failed, done("c")], ended("r")]
    log = [Record(at, at, b"k", json.dumps(event).encode()) for at, event in enumerate(told)]
    here = begin(Bounds())
    here.feed(log[:1], 0)
    here.take()
    there = successor(here, log, Bounds(), random.Random(0))
    assert play(there, log, (), 1) == play(here, log, (), 1)
