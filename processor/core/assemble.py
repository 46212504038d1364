"""Fragments to calls: carries out the moves of the table for the four events that tell of an item.

Owns which piece belongs to which call and what its pieces said (rules 1 to 9). It decides nothing: `settle` does, when the
response can no longer take a call back, or at once where a bound is passed.
"""

from collections.abc import Sequence
from typing import Any

from processor.core import plain, settle
from processor.core.agree import claim, claim_final, content, final_content
from processor.core.call import Call
from processor.core.events import Event, Item
from processor.core.machine import OPEN_ON_THE_WIRE, TABLE, UNFINISHED, Action, Input, State
from processor.core.state import ITEM_BYTES, Context, Response
from processor.core.text import filled, halves, utf8_bytes
from processor.core.vocabulary import Kind, item_kind, item_label

_CALL = Kind.CALL
"""Looked up once: Python 3.11 does not specialise the look-up of an enum member."""
LONG_TEXT = 1024
"""Characters up to which deltas are joined one by one: to copy so many costs less than a place in a list."""
MANY_ITEMS = 128
"""Items of a response that may be looked at for nothing."""
DECIDABLE = frozenset({_CALL, Kind.NAMESPACED, Kind.ACTION})


def announce(response: Response, event: Event, ctx: Context) -> None:
    """`response.output_item.added`."""
    if plain.announced(response, event, ctx):
        return
    item = event.item
    if item is None:
        ctx.tally.null_items += 1
        return
    if type(item.type) is str:
        item.type = ctx.names.of(item.type)
    index = _index(event)
    before = _latest(response, index)
    move = TABLE[before.state if before else State.ABSENT][Input.ANNOUNCED]
    if move.action is Action.ADOPT and before:
        before.state = move.state
        over = _identify(response, before, item, ctx)
        response.buffered_bytes += claim(before, item, ctx.bounds)
        _check_calls(response, before, ctx, over=over)
        return
    if move.action is Action.CLASH and before and _starts_again(before, item, ctx):
        return
    call = _begin(response, index, move.state, ctx)
    if move.action is Action.CLASH:
        if before and index is not None:
            before.conflict = before.conflict or "a second item was announced at its output index"
            if response.clashed is None:
                response.clashed = {}
            response.clashed.setdefault(index, [before, call])
        call.conflict = "it was announced at the output index of an open item"
    over = _identify(response, call, item, ctx)
    response.buffered_bytes += claim(call, item, ctx.bounds)
    _check_calls(response, call, ctx, over=over)


def append(response: Response, event: Event, ctx: Context) -> None:
    """`response.function_call_arguments.delta`."""
    index = event.output_index
    call = response.at(index) if type(index) is int else None
    if call is None or call.state not in UNFINISHED or call.kind is not _CALL:
        call = _target(response, event, Input.APPENDED, ctx)
        if call is None:
            return
    delta = event.delta
    if type(delta) is not str:
        call.conflict = call.conflict or "a delta is no string"
        return
    size = len(delta)
    if not delta.isascii():
        size = utf8_bytes(delta) - 2 * halves(call.loose[-1] if call.loose else call.joined, delta)
    joined = call.joined
    if len(joined) < LONG_TEXT:
        call.joined = joined + delta
    elif delta:
        _append_loose(call, delta)
    response.buffered_bytes += size
    call.delta_bytes += size
    if call.delta_bytes > ctx.bounds.max_argument_bytes:
        settle.pass_bound(response, call, "its arguments are over max_argument_bytes", ctx)


def _append_loose(call: Call, delta: str) -> None:
    """Add to a long text: what was joined is joined again only after so many deltas that it costs little."""
    if call.loose is None:
        call.loose = []
    call.loose.append(delta)
    if len(call.loose) > len(call.joined) >> 8:
        call.joined, call.loose = "".join([call.joined, *call.loose]), None


def give_arguments(response: Response, event: Event, ctx: Context) -> None:
    """`response.function_call_arguments.done`."""
    if plain.given(response, event):
        return
    call = _target(response, event, Input.ARGUMENTS_GIVEN, ctx)
    if call is None:
        return
    call.state = TABLE[call.state][Input.ARGUMENTS_GIVEN].state
    said = Item(name=event.name, call_id=event.call_id, arguments=event.arguments)
    response.buffered_bytes += claim(call, said, ctx.bounds)


def finish(response: Response, event: Event, ctx: Context) -> None:
    """`response.output_item.done`."""
    if plain.finished(response, event, ctx):
        return
    item = event.item
    if item is None:
        ctx.tally.null_items += 1
        return
    index = _index(event)
    call = _belongs(response, index, item)
    if call is not None and TABLE[call.state][Input.FINISHED].action is Action.COUNT_LATE:
        settle.finish_limited(response, call, item)
        ctx.tally.late += 1
        return
    call = take_final(response, call, index, item, ctx)
    if call is not None and ctx.bounds.release == "item":
        settle.conclude(response, call, Input.RELEASED, ctx)


def take_final(
    response: Response, call: Call | None, index: int | None, item: Item, ctx: Context, *, listed: bool = False
) -> Call | None:
    """Give a call its final piece; begin one where no event announced it.

    `listed`: an entry of the terminal event, whose place is no output index. Returns None where the piece repeats a call
    of this response that is finished already (rules 8 and 9).
    """
    if filled(item.call_id):
        uses = response.finished.get(item.call_id, [])
    else:
        uses = [] if listed else [c for c in _each(response) if c.index == index and c.final and not c.call_id]
    repeated = _repeated(call, uses, item, ctx)
    if repeated is not None:
        if call is not None:
            call.state, call.absorbed = State.DECIDED, True
            call.let_go()
        place = index if call is None else call.index
        if place is not None and not listed and response.at(place) is call:  # the index is closed by what it repeats
            response.put(place, repeated)
            response.highest_index = max(response.highest_index, place)
        return None
    over = False
    if call is None:
        call = _begin(response, None if listed else index, State.OPEN, ctx)
        call.index = index
        over = _identify(response, call, item, ctx)
    elif _is_news(call, item):
        over = _identify(response, call, item, ctx)
    call.state = TABLE[call.state][Input.FINISHED].state
    if call.kind not in DECIDABLE:
        return call
    response.buffered_bytes += claim_final(call, item, ctx.bounds)
    settle.keep_trace(call, ctx)
    _check_calls(response, call, ctx, over=over)
    if over:
        return call
    # The id that it is published under and the one that it ends with: where they differ it is in conflict, and neither may
    # come back as another call's (rules 6 and 9).
    claimed = {call_id for call_id in (call.call_id, item.call_id) if call_id and call.goes_by(call_id)}
    call.reused = any(call_id in response.finished for call_id in claimed)
    for call_id in claimed:
        response.use(call_id, call)
    return call


def _is_news(call: Call, item: Item) -> bool:
    """Whether the final piece tells for the first time that this is an item to decide, or a call."""
    kind = item_kind(item)
    return call.state is State.EARLY or (kind is not call.kind and (call.kind not in DECIDABLE or kind is Kind.CALL))


def _repeated(call: Call | None, uses: Sequence[Call], item: Item, ctx: Context) -> Call | None:
    """The use of its call_id of which a final piece tells nothing new: it has no content of its own, or the same."""
    if not uses:
        return None
    if call is not None and call.call_id and call.call_id != item.call_id:
        return None  # announced under another call_id: that one needs its decision (rule 1)
    void = filled(item.call_id) and (uses[0].conflict != "" or uses[0].final is None)  # rule 9: the first one
    if void or len(uses) > max(ctx.bounds.max_calls, MANY_ITEMS):
        ctx.tally.late += 1  # uses are only ever that many of items that are no function calls
        return uses[0]
    says = content(item, ctx.bounds)
    same = next((use for use in uses if use.final and final_content(use, use.final, ctx.bounds) == says), None)
    if same is not None:
        ctx.tally.repeats += 1
    return same


def _index(event: Event) -> int | None:
    index = event.output_index
    return index if type(index) is int else None


def _begin(response: Response, index: int | None, state: State, ctx: Context) -> Call:
    call = Call(state=state, index=index, kind=_CALL, first=ctx.offset)
    response.append(call)
    response.buffered_bytes += ITEM_BYTES
    if index is not None:
        if response.clashed is not None and index in response.clashed:
            response.clashed[index].append(call)
        response.highest_index = max(response.highest_index, index)
    return call


def _identify(response: Response, call: Call, item: Item, ctx: Context) -> bool:
    """Learn what kind of item it is; True where it is one call more than its response may have."""
    call.kind = item_kind(item)
    if call.kind not in DECIDABLE:
        ctx.tally.items[item_label(item)] += 1
        return False
    if call.kind is not _CALL:
        return False
    call.position = response.functions
    response.functions += 1
    return response.functions > ctx.bounds.max_calls


def _check_calls(response: Response, call: Call, ctx: Context, *, over: bool) -> None:
    if over:
        settle.pass_bound(response, call, "its response has more calls than max_calls", ctx)


def _open_at(response: Response, index: int) -> list[Call]:
    """Open items of an index, the latest last: more than one only where two were announced."""
    if response.clashed is None or index not in response.clashed:
        latest = response.at(index)
        return [latest] if latest is not None and latest.state in OPEN_ON_THE_WIRE else []
    # What is over leaves the list, or items that come and go beside an open one would all be looked at again each time.
    found = response.clashed[index] = [c for c in response.clashed[index] if c.state in OPEN_ON_THE_WIRE]
    response.buffered_bytes += max(0, len(found) - MANY_ITEMS)  # as below
    return found


def _latest(response: Response, index: int | None) -> Call | None:
    """The latest open item of an index, else the latest of all that were there."""
    latest = response.at(index)
    if index is None or latest is None or latest.state in OPEN_ON_THE_WIRE:
        return latest
    return next(reversed(_open_at(response, index)), latest)


def _each(response: Response) -> list[Call]:
    """All items, for an event that names no place: beyond a number it costs bytes, so that thousands of both are bounded."""
    response.buffered_bytes += max(0, len(response.items) - MANY_ITEMS) // 8
    return response.items


def _target(response: Response, event: Event, fact: Input, ctx: Context) -> Call | None:
    """The call that a fragment belongs to (rule 2): the latest open item of its index; None: it was late."""
    index: Any = event.output_index
    if type(index) is not int:
        candidates = [c for c in _each(response) if c.state in UNFINISHED and c.kind is Kind.CALL]
        call = candidates[0] if len(candidates) == 1 else None
    else:
        call = _latest(response, index)
        if call is None:
            call = _begin(response, index, State.ABSENT, ctx)
            call.state = TABLE[State.ABSENT][fact].state
    if call is None or call.state not in OPEN_ON_THE_WIRE or call.kind not in DECIDABLE or call.state is State.LIMITED:
        if call is not None and call.state is State.LIMITED and fact is Input.ARGUMENTS_GIVEN and not call.call_id:
            settle.name_limited(response, call, event.call_id)
        ctx.tally.late += 1
        return None
    return call


def _belongs(response: Response, index: int | None, item: Item) -> Call | None:
    """The open item that a `done` belongs to (rule 1)."""
    if index is None:
        found = [c for c in _each(response) if c.state in OPEN_ON_THE_WIRE and c.goes_by(item.call_id)]
        return found[-1] if found else None
    latest = response.at(index)
    if latest is None:
        return None
    if latest.state in OPEN_ON_THE_WIRE and (not item.call_id or latest.goes_by(item.call_id)):
        return latest
    others = _open_at(response, index)
    return next((c for c in reversed(others) if c.goes_by(item.call_id)), others[-1] if others else None)


def _starts_again(call: Call, item: Item, ctx: Context) -> bool:
    """`added_again`: the same call announced again on its open index begins anew (rule 34)."""
    if "added_again" not in ctx.bounds.tolerate or call.state not in UNFINISHED or not call.goes_by(item.call_id):
        return False
    call.state = State.OPEN
    call.let_go()
    call.arguments, call.delta_bytes = None, 0
    if "added_again" not in call.rare.tolerated:
        call.note(tolerated=(*call.rare.tolerated, "added_again"))
    claim(call, item, ctx.bounds)
    return True
