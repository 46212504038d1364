"""Journals: an item, or the items of a conversation, each judged at once and by themselves (design section 3, rule 30)."""

from processor.core import settle
from processor.core.agree import claim_final, content
from processor.core.call import Call
from processor.core.events import Item, Journal
from processor.core.machine import Input, State
from processor.core.reasons import Reason
from processor.core.state import Context, Response
from processor.core.text import filled
from processor.core.vocabulary import FUNCTION_CALL_OUTPUT, Kind, item_label, journal_kind


def judge(journal: Journal, stream: str | None, ctx: Context) -> None:
    """Decide every item; in an array an output with no completed call of its call_id before it is `identity`."""
    response = Response(None, stream, ctx.offset)
    told: dict[str, set[str]] = {}
    completed: set[str] = set()
    for place, item in enumerate(journal.items):
        kind = journal_kind(item)
        if kind is Kind.OUTPUT and item.type == FUNCTION_CALL_OUTPUT and not journal.single:
            if type(item.call_id) is not str or item.call_id not in completed:
                _reject_output(response, place, item, ctx)
        elif kind in (Kind.COUNTED, Kind.OUTPUT):
            ctx.tally.items[item_label(item)] += 1
        else:
            _judge_item(response, place, kind, item, told, ctx)
            if kind is Kind.CALL and type(item.call_id) is str and _is_completed(item, ctx):
                completed.add(item.call_id)


def _judge_item(response: Response, place: int, kind: Kind, item: Item, told: dict[str, set[str]], ctx: Context) -> None:
    call = Call(State.DONE, place, kind, response.last)
    if filled(item.call_id):
        before, says = told.setdefault(item.call_id, set()), repr(content(item, ctx.bounds))
        if says in before:
            ctx.tally.repeats += 1
            return
        call.reused = bool(before)
        before.add(says)
    claim_final(call, item, ctx.bounds)
    settle.conclude(response, call, Input.RELEASED, ctx)


def _is_completed(item: Item, ctx: Context) -> bool:
    return item.status == "completed" or (item.status is None and "status_absent" in ctx.bounds.tolerate)


def _reject_output(response: Response, place: int, item: Item, ctx: Context) -> None:
    call = Call(State.DONE, place, Kind.OUTPUT, response.last)
    claim_final(call, item, ctx.bounds)
    ctx.out.append(
        settle.candidate(response, call, Reason.IDENTITY, "no completed call of its call_id comes before this output", [], ctx)
    )
