"""What is compared, looked up instead of held against each other."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from processor.core.agree import FEW_CALL_IDS, CallIds, as_key, claim
from processor.core.as_written import Number, Object
from processor.core.call import Call
from processor.core.events import Item
from processor.core.limits import Bounds
from processor.core.machine import State
from processor.core.vocabulary import Kind

PARTS = st.one_of(
    st.none(), st.booleans(), st.sampled_from(["", "1", "a"]), st.integers(-2, 2), st.sampled_from([0.5, 1.0, -0.0, 1e308])
)
VALUES: Any = st.recursive(
    PARTS, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2)
)


@given(VALUES, VALUES)
def test_values_are_found_by_what_equal_ones_have_in_common(one: Any, other: Any) -> None:
    """Rule 7: what is looked up is found exactly where holding one value against the other would have."""
    assert (as_key(one) == as_key(other)) is (one == other)


def test_what_is_written_otherwise_is_found_by_its_value() -> None:
    """Rule 27: such values compare by what they come to, so that they are found by that; a text is no number."""
    assert as_key(Number("1.00000000000000000001")) == as_key(1)
    assert as_key(Number("1e400")) == as_key(Number("2e400"))
    assert as_key(Object([("a", 1), ("a", 2)])) == as_key({"a": 2.0})
    assert as_key("1") != as_key(1)


class Counted(str):
    """A text that counts how often it is held against another."""

    __slots__ = ()
    __hash__ = str.__hash__
    times = 0

    def __eq__(self, other: object) -> bool:
        Counted.times += 1
        return str.__eq__(self, other)


def test_many_call_ids_of_one_call_are_not_looked_through() -> None:
    """Issue 6: a call that is told ten thousand call_ids cost 3 s a record, each being held against all before it."""
    call = Call(State.OPEN, 0, Kind.CALL, 0)
    told = [f"c{number % 500}" for number in range(1000)]
    kept = sum(claim(call, Item(call_id=call_id), Bounds()) for call_id in told)
    assert call.call_ids() == told[:500]
    assert kept == sum(map(len, told[:500]))
    assert call.conflict == "call_id differs: two pieces"
    none: Any = ["c"]
    many = CallIds(Counted(f"c{number}") for number in range(500))
    assert type(call.rare.other_ids) is CallIds
    assert "c499" in many
    assert "x" not in many
    assert None not in many
    assert none not in many
    assert Counted.times <= 2


def test_few_call_ids_are_a_plain_list() -> None:
    """Issue 6: nearly all calls have one call_id, which costs no list, and there may be thousands of such calls."""
    call = Call(State.OPEN, 0, Kind.CALL, 0)
    claim(call, Item(call_id="first"), Bounds())
    assert not call.rare.other_ids
    for number in range(FEW_CALL_IDS):
        claim(call, Item(call_id=str(number)), Bounds())
        assert type(call.rare.other_ids) is list
