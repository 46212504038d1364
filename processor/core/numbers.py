"""Sequence numbers: they drop repeats and show gaps while they rise strictly, and say nothing from then on (rule 12)."""

from bisect import bisect_left

from processor.core.events import Event
from processor.core.signals import Tally
from processor.core.state import Context, Response

_HIGHEST = (1 << 63) - 1


def repeated(response: Response, event: Event, tally: Tally) -> bool:
    """Whether an event that can change a decision was seen before under its number; takes note of it otherwise."""
    number = event.sequence_number
    if type(number) is not int or response.unnumbered or not 0 <= number <= _HIGHEST:
        return False
    highest = response.highest_number
    if number > highest:
        if number > highest + 1 and highest >= 0:
            tally.gaps += 1
        response.highest_number = number
        response.numbers.append(number)
        response.prints.append(_print(event))
        return False
    place = bisect_left(response.numbers, number)
    if place < len(response.numbers) and response.numbers[place] == number and response.prints[place] == _print(event):
        tally.repeats += 1
        return True
    response.unnumbered = True
    del response.numbers[:], response.prints[:]
    tally.unnumbered += 1
    return False


def passed(response: Response, event: Event, ctx: Context) -> None:
    """Take note of an event that decides nothing: it raises the highest number and index, and is never compared."""
    response.last = ctx.offset
    number, index = event.sequence_number, event.output_index
    if type(number) is int and response.highest_number < number <= _HIGHEST:
        if number > response.highest_number + 1 and response.highest_number >= 0:
            ctx.tally.gaps += 1
        response.highest_number = number
    if type(index) is int and index > response.highest_index:
        response.highest_index = index


def _print(event: Event) -> int:
    """64 bits of what can change a decision; the hash is keyed anew in every process, so nobody can aim at a collision."""
    item, index, delta = event.item, event.output_index, event.delta
    plain = item is None and event.arguments is None and event.call_id is None and event.name is None
    if plain and type(delta) is str and type(index) is int:
        return hash((event.type, index, delta))
    fields = None if item is None else (item.type, item.call_id, item.name, item.namespace, item.arguments, item.status)
    told = (event.type, index, delta, event.arguments, event.name, event.call_id, fields)
    try:
        return hash(told)
    except TypeError:  # an object where a text should be
        return hash(repr(told))
