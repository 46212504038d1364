"""The end of a response: its terminal event's list against what was streamed, then one end for every call.

Owns rule 4 (which entry is which call), rule 17 (what was cut off) and rule 19 (order of the decisions).
"""

import math
from collections import deque
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from processor.core.agree import add_call_id, as_key, as_text, content, differences, final_content
from processor.core.assemble import DECIDABLE, take_final
from processor.core.call import Call
from processor.core.events import Item
from processor.core.machine import TABLE, UNFINISHED, Action, Input, State
from processor.core.settle import conclude, is_published
from processor.core.state import NO_INDEX, Context, Response
from processor.core.text import filled
from processor.core.vocabulary import Kind, item_kind

FEW_ENTRIES = 4
"""Entries of one call_id that are held against each use of it; more of them are looked up by what they say."""


class _Entry(Struct):
    place: int
    item: Item
    call: Call | None = None
    """Whose entry it is."""
    used: bool = False


def end(response: Response, output: list[Item | None] | None, fact: Input, ctx: Context) -> None:
    """End all calls of a response: `fact` is RELEASED (completed), CUT_OFF (incomplete) or RESPONSE_FAILED.

    A failed response's list is held against its calls all the same: what only the list tells of is rejected too.
    """
    entries = _entries(output, ctx)
    latest = _latest(response)
    _match(response, entries, ctx)
    cut = [latest, *_last_listed(output, entries, ctx)] if fact is Input.CUT_OFF else []  # rule 17: those two, no others
    if fact is Input.RESPONSE_FAILED:
        ctx.tally.failed_after_release += response.released
    _end_all(response, fact, cut, ctx)


def end_unlisted(response: Response, fact: Input, ctx: Context) -> None:
    """End all calls of a response that got no terminal event."""
    _end_all(response, fact, [], ctx)


def _end_all(response: Response, fact: Input, cut: Sequence[Call | None], ctx: Context) -> None:
    unfinished: set[str] = set()
    cut_off = {id(call) for call in cut}
    for call in response.items:
        if call.kind not in DECIDABLE:
            continue
        if call.state in UNFINISHED and call.call_id:  # rule 3: nothing is decided twice for one call_id
            call.absorbed = call.call_id in unfinished or is_published(response, call.call_id)
            unfinished.add(call.call_id)
        own = fact if fact is not Input.CUT_OFF or id(call) in cut_off else Input.RELEASED
        conclude(response, call, own, ctx)


def _entries(output: list[Item | None] | None, ctx: Context) -> list[_Entry]:
    entries = []
    for place, item in enumerate(output or ()):
        if item is None:
            ctx.tally.null_items += 1
        elif item_kind(item) in DECIDABLE:
            entries.append(_Entry(place, item))
    return entries


def _match(response: Response, entries: list[_Entry], ctx: Context) -> None:
    """Say of every entry whose it is: by call_id, by place, by what it asks for; else its own."""
    # Pieces that nothing named are no call's: they end by themselves (rule 5).
    streamed = [
        c for c in response.items if c.kind in DECIDABLE and (c.state is not State.EARLY or c.call_id) and not c.absorbed
    ]
    uses: dict[str, list[Call]] = {}
    for call in streamed:
        for call_id in call.call_ids():
            uses.setdefault(call_id, []).append(call)
    listed: dict[str, list[_Entry]] = {}
    for entry in entries:
        if filled(entry.item.call_id):
            listed.setdefault(entry.item.call_id, []).append(entry)
    settled: set[int] = set()
    for agreeing in (True, False):
        for call_id, own in listed.items():
            left = [c for c in uses.get(call_id, ()) if id(c) not in settled]
            settled.update(_match_uses(response, left, own, ctx, agreeing=agreeing))
    settled.update(_match_places(response, streamed, entries, ctx))
    _match_requests(response, [c for c in streamed if id(c) not in settled], entries, ctx)
    rest = [entry for entry in entries if not entry.used]
    if not rest:
        return
    told = {_told(entry, ctx): entry for entry in reversed(entries) if entry.used and filled(entry.item.call_id)}
    for entry in rest:
        twin = told.get(_told(entry, ctx)) if filled(entry.item.call_id) else None
        entry.used = True
        entry.call = twin.call if twin else take_final(response, None, entry.place, entry.item, ctx, listed=True)
        told.setdefault(_told(entry, ctx), entry)


def _told(entry: _Entry, ctx: Context) -> str:
    """What an entry says of its call_id, to be looked up: a list of thousands must not be compared pair by pair."""
    return repr((entry.item.call_id, content(entry.item, ctx.bounds)))


def _match_uses(response: Response, uses: list[Call], own: list[_Entry], ctx: Context, *, agreeing: bool) -> list[int]:
    """Each streamed use of one call_id must agree with an entry; returns the uses that are settled."""
    settled = []
    agreed = _Agreeing(own, ctx) if agreeing and len(own) > FEW_ENTRIES else None
    unused = (entry for entry in own if not entry.used)
    for use in uses:
        if agreed is not None:
            entry = agreed.first(use)
        elif agreeing:
            entry = next((e for e in own if not e.used and not _contradicts(use, e.item, ctx)), None)
        else:
            entry = next(unused, None)
        if entry is None and agreeing:
            continue
        if entry is not None:
            _list(response, use, entry, ctx)
        elif use.state is State.DONE:
            use.conflict = use.conflict or "no entry of the terminal event agrees with it"
        settled.append(id(use))
    return settled


def _contradicts(use: Call, item: Item, ctx: Context) -> bool:
    """Whether an entry says something else than the final piece of a use; earlier pieces are held against that one already."""
    final = use.final
    if final is None or (filled(final.call_id) and final.call_id != item.call_id):
        return True
    pairs = zip(final_content(use, final, ctx.bounds), content(item, ctx.bounds), strict=True)
    return any(own is not None and listed is not None and own != listed for own, listed in pairs)


class _Agreeing:
    """The entries of one call_id by what they say: thousands must not be held against each use of it."""

    def __init__(self, own: list[_Entry], ctx: Context) -> None:
        self._call_id = own[0].item.call_id
        self._bounds = ctx.bounds
        self._alike: dict[tuple[bool, ...], list[tuple[_Entry, list[Any]]]] = {}
        """By which of the four things they say nothing of."""
        self._found: dict[tuple[tuple[bool, ...], tuple[int, ...]], dict[tuple[Any, ...], list[_Entry]]] = {}
        """Those of a kind by some of what they say, the first one last; made where a use asks for these."""
        for entry in own:
            says = list(map(as_key, content(entry.item, ctx.bounds)))
            self._alike.setdefault(tuple(said is None for said in says), []).append((entry, says))

    def first(self, use: Call) -> _Entry | None:
        """The first unused entry that does not contradict a use."""
        final = use.final
        if final is None or (filled(final.call_id) and final.call_id != self._call_id):
            return None
        says = list(map(as_key, final_content(use, final, self._bounds)))
        found = []
        for silent, alike in self._alike.items():
            common = tuple(place for place, said in enumerate(says) if said is not None and not silent[place])
            if (silent, common) not in self._found:
                sorted_out = self._found[silent, common] = {}
                for entry, listed in reversed(alike):
                    sorted_out.setdefault(tuple([listed[place] for place in common]), []).append(entry)
            agreeing = self._found[silent, common].get(tuple([says[place] for place in common]), [])
            while agreeing and agreeing[-1].used:
                agreeing.pop()
            found += agreeing[-1:]
        return min(found, key=lambda entry: entry.place, default=None)


def _match_places(response: Response, streamed: list[Call], entries: list[_Entry], ctx: Context) -> list[int]:
    """An entry without a call_id is the streamed item of its type at its place among them."""
    taken = {id(entry.call) for entry in entries if entry.call is not None}
    by_type: dict[str, deque[Call]] = {}
    for call in sorted(streamed, key=lambda c: math.inf if c.index is None else c.index):
        by_type.setdefault(repr(call.type), deque()).append(call)
    matched = []
    for entry in entries:
        alike = by_type.get(repr(entry.item.type))
        here = alike.popleft() if alike else None  # entries with a call_id have their places too
        if here is not None and not filled(entry.item.call_id) and id(here) not in taken:
            matched.append(id(here))
            _list(response, here, entry, ctx)
    return matched


def _match_requests(response: Response, calls: list[Call], entries: list[_Entry], ctx: Context) -> None:
    """A call listed with its name and arguments under another call_id, or that had none: one decision (rule 4)."""
    asked: dict[tuple[Any, Any], list[_Entry]] | None = None
    for call in calls:
        if call.kind is not Kind.CALL or (call.final is None and not call.arguments and not call.joined):
            continue
        if asked is None:  # thousands of entries must not be held against each call
            asked = _by_request(entries, ctx)
        entry = _asking(call, asked, ctx)
        if entry is None:
            continue
        undecided = call.state is State.DONE or call.state in UNFINISHED
        if undecided and call.call_id:  # else the entry names it
            if "call_id_renamed" in ctx.bounds.tolerate and entry.item.call_id not in response.finished:
                add_call_id(call, entry.item.call_id)
                call.note(renamed=entry.item.call_id, tolerated=(*call.rare.tolerated, "call_id_renamed"))
                if call.state is State.DONE:  # its new id is used up; one without a final piece gets that with the entry
                    response.use(entry.item.call_id, call)
            else:
                call.conflict = call.conflict or "call_id differs: the terminal event lists it under another one"
        _list(response, call, entry, ctx)


def _by_request(entries: list[_Entry], ctx: Context) -> dict[tuple[Any, Any], list[_Entry]]:
    """Entries with a call_id that are nobody's yet by name and arguments, the first one last."""
    asked: dict[tuple[Any, Any], list[_Entry]] = {}
    for entry in reversed(entries):
        item = entry.item
        if not entry.used and filled(item.call_id) and item.name is not None:
            asked.setdefault((as_key(item.name), as_key(as_text(item.arguments, ctx.bounds))), []).append(entry)
    return asked


def _asking(call: Call, asked: dict[tuple[Any, Any], list[_Entry]], ctx: Context) -> _Entry | None:
    """The first entry that is nobody's and has the call's name and arguments."""
    final = call.final
    own: Any = final_content(call, final, ctx.bounds)[3] if final is not None else None
    if final is None:
        own = call.arguments if call.arguments is not None else call.streamed()
    found = []
    for name in (call.name, final.name if final else None) if own else ():
        alike = asked.get((as_key(name), as_key(own)), [])
        while alike and alike[-1].used:
            alike.pop()
        found += alike[-1:]
    return min(found, key=lambda entry: entry.place, default=None)


def _list(response: Response, call: Call, entry: _Entry, ctx: Context) -> None:
    """Hold an entry against its call, or take it for the final piece that the call lacks."""
    entry.used, entry.call = True, call
    action = TABLE[call.state][Input.LISTED].action
    if action is Action.FINISH:
        take_final(response, call, call.index, entry.item, ctx, listed=True)
    elif action is Action.COMPARE:
        found = differences(call, entry.item, ctx.bounds)
        if found:
            call.conflict = call.conflict or f"{', '.join(found)} differs: the terminal event"
        if entry.item.status is not None and entry.item.status != "completed":
            call.note(listed_status=entry.item.status)


def _latest(response: Response) -> Call | None:
    """The item with the highest output index that was streamed; where no event had one, the order tells which was the last."""
    if response.highest_index == NO_INDEX and response.items:
        return response.items[-1]
    return response.at(response.highest_index)


def _last_listed(output: list[Item | None] | None, entries: list[_Entry], ctx: Context) -> list[Call | None]:
    """Whose the last entry of the list is; a call that is listed twice is cut off by its second entry too."""
    if not output or not entries or entries[-1].place < len(output) - 1:
        return []
    last = entries[-1]
    if not filled(last.item.call_id):
        return [last.call]
    says = content(last.item, ctx.bounds)
    alike = [entry for entry in entries if entry.item.call_id == last.item.call_id]
    return [entry.call for entry in alike if content(entry.item, ctx.bounds) == says]
