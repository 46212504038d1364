"""A deliberately naive reading of the design and the rules: the whole log in memory, from its first record to its last.

It is a second opinion on the core. It owns the order of things in a partition (rules 13 to 16 and 20 to 22); what one response
says is read in `response.py`, what the gate says in `verdict.py`. It never imports the code under test.
"""

from collections.abc import Sequence

from tests.factories import Json, Record
from tests.oracle.events import ITEM_EVENTS, LIFECYCLE, TERMINAL, Event, Response
from tests.oracle.journals import journal
from tests.oracle.response import Reading
from tests.oracle.use import Token
from tests.oracle.values import DEAD, Decision, Log, Settings, Sorted
from tests.oracle.verdict import Toolset, judge
from tests.oracle.wire import parts_of, stream_of


def decide(
    log: Sequence[Record],
    settings: Settings,
    toolset: Toolset,
    idle: Sequence[tuple[int, int]] = (),
    *,
    archive_ends: bool = False,
) -> list[Decision]:
    """Every decision and dead letter of a partition, in order; the arguments are those of `read_log`."""
    return decisions(read_log(log, settings, toolset, idle, archive_ends=archive_ends))


def decisions(state: Log) -> list[Decision]:
    """What was decided on a log, in order."""
    return [line.decision for line in sorted(state.lines, key=lambda line: line.token)]


def read_log(
    log: Sequence[Record],
    settings: Settings,
    toolset: Toolset,
    idle: Sequence[tuple[int, int]] = (),
    *,
    archive_ends: bool = False,
) -> Log:
    """Read a whole log.

    `idle`: moves of the watermark by the wall clock, as (place in the log, time in ms), each made before the record there.
    """
    state = Log(settings, toolset)
    for place in range(len(log) + 1):
        state.place = place
        state.position = log[place].offset if place < len(log) else (log[-1].offset + 1 if log else 0)
        state.offsets[place] = state.position
        for wall in [t for at, t in idle if at == place]:
            if wall > state.watermark and would_matter(state, wall):
                advance(state, wall, phase=0)
        if place < len(log):
            advance(state, max(state.watermark, log[place].timestamp), phase=1)
            read(state, log[place])
    if archive_ends:
        for response in sorted(state.open.values(), key=lambda r: r.first_offset):
            end(response, "timeout", (state.place, 1, response.first_offset))
    for response in state.responses:
        state.lines += verdicts_of(state, response)
    return state


def verdicts_of(state: Log, response: Response) -> list[Sorted]:
    """What is decided for the calls of one response."""
    reading = Reading(response, state.settings.release, state.settings, lambda call, **k: judge(state.toolset, call, **k))
    lines = []
    for verdict in reading.run():
        arguments = (verdict.use.final or {}).get("arguments") if verdict.reason == "ok" else None
        offset = state.offsets[verdict.token[0]]
        named = response.name_at(verdict.token)
        lines.append(Sorted(verdict.token, Decision(offset, response.key, named, verdict.call_id, verdict.reason, arguments)))
    return lines


# Time (rule 20).


def until(state: Log, response: Response) -> int:
    """When a closed response is forgotten: a function of its last record alone."""
    timeout = 0 if response.last_was_terminal else state.settings.stream_timeout_ms
    return response.last + timeout + state.settings.closed_memory_ms


def would_matter(state: Log, wall: int) -> bool:
    """Whether a move of the watermark would expire or forget anything."""
    timeout = state.settings.stream_timeout_ms
    return (
        any(wall - r.last >= timeout for r in state.open.values())
        or any(wall >= until(state, r) for rs in state.known.values() for r in rs)
        or any(wall - at >= timeout for _, at, _ in state.requests.values())
    )


def advance(state: Log, watermark: int, phase: int) -> None:
    """Move the watermark; expire the silent by first offset, forget what is no longer known."""
    state.watermark = watermark
    timeout = state.settings.stream_timeout_ms
    silent = [r for r in state.open.values() if watermark - r.last >= timeout]
    for response in sorted(silent, key=lambda r: r.first_offset):
        close(state, response, "timeout", (state.place, phase, watermark, response.first_offset))
    for key, closed in state.known.items():
        state.known[key] = [r for r in closed if until(state, r) > watermark]
    state.requests = {k: v for k, v in state.requests.items() if watermark - v[1] < timeout}
    state.keys = {k: v for k, v in state.keys.items() if v[1] > watermark}


def end(response: Response, how: str, token: Token) -> None:
    """Note how and where a response ended."""
    response.ended_by = how
    response.ended_at = token


def close(state: Log, response: Response, how: str, token: Token) -> None:
    """End an open response; it stays known."""
    end(response, how, token)
    state.open = {k: r for k, r in state.open.items() if r is not response}
    state.known.setdefault(response.key or "", []).append(response)
    state.known[response.key or ""].sort(key=lambda r: r.last)


# One record.


def read(state: Log, record: Record) -> None:
    """Read one record: whole, or as a dead letter."""
    parts = parts_of(record.value)
    key = stream_of(record, parts or [], state.settings.key_header)
    anonymous = parts is not None and key is None and any("journal" not in p for p in parts)
    if parts is None or anonymous:
        line = Decision(record.offset, None, None, None, DEAD)
        state.lines.append(Sorted((state.place, 2, 0), line))
        return
    for number, part in enumerate(parts):
        token = (state.place, 2, number)
        if "journal" in part:
            if key is not None:
                touch(state, key, token)
            journal(state, part["journal"], key, token, record.offset, single="single" in part)
        elif "whole" in part:
            touch(state, key or "", token)
            whole_response(state, part["whole"], key or "", token, record.offset)
        elif "request" in part:
            touch(state, key or "", token)
            state.requests[key or ""] = (part["request"], state.watermark, record.offset)
        else:
            event = Event(token, record.offset, part["event"], part.get("mislabelled", False))
            touch(state, key or "", token)
            hear(state, key or "", event)
            overflow(state, key or "", token)


def hear(state: Log, key: str, event: Event) -> None:
    """One event under a key (rules 11 and 13 to 16)."""
    kind = event.data["type"]
    body = event.data.get("response")
    rid = body.get("id") if isinstance(body, dict) else None
    current = state.open.get(key)
    named = next((r for r in state.known.get(key, []) if r.is_named(rid)), None)
    mine = current is not None and (rid is None or current.is_named(rid))
    if isinstance(rid, str) and current is not None and not mine and named is None and turns(state, current, kind):
        current.aliases.append(rid)
        mine = True
    if current is not None and kind != "response.created":
        current.last = state.watermark
    if kind == "response.created":
        if current is not None and current.is_named(rid):
            current.last = state.watermark
            current.events.append(event)
            return
        if current is not None:
            close(state, current, "superseded", event.token)
        if named is not None:
            renew(state, key, named, terminal=False)
        else:
            start(state, key, rid, event)
    elif kind in TERMINAL or kind == "error":
        adopts = current is not None and current.rid is None and named is None
        if current is not None and (mine or adopts):
            current.events.append(event)
            if current.rid is None:
                current.rid, current.named_at = rid, event.token
            current.last_was_terminal = True
            close(state, current, ending(event), event.token)
        elif named is not None:
            renew(state, key, named, terminal=True)
        elif current is None and kind != "error" and (rid is not None or not state.known.get(key)):
            alone = start(state, key, rid, event)
            alone.last_was_terminal = True
            close(state, alone, ending(event), event.token)
        elif current is None:
            renew_latest(state, key, terminal=True)
    elif kind in LIFECYCLE:  # rules 14 and 15: they open nothing and give no name
        if current is not None and mine:
            current.events.append(event)
        elif named is not None:
            renew(state, key, named, terminal=False)
        elif current is None:
            renew_latest(state, key, terminal=False)
    elif current is not None:
        current.events.append(event)
    elif state.known.get(key):
        renew_latest(state, key, terminal=False)
    elif kind in ITEM_EVENTS and not ("item" in event.data and event.data["item"] is None):
        start(state, key, None, event)


def turns(state: Log, current: Response, kind: str) -> bool:
    """Whether ids are not told apart while this response is open (rule 34); a `created` begins another one all the same."""
    return "response_id_rotates" in state.settings.tolerate and current.rid is not None and kind in (*LIFECYCLE[1:], *TERMINAL)


def start(state: Log, key: str, rid: str | None, event: Event) -> Response:
    """Open a response at this event, with what the request that waits under its key said; only a `created` uses it up."""
    request, _, since = state.requests.get(key, (None, 0, event.offset))
    if event.data.get("type") == "response.created":
        state.requests.pop(key, None)
    response = Response(key, rid, since, state.watermark, [event], request)
    state.open[key] = response
    state.responses.append(response)
    return response


def renew(state: Log, key: str, response: Response, *, terminal: bool) -> None:
    """A record of a known response renews its time (rule 13)."""
    response.last = state.watermark
    response.last_was_terminal = terminal
    state.known[key] = [r for r in state.known[key] if r is not response] + [response]


def renew_latest(state: Log, key: str, *, terminal: bool) -> None:
    """So does an event that comes while nothing is open."""
    if state.known.get(key):
        renew(state, key, state.known[key][-1], terminal=terminal)


def ending(event: Event) -> str:
    """How a terminal event ends its response (rules 16, 17 and 29)."""
    kind = event.data["type"]
    status = (event.data.get("response") or {}).get("status")
    if event.mislabelled or kind in ("response.failed", "response.cancelled", "error") or status in ("failed", "cancelled"):
        return "failed"
    return "incomplete" if kind == "response.incomplete" or status == "incomplete" else "completed"


def touch(state: Log, key: str, token: Token) -> None:
    """The bound over the streams of the partition: the key that has been silent longest goes as a whole."""
    memory = state.settings.stream_timeout_ms + state.settings.closed_memory_ms
    state.keys[key] = (state.place, state.watermark + memory)
    for lost in sorted(state.keys, key=lambda k: state.keys[k])[: -state.settings.max_streams]:
        if lost in state.open:
            close(state, state.open[lost], "limit", (*token[:2], -1, state.place))
        state.known.pop(lost, None)
        state.requests.pop(lost, None)
        del state.keys[lost]


def overflow(state: Log, key: str, token: Token) -> None:
    """The bound over a response's bytes. Only ever passed by large deltas here: how other bytes count does not matter."""
    current = state.open.get(key)
    if current is None:
        return
    said = sum(len(e.data["delta"]) for e in current.events if isinstance(e.data.get("delta"), str))
    if said <= state.settings.max_response_bytes:
        return
    reading = Reading(current, state.settings.release, state.settings, lambda call, **k: judge(state.toolset, call, **k))
    reading.run()
    if reading.held > state.settings.max_response_bytes:
        close(state, current, "limit", (*token, 1))


# The other forms.


def whole_response(state: Log, body: Json, key: str, token: Token, offset: int) -> None:
    """A whole response is decided at once; that of the open or of a known one is its terminal event (rule 16)."""
    kinds = {"completed": "response.completed", "incomplete": "response.incomplete"}
    event = Event(token, offset, {"type": kinds.get(str(body.get("status")), "response.failed"), "response": body})
    current = state.open.get(key)
    rid = body.get("id")
    known = any(r.is_named(rid) for r in state.known.get(key, []))
    if known or (current is not None and current.is_named(rid)):
        hear(state, key, event)
        return
    alone = start(state, key, rid, event)
    state.requests.pop(key, None)
    alone.last_was_terminal = True
    close(state, alone, ending(event), token)
    if current is not None:
        state.open[key] = current
