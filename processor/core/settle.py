"""The end of a call: assembly's part of the order of reasons, and what is handed to the gate.

Owns `conclude`, the one place where a call leaves assembly, and `pass_bound`, where it leaves at once (rule 18).
"""

import hashlib
from typing import Any

from processor.core import echo
from processor.core.agree import add_call_id, content
from processor.core.call import Call
from processor.core.candidate import AUTO, Candidate
from processor.core.events import Item
from processor.core.limits import Bounds
from processor.core.machine import TABLE, Action, Input, State
from processor.core.reasons import Reason
from processor.core.state import Context, Response
from processor.core.text import filled
from processor.core.vocabulary import FUNCTION_CALL, Kind, item_kind

_LONG_CALL_ID = 64
"""Characters that the API's own input takes for a call_id; longer ones are counted, never cut."""


def conclude(response: Response, call: Call, fact: Input, ctx: Context) -> None:
    """End a call by the table: nothing where it is decided already, else one candidate for the gate."""
    move = TABLE[call.state][fact]
    if move.action is Action.COUNT_LATE:
        return
    call.state = move.state
    if response.tools_clash:
        call.conflict = call.conflict or "its response echoed two different lists of tools"
    if call.absorbed or call.kind is Kind.COUNTED or call.kind is Kind.OUTPUT or (call.reused and _is_late(response, call)):
        return
    tolerated = list(call.rare.tolerated)
    if move.action is Action.JUDGE:
        response.released += 1
    if move.reason is not None or not _is_plain(call):
        fault, detail = _fault(call, move.reason, ctx.bounds, tolerated)
    else:
        fault, detail = None, ""
    if response.rotated:
        tolerated.append("response_id_rotates")
    if tolerated:
        ctx.tally.tolerated.update(tolerated)
    ctx.out.append(candidate(response, call, fault, detail, tolerated, ctx))


def pass_bound(response: Response, call: Call, detail: str, ctx: Context) -> None:
    """Reject a call as `limit`, at once and before any other reason (rule 18); what comes for it later is late.

    What finished under its call_id before stands and is decided by itself: nothing is decided twice (rule 3).
    """
    move = TABLE[call.state][Input.BOUND_PASSED]
    if move.action is Action.COUNT_LATE:
        return
    call.state = move.state
    call.arguments = call.final = None
    call.let_go()
    if call.call_id and is_published(response, call.call_id):
        call.absorbed = True
        ctx.tally.late += 1
    for call_id in call.call_ids():
        uses = response.finished.get(call_id)
        if uses is None:
            response.use(call_id, call)
        elif uses[0] is not call and not call.absorbed:
            # Those that are published under it come first: one of them is looked for again and again.
            uses.insert(1 if call_id == call.call_id else len(uses), call)
    if not call.absorbed:
        ctx.out.append(candidate(response, call, Reason.LIMIT, detail, [], ctx))


def candidate(
    response: Response, call: Call, fault: Reason | None, detail: str, tolerated: list[str], ctx: Context
) -> Candidate:
    """What the gate gets: the evidence, and assembly's part of the verdict."""
    final, record = call.final, ctx.record
    choices = echo.choices(response)
    parent, state = call.rare.traceparent, call.rare.tracestate
    if not parent:
        parent, state = trace(ctx) if record is not None and record.headers else (None, None)
    call_id = call.rare.renamed or call.call_id
    if call_id and len(call_id) > _LONG_CALL_ID:
        ctx.tally.long_call_ids += 1
    salt = ""
    if fault is Reason.IDENTITY and call.reused and final is not None:
        salt = hashlib.sha256(repr(content(final, ctx.bounds)).encode("utf-8", "surrogatepass")).hexdigest()
    return Candidate(
        stream=response.stream,
        response_id=response.id,
        model=response.model,
        call_id=call_id,
        output_index=call.index,
        type=final.type if final is not None else call.type,
        namespace=call.namespace,
        name=call.name,
        arguments=final.arguments if final is not None else None,
        item_id=final.id if final is not None else None,
        fault=fault,
        detail=detail,
        position=call.position,
        parallel=not response.serial,
        tools=response.tools,
        tool_choices=choices,
        tolerated=tuple(tolerated),
        usual=choices == AUTO and fault is None and not tolerated and not response.serial and call.namespace is None,
        record=record,
        salt=salt,
        first_offset=call.first,
        last_offset=response.last if record is None else ctx.offset,
        event_time=ctx.watermark if record is None else record.timestamp,
        traceparent=parent,
        tracestate=state,
    )


def finish_limited(response: Response, call: Call, item: Item) -> None:
    """Take no more than the call_id from the final piece of a limited call: what else comes under it is late too."""
    call.state = TABLE[call.state][Input.FINISHED].state
    name_limited(response, call, item.call_id)


def name_limited(response: Response, call: Call, call_id: Any) -> None:
    """Learn a call_id of a limited call: what else comes under it is late."""
    if filled(call_id) and not call.goes_by(call_id):
        add_call_id(call, call_id)
        if call_id not in response.finished:
            response.use(call_id, call)


def keep_trace(call: Call, ctx: Context) -> None:
    """Keep the trace of the record at hand for the call that it finishes."""
    parent, state = trace(ctx)
    if (parent, state) != (call.rare.traceparent, call.rare.tracestate):
        call.note(traceparent=parent, tracestate=state)


def trace(ctx: Context) -> tuple[bytes | None, bytes | None]:
    """`traceparent` and `tracestate` of the record at hand."""
    if ctx.record is None or not ctx.record.headers:
        return None, None
    parent = state = None
    for name, value in ctx.record.headers:
        if name == "traceparent":
            parent = value
        elif name == "tracestate":
            state = value
    return parent, state


def is_published(response: Response, call_id: str) -> bool:
    """Whether what is finished or limited is decided under an id: where it only contradicted the first one, not (rule 6)."""
    return any(
        call_id == (use.rare.renamed or use.call_id) and not use.absorbed and not (use.reused and _is_late(response, use))
        for use in response.finished.get(call_id, ())
    )


def _is_late(response: Response, call: Call) -> bool:
    """Whether what came first under the call_id that it is published under has no content of its own (rule 9)."""
    first = next(iter(response.finished.get(call.call_id or "", ())), call)
    undecided = first.state is State.DONE
    return first is not call and (first.conflict != "" or first.final is None or (undecided and response.tools_clash))


def _is_plain(call: Call) -> bool:
    """Whether nothing can be wrong with it here: a quick look at the common case, `_fault` would find nothing either."""
    final = call.final
    return (
        final is not None
        and final.type == FUNCTION_CALL
        and final.status == "completed"
        and call.rare.listed_status is None
        and not call.conflict
        and not call.reused
        and filled(final.call_id)
        and filled(final.name)
    )


def _fault(call: Call, ending: Reason | None, bounds: Bounds, tolerated: list[str]) -> tuple[Reason | None, str]:
    """The first reason that holds, in the order of the table (design section 5)."""
    final = call.final
    kind = call.kind if final is None else item_kind(final)
    named = final is not None or call.type is not None
    if ending is Reason.LIMIT:
        return ending, "a bound of its response or of its partition was passed"
    if named and kind is Kind.NAMESPACED:
        return Reason.NAMESPACED, "its type is missing, no string, or a provider's extension"
    if named and kind is Kind.ACTION:
        return Reason.NOT_FUNCTION_CALL, "its type is no function call"
    status, why = _status(call, ending, bounds, tolerated)
    if status is not None:
        return status, why
    if final is None or not filled(final.call_id) or not filled(final.name):
        return Reason.IDENTITY, "call_id or name of the final piece is missing or empty"
    if call.reused:
        return Reason.IDENTITY, "call_id was used before in this response for something else"
    if call.conflict:
        return Reason.CONFLICT, call.conflict
    return None, ""


def _status(call: Call, ending: Reason | None, bounds: Bounds, tolerated: list[str]) -> tuple[Reason | None, str]:
    """`status` or `timeout`, where one of them holds (rules 8 and 20)."""
    final = call.final
    if final is None:
        if ending is Reason.TIMEOUT:
            return Reason.TIMEOUT, "its stream fell silent before it was finished"
        return Reason.STATUS, "it was not finished when its response ended"
    if final.status is not None and final.status != "completed":
        return Reason.STATUS, "the final piece has another status than completed"
    if call.rare.listed_status is not None:
        return Reason.STATUS, "the terminal event lists it with another status than completed"
    if ending is Reason.TIMEOUT:
        return Reason.TIMEOUT, "its stream fell silent before its response ended"
    if final.status is None:
        if "status_absent" not in bounds.tolerate:
            return Reason.STATUS, "the final piece has no status"
        tolerated.append("status_absent")
    if ending is Reason.STATUS:
        return Reason.STATUS, "its response did not end well"
    return None, ""
