"""Sequence numbers: they drop repeats and show gaps while they rise strictly, and say nothing from then on (rule 12)."""

from bisect import bisect_left
from typing import Any

from processor.core.events import Event, Item
from processor.core.signals import Tally
from processor.core.state import Response

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


def passed(response: Response, number: Any, tally: Tally) -> None:
    """Take note of an event of another type: it raises the highest number and is never compared."""
    if type(number) is int and response.highest_number < number <= _HIGHEST and not response.unnumbered:
        if number > response.highest_number + 1 and response.highest_number >= 0:
            tally.gaps += 1
        response.highest_number = number


def _print(event: Event) -> int:
    """64 bits of what can change a decision; the hash is keyed anew in every process, so nobody can aim at a collision."""
    item = event.item
    if item is None and type(event.delta) is str and type(event.output_index) is int and event.arguments is None:
        return hash((event.type, event.output_index, event.delta))
    return hash(repr((event.type, event.output_index, event.delta, event.arguments, event.name, event.call_id, _fields(item))))


def _fields(item: Item | None) -> tuple[Any, ...] | None:
    if item is None:
        return None
    return (item.type, item.call_id, item.name, item.namespace, item.arguments, item.status)
