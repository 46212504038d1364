"""What is in hand, in bytes: whatever is taken is let go again, once."""

from hypothesis import given
from hypothesis import strategies as st

from processor.adapters.hand import HELD_BATCHES, LEAST_SHARE, RECORD_BYTES, Hand, Room, size_of, stretches
from processor.core.outgoing import Outgoing, Route
from tests.core.test_redrive import Plain

SIZES = st.lists(st.integers(0, 40), max_size=30)
STEPS = st.lists(st.sampled_from(("put", "draw", "fed", "drop")), max_size=60)


def records_of(sizes: list[int]) -> list[Plain]:
    """Records with values of these sizes."""
    return [Plain(n, 0, None, b"x" * size) for n, size in enumerate(sizes)]


@given(STEPS, SIZES)
def test_nothing_is_counted_twice_or_left(steps: list[str], sizes: list[int]) -> None:
    """In whatever order batches come, are drawn and dropped: what is held is what is there, and in the end nothing."""
    room = Room(1_000)
    hand, own = Hand(0, room), records_of(sizes)
    waiting, drawn = 0, False
    for step in steps:
        if step == "put":
            if waiting % 2:
                room.note_read(0, size_of(own))
            hand.put(own, 9)
            waiting += 1
        elif step == "draw" and waiting:
            assert hand.draw() == (own, 9)
            waiting, drawn = waiting - 1, True
        elif step == "fed":
            hand.fed()
            drawn = False
        elif step == "drop":
            hand.drop()
            waiting, drawn = 0, False
        assert (len(hand), hand.records) == (waiting, waiting * len(own))
        assert room.held == (waiting + drawn) * size_of(own)
    hand.drop()
    assert room.held == 0


def test_what_was_read_and_never_handed_over_is_let_go() -> None:
    """A fetch that fails for one partition loses what it had of others: their bytes do not stay for ever."""
    room = Room(1_000)
    hand = Hand(0, room)
    room.note_read(0, 400)
    room.note_read(1, 300)
    hand.drop()
    assert room.held == 300


def test_a_hand_is_full_by_batches_or_by_its_share() -> None:
    """More than four batches would only wait; more bytes than the share would take the room of others."""
    room = Room(10 * LEAST_SHARE)
    room.partitions = 10
    small, large = Hand(0, room), Hand(1, room)
    for _ in range(HELD_BATCHES - 1):
        small.put(records_of([1]), 1)
    assert not small.full
    small.put(records_of([1]), 1)
    assert (small.full, small.low) == (True, False)
    large.put(records_of([LEAST_SHARE]), 1)
    assert (large.full, large.low) == (True, False)
    large.draw()
    assert (large.full, large.low) == (False, True)
    assert not room.full
    decision = Outgoing(Route.APPROVED, None, b"x" * LEAST_SHARE, [], "ok")
    count = large.decide([decision])
    crowded = large.crowded
    large.publish(count)
    assert (crowded, large.crowded) == (True, False)


@given(SIZES, st.integers(1, 9), st.integers(1, 60))
def test_stretches_cut_nothing_off(sizes: list[int], most: int, most_bytes: int) -> None:
    """All records in order, none too many, and none too large but single records; each with the bytes of its values."""
    records = records_of(sizes)
    cut = list(stretches(records, most, most_bytes))
    found = [some for some, _ in cut]
    assert [record for some in found for record in some] == records
    assert [total for _, total in cut] == [sum(len(one.value or b"") for one in some) for some in found]
    assert all(len(some) <= most for some in found)
    assert all(len(some) <= 1 or sum(len(one.value or b"") for one in some) <= most_bytes for some in found)


def test_size_counts_headers() -> None:
    """A record that is all headers is as large as they are."""
    assert size_of([Plain(0, 0, b"key", None, [("x", b"y" * 900), ("x", None)])]) == 903 + RECORD_BYTES
