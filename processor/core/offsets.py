"""Which offset may be committed while calls are still open, and what its metadata says (design section 7).

Owns the commit point: W, P, T, E, the settings and their switches, and its encoding in the metadata of a Kafka offset commit.
It never talks to Kafka.
"""

from typing import Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from processor.core import limits
from processor.core.limits import MEANING, Bounds

_HIGHEST_OFFSET = (1 << 63) - 1


class Switch(Struct, frozen=True, array_like=True):
    """The settings changed between two records."""

    offset: int
    """Before the record at this offset ..."""
    watermark: int
    """... and when the watermark stood here (ms): idle moves at the same offset come before or after it by this."""
    bounds: Bounds


class Commit(Struct, frozen=True, kw_only=True):
    """Everything that a successor needs to rebuild a partition's state from its log."""

    offset: int
    """W: first offset of the oldest response that is open or known; the next offset, if there is none."""
    position: int
    """P: the next offset to decide. Everything before it is decided and published."""
    watermark: int
    """T: the watermark before W's record, in ms."""
    moves: tuple[tuple[int, int], ...]
    """E: idle moves of the watermark, as (offset, time in ms), after W."""
    bounds: Bounds
    """Settings in force at W."""
    switches: tuple[Switch, ...] = ()
    """Later changes of the settings, in order."""
    heads: tuple[int, ...] = ()
    """H: offsets from W on at which responses began without `response.created`, under keys of which something is known since.
    A rebuild begins none anywhere else: it would be the rest of a response that began before W and is over by P."""
    heads_from: int = 0
    """Offset from which on any may begin so, where there are more than MAX_HEADS; else P."""


class Foreign(Struct, frozen=True):
    """The metadata is not callgate's, or not of this offset: a fresh start there, said in the log."""

    why: str


class UnknownMeaning(ValueError):
    """The metadata was written by a core of another meaning: refused by name, an operator must act."""


class _Wire(Struct, array_like=True, forbid_unknown_fields=True):
    """The metadata as JSON: a name, a version of meaning, then the commit; offsets count from W, times from T."""

    name: Literal["callgate"]
    meaning: int
    offset: int
    ahead: int
    watermark: int
    moves: list[tuple[int, int]]
    bounds: Bounds
    switches: list[tuple[int, int, Bounds]]
    heads: list[int]
    heads_from: int


class _Head(Struct, array_like=True):
    name: Literal["callgate"]
    meaning: int


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_Wire).decode
_decode_head = msgspec.json.Decoder(_Head).decode


def encode(commit: Commit) -> str:
    """Metadata text of a commit."""
    at, since = commit.offset, commit.watermark
    wire = _Wire(
        "callgate",
        MEANING,
        at,
        commit.position - at,
        since,
        [(offset - at, time - since) for offset, time in commit.moves],
        commit.bounds,
        [(switch.offset - at, switch.watermark - since, switch.bounds) for switch in commit.switches],
        [head - at for head in commit.heads],
        commit.heads_from - at,
    )
    return _encode(wire).decode()


def decode(offset: int, metadata: str | None) -> Commit | Foreign:
    """Read a committed offset back.

    Raises UnknownMeaning where the version of meaning is another one.
    """
    if not metadata:
        return Foreign("the committed offset has no metadata")
    try:
        head = _decode_head(metadata)
    except msgspec.MsgspecError:
        return Foreign("the metadata of the committed offset is not callgate's")
    if head.meaning != MEANING:
        message = f"the committed state has meaning {head.meaning}, this version of callgate reads {MEANING} only"
        raise UnknownMeaning(message)
    try:
        wire = _decode(metadata)
    except msgspec.MsgspecError:
        return Foreign("the metadata of the committed offset cannot be read")
    if wire.offset != offset or wire.ahead < 0:
        return Foreign("the committed offset is not the one that its metadata was written for: somebody reset it")
    return Commit(
        offset=offset,
        position=offset + wire.ahead,
        watermark=wire.watermark,
        moves=tuple((offset + at, wire.watermark + time) for at, time in wire.moves),
        bounds=wire.bounds,
        switches=tuple(Switch(offset + at, wire.watermark + time, bounds) for at, time, bounds in wire.switches),
        heads=tuple(offset + head for head in wire.heads),
        heads_from=offset + wire.heads_from,
    )


def fits(commit: Commit) -> bool:
    """Whether the metadata has room for it, however far P goes on and H fills up from here: neither must push E out later."""
    most = replace(commit, position=_HIGHEST_OFFSET, heads=(_HIGHEST_OFFSET,) * limits.MAX_HEADS, heads_from=_HIGHEST_OFFSET)
    return len(encode(most).encode()) <= limits.METADATA_BYTES


def trim(commit: Commit) -> Commit:
    """Leave out what W has passed: a move or switch at or before W is contained in T and in the settings at W."""
    switches = commit.switches
    bounds = commit.bounds
    while switches and switches[0].offset <= commit.offset:
        bounds, switches = switches[0].bounds, switches[1:]
    moves = tuple(move for move in commit.moves if move[0] > commit.offset)
    return replace(commit, moves=moves, bounds=bounds, switches=switches)


def begun_at(commit: Commit, first: int) -> Commit:
    """Say what is left of a commit where the log begins at `first`, between W and P: a rebuild of what is still there.

    What was open before, and has no beginning any more, is judged by the records from P on.
    """
    passed = [time for offset, time in commit.moves if offset <= first]
    passed += [switch.watermark for switch in commit.switches if switch.offset <= first]
    return trim(replace(commit, offset=first, watermark=max([commit.watermark, *passed])))


def with_move(moves: tuple[tuple[int, int], ...], offset: int, time: int) -> tuple[tuple[int, int], ...]:
    """E with one more idle move: one entry an offset, the latest."""
    if moves and moves[-1][0] == offset:
        moves = moves[:-1]
    return (*moves, (offset, time))


def script(commit: Commit) -> list[tuple[int, int, Bounds | None]]:
    """What a rebuild does besides reading records: (offset, watermark, new settings), before the record at the offset.

    At one offset by watermark, and a move before the switch that was made after it.
    """
    steps: list[tuple[int, int, Bounds | None]] = [(offset, time, None) for offset, time in commit.moves]
    steps += [(switch.offset, switch.watermark, switch.bounds) for switch in commit.switches]
    return sorted(steps, key=lambda step: (step[0], step[1], step[2] is not None))
