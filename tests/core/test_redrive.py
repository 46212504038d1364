"""Dead letters on their way back: what one holds, whether it moves, and the note of what was moved."""

import random
from collections.abc import Sequence
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processor.core.events import Unreadable
from processor.core.outgoing import Header, dead_letter
from processor.core.reasons import Cause
from processor.core.redrive import ADDED, ATTEMPTS, MAX_METADATA_BYTES, Choice, DeadLetter, Fate, Moved, judge, read

HEADERS = st.lists(
    st.tuples(st.sampled_from(("x", "", "traceparent", *ADDED)), st.one_of(st.none(), st.binary(max_size=9))), max_size=9
)
SPANS = st.lists(st.tuples(st.integers(0, 300), st.integers(1, 30)), max_size=40)


class Plain(NamedTuple):
    """A record as it was read."""

    offset: int = 7
    timestamp: int = 1_700_000_000_000
    key: bytes | None = b"key"
    value: bytes | None = b"{"
    headers: Sequence[Header] = ()


def buried(record: Plain, *, topic: str = "events", partition: int = 3) -> Plain:
    """The record as it lies in the dead-letter topic."""
    out = dead_letter(record, Unreadable(Cause.NOT_JSON, "at byte 1"), topic, partition)
    return Plain(0, 0, out.key, out.value, out.headers)


def letter_of(record: Plain, **where: object) -> DeadLetter:
    """What `read` makes of it."""
    found = read(buried(record, **where))  # type: ignore[arg-type]
    assert found is not None
    return found


@given(st.one_of(st.none(), st.binary(max_size=9)), st.one_of(st.none(), st.binary(max_size=9)), HEADERS)
def test_the_way_back_gives_the_record_as_it_was_read(key: bytes | None, value: bytes | None, headers: list[Header]) -> None:
    """Key, value, headers (also such as callgate's own) and timestamp are those of the record; one attempt is added."""
    letter = letter_of(Plain(7, 99, key, value, headers), topic="é", partition=12)
    assert (letter.key, letter.value, letter.timestamp) == (key, value, 99)
    assert (letter.topic, letter.partition, letter.cause, letter.attempts) == ("é", 12, Cause.NOT_JSON, 0)
    assert letter.again() == [*headers, (ATTEMPTS, b"1")]


def test_attempts_are_counted_in_one_header() -> None:
    """A record that comes back again and again has one header that counts it, and no other trace of the way."""
    record = Plain(headers=[("x", b"1")])
    for attempt in range(1, 13):
        letter = letter_of(record)
        assert letter.attempts == attempt - 1
        record = Plain(headers=letter.again())
        assert record.headers == [("x", b"1"), (ATTEMPTS, b"%d" % attempt)]


@pytest.mark.parametrize("text", [b"", b"x", b"1.5", b"\xd9\xa1", b"9" * 19, None])
def test_a_count_that_is_none_begins_anew(text: bytes | None) -> None:
    """What is no number in the header of attempts neither raises nor stops the record."""
    letter = letter_of(Plain(headers=[(ATTEMPTS, text)]))
    assert letter.again() == [(ATTEMPTS, b"1")]


@pytest.mark.parametrize("missing", range(len(ADDED)))
def test_what_callgate_did_not_write_is_foreign(missing: int) -> None:
    """A record of the dead-letter topic that lacks one of the headers is left alone."""
    record = buried(Plain(headers=[("x", b"1")]))
    headers = list(record.headers)
    del headers[1 + missing]
    assert read(record._replace(headers=headers)) is None
    assert judge(None, 0, Choice("events", 4)) is Fate.FOREIGN


@pytest.mark.parametrize("name", ["callgate-partition", "callgate-timestamp"])
def test_numbers_that_are_none_are_foreign(name: str) -> None:
    """A partition or timestamp that is no number cannot be gone back to."""
    record = buried(Plain())
    headers = [(each, b"-x" if each == name else value) for each, value in record.headers]
    assert read(record._replace(headers=headers)) is None


@pytest.mark.parametrize(
    ("choice", "fate"),
    [
        (Choice("events", 4), Fate.MOVES),
        (Choice("others", 4), Fate.OTHER_TOPIC),
        (Choice("events", 3), Fate.NO_PARTITION),
        (Choice("events", 4, causes=frozenset({"not_json", "empty"})), Fate.MOVES),
        (Choice("events", 4, causes=frozenset({"empty"})), Fate.NOT_CHOSEN),
        (Choice("events", 4, since_ms=1_700_000_000_000), Fate.MOVES),
        (Choice("events", 4, since_ms=1_700_000_000_001), Fate.NOT_CHOSEN),
        (Choice("events", 4, until_ms=1_700_000_000_001), Fate.MOVES),
        (Choice("events", 4, until_ms=1_700_000_000_000), Fate.NOT_CHOSEN),
        (Choice("events", 4, first=50, last=50), Fate.MOVES),
        (Choice("events", 4, first=51), Fate.NOT_CHOSEN),
        (Choice("events", 4, last=49), Fate.NOT_CHOSEN),
        (Choice("events", 4, max_attempts=3), Fate.MOVES),
        (Choice("events", 4, max_attempts=2), Fate.TRIED),
    ],
)
def test_what_moves(choice: Choice, fate: Fate) -> None:
    """Cause, time, offset range and the loop guard, at their edges."""
    assert judge(letter_of(Plain(headers=[(ATTEMPTS, b"2")])), 50, choice) is fate


@given(st.integers(0, 50), SPANS, st.randoms())
def test_what_was_moved_is_a_set(offset: int, spans: list[tuple[int, int]], rng: random.Random) -> None:
    """In whatever order spans are added, the note holds them and nothing else, also written down and read again."""
    moved, model = Moved(offset), set(range(offset))
    rng.shuffle(spans)
    for first, length in spans:
        moved.add(first, first + length)
        model.update(range(first, first + length))
    text = moved.encode()
    assert text is not None
    for note in (moved, Moved.decode(moved.offset, text)):
        assert [number for number in range(400) if number in note] == sorted(model)
    assert moved.offset not in model


@pytest.mark.parametrize("text", [None, "", "x", "callgate-redrive/1", "callgate-redrive/1 5 s", "callgate-redrive/1 6 b00"])
def test_an_offset_that_was_reset_counts_by_itself(text: str | None) -> None:
    """Metadata of another offset, of somebody else or of none: everything before the offset is done with, nothing after it."""
    note = Moved.decode(5, text)
    assert (4 in note, 5 in note, 6 in note) == (True, False, False)


def test_room_is_bounded() -> None:
    """Every other one of 20,000 letters fits; where more are scattered than the metadata can hold there is no note."""
    every_other = Moved(0)
    for number in range(1, 20_000, 2):
        every_other.add(number, number + 1)
    text = every_other.encode()
    assert text is not None
    assert len(text) <= MAX_METADATA_BYTES
    assert 19_999 in Moved.decode(0, text)
    scattered = Moved(0)
    for number in range(1, 9_000_000, 1_000):
        scattered.add(number, number + 1)
    assert scattered.encode() is None
