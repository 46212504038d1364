"""The decision record: what is published for one call, and its deterministic id (design section 2, rule 32).

Owns the fields of decisions and dead letters, their headers and their encoding. It judges nothing; nothing that is in a call
makes it raise, and argument values go only where the setting `arguments` lets them.
"""

import hashlib
from typing import Any, Final

from msgspec import Struct

from processor.core.approval import Form, approve
from processor.core.arguments import compact
from processor.core.as_written import is_plain
from processor.core.candidate import Candidate
from processor.core.canonical import canonical, sha256
from processor.core.engines import Flaw
from processor.core.events import Unreadable
from processor.core.feedback import feedback_text
from processor.core.gate import Gate, Verdict
from processor.core.json_text import encode
from processor.core.outgoing import (
    MAX_HEADER_BYTES,
    Outgoing,
    PortableItem,
    Record,
    Route,
    Source,
    decision_headers,
    key_bytes,
)
from processor.core.outgoing import dead_letter as keep_dead_letter
from processor.core.reasons import Reason
from processor.core.signals import Tally
from processor.core.stamp import Stamps

__all__ = ["Decider", "Decision", "Outgoing", "Route", "decision_id"]

MAX_TEXT: Final = 512
"""Characters that are left of a text in a rejection that would not fit otherwise."""


class FeedbackItem(Struct, frozen=True, gc=False):
    """A ready `function_call_output` for a call that was rejected though completed."""

    type: str
    call_id: str
    output: str


class Decision(Struct, kw_only=True, omit_defaults=True):
    """The value of a decision record; what a decision does not have is left out, except for the first eight fields."""

    decision: str
    reason: str
    id: str
    call_id: str | None
    name: str | None
    stream: str | None
    response_id: str | None
    toolset: str | None
    namespace: str | None = None
    detail: str = ""
    errors: tuple[Flaw, ...] = ()
    arguments: Any = None
    item: PortableItem | None = None
    feedback: FeedbackItem | None = None
    model: str | None = None
    tool_schema: str | None = None
    would_reject: str | None = None
    tolerated: tuple[str, ...] = ()
    normalised: bool = False
    source: Source
    event_time: str | None
    decided_at: str | None


_CODES: Final = {reason: reason.value for reason in Reason}


class Decider:
    """Gate and decide in one: the `Judge` of a partition."""

    def __init__(self, gate: Gate) -> None:
        """Judge with this gate; `tally` is where it counts, and can be replaced at any time."""
        self.gate = gate
        self.tally = Tally()
        self._arguments = gate.settings.arguments
        self._max_bytes = gate.settings.max_decision_bytes
        self._max_rejection_bytes = gate.settings.max_rejection_bytes
        self._max_plain_bytes = (self._max_bytes - _OVERHEAD) // 2
        """A larger one is measured to the byte."""
        self._stamp_event = Stamps()
        self._stamp_decided = Stamps()

    def __call__(self, candidate: Candidate, topic: str, partition: int, now_ms: int) -> Outgoing:
        """Judge one call, count it, and encode its decision."""
        verdict = self.gate.judge(candidate)
        if verdict.plain:
            times = self._stamp_event(candidate.event_time), self._stamp_decided(now_ms)
            try:
                if verdict.form is None:
                    verdict.form = Form(candidate, verdict)
                written = approve(candidate, verdict.form, topic, partition, times, self._max_plain_bytes)
                if written is not None:
                    return written
            except ValueError:
                pass
        return self.write(candidate, verdict, topic, partition, now_ms)

    def write(self, candidate: Candidate, verdict: Verdict, topic: str, partition: int, now_ms: int) -> Outgoing:
        """Count a judged call and encode its decision, whatever it is."""
        value, size = self._encode(candidate, verdict, topic, partition, now_ms)
        if verdict.reason is Reason.OK and size > self._max_bytes:
            verdict = Verdict(
                reason=Reason.LIMIT,
                detail=f"its decision takes {size} bytes, the bound is {self._max_bytes}",
                toolset=verdict.toolset,
                tools=verdict.tools,
                tolerated=verdict.tolerated,
            )
            value, size = self._encode(candidate, verdict, topic, partition, now_ms)
        self._count(candidate, verdict)
        approved = verdict.reason is Reason.OK
        return Outgoing(
            Route.APPROVED if approved else Route.REJECTED,
            key_bytes(candidate.stream),
            value,
            decision_headers(candidate, verdict.reason, approved=approved),
            _CODES[verdict.reason],
        )

    def dead_letter(self, record: Record, unreadable: Unreadable, topic: str, partition: int) -> Outgoing:
        """Keep a record that cannot be read, with the cause."""
        return keep_dead_letter(record, unreadable, topic, partition)

    def _encode(self, call: Candidate, verdict: Verdict, topic: str, partition: int, now_ms: int) -> tuple[bytes, int]:
        """Value of the record, and the size of the whole record; a rejection is cut down until it fits."""
        decision = self._decision(call, verdict, topic, partition, now_ms)
        value = encode(decision)
        around = len(call.stream or "") * 3 + len(call.traceparent or b"") + len(call.tracestate or b"") + _OVERHEAD
        if len(value) + around > self._max_rejection_bytes and verdict.reason is not Reason.OK:
            value = encode(_cut(decision))
        return value, len(value) + around

    def _decision(self, call: Candidate, verdict: Verdict, topic: str, partition: int, now_ms: int) -> Decision:
        approved = verdict.reason is Reason.OK
        tools = verdict.tools
        name, namespace, item_id = call.name, call.namespace, call.item_id
        decision = Decision(
            decision="approved" if approved else "rejected",
            reason=_CODES[verdict.reason],
            id=decision_id(call),
            call_id=call.call_id,
            name=name if isinstance(name, str) else None,
            stream=call.stream,
            response_id=call.response_id,
            toolset=verdict.toolset,
            namespace=namespace if isinstance(namespace, str) else None,
            model=call.model,
            tool_schema=tools[0].sha256 if len(tools) == 1 else _join(verdict),
            source=Source(topic, partition, call.first_offset, call.last_offset),
            event_time=self._stamp_event(call.event_time),
            decided_at=self._stamp_decided(now_ms),
        )
        if approved:
            text = call.arguments if verdict.arguments is None else verdict.arguments
            decision.arguments = text
            decision.item = PortableItem(
                "function_call",
                item_id if isinstance(item_id, str) else None,
                call.call_id or "",
                decision.name or "",
                decision.namespace,
                text,
                "completed",
            )
            if verdict.would_reject is None and not verdict.tolerated:
                return decision
        else:
            self._explain(call, verdict, decision)
        decision.detail = verdict.detail
        decision.errors = verdict.flaws
        decision.would_reject = None if verdict.would_reject is None else _CODES[verdict.would_reject]
        decision.tolerated = verdict.tolerated
        decision.normalised = verdict.normalised
        return decision

    def _explain(self, call: Candidate, verdict: Verdict, decision: Decision) -> None:
        """What only a rejection has: its arguments by policy, and feedback where the call itself was complete."""
        if self._arguments == "include":
            text = call.arguments
            written = text if isinstance(text, str) else compact(text)
            # What a value does not say of its text is only in the text.
            decision.arguments = text if written is not None and is_plain(text) else written
        elif self._arguments == "hash" and call.arguments is not None:
            text = call.arguments
            raw = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else None
            decision.arguments = "sha256:" + (sha256(text) if raw is None else hashlib.sha256(raw).hexdigest())
        # Up to `conflict` the fault lies in how the call came about, and a model cannot correct what it did not do wrong.
        if call.fault is None and call.call_id:
            text = feedback_text(verdict)
            if text is not None:
                decision.feedback = FeedbackItem("function_call_output", call.call_id, text)

    def _count(self, call: Candidate, verdict: Verdict) -> None:
        """Count what only the gate knows; the pipeline counts the decisions themselves, assembly its tolerances."""
        tally = self.tally
        if verdict.would_reject is not None:
            tally.would_reject[_CODES[verdict.would_reject]] += 1
        if verdict.tolerated:
            tally.tolerated.update(verdict.tolerated[len(call.tolerated) :])
        tally.disagreements += verdict.disagreement
        tally.unknown_tool_choice += verdict.unknown_choices


_OVERHEAD: Final = 4 * MAX_HEADER_BYTES
"""Room for the other headers and Kafka's own framing."""


def decision_id(call: Candidate) -> str:
    """Deterministic id of a call's decision (rule 32): the same for every verdict on it, whatever offset it was read at."""
    which: Any = call.call_id or call.output_index
    parts = [call.stream, call.response_id, which, call.salt]
    if call.response_id is not None:
        return hashlib.sha256(encode(parts)).hexdigest()
    return hashlib.sha256(canonical([*parts, call.name, call.arguments])).hexdigest()


def _join(verdict: Verdict) -> str | None:
    """Hashes of several schemas that all had to be satisfied, joined by `+`, each once; None where there is none."""
    return "+".join(dict.fromkeys(tool.sha256 for tool in verdict.tools)) or None


def _cut(decision: Decision) -> Decision:
    """A rejection without what can be done without: it must always fit."""
    decision.arguments = None
    decision.errors = ()
    decision.feedback = None
    for field in ("call_id", "name", "namespace", "detail", "stream", "response_id", "model"):
        text = getattr(decision, field)
        if isinstance(text, str) and len(text) > MAX_TEXT:
            setattr(decision, field, text[:MAX_TEXT])
    return decision
