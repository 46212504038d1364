"""Faults that streams have in practice: each takes the events of one response and gives them back, broken.

Owns what can go wrong on the way, one function a fault. It knows nothing of settings, keys or time.
"""

import json
import random
from collections.abc import Callable
from typing import Protocol, TypeAlias

from tests import factories as make
from tests.factories import Json

AMOUNT = {"type": "number", "maximum": 1000}
PAY = make.tool("pay_invoice", {"invoice": {"type": "string"}, "amount": AMOUNT}, ["invoice", "amount"])
ALL = (make.WEATHER, make.tool("list_alerts", {}), PAY)
"""Every tool that is declared anywhere."""


class Drawing(Protocol):
    """What a fault may draw from."""

    rng: random.Random
    calls: int
    responses: int

    def chance(self, share: float) -> bool:
        """True with this probability."""
        ...

    def call(self) -> Json:
        """Make a new function call."""
        ...


Fault: TypeAlias = Callable[[Drawing, list[Json]], list[Json] | None]
"""None: the events have nothing that could break this way."""


def _somewhere(build: Drawing, events: list[Json], *kinds: str) -> int | None:
    places = [i for i, e in enumerate(events) if not kinds or any(k in e["type"] for k in kinds)]
    return build.rng.choice(places) if places else None


def dropped(build: Drawing, events: list[Json]) -> list[Json]:
    """One event is lost."""
    del events[build.rng.randrange(len(events))]
    return events


def doubled(build: Drawing, events: list[Json]) -> list[Json]:
    """One event comes twice, at once or later."""
    at = build.rng.randrange(len(events))
    events.insert(build.rng.choice((at, build.rng.randint(at, len(events)))), dict(events[at]))
    return events


def swapped(build: Drawing, events: list[Json]) -> list[Json]:
    """Two events change places."""
    at = build.rng.randrange(len(events))
    events.insert(build.rng.randrange(len(events)), events.pop(at))
    return events


def cut_short(build: Drawing, events: list[Json]) -> list[Json]:
    """The stream breaks off."""
    return events[: build.rng.randint(1, len(events))]


def headless(build: Drawing, events: list[Json]) -> list[Json]:
    """The beginning fell out of retention."""
    return events[build.rng.randint(1, min(4, len(events))) :]


def reconnected(build: Drawing, events: list[Json]) -> list[Json]:
    """The client reconnected in the middle and got the beginning once more."""
    at = build.rng.randint(1, len(events))
    since = build.rng.choice((0, 0, build.rng.randrange(at)))
    return events[:at] + [dict(e) for e in events[since:]]


def altered(build: Drawing, events: list[Json]) -> list[Json] | None:
    """One field of one piece says something else."""
    at = _somewhere(build, events, "output_item", "function_call_arguments")
    if at is None:
        return None
    event = json.loads(json.dumps(events[at]))
    events[at] = event
    rng = build.rng
    if "item" not in event or event["item"] is None:
        field = "delta" if "delta" in event else "arguments"
        change = rng.choice((
            {field: rng.choice(("", "{}", '{"city":"Bath"}', "x", None, 7))},
            {"output_index": rng.choice((0, 1, 2, 5))},
            {"name": rng.choice(("get_weather", "list_alerts"))},
            {"call_id": rng.choice(("c1", "c2"))},
        ))  # fmt: skip
        event.update(change if field == "arguments" or "name" not in change else {"output_index": 1})
        return events
    name, value = rng.choice((
        ("name", rng.choice(("get_weather", "list_alerts", "", None))),
        ("call_id", rng.choice(("c1", "c2", "c9", "", None))),
        ("arguments", rng.choice(("", "{}", '{"city":"Bath"}', None, {"city": "Leeds"}))),
        ("status", rng.choice(("completed", "incomplete", "in_progress", None))),
        ("namespace", rng.choice(("functions", "other", None))),
        ("type", rng.choice(("custom_tool_call", "acme:call"))),
        ("id", "rotated"),
    ))  # fmt: skip
    event["item"][name] = value
    if value is None and build.chance(0.5):
        event["item"].pop(name)
    return events


def unindexed(build: Drawing, events: list[Json]) -> list[Json] | None:
    """A `done` without an index."""
    at = _somewhere(build, events, "output_item.done")
    if at is None:
        return None
    events[at] = {k: v for k, v in events[at].items() if k != "output_index"}
    return events


def nulled(build: Drawing, events: list[Json]) -> list[Json] | None:
    """An item that is null."""
    at = _somewhere(build, events, "output_item")
    if at is not None:
        events.insert(at, {**events[at], "item": None})
        events[at].pop("sequence_number", None)
    return events


def terminal_altered(build: Drawing, events: list[Json]) -> list[Json] | None:
    """The terminal list says something else than the stream."""
    at = _somewhere(build, events, "completed", "incomplete", "failed", "cancelled")
    if at is None or not (events[at]["response"].get("output") or []):
        return None
    event = json.loads(json.dumps(events[at]))
    events[at] = event
    rng = build.rng
    listed = event["response"]["output"]
    entry = rng.choice(listed)
    change = rng.choice(("call_id", "name", "arguments", "status", "drop", "double", "turn", "bare", "surplus", "new", "empty"))
    if change == "drop":
        listed.remove(entry)
    elif change == "double":
        listed.append(dict(entry))
    elif change == "turn":
        listed.reverse()
    elif change == "bare":
        entry.pop("call_id", None)
    elif change == "surplus":
        listed.append({**entry, "arguments": '{"city":"Bath"}'})
    elif change == "new":
        listed.insert(rng.randint(0, len(listed)), build.call())
    elif change == "empty":
        entry["arguments"] = ""
    else:
        entry[change] = {
            "call_id": f"renamed{build.calls}", "name": "list_alerts", "arguments": '{"city":"Bath"}',
            "status": rng.choice(("incomplete", None, "in_progress")),
        }[change]  # fmt: skip
    return events


def ended_otherwise(build: Drawing, events: list[Json]) -> list[Json] | None:
    """The terminal event's status, tools or id differ, or an `error` comes first."""
    at = _somewhere(build, events, "completed", "incomplete", "failed", "cancelled")
    if at is None:
        return None
    event = json.loads(json.dumps(events[at]))
    choice = build.rng.choice(("status", "tools", "id", "error", "null"))
    if choice == "status":
        event["response"]["status"] = build.rng.choice(("failed", "incomplete", "cancelled"))
    elif choice == "tools":
        event["response"]["tools"] = [PAY]
    elif choice == "id":
        event["response"]["id"] = "stranger"
    elif choice == "null":
        event["response"].pop("id", None)
    else:
        events.insert(build.rng.randint(0, at), {"type": "error", "code": "server_error", "message": "x"})
        return events
    events[at] = event
    return events


def disturbed(build: Drawing, events: list[Json]) -> list[Json]:
    """Something else comes in between: a keepalive, an extension's event, another response's lifecycle."""
    build.responses += 1
    other = f"r{build.rng.choice((1, 2, build.responses))}"
    extra = build.rng.choice((
        {"type": "keepalive"},
        {"type": "keepalive", "sequence_number": build.rng.choice((0, 3, 40))},
        {"type": "response.in_progress", "response": make.response(other, tools=[PAY])},
        make.created(other, tools=list(ALL)),
        make.terminal("completed", other, [build.call()]),
        make.delta(build.rng.choice((0, 1, 3)), "{"),
        make.done(build.rng.choice((0, 1, 3)), build.call()),
    ))  # fmt: skip
    events.insert(build.rng.randint(1, len(events)), extra)
    return events


def huge(build: Drawing, events: list[Json]) -> list[Json] | None:
    """A delta larger than anything else."""
    at = _somewhere(build, events, "arguments.delta")
    if at is None:
        return None
    events[at] = {**events[at], "delta": "x" * 30_000}
    return events


def flooded(build: Drawing, events: list[Json]) -> list[Json] | None:
    """Many large deltas."""
    at = _somewhere(build, events, "arguments.delta")
    if at is None:
        return None
    bare = {k: v for k, v in events[at].items() if k != "sequence_number"}
    events[at + 1 : at + 1] = [{**bare, "delta": letter * 8_000} for letter in "abcd"]
    return events


def rotated(events: list[Json]) -> list[Json]:
    """Every event carries another response id."""
    return [
        {**e, "response": {**e["response"], "id": f"{e['response']['id']}-{n}"}} if "id" in e.get("response", ()) else e
        for n, e in enumerate(events)
    ]


def halved(_: Drawing, events: list[Json]) -> list[Json] | None:
    """A surrogate pair is split between two deltas."""
    places = [i for i, e in enumerate(events) if "\U0001f600" in str(e.get("delta"))]
    if not places:
        return None
    at = places[0]
    before, after = events[at]["delta"].split("\U0001f600", 1)
    first = {**events[at], "delta": before + "\ud83d"}
    second = {**events[at], "delta": "\ude00" + after}
    if "sequence_number" in first:
        first.pop("sequence_number")
    events[at : at + 1] = [first, second]
    return events


FAULTS: tuple[Fault, ...] = (
    dropped, doubled, swapped, cut_short, headless, reconnected, altered, altered, altered, unindexed, nulled,
    terminal_altered, terminal_altered, ended_otherwise, disturbed, huge, halved, flooded,
)  # fmt: skip
