"""The life of one item of a response, as one total table: every state meets every input, nothing is forgotten silently.

Owns which moves are legal and what each one does; it holds no data and imports nothing that could. Inputs are facts in the
past tense, states are conditions, actions are verbs that `assemble` and `settle` carry out. The diagram in the docs is drawn
from here.
"""

from enum import IntEnum
from typing import NamedTuple

from processor.core.reasons import Reason


class State(IntEnum):
    """Condition of the latest item at an output index."""

    ABSENT = 0
    """Nothing was seen at this index."""
    EARLY = 1
    """Pieces came before the item was announced (rule 2)."""
    OPEN = 2
    """Announced; its arguments are streaming."""
    ARGUMENTS_DONE = 3
    """Its arguments were given whole; the item itself is not finished."""
    DONE = 4
    """Finished; its decision waits until it can no longer be taken back."""
    DECIDED = 5
    """Its decision is out, or it needs none of its own (a repeat)."""
    INCOMPLETE = 6
    """Cut off with its response."""
    FAILED = 7
    """Its response ended before it could be released."""
    EXPIRED = 8
    """Its stream fell silent."""
    LIMITED = 9
    """It, or its response, passed a bound."""


class Input(IntEnum):
    """What happened."""

    ANNOUNCED = 0
    """`response.output_item.added`."""
    APPENDED = 1
    """`response.function_call_arguments.delta`."""
    ARGUMENTS_GIVEN = 2
    """`response.function_call_arguments.done`."""
    FINISHED = 3
    """`response.output_item.done`."""
    LISTED = 4
    """The terminal event lists it."""
    RELEASED = 5
    """Nothing can take it back: its response completed, or decisions are made item by item."""
    CUT_OFF = 6
    """The response ended incomplete, and this is the item that was cut off (rule 17)."""
    RESPONSE_FAILED = 7
    """The response failed, was cancelled, met an `error`, or another one began under its key."""
    FELL_SILENT = 8
    """No event of the stream for `stream_timeout`."""
    BOUND_PASSED = 9
    """A bound was passed: by the call, by its response, or by the partition."""


class Action(IntEnum):
    """What the move does."""

    START = 0
    """Begin an item from its announcement."""
    KEEP_EARLY = 1
    """Begin an item from a piece that came before its announcement."""
    ADOPT = 2
    """Give the pieces kept so far to the item that is announced now."""
    CLASH = 3
    """Begin an item beside one that is still open: both are in conflict (rule 3)."""
    APPEND = 4
    """Add the fragment."""
    CLAIM_ARGUMENTS = 5
    """Hold the whole arguments against what was said before."""
    FINISH = 6
    """Take the final piece and hold everything said before against it."""
    START_FINISHED = 7
    """Begin an item from its final piece; drop it where it repeats one that is finished (rules 8 and 9)."""
    COMPARE = 8
    """Hold the terminal entry against the final piece."""
    COUNT_LATE = 9
    """Nothing but a count."""
    JUDGE = 10
    """Hand the call over to the gate."""
    REJECT = 11
    """Decide it with the reason of the move, unless an earlier one of the table holds."""


class Move(NamedTuple):
    """One entry of the table."""

    state: State
    """Of the item that the input is about; with CLASH and START_FINISHED of the item that begins."""
    action: Action
    reason: Reason | None = None


def _over(state: State) -> dict[Input, Move]:
    """Row of a state in which the response takes nothing more from this item: what comes is counted."""
    return {i: Move(state, Action.COUNT_LATE) for i in Input}


_UNFINISHED_ENDS = {
    Input.RELEASED: Move(State.FAILED, Action.REJECT, Reason.STATUS),
    Input.CUT_OFF: Move(State.INCOMPLETE, Action.REJECT, Reason.STATUS),
    Input.RESPONSE_FAILED: Move(State.FAILED, Action.REJECT, Reason.STATUS),
    Input.FELL_SILENT: Move(State.EXPIRED, Action.REJECT, Reason.TIMEOUT),
    Input.BOUND_PASSED: Move(State.LIMITED, Action.REJECT, Reason.LIMIT),
}
"""However an unfinished item ends, it is rejected; only the reason differs."""

_ROWS: dict[State, dict[Input, Move]] = {
    State.ABSENT: {
        **_over(State.ABSENT),
        Input.ANNOUNCED: Move(State.OPEN, Action.START),
        Input.APPENDED: Move(State.EARLY, Action.KEEP_EARLY),
        Input.ARGUMENTS_GIVEN: Move(State.EARLY, Action.KEEP_EARLY),
        Input.FINISHED: Move(State.DONE, Action.START_FINISHED),
        Input.LISTED: Move(State.DONE, Action.START_FINISHED),
    },
    State.EARLY: {
        Input.ANNOUNCED: Move(State.OPEN, Action.ADOPT),
        Input.APPENDED: Move(State.EARLY, Action.APPEND),
        Input.ARGUMENTS_GIVEN: Move(State.EARLY, Action.CLAIM_ARGUMENTS),
        Input.FINISHED: Move(State.DONE, Action.FINISH),
        Input.LISTED: Move(State.DONE, Action.FINISH),
        **_UNFINISHED_ENDS,
    },
    State.OPEN: {
        Input.ANNOUNCED: Move(State.OPEN, Action.CLASH),
        Input.APPENDED: Move(State.OPEN, Action.APPEND),
        Input.ARGUMENTS_GIVEN: Move(State.ARGUMENTS_DONE, Action.CLAIM_ARGUMENTS),
        Input.FINISHED: Move(State.DONE, Action.FINISH),
        Input.LISTED: Move(State.DONE, Action.FINISH),
        **_UNFINISHED_ENDS,
    },
    State.ARGUMENTS_DONE: {
        Input.ANNOUNCED: Move(State.OPEN, Action.CLASH),
        Input.APPENDED: Move(State.ARGUMENTS_DONE, Action.APPEND),
        Input.ARGUMENTS_GIVEN: Move(State.ARGUMENTS_DONE, Action.CLAIM_ARGUMENTS),
        Input.FINISHED: Move(State.DONE, Action.FINISH),
        Input.LISTED: Move(State.DONE, Action.FINISH),
        **_UNFINISHED_ENDS,
    },
    State.DONE: {
        Input.ANNOUNCED: Move(State.OPEN, Action.START),
        Input.APPENDED: Move(State.DONE, Action.COUNT_LATE),
        Input.ARGUMENTS_GIVEN: Move(State.DONE, Action.COUNT_LATE),
        Input.FINISHED: Move(State.DONE, Action.START_FINISHED),
        Input.LISTED: Move(State.DONE, Action.COMPARE),
        Input.RELEASED: Move(State.DECIDED, Action.JUDGE),
        Input.CUT_OFF: Move(State.INCOMPLETE, Action.REJECT, Reason.STATUS),
        Input.RESPONSE_FAILED: Move(State.FAILED, Action.REJECT, Reason.STATUS),
        Input.FELL_SILENT: Move(State.EXPIRED, Action.REJECT, Reason.TIMEOUT),
        Input.BOUND_PASSED: Move(State.DECIDED, Action.REJECT, Reason.LIMIT),
    },
    State.DECIDED: {
        **_over(State.DECIDED),
        Input.ANNOUNCED: Move(State.OPEN, Action.START),
        Input.FINISHED: Move(State.DONE, Action.START_FINISHED),
    },
    State.INCOMPLETE: _over(State.INCOMPLETE),
    State.FAILED: _over(State.FAILED),
    State.EXPIRED: _over(State.EXPIRED),
    State.LIMITED: {
        # Decided, but on the wire it is still open: its own final piece must not pass for a new call without the
        # fragments that were dropped.
        **_over(State.LIMITED),
        Input.ANNOUNCED: Move(State.OPEN, Action.CLASH),
        Input.FINISHED: Move(State.DECIDED, Action.COUNT_LATE),
    },
}

TABLE: tuple[tuple[Move, ...], ...] = tuple(tuple(_ROWS[state][fact] for fact in Input) for state in State)
"""`TABLE[state][input]`: tuples and not a mapping, since an enum member hashes slowly and every delta looks here."""

UNFINISHED = frozenset({State.EARLY, State.OPEN, State.ARGUMENTS_DONE})
"""States of an item that is still open."""

OPEN_ON_THE_WIRE = UNFINISHED | {State.LIMITED}
"""A limited item takes nothing more, but its own pieces still come and must not pass for another's."""


def diagram() -> str:
    """Draw the table as a Mermaid state diagram; moves that change nothing but a count are left out."""
    lines = ["stateDiagram-v2", "    [*] --> ABSENT"]
    grouped: dict[tuple[State, State, str], list[str]] = {}
    for state in State:
        for fact in Input:
            move = TABLE[state][fact]
            if move.action is Action.COUNT_LATE:
                continue
            label = move.action.name + (f" {move.reason}" if move.reason else "")
            grouped.setdefault((state, move.state, label), []).append(fact.name)
    for (state, after, label), facts in grouped.items():
        lines.append(f"    {state.name} --> {after.name}: {' / '.join(facts)} - {label}")
    return "\n".join(lines) + "\n"
