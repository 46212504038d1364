"""What holds W, held against a plain minimum; and the dictionary that nothing is in."""

import random

import pytest

from processor.core.limits import Bounds
from processor.core.nothing import NOTHING
from processor.core.state import Known, Response, Stream
from processor.core.timetable import Timetable


@pytest.mark.parametrize("seed", range(30))
def test_the_smallest_offset_holds(seed: int) -> None:
    """Section 7, W: whatever came, in order of what it depends on or not, and whatever went."""
    rng = random.Random(seed)
    timetable, known = Timetable(Bounds()), list[Known]()
    backward = rng.choice((0.0, 0.05, 0.5))
    for offset in range(600):
        held = offset if rng.random() >= backward else rng.randint(0, offset)
        known.append(Known("r", offset, 0, 0, held, 0))
        timetable.pin(known[-1])
        while known and rng.random() < rng.choice((0.1, 0.5, 0.6)):
            timetable.drop(known.pop(rng.randrange(len(known)) if rng.random() < 0.5 else 0))
        oldest = timetable.oldest()
        assert (oldest.held if oldest is not None else None) == min((each.held for each in known), default=None)
        assert oldest is None or not oldest.gone


def test_what_went_is_let_go() -> None:
    """One silent stream at the front keeps nothing of the thousands that came and went after it."""
    timetable = Timetable(Bounds())
    timetable.pin(Known("silent", 0, 0, 0, 0, 0))
    for offset in range(1, 2000):
        known = Known("r", offset, 0, 0, offset if offset % 2 else 1, 0)
        timetable.pin(known)
        timetable.drop(known)
    assert len(timetable._first) + len(timetable._earlier) < 100


def test_nothing_can_be_put_into_nothing() -> None:
    """It is the same object for all: an entry would show in every response and under every key."""
    response, stream = Response("r", "k", 0), Stream(b"k", 0, 0)
    assert response.finished is NOTHING
    assert stream.closed is NOTHING
    assert NOTHING == {}
    with pytest.raises(TypeError, match="nothing can be put here"):
        stream.closed["r"] = Known("r", 0, 0, 0, 0, 0)
    with pytest.raises(TypeError, match="nothing can be put here"):
        response.finished.setdefault("c", [])
    assert not NOTHING
