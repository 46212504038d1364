"""Journals: an item, or the items of a conversation, each judged at once and by themselves (design section 3, rule 30)."""

from processor.core import settle
from processor.core.agree import claim_final, content
from processor.core.events import Item, Journal
from processor.core.machine import Input, State
from processor.core.reasons import Reason
from processor.core.state import Call, Context, Response
from processor.core.text import filled
from processor.core.vocabulary import FUNCTION_CALL_OUTPUT, Kind, item_label, journal_kind


def judge(journal: Journal, stream: str | None, ctx: Context) -> None:
    """Decide every item; in an array an output with no completed call of its call_id before it is `identity`."""
    response = Response(None, stream, ctx.offset)
    for place, item in enumerate(journal.items):
        kind = journal_kind(item)
        if kind is Kind.OUTPUT and item.type == FUNCTION_CALL_OUTPUT and not journal.single:
            if not _answers(response, item, ctx):
                _reject_output(response, place, item, ctx)
        elif kind in (Kind.COUNTED, Kind.OUTPUT):
            ctx.tally.items[item_label(item)] += 1
        else:
            _judge_item(response, place, kind, item, ctx)


def _judge_item(response: Response, place: int, kind: Kind, item: Item, ctx: Context) -> None:
    call = Call(State.DONE, place, kind, response.last)
    uses = response.finished.get(item.call_id) if filled(item.call_id) else None
    if uses is not None and any(content(use.final, ctx.bounds) == content(item, ctx.bounds) for use in uses if use.final):
        ctx.tally.repeats += 1
        return
    claim_final(call, item, ctx.bounds)
    if filled(item.call_id):
        call.reused = uses is not None
        response.finished.setdefault(item.call_id, []).append(call)
    settle.conclude(response, call, Input.RELEASED, ctx)


def _answers(response: Response, output: Item, ctx: Context) -> bool:
    """Whether a completed call of the output's call_id came before it."""
    uses = response.finished.get(output.call_id, ()) if type(output.call_id) is str else ()
    absent = "status_absent" in ctx.bounds.tolerate
    return any(
        use.kind is Kind.CALL
        and use.final is not None
        and (use.final.status == "completed" or (absent and use.final.status is None))
        for use in uses
    )


def _reject_output(response: Response, place: int, item: Item, ctx: Context) -> None:
    call = Call(State.DONE, place, Kind.OUTPUT, response.last)
    claim_final(call, item, ctx.bounds)
    ctx.out.append(
        settle.candidate(response, call, Reason.IDENTITY, "no completed call of its call_id comes before this output", [], ctx)
    )
