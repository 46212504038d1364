"""How a log is cut decides nothing: fragments, records, batches, repeats and restarts may fall anywhere.

Offsets and times of the decisions are those of the cut, so they are left out of the comparison.
"""

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from processor.core import offsets
from processor.core.pipeline import Partition
from tests import factories as make
from tests.core.deciding import ALERTS, PAY, partition, published
from tests.factories import Json, Record, added, announced, arguments_done, created, delta, done, numbered, terminal

ECHOED: list[Json] = [make.WEATHER, ALERTS, PAY]
GOOD = (
    ("get_weather", '{"city":"Leeds"}'), ("get_weather", '{"city":"\U0001f600\U0001f600"}'), ("list_alerts", "{}"),
    ("pay_invoice", '{"invoice":"inv_7"}'),
)  # fmt: skip
ODD = (
    ("get_weather", '{"city":""}'), ("get_weather", '{"city":"Hull"'), ("get_weather", ""), ("list_alerts", "[]"),
    ("pay_invoice", '{"invoice":1e999}'), ("drop_table", "{}"),
)  # fmt: skip
TIMES = 1_790_000_000_000

calls = st.builds(
    lambda number, asked, status: make.function_call(f"c{number}", *asked) | {"status": status},
    st.integers(0, 9),
    st.sampled_from(GOOD * 4 + ODD),
    st.sampled_from(["completed"] * 9 + ["incomplete"]),
)
others = st.sampled_from([make.message(), {"type": "custom_tool_call", "call_id": "ct"}])
items = st.integers(0, 9).flatmap(lambda n: others if n == 0 else calls)


@dataclass(frozen=True)
class Plan:
    """One response: its items, what their deltas say, and how it ends."""

    items: tuple[Json, ...]
    streamed: tuple[str | None, ...]
    """Text of each item's deltas; None: no deltas."""
    listed: tuple[Json, ...] | None
    kind: str


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Responses that are mostly consistent, with contradictions of every kind."""
    chosen = tuple(draw(st.lists(items, min_size=1, max_size=4)))
    said = tuple(
        draw(st.sampled_from([*[item["arguments"]] * 6, None, '{"city":"Bath"}'])) if item["type"] == "function_call" else None
        for item in chosen
    )
    listed = draw(st.sampled_from([chosen, chosen, chosen, None, (), chosen[1:]]))
    return Plan(chosen, said, listed, draw(st.sampled_from(["completed"] * 6 + ["incomplete", "failed", ""])))


def events_of(plan: Plan, response_id: str, rng: random.Random) -> list[Json]:
    """The stream of a plan, its deltas cut at random."""
    events = [created(response_id, tools=ECHOED)]
    for index, (item, said) in enumerate(zip(plan.items, plan.streamed, strict=True)):
        if item["type"] != "function_call":
            events += [added(index, item), done(index, item)]
            continue
        events.append(announced(index, item))
        if said is not None:
            events += [delta(index, part) for part in chunks(said, rng)]
            events.append(arguments_done(index, said))
        events.append(done(index, item))
    if plan.kind:
        events.append(terminal(plan.kind, response_id, plan.listed))
    return numbered(events)


def chunks(whole: str, rng: random.Random) -> list[str]:
    """A text cut into UTF-16 units at random places: surrogate pairs are split, and parts may be empty."""
    units = [whole.encode("utf-16-le")[at : at + 2] for at in range(0, len(whole.encode("utf-16-le")), 2)]
    places = sorted(rng.randint(0, len(units)) for _ in range(rng.randint(0, 6)))
    parts = [units[a:b] for a, b in zip([0, *places], [*places, len(units)], strict=True)]
    return [b"".join(part).decode("utf-16-le", "surrogatepass") for part in parts]


def log_of(values: Sequence[tuple[str, Any]]) -> list[Record]:
    """Records of these keys and values, one after the other."""
    return [make.record(place, value, key=key, timestamp=TIMES + place) for place, (key, value) in enumerate(values)]


def what(at_work: Partition, *, silence: bool = True) -> list[Json]:
    """Everything that was decided so far, without offsets and times."""
    if silence:
        at_work.end_of_archive(0)
    left_out = ("source", "event_time", "decided_at")
    return [{k: v for k, v in line.items() if k not in left_out} for line in published(at_work.take())]


def decided(log: Sequence[Record], release: str) -> list[Json]:
    """What a partition decides on a log, and then into silence."""
    at_work = partition(release=release, tools="both")
    at_work.feed(log, now_ms=0)
    return what(at_work)


def by_key(lines: Sequence[Json], key: str) -> list[Json]:
    """The decisions of one stream."""
    return [line for line in lines if line["stream"] == key]


RELEASES = st.sampled_from(["response", "item"])
SEEDS = st.integers(0, 1 << 32)


@given(plans(), SEEDS, SEEDS, RELEASES)
def test_deltas_may_be_cut_anywhere(plan: Plan, one: int, other: int, release: str) -> None:
    """Independence of cutting: where the deltas are cut decides nothing, surrogate pairs included."""
    first = events_of(plan, "r", random.Random(one))
    second = events_of(plan, "r", random.Random(other))
    assert decided(log_of([("k", e) for e in first]), release) == decided(log_of([("k", e) for e in second]), release)


@given(st.lists(plans(), min_size=2, max_size=3), SEEDS, RELEASES)
def test_streams_may_be_interleaved(all_plans: list[Plan], seed: int, release: str) -> None:
    """Independence of cutting: other streams on the partition change nothing of a stream's decisions or their order."""
    rng = random.Random(seed)
    streams = {f"k{n}": events_of(plan, f"r{n}", rng) for n, plan in enumerate(all_plans)}
    left = {key: list(events) for key, events in streams.items()}
    mixed: list[tuple[str, Any]] = []
    while any(left.values()):
        key = rng.choice([key for key, events in left.items() if events])
        mixed.append((key, left[key].pop(0)))
    together = decided(log_of(mixed), release)
    for key, events in streams.items():
        assert by_key(together, key) == decided(log_of([(key, event) for event in events]), release)


@given(plans(), SEEDS, RELEASES)
def test_events_may_be_batched(plan: Plan, seed: int, release: str) -> None:
    """Independence of cutting: events in arrays or Server-Sent-Events bodies are decided as one by one."""
    rng = random.Random(seed)
    events = events_of(plan, "r", rng)
    batched: list[tuple[str, Any]] = []
    place = 0
    while place < len(events):
        batch = events[place : place + rng.randint(1, 5)]
        place += len(batch)
        form = rng.randrange(3)
        if form == 0:
            batched.append(("k", json.dumps(batch)))
        elif form == 1:
            batched.append(("k", sse_body(batch, rng)))
        else:
            batched += [("k", event) for event in batch]
    assert decided(log_of(batched), release) == decided(log_of([("k", e) for e in events]), release)


@given(plans(), SEEDS, RELEASES)
def test_records_may_come_again(plan: Plan, seed: int, release: str) -> None:
    """Independence of cutting: in a numbered stream records that come again, at once or later, decide nothing new."""
    rng = random.Random(seed)
    events = events_of(plan, "r", rng)
    repeated: list[Json] = []
    for place, event in enumerate(events):
        repeated.append(event)
        while rng.random() < 0.3:
            repeated.append(events[rng.randint(0, place)])
    assert decided(log_of([("k", e) for e in repeated]), release) == decided(log_of([("k", e) for e in events]), release)


@given(st.lists(plans(), min_size=1, max_size=3), SEEDS, RELEASES)
def test_the_log_may_be_cut_at_any_record(all_plans: list[Plan], seed: int, release: str) -> None:
    """Independence of cutting and section 7: a restart at any record, from the commit alone, decides the rest the same."""
    rng = random.Random(seed)
    log = log_of([(f"k{n % 2}", event) for n, plan in enumerate(all_plans) for event in events_of(plan, f"r{n}", rng)])
    place = rng.randint(0, len(log))
    before = partition(release=release, tools="both")
    before.feed(log[:place], now_ms=0)
    lines = what(before, silence=False)
    commit = before.commit_point()
    found = offsets.decode(commit.offset, offsets.encode(commit))
    assert isinstance(found, offsets.Commit)
    after = partition(release=release, tools="both")
    after.resume(found, commit.offset)
    after.feed(log[commit.offset :], now_ms=0)
    after.reached(len(log))
    assert lines + what(after) == decided(log, release)


def sse_body(events: Sequence[Json], rng: random.Random) -> str:
    """A Server-Sent-Events body in one of its spellings. Halves of surrogate pairs can only travel as escapes."""
    named, space, end = rng.random() < 0.5, rng.choice(("", " ")), rng.choice(("\n", "\r\n"))
    frames = [
        (f"event: {event['type']}{end}" if named else "") + f"data:{space}{json.dumps(event)}{end}{end}" for event in events
    ]
    return "".join(frames) + rng.choice(("", f"data: [DONE]{end}{end}"))
