"""Whether the pieces of one call agree (design section 4, rules 7, 9 and 34).

Compared are type, namespace, name, call_id and arguments. Nothing that says nothing contradicts: null and absent anywhere, and
before the final piece the empty string and the empty object.
"""

from typing import Any

from processor.core.arguments import compact
from processor.core.events import Item
from processor.core.limits import Bounds
from processor.core.state import Call
from processor.core.text import join, utf8_bytes
from processor.core.vocabulary import Kind

_SILENT = (None, "", "{}")
_NAMES = ("type", "namespace", "name")


def as_text(arguments: Any, bounds: Bounds) -> Any:
    """The arguments as they are read: an object is its compact text where that is tolerated."""
    if isinstance(arguments, dict) and "arguments_object" in bounds.tolerate:
        text = compact(arguments)
        return arguments if text is None else text
    return arguments


def claim(call: Call, piece: Item, bounds: Bounds) -> int:
    """Hold a piece that is not the final one against what was said before; returns the bytes that are kept of it."""
    kept = 0
    for field in _NAMES:
        said = getattr(piece, field)
        if said is None or said == "":
            continue
        before = getattr(call, field)
        if before is None:
            setattr(call, field, said)
            kept += size(said)
        elif before != said:
            _contradict(call, field, "two pieces")
    kept += _claim_call_id(call, piece.call_id)
    arguments = as_text(piece.arguments, bounds)
    if arguments in _SILENT or arguments == {}:
        return kept
    if call.arguments is None:
        call.arguments = arguments
        kept += size(arguments)
    elif call.arguments != arguments:
        _contradict(call, "arguments", "two pieces")
    return kept


def claim_final(call: Call, item: Item, bounds: Bounds) -> int:
    """Take the final piece and hold everything said before against it; returns the bytes that are kept of it.

    What was only needed for that is let go.
    """
    item.content = None
    call.final = item
    for field in _NAMES:
        said, before = getattr(item, field), getattr(call, field)
        if said is None:
            continue
        if before is None:
            setattr(call, field, said)
        elif before != said:
            _contradict(call, field, "the final piece")
    _claim_call_id(call, item.call_id)
    if call.kind is Kind.CALL:
        arguments = as_text(item.arguments, bounds)
        if call.arguments is not None and arguments is not None and call.arguments != arguments:
            _contradict(call, "arguments", "the final piece")
        if call.deltas and arguments is not None:
            joined = join(call.deltas)
            if joined not in _SILENT and joined != arguments:
                call.conflict = call.conflict or "the joined deltas are not the arguments of the final piece"
    call.arguments = None
    call.deltas = []
    return size(item.arguments) + size(item.name) + size(item.call_id)


def differences(call: Call, entry: Item, bounds: Bounds) -> list[str]:
    """Fields in which the terminal event's entry contradicts a finished call."""
    final = call.final
    if final is None:
        return []
    found = []
    for field in _NAMES:
        said, before = getattr(entry, field), getattr(call, field)
        if said is not None and before is not None and said != before:
            found.append(field)
    if entry.call_id is not None and entry.call_id not in call.call_ids and not _both_blank(call, entry.call_id):
        found.append("call_id")
    listed, own = as_text(entry.arguments, bounds), as_text(final.arguments, bounds)
    if call.kind is Kind.CALL and listed is not None and own is not None and listed != own:
        found.append("arguments")
    return found


def content(item: Item, bounds: Bounds) -> tuple[Any, Any, Any, Any]:
    """What a call_id is used for: not its status (rule 8)."""
    return item.type, item.namespace, item.name, as_text(item.arguments, bounds)


def size(value: Any) -> int:
    """Bytes that a kept value costs."""
    if type(value) is str:
        return len(value) if value.isascii() else utf8_bytes(value)
    if value is None:
        return 0
    return len(compact(value) or "")


def _both_blank(call: Call, call_id: Any) -> bool:
    return call_id == "" and call.blank_call_id


def _claim_call_id(call: Call, call_id: Any) -> int:
    if call_id is None:
        return 0
    if call_id == "":
        call.blank_call_id = True
        return 0
    if type(call_id) is not str:
        _contradict(call, "call_id", "no string")
        return 0
    if call_id in call.call_ids:
        return 0
    if call.call_ids:
        _contradict(call, "call_id", "two pieces")
    call.call_ids.append(call_id)
    return size(call_id)


def _contradict(call: Call, field: str, where: str) -> None:
    call.conflict = call.conflict or f"{field} differs: {where}"
