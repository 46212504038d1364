"""The common life of a call, without the detours: announced, its arguments given, finished, listed word for word.

Owns quick answers only. Each function either does what `assemble` and `terminal` would do, or says no and leaves all as it
was; whatever is doubtful goes there. `tests/core/test_plain.py` holds the two ways together. What an event costs
is counted by `python -m benchmarks.instructions`.
"""

from processor.core.call import Call
from processor.core.events import Event, Item
from processor.core.machine import TABLE, Input, State
from processor.core.state import ITEM_BYTES, Context, Response
from processor.core.vocabulary import COUNTED_ITEM_TYPES, FUNCTION_CALL, Kind

# Looked up once: Python 3.11 does not specialise the look-up of an enum member.
_CALL, _OPEN, _ARGUMENTS_DONE, _DONE, _DECIDED = Kind.CALL, State.OPEN, State.ARGUMENTS_DONE, State.DONE, State.DECIDED
_COMPLETED = "completed"
_ANNOUNCED = TABLE[State.ABSENT][Input.ANNOUNCED].state
_GIVEN = TABLE[State.OPEN][Input.ARGUMENTS_GIVEN].state
_FINISHED = TABLE[State.OPEN][Input.FINISHED].state


def announced(response: Response, event: Event, ctx: Context) -> bool:
    """A function call with an id and a name, on an index where nothing was seen, and no arguments yet."""
    item, index = event.item, event.output_index
    if item is None or item.type != FUNCTION_CALL or type(index) is not int or response.at(index) is not None:
        return False
    call_id, name = item.call_id, item.name
    if (
        type(call_id) is not str
        or type(name) is not str
        or item.namespace is not None
        or response.functions >= ctx.bounds.max_calls
    ):
        return False
    if not call_id or not name or item.arguments or not call_id.isascii() or not name.isascii():
        return False
    name = ctx.names.of(name)
    call = Call(_ANNOUNCED, index, _CALL, ctx.offset, response.functions, FUNCTION_CALL, None, name, None, call_id)
    response.functions += 1
    response.append(call)
    response.highest_index = max(response.highest_index, index)
    response.buffered_bytes += ITEM_BYTES + len(FUNCTION_CALL) + len(name) + len(call_id)
    return True


def given(response: Response, event: Event) -> bool:
    """The arguments of an open call, told whole for the first time."""
    index, arguments = event.output_index, event.arguments
    call = response.at(index) if type(index) is int else None
    if call is None or call.state is not _OPEN or call.kind is not _CALL or call.arguments is not None:
        return False
    if type(arguments) is not str or len(arguments) <= len("{}") or not arguments.isascii():
        return False
    if (event.name is not None and event.name != call.name) or event.call_id is not None:
        return False
    call.state = _GIVEN
    call.arguments = arguments
    response.buffered_bytes += len(arguments)
    return True


def finished(response: Response, event: Event, ctx: Context) -> bool:
    """The final piece of an open call, which says what the others said, under a call_id that nothing else had."""
    item, index = event.item, event.output_index
    call = response.at(index) if type(index) is int else None
    if item is None or call is None or call.kind is not _CALL or item.type != FUNCTION_CALL:
        return False
    if (
        (call.state is not _OPEN and call.state is not _ARGUMENTS_DONE)
        or ctx.bounds.release != "response"
        or ctx.record.headers
    ):
        return False
    call_id, name, arguments = item.call_id, item.name, item.arguments
    if type(call_id) is not str or call.call_id != call_id or call.rare.other_ids or call_id in response.finished:
        return False
    if type(arguments) is not str or type(name) is not str or name != call.name:
        return False
    if item.namespace is not None or call.namespace is not None or call.type != FUNCTION_CALL:
        return False
    if call.arguments is not None and call.arguments != arguments:
        return False
    if call.joined and call.streamed() != arguments:
        return False
    ident = "" if item.id is None else item.id
    if item.status != _COMPLETED or item.execution is not None or type(ident) is not str:
        return False
    if not (arguments.isascii() and name.isascii() and call_id.isascii() and ident.isascii()):
        return False
    # The same objects for what is the same.
    item.type, item.name, item.call_id, item.status = FUNCTION_CALL, call.name, call.call_id, _COMPLETED
    item.content = item.role = None
    call.final, call.state = item, _FINISHED
    call.arguments = None
    call.let_go()
    response.buffered_bytes += len(arguments) + len(name) + len(call_id) + len(ident) + len(_COMPLETED) + len(FUNCTION_CALL)
    response.use(call_id, call)
    return True


def listed(response: Response, output: list[Item | None] | None) -> bool:
    """Whether every entry of a terminal event is a streamed call with all that it said, or an item that is only counted.

    A call that is listed twice is left to `terminal`: the second entry may be another call's, under a wrong id (rule 4).
    """
    names = []
    for item in output or ():
        if item is None:
            return False
        if item.type != FUNCTION_CALL:
            if type(item.type) is str and item.type in COUNTED_ITEM_TYPES:
                continue
            return False
        uses = response.finished.get(item.call_id) if type(item.call_id) is str else None
        if uses is None or len(uses) != 1:
            return False
        call = uses[0]
        final = call.final
        if type(item.arguments) is not str:  # an object's values can be equal where its text is another (rule 7)
            return False
        if final is None or item.arguments != final.arguments or item.name != final.name or item.namespace != final.namespace:
            return False
        if item.status != _COMPLETED or final.type != FUNCTION_CALL or call.rare.other_ids:
            return False
        if call.state is not _DONE and call.state is not _DECIDED:
            return False
        names.append(item.call_id)
    return len(names) <= 1 or len(set(names)) == len(names)
