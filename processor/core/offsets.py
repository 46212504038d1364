"""Which offset may be committed while calls are still open, and what its metadata says (design section 7).

Owns the commit point: W, P, T, E, the settings and their switches, and its encoding in the metadata of a Kafka offset commit.
It never talks to Kafka.
"""

from msgspec import Struct

from processor.core.limits import Bounds


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


class Foreign(Struct, frozen=True):
    """The metadata is not callgate's, or not of this offset: a fresh start there, said in the log."""

    why: str


class UnknownMeaning(ValueError):
    """The metadata was written by a core of another meaning: refused by name, an operator must act."""


def encode(commit: Commit) -> str:
    """Metadata text of a commit, at most METADATA_BYTES."""
    raise NotImplementedError


def decode(offset: int, metadata: str | None) -> Commit | Foreign:
    """Read a committed offset back.

    Raises UnknownMeaning where the version of meaning is another one.
    """
    raise NotImplementedError
