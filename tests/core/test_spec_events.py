"""Names of the wire, written down from the specification (version 2026-04-24) and not from the code."""

from collections import Counter

import pytest

from processor.core.event_types import EVENT_TYPES
from processor.core.limits import Bounds
from processor.core.pipeline import Partition
from processor.core.signals import Tally
from tests.factories import Json, Record, created, function_call, numbered, pieces, record, records, terminal
from tests.fuzz.drive import NOW_MS, drive, judge_for

SPECIFIED = {
    f"response.{name}"
    for name in (
        *("created", "queued", "in_progress", "completed", "failed", "incomplete"),
        *("output_item.added", "output_item.done", "content_part.added", "content_part.done"),
        *("output_text.delta", "output_text.done", "output_text.annotation.added", "refusal.delta", "refusal.done"),
        *("reasoning.delta", "reasoning.done", "reasoning_summary_part.added", "reasoning_summary_part.done"),
        *("reasoning_summary_text.delta", "reasoning_summary_text.done"),
        *("function_call_arguments.delta", "function_call_arguments.done"),
    )
} | {"error"}
"""Every streaming event of Open Responses 2026-04-24."""
CALL = function_call()
ENDINGS = {"error", *(f"response.{name}" for name in ("completed", "failed", "incomplete"))}
SPEAKING = {*ENDINGS, "response.created", *(name for name in SPECIFIED if "function_call" in name or "output_item" in name)}


def tally_of(events: list[Json]) -> Tally:
    """What is counted when these events are read."""
    partition = Partition("responses.events", 0, Bounds(), judge_for(Bounds()))
    partition.resume(None, 0)
    partition.feed(records(events), NOW_MS)
    return partition.tally


def test_every_specified_event_is_known_by_name() -> None:
    """Section 3: every streaming event of the specification is counted under its own name."""
    assert len(SPECIFIED) == 24
    assert SPECIFIED <= EVENT_TYPES
    counted = tally_of([{"type": name} for name in sorted(SPECIFIED)]).events
    assert counted == Counter(SPECIFIED)


def test_labels_are_bounded() -> None:
    """Unknown types are counted under one label, extensions under another, however many there are."""
    events: list[Json] = [{"type": f"response.new_{n}"} for n in range(50)]
    events += [{"type": f"acme:new_{n}", "sequence_number": n} for n in range(50)]
    assert tally_of(events).events == {"unknown": 50, "extension": 50}


@pytest.mark.parametrize("name", sorted((SPECIFIED - SPEAKING) | {"keepalive", "response.new.delta", "acme:new"}))
def test_what_decides_nothing_changes_nothing(name: str) -> None:
    """Rule 12: events of other types, known, unknown or a provider's, decide nothing wherever they come."""
    events = numbered([created(), *pieces(0, CALL), terminal(output=[CALL])])
    for place in range(1, len(events)):
        beside: Json = {"type": name, "sequence_number": 100 + place, "item_id": "fc_1", "content_index": 0, "delta": "x"}
        outcome = drive([*records(events[:place]), *late(events[place:], place, beside)], Bounds())
        assert [(body["call_id"], body["arguments"]) for _, body in outcome.approved] == [("call_1", CALL["arguments"])]
        assert outcome.rejected == []


def late(events: list[Json], place: int, beside: Json) -> list[Record]:
    """One event more, then the rest with higher numbers, as they would have been written."""
    rest = [{**event, "sequence_number": 200 + n} for n, event in enumerate(events)]
    return [record(place, beside), *(record(place + 1 + n, event) for n, event in enumerate(rest))]
