"""The broker's side of a consumer group: members, generations, eager rebalances, session time-outs, committed offsets.

Owns who is a member and what is committed. It assigns nothing (the leader among the members does), and reads no request.
"""

import asyncio
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tests.simulation.log import Refused

ILLEGAL_GENERATION, UNKNOWN_MEMBER, REBALANCE_IN_PROGRESS, MEMBER_ID_REQUIRED = 22, 25, 27, 79
UNSTABLE = 88

Answer = Callable[[int, Any], None]
"""Takes an error code and what was asked for."""


class Joined(NamedTuple):
    """Answer to a join."""

    generation: int
    protocol: str
    leader: str
    member: str
    members: list[tuple[str, str | None, bytes]]


class Place(NamedTuple):
    """A committed offset."""

    offset: int
    metadata: str
    number: int
    """Its place among all commits, pending ones included: the later one counts."""
    transaction: int = 0
    """That it came in; 0: a plain commit."""


@dataclass
class Member:
    """One member."""

    ident: str
    session_seconds: float
    rebalance_seconds: float
    protocol: str = ""
    metadata: bytes = b""
    assignment: bytes = b""
    joining: Answer | None = None
    syncing: Answer | None = None
    expiry: asyncio.TimerHandle | None = None


@dataclass
class Group:
    """One consumer group."""

    loop: asyncio.AbstractEventLoop
    on_commit: Callable[[tuple[str, int], Place], None] = lambda *_: None
    """Told of each commit that becomes visible."""
    state: str = "empty"
    """`empty`, `joining`, `syncing` or `stable`."""
    generation: int = 0
    leader: str = ""
    members: dict[str, Member] = field(default_factory=dict)
    promised: set[str] = field(default_factory=set)
    """Names that were given out to members that have not joined yet."""
    offsets: dict[tuple[str, int], Place] = field(default_factory=dict)
    pending: dict[int, dict[tuple[str, int], Place]] = field(default_factory=dict)
    """By the number of the transaction: offsets whose markers are not written."""
    _names: Any = field(default_factory=lambda: itertools.count(1))
    _commits: Any = field(default_factory=lambda: itertools.count(1))
    _deadline: asyncio.TimerHandle | None = None

    # -- membership

    def join(self, ident: str, session: float, rebalance: float, protocol: str, metadata: bytes, answer: Answer) -> None:
        """Join, or join again; the answer comes when everybody has, or the time is up."""
        if not ident:
            ident = f"member-{next(self._names)}"
            self.promised.add(ident)
            answer(MEMBER_ID_REQUIRED, Joined(-1, "", "", ident, []))
            return
        member = self.members.get(ident)
        if member is None:
            if ident not in self.promised:
                answer(UNKNOWN_MEMBER, Joined(-1, "", "", ident, []))
                return
            self.promised.discard(ident)
            member = self.members[ident] = Member(ident, session, rebalance)
        elif self.state in {"stable", "syncing"} and member.metadata == metadata and ident != self.leader:
            self._renew(member)
            answer(0, self._joined(member))
            return
        member.protocol, member.metadata, member.joining = protocol, metadata, answer
        self._renew(member)
        if self.state != "joining":
            self.rebalance()
        self._all_joined()

    def rebalance(self) -> None:
        """Begin a new generation: everybody has to join again."""
        if self.state == "joining" or not self.members:
            return
        self.state = "joining"
        for member in self.members.values():
            if member.syncing is not None:
                answer, member.syncing = member.syncing, None
                answer(REBALANCE_IN_PROGRESS, b"")
        seconds = max(member.rebalance_seconds for member in self.members.values())
        self._deadline = self.loop.call_later(seconds, self._time_is_up)

    def _time_is_up(self) -> None:
        for member in list(self.members.values()):
            if member.joining is None:
                self._remove(member)
        self._all_joined()

    def _all_joined(self) -> None:
        if self.state != "joining":
            return
        if not self.members:
            self.state = "empty"
        if any(member.joining is None for member in self.members.values()):
            return
        if self._deadline is not None:
            self._deadline.cancel()
        if self.state == "empty":
            return
        self.generation += 1
        self.state = "syncing"
        if self.leader not in self.members:
            self.leader = next(iter(self.members))
        for member in self.members.values():
            answer, member.joining = member.joining, None
            member.assignment = b""
            self._renew(member)
            assert answer is not None
            answer(0, self._joined(member))

    def _joined(self, member: Member) -> Joined:
        everybody: list[tuple[str, str | None, bytes]] = [(one.ident, None, one.metadata) for one in self.members.values()]
        return Joined(
            self.generation,
            member.protocol,
            self.leader,
            member.ident,
            everybody if member.ident == self.leader else [],
        )

    def sync(self, ident: str, generation: int, assignments: dict[str, bytes], answer: Answer) -> None:
        """Bring or fetch the assignments of this generation."""
        try:
            member = self._known(ident, generation)
        except Refused as refused:
            answer(refused.code, b"")
            return
        self._renew(member)
        if self.state == "joining":
            answer(REBALANCE_IN_PROGRESS, b"")
        elif self.state == "stable":
            answer(0, member.assignment)
        else:
            member.syncing = answer
            if ident == self.leader:
                self.state = "stable"
                for one in self.members.values():
                    one.assignment = assignments.get(one.ident, b"")
                    waiting, one.syncing = one.syncing, None
                    if waiting is not None:
                        waiting(0, one.assignment)

    def heartbeat(self, ident: str, generation: int) -> None:
        """Renew a session. Raises Refused."""
        member = self._known(ident, generation)
        self._renew(member)
        if self.state == "joining":
            raise Refused(REBALANCE_IN_PROGRESS)

    def leave(self, ident: str) -> None:
        """Leave at once. Raises Refused."""
        member = self.members.get(ident)
        if member is None:
            raise Refused(UNKNOWN_MEMBER)
        self._remove(member)
        self._after_removal()

    def _known(self, ident: str, generation: int) -> Member:
        member = self.members.get(ident)
        if member is None:
            raise Refused(UNKNOWN_MEMBER)
        if generation != self.generation:
            raise Refused(ILLEGAL_GENERATION)
        return member

    def _renew(self, member: Member) -> None:
        if member.expiry is not None:
            member.expiry.cancel()
        member.expiry = self.loop.call_later(member.session_seconds, self._expire, member)

    def _expire(self, member: Member) -> None:
        if self.members.get(member.ident) is not member:
            return
        if member.joining is not None:
            # It waits for the others, not they for it.
            self._renew(member)
            return
        self._remove(member)
        self._after_removal()

    def _remove(self, member: Member) -> None:
        del self.members[member.ident]
        if member.expiry is not None:
            member.expiry.cancel()
        for answer in (member.joining, member.syncing):
            if answer is not None:
                answer(UNKNOWN_MEMBER, b"" if answer is member.syncing else Joined(-1, "", "", member.ident, []))
        member.joining = member.syncing = None

    def _after_removal(self) -> None:
        if self.state == "joining":
            self._all_joined()
        elif self.members:
            self.rebalance()
        else:
            self.state = "empty"

    # -- offsets

    def commit(self, ident: str, generation: int, offsets: dict[tuple[str, int], tuple[int, str]]) -> None:
        """Commit as a member, without a transaction. Raises Refused."""
        self._known(ident, generation)
        if self.state == "syncing":
            raise Refused(REBALANCE_IN_PROGRESS)
        for where, (offset, metadata) in offsets.items():
            self._visible(where, Place(offset, metadata, next(self._commits)))

    def promise(self, number: int, offsets: dict[tuple[str, int], tuple[int, str]]) -> None:
        """Keep the offsets of a transaction until its marker comes."""
        kept = self.pending.setdefault(number, {})
        for where, (offset, metadata) in offsets.items():
            kept[where] = Place(offset, metadata, next(self._commits), number)

    def settle(self, number: int, *, commit: bool) -> None:
        """A marker came: what was promised becomes visible, or never was."""
        promised = self.pending.pop(number, {})
        if commit:
            for where, place in promised.items():
                known = self.offsets.get(where)
                if known is None or known.number < place.number:
                    self._visible(where, place)

    def committed(self, where: tuple[str, int], *, stable: bool) -> Place | None:
        """The committed offset. Raises Refused where `stable` is asked for and one is pending."""
        if stable and any(where in promised for promised in self.pending.values()):
            raise Refused(UNSTABLE)
        return self.offsets.get(where)

    def _visible(self, where: tuple[str, int], place: Place) -> None:
        self.offsets[where] = place
        self.on_commit(where, place)
