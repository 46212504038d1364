"""What is compared, looked up instead of held against each other."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from processor.core.agree import as_key
from processor.core.as_written import Number, Object

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
