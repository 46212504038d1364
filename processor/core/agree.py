"""Whether the pieces of one call agree (design section 4, rules 7, 9 and 34).

Compared are type, namespace, name, call_id and arguments. Nothing that says nothing contradicts: null and absent anywhere, and
before the final piece the empty string and the empty object.
"""

from collections.abc import Iterable
from typing import Any

from processor.core.arguments import compact
from processor.core.call import Call
from processor.core.events import Item
from processor.core.limits import Bounds
from processor.core.text import utf8_bytes
from processor.core.vocabulary import Kind

_SILENT = (None, "", "{}")
FEW_CALL_IDS = 8
"""Other call_ids of one call that are looked through; one that was told more of them has them in a set as well."""


class CallIds(list[str]):
    """Many call_ids of one call, in order: thousands must not be looked through for each piece that names one."""

    __slots__ = ("_known",)

    def __init__(self, call_ids: Iterable[str]) -> None:
        super().__init__(call_ids)
        self._known = set(self)

    def append(self, call_id: str, /) -> None:
        """Add one that is not there."""
        super().append(call_id)
        self._known.add(call_id)

    def __contains__(self, call_id: object) -> bool:
        """Whether it is there."""
        return isinstance(call_id, str) and call_id in self._known


def as_text(arguments: Any, bounds: Bounds) -> Any:
    """The arguments as they are read: an object is its compact text where that is tolerated."""
    if isinstance(arguments, dict) and "arguments_object" in bounds.tolerate:
        text = compact(arguments)
        return arguments if text is None else text
    return arguments


def claim(call: Call, piece: Item, bounds: Bounds) -> int:
    """Hold a piece that is not the final one against what was said before; returns the bytes that are kept of it."""
    kept = _claim_names(call, piece, "two pieces", blank="") + _claim_call_id(call, piece.call_id)
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
    if call.rare.text is not None:
        call.note(text=None)
    _claim_names(call, item, "the final piece", blank=None)
    _claim_call_id(call, item.call_id)
    if call.kind is Kind.CALL:
        arguments = as_text(item.arguments, bounds)
        if call.arguments is not None and arguments is not None and call.arguments != arguments:
            _contradict(call, "arguments", "the final piece")
        streamed = call.streamed() if arguments is not None else ""
        if streamed and streamed != arguments:
            call.conflict = call.conflict or "the joined deltas are not the arguments of the final piece"
    call.arguments = None
    call.let_go()
    item.role = None
    kept = (item.arguments, item.name, item.call_id, item.id, item.status, item.namespace, item.type, item.execution)
    return sum(map(size, kept))


def _claim_names(call: Call, piece: Item, where: str, *, blank: str | None) -> int:
    """Hold type, namespace and name against what was said; `blank` says nothing beside null."""
    kept = 0
    for field in ("type", "namespace", "name"):
        said, before = getattr(piece, field), getattr(call, field)
        if said is None or said in (blank, before):
            continue
        if before is None:
            setattr(call, field, said)
            kept += size(said)
        else:
            _contradict(call, field, where)
    return kept


def differences(call: Call, entry: Item, bounds: Bounds) -> list[str]:
    """Fields in which the terminal event's entry contradicts a finished call."""
    final = call.final
    if final is None:
        return []
    found = []
    if entry.type is not None and call.type is not None and entry.type != call.type:
        found.append("type")
    if entry.namespace is not None and call.namespace is not None and entry.namespace != call.namespace:
        found.append("namespace")
    if entry.name is not None and call.name is not None and entry.name != call.name:
        found.append("name")
    if entry.call_id is not None and not call.goes_by(entry.call_id):
        found.append("call_id")
    listed, own = as_text(entry.arguments, bounds), final_content(call, final, bounds)[3]
    if call.kind is Kind.CALL and listed is not None and own is not None and listed != own:
        found.append("arguments")
    return found


def content(item: Item, bounds: Bounds) -> tuple[Any, Any, Any, Any]:
    """What a call_id is used for: not its status (rule 8)."""
    return item.type, item.namespace, item.name, as_text(item.arguments, bounds)


def final_content(call: Call, final: Item, bounds: Bounds) -> tuple[Any, Any, Any, Any]:
    """The same of a call's final piece: an object is made a text once, however often it is compared."""
    if isinstance(final.arguments, dict) and "arguments_object" in bounds.tolerate:
        if call.rare.text is None:
            call.note(text=as_text(final.arguments, bounds))
        return final.type, final.namespace, final.name, call.rare.text
    return content(final, bounds)


def as_key(value: Any) -> Any:
    """What equal values have in common and others have not, to look them up by.

    Texts and None are their own. Others are spelled out: hashes of numbers are no secret, and could be made to collide.
    """
    return value if value is None or type(value) is str else (_spelled(value),)


def _spelled(value: Any) -> str:
    if isinstance(value, list):
        return f"[{','.join(map(_spelled, value))}]"  # a comprehension would take a second frame a level
    if isinstance(value, dict):
        return f"{{{','.join(sorted(map('{!r}:{}'.format, value, map(_spelled, value.values()))))}}}"
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return str(int(value))
    return repr(float(value)) if isinstance(value, float) else repr(value)


def size(value: Any) -> int:
    """Bytes that a kept value costs."""
    if type(value) is str:
        return len(value) if value.isascii() else utf8_bytes(value)
    if value is None:
        return 0
    return len(compact(value) or "")


def _claim_call_id(call: Call, call_id: Any) -> int:
    if call_id is None:
        return 0
    if type(call_id) is not str:
        _contradict(call, "call_id", "no string")
        return 0
    if call_id == "":
        call.call_id = call.call_id or ""
        return 0
    if call.goes_by(call_id):
        return 0
    if call.call_id:
        _contradict(call, "call_id", "two pieces")
    add_call_id(call, call_id)
    return size(call_id)


def add_call_id(call: Call, call_id: str) -> None:
    """Keep one that it did not go by."""
    if not call.call_id:
        call.call_id = call_id
        return
    others = call.rare.other_ids
    if isinstance(others, tuple) or len(others) == FEW_CALL_IDS:
        others = CallIds(others) if others else []
        call.note(other_ids=others)
    others.append(call_id)


def _contradict(call: Call, field: str, where: str) -> None:
    call.conflict = call.conflict or f"{field} differs: {where}"
