"""The table of states and inputs: total, and safe in every cell."""

from itertools import product

import pytest

from processor.core.machine import TABLE, UNFINISHED, Action, Input, State, diagram
from processor.core.reasons import Reason

EVERY = list(product(State, Input))
ENDS = (Input.RELEASED, Input.CUT_OFF, Input.RESPONSE_FAILED, Input.FELL_SILENT, Input.BOUND_PASSED)
OVER = (State.DECIDED, State.INCOMPLETE, State.FAILED, State.EXPIRED, State.LIMITED)


@pytest.mark.parametrize(("state", "fact"), EVERY)
def test_every_state_meets_every_input(state: State, fact: Input) -> None:
    """The table is total, and a move says its reason exactly where it rejects."""
    move = TABLE[state][fact]
    assert move.state in State
    assert (move.reason is not None) == (move.action is Action.REJECT)


@pytest.mark.parametrize(("state", "fact"), EVERY)
def test_only_a_finished_item_is_ever_judged(state: State, fact: Input) -> None:
    """Section 4: a call reaches the gate only once it is done and can no longer be taken back."""
    assert (TABLE[state][fact].action is Action.JUDGE) == (state is State.DONE and fact is Input.RELEASED)


@pytest.mark.parametrize(("state", "fact"), list(product(UNFINISHED, ENDS)))
def test_an_unfinished_item_ends_rejected(state: State, fact: Input) -> None:
    """Section 4: whatever ends an item before its final piece rejects it, for the reason of that end."""
    reasons = {Input.FELL_SILENT: Reason.TIMEOUT, Input.BOUND_PASSED: Reason.LIMIT}
    move = TABLE[state][fact]
    assert move.action is Action.REJECT
    assert move.reason is reasons.get(fact, Reason.STATUS)
    assert move.state in OVER


@pytest.mark.parametrize(("state", "fact"), list(product(OVER, ENDS)))
def test_nothing_is_decided_twice(state: State, fact: Input) -> None:
    """Exactly once: an item that is over ends no second time."""
    move = TABLE[state][fact]
    assert move.action is Action.COUNT_LATE
    assert move.state is state


@pytest.mark.parametrize("state", [s for s in State if s not in UNFINISHED and s is not State.ABSENT])
@pytest.mark.parametrize("fact", [Input.APPENDED, Input.ARGUMENTS_GIVEN])
def test_fragments_for_a_closed_item_are_late(state: State, fact: Input) -> None:
    """Rule 2: on a closed index fragments are ignored and counted."""
    assert TABLE[state][fact].action is Action.COUNT_LATE


def test_a_limited_item_is_still_open_on_the_wire() -> None:
    """Rule 18: the final piece of a call that was limited decides nothing and ends it; a new one beside it clashes (rule 3)."""
    assert TABLE[State.LIMITED][Input.FINISHED].action is Action.COUNT_LATE
    assert TABLE[State.LIMITED][Input.ANNOUNCED].action is Action.CLASH


@pytest.mark.parametrize("state", [State.OPEN, State.ARGUMENTS_DONE])
def test_an_open_index_announced_again_clashes(state: State) -> None:
    """Rule 3: a second item announced on an open index puts both in conflict."""
    assert TABLE[state][Input.ANNOUNCED].action is Action.CLASH


def test_every_action_is_used_and_drawn() -> None:
    """Nothing in the vocabulary of the table is dead, and the drawing shows every move that does more than count."""
    used = {TABLE[state][fact].action for state, fact in EVERY}
    assert used == set(Action)
    drawn = diagram()
    for state, fact in EVERY:
        move = TABLE[state][fact]
        if move.action is not Action.COUNT_LATE:
            assert any(
                line.strip().startswith(f"{state.name} --> {move.state.name}:")
                and fact.name in line.split(": ")[1].split(" - ")[0].split(" / ")
                for line in drawn.splitlines()
            )
