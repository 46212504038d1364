"""Judges one file's content by itself: an item, a journal, a response, Server-Sent Events, or lines of events (`check`).

Owns how the core's decisions are put beside the items that they are about, and the verdict of those that the core only counts
(rule 33). It decides nothing else.
"""

import io
import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from processor.adapters.archive import Archive, ArchivedRecord
from processor.core.decode import decode
from processor.core.events import Event, Item, Journal, Part, Unreadable, WholeResponse
from processor.core.outgoing import Outgoing, Route
from processor.core.pipeline import Partition
from processor.core.reasons import Cause, Reason
from processor.core.vocabulary import Kind, item_kind, journal_kind

KEY = b"check"


class Verdict(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What `check` says about one item."""

    verdict: str
    """`approved`, `rejected`, `fine` (an output that answers its call, or the same call again) or `unreadable`."""
    reason: str
    """The reason, or the cause for what is unreadable."""
    counts: bool = True
    """Whether the exit code depends on it: not where a stream or journal only counts such items."""
    type: str | None = None
    call_id: str | None = None
    name: str | None = None
    detail: str = ""
    errors: list[dict[str, Any]] = msgspec.field(default_factory=list)
    tolerance: str = ""
    """The one tolerance that would let it through."""
    decision: dict[str, Any] | None = None
    """The whole decision as it would be published."""


def records_of(content: bytes) -> list[ArchivedRecord]:
    """Take the content as one record where it can be read as one, else line by line, as an archive."""
    if not isinstance(decode(content), Unreadable):
        return [ArchivedRecord("check", 0, 0, 1, KEY, content, ())]
    lines = list(Archive("check", io.BytesIO(content)).read("-"))
    if len(lines) > 1 or (lines and not isinstance(decode(lines[0].value), Unreadable)):
        return lines
    # Broken as a whole: one dead letter says so, and not each of its lines.
    return [ArchivedRecord("check", 0, 0, 1, KEY, content, ())]


def inspect(
    content: bytes, make: Callable[[tuple[str, ...]], Partition], tolerances: Iterable[str], now_ms: int
) -> list[Verdict]:
    """Give every item a verdict, in order.

    `make` makes a partition that tolerates also what it is given; `tolerances` are tried one by one on what is rejected.
    """
    records = records_of(content)
    verdicts = [_verdict(each) for each in _run(records, make(()), now_ms)]
    _try_tolerances(verdicts, records, make, tolerances, now_ms)
    return _with_counted(records, verdicts)


def _run(records: Sequence[ArchivedRecord], partition: Partition, now_ms: int) -> list[Outgoing]:
    partition.resume(None, 0)
    partition.feed(records, now_ms)
    partition.end_of_archive(now_ms)
    return partition.take()


def _verdict(outgoing: Outgoing) -> Verdict:
    if outgoing.route is Route.DEAD_LETTER:
        headers = {name: (value or b"").decode("utf-8", "replace") for name, value in outgoing.headers}
        return Verdict(verdict="unreadable", reason=outgoing.reason, detail=headers.get("callgate-detail", ""))
    # Not msgspec: it refuses the escapes of lone surrogates, which names and ids of a rejection may have.
    decision: dict[str, Any] = json.loads(outgoing.value or b"{}")
    return Verdict(
        verdict=decision["decision"],
        reason=decision["reason"],
        call_id=decision.get("call_id"),
        name=decision.get("name") if isinstance(decision.get("name"), str) else None,
        detail=decision.get("detail") or "",
        errors=decision.get("errors") or [],
        decision=decision,
    )


def _try_tolerances(
    verdicts: list[Verdict],
    records: Sequence[ArchivedRecord],
    make: Callable[[tuple[str, ...]], Partition],
    tolerances: Iterable[str],
    now_ms: int,
) -> None:
    """Run everything again with one tolerance more, and see what is let through by it."""
    rejected = [each for each in verdicts if each.verdict == "rejected"]
    if not rejected:
        return
    before = Counter(each.call_id for each in verdicts if each.verdict == "approved")
    for tolerance in tolerances:
        again = [_verdict(each) for each in _run(records, make((tolerance,)), now_ms)]
        newly = Counter(each.call_id for each in again if each.verdict == "approved") - before
        names = {each.name for each in again if each.call_id in newly}
        for verdict in rejected:
            # A renamed call is approved under another id.
            found = verdict.call_id in newly or (tolerance == "call_id_renamed" and verdict.name in names)
            if found and not verdict.tolerance:
                verdict.tolerance = tolerance


def _with_counted(records: Sequence[ArchivedRecord], verdicts: list[Verdict]) -> list[Verdict]:
    """Put the verdicts of rule 33 between the decisions, where the items are."""
    left = list(verdicts)
    out: list[Verdict] = []
    for record in records:
        decoded = decode(record.value)
        parts: list[Part] = [] if isinstance(decoded, Unreadable) else [decoded] if isinstance(decoded, Event) else decoded
        for part in parts:
            if isinstance(part, Journal):
                out += [_place(item, journal_kind(item), left, single=part.single) for item in part.items]
            elif isinstance(part, WholeResponse):
                out += [_place(item, item_kind(item), left, single=False) for item in part.response.output or () if item]
            elif isinstance(part, Event) and part.type == "response.output_item.done" and part.item is not None:
                kind = item_kind(part.item)
                if kind in {Kind.COUNTED, Kind.OUTPUT}:
                    out.append(_counted(part.item, decides=False))
    return out + left


def _place(item: Item, kind: Kind, left: list[Verdict], *, single: bool) -> Verdict:
    """Take the item's decision from the front of what is left, or give it a verdict of its own."""
    mine = left and left[0].verdict != "unreadable" and (left[0].call_id or None) == _text(item.call_id)
    if kind not in {Kind.COUNTED, Kind.OUTPUT}:
        if mine or (left and kind is not Kind.CALL and left[0].verdict == "rejected"):
            verdict = left.pop(0)
            verdict.type = item.type if isinstance(item.type, str) else None
            return verdict
        return Verdict(
            verdict="fine", reason="repeat", call_id=_text(item.call_id), detail="The same call again.", counts=False
        )
    if kind is Kind.OUTPUT and not single:
        if mine and left[0].reason == Reason.IDENTITY:
            verdict = left.pop(0)
            verdict.type = item.type
            return verdict
        return Verdict(
            verdict="fine",
            reason="answer",
            type=item.type,
            call_id=_text(item.call_id),
            detail="It answers its call.",
            counts=False,
        )
    return _counted(item, decides=single)


def _counted(item: Item, *, decides: bool) -> Verdict:
    return Verdict(
        verdict="rejected",
        reason=Reason.NOT_FUNCTION_CALL,
        counts=decides,
        type=_text(item.type),
        call_id=_text(item.call_id),
        name=_text(item.name),
        detail="A stream only counts such items: nobody executes them.",
    )


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def meaning(verdict: Verdict) -> str:
    """One sentence on the reason or the cause; empty where the verdict's own detail is all that can be said."""
    if verdict.reason == Reason.NOT_FUNCTION_CALL and verdict.decision is None:
        # The reason's sentence is of items that ask for an action, and this one asks for none.
        return ""
    for kind in (Reason, Cause):
        if verdict.reason in {each.value for each in kind}:
            return str(next(each for each in kind if each.value == verdict.reason).__doc__)
    return ""
