"""Sequence numbers: they drop repeats and show gaps while they rise strictly, and say nothing from then on (rule 12)."""

from bisect import bisect_right
from typing import Any

from processor.core.arguments import compact
from processor.core.events import Event
from processor.core.signals import Tally
from processor.core.state import ITEM_BYTES, Context, Response

_HIGHEST = (1 << 63) - 1


def repeated(response: Response, event: Event, tally: Tally) -> bool:
    """Whether an event that can change a decision was seen before under its number; takes note of it otherwise.

    What follows the last one noted directly is noted in `responses`, without a call.
    """
    number = event.sequence_number
    if type(number) is not int or response.unnumbered or not 0 <= number <= _HIGHEST:
        return False
    highest = max(response.passed_number, response.next_number - 1)
    if number > highest:
        tally.gaps += 0 <= highest < number - 1
        if number != response.next_number:
            run = (number, len(response.prints))
            if response.runs is None:
                response.runs = [(0, 0), run]  # exactly so long: one that grows makes room for eight
            else:
                response.runs.append(run)
        response.prints.append(print_of(event))
        response.buffered_bytes += ITEM_BYTES
        response.next_number = number + 1
        return False
    if _noted(response, number) == print_of(event):
        tally.repeats += 1
        return True
    response.unnumbered = True
    response.next_number = -1
    response.runs = None
    del response.prints[:]
    tally.unnumbered += 1
    return False


def passed(response: Response, event: Event, ctx: Context) -> None:
    """Take note of an event that decides nothing: it raises the highest number and index, and is never compared."""
    response.last = ctx.offset
    number, index = event.sequence_number, event.output_index
    if type(number) is int and response.passed_number < number <= _HIGHEST:
        if number not in (response.passed_number + 1, response.next_number):
            ctx.tally.gaps += 0 <= max(response.passed_number, response.next_number - 1) < number - 1
        response.passed_number = number
    if type(index) is int and index > response.highest_index:
        response.highest_index = index


def numbered(response: Response) -> bool:
    """Whether its numbers rose so far."""
    return not response.unnumbered and max(response.passed_number, response.next_number - 1) >= 0


def _noted(response: Response, number: int) -> int | None:
    """The print that was noted under a number."""
    runs = response.runs or [(0, 0)]
    run = bisect_right(runs, (number, len(response.prints))) - 1
    if run < 0:
        return None
    first, place = runs[run]
    end = runs[run + 1][1] if run + 1 < len(runs) else len(response.prints)
    at = place + number - first
    return response.prints[at] if at < end else None


def print_of(event: Event) -> int:
    """64 bits of what can change a decision; the hash is keyed anew in every process, so nobody can aim at a collision."""
    item, index, delta = event.item, event.output_index, event.delta
    plain = item is None and event.arguments is None and event.call_id is None and event.name is None
    if plain and type(delta) is str and type(index) is int and index >= 0:  # -1 and -2 have one hash
        return hash((index, delta))
    told = [event.type, index, delta, event.arguments, event.name, event.call_id, item is None]
    if item is not None:
        told += (item.type, item.call_id, item.name, item.namespace, item.arguments, item.status)
    try:
        return hash(tuple(told))
    except TypeError:  # an object where a text should be: what was written counts, not what it comes to
        return hash(repr(list(map(_written, told))))


def _written(value: Any) -> Any:
    return compact(value) if isinstance(value, dict | list) else value
