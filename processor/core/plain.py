"""The common end of a response: its terminal event repeats each finished call once, word for word.

Owns a quick yes. It only ever says that `terminal` would find nothing to say; whatever it doubts goes there.
"""

from processor.core.events import Item
from processor.core.machine import State
from processor.core.state import Response
from processor.core.vocabulary import COUNTED_ITEM_TYPES, FUNCTION_CALL


def agrees(response: Response, output: list[Item | None] | None) -> bool:
    """Whether every entry is a streamed call with all that it said, or an item that is only counted."""
    finished = response.finished
    for item in output or ():
        if item is None:
            return False
        if item.type != FUNCTION_CALL:
            if item.type in COUNTED_ITEM_TYPES:
                continue
            return False
        uses = finished.get(item.call_id) if type(item.call_id) is str else None
        if uses is None or len(uses) != 1:
            return False
        call = uses[0]
        final = call.final
        if (
            final is None
            or item.status != "completed"
            or item.arguments != final.arguments
            or item.name != final.name
            or item.namespace != final.namespace
            or final.type != FUNCTION_CALL
            or len(call.call_ids) != 1
            or (call.state is not State.DONE and call.state is not State.DECIDED)
        ):
            return False
    return True
