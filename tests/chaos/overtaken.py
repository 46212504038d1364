"""Retention overtakes W while no member runs: the only fault after which something is lost, and it must be said, not skipped.

Owns the order of the steps and what cannot be judged any more: calls of streams with deleted records. What they were, and that
they were decided, is known to nobody then; a client that sends such a stream again gets its decisions again, under the same
ids. For every other call all must be as in any other run.
"""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Message, TopicPartition

from tests.chaos.arena import PARTITIONS, Arena
from tests.chaos.load import Name
from tests.chaos.verdict import Verdict, compare

BEFORE_P, BEYOND_P = 0, 1
"""Partitions whose log is cut between W and P, and beyond P."""


@dataclass(frozen=True)
class Overtaken:
    """What was found."""

    verdict: Verdict
    """Of the calls and dead letters whose records are all there."""
    given_up: int
    """Calls and dead letters with deleted records."""
    again: int
    """Of these, calls with more than one decision."""
    unseen: int
    """Of these, calls that were approved by what was left of them though the whole would have been rejected."""


def overtaken(folder: Path, seed: int, say: Callable[[str], None]) -> Overtaken:
    """End the members, cut the log of two partitions, start others, let them stop by name, then let them go on by the setting.

    Raises NeverBack, and AssertionError where a partition did not stop, stopped without its cause, or held up the others.
    """
    with Arena(folder, seed, members=2) as arena:
        arena.wait(arena.amid_calls, "no call is undecided")
        for member in arena.members:
            member.kill()
        arena.members.clear()
        commits = arena.rig.commits()
        cuts = {
            BEFORE_P: (commits[BEFORE_P].offset + commits[BEFORE_P].position) // 2 + 1,
            BEYOND_P: commits[BEYOND_P].position + 40,
        }
        arena.wait(lambda: arena.load.written[BEYOND_P] > cuts[BEYOND_P] + 100, "the load stands still")
        streams, values = _given_up(arena, cuts)
        topic = arena.rig.topics.events
        cut = [TopicPartition(topic, number, offset) for number, offset in cuts.items()]
        for future in arena.admin.delete_records(cut).values():
            future.result(30)
        say(f"The log is cut: { ({n: (c.offset, c.position, cuts.get(n)) for n, c in commits.items()}) } (W, P, cut)")
        _stop_by_name(arena, cuts)
        for _ in range(2):
            arena.members.append(arena.rig.start("offset_reset=earliest"))
        arena.recover()
        arena.finish()
        gone = Counter(name for m in _decisions(arena) if (name := _name(m))[0] in streams)
        again = sum(count > 1 for count in gone.values())
        count = sum(name[0] in streams for name in arena.load.calls) + values.total()
        return Overtaken(_verdict(arena, streams, values), count, again, _unseen(arena, streams))


def _given_up(arena: Arena, cuts: dict[int, int]) -> tuple[set[str], Counter[bytes]]:
    """Streams with a record that will be deleted, and unreadable values that will be and are not kept yet."""
    kept = Counter(m.value() or b"" for m in arena.rig.read(arena.rig.topics.dead_letter))
    deleted = [m for m in arena.rig.read(arena.rig.topics.events) if (m.offset() or 0) < cuts.get(m.partition() or 0, 0)]
    streams = {(m.key() or b"").decode() for m in deleted}
    unreadable = set(arena.load.dead_letters)
    values = Counter(value for m in deleted if (value := m.value() or b"") in unreadable)
    return streams, values - kept


def _stop_by_name(arena: Arena, cuts: dict[int, int]) -> None:
    """Start members as they are by default: the cut partitions stop, say why and publish nothing, and the others go on."""
    before = _published(arena, cuts)
    members = [arena.join(), arena.join()]
    stops: dict[int, str] = {}

    def all_stopped() -> bool:
        for member in members:
            stops.update({line["partition"]: line["cause"] for line in member.lines() if line["event"] == "partition_stopped"})
        return set(stops) == set(cuts)

    arena.wait(all_stopped, "a partition did not stop")
    assert all("is not in the log" in cause for cause in stops.values()), stops
    ends = list(arena.load.written)

    def others_go_on() -> bool:
        found = arena.rig.commits()
        return all(found[number].position >= ends[number] for number in range(PARTITIONS) if number not in cuts)

    arena.wait(others_go_on, "the other partitions were held up")
    assert _published(arena, cuts) == before
    assert [member.stop(60) for member in members] == [0, 0]
    arena.members.clear()


def _published(arena: Arena, cuts: dict[int, int]) -> int:
    topics = (arena.rig.topics.approved, arena.rig.topics.rejected, arena.rig.topics.dead_letter)
    return sum(m.partition() in cuts for topic in topics for m in arena.rig.read(topic))


def _decisions(arena: Arena) -> list[Message]:
    return [m for topic in (arena.rig.topics.approved, arena.rig.topics.rejected) for m in arena.rig.read(topic)]


def _verdict(arena: Arena, streams: set[str], values: Counter[bytes]) -> Verdict:
    load = arena.load
    kept = [m.value() or b"" for m in arena.rig.read(arena.rig.topics.dead_letter) if (m.value() or b"") not in values]
    sent = [value for value in load.dead_letters if value not in values]
    calls = {name: call for name, call in load.calls.items() if name[0] not in streams}
    return compare([m.value() or b"" for m in _decisions(arena) if _name(m)[0] not in streams], kept, calls, sent)


def _unseen(arena: Arena, streams: set[str]) -> int:
    approved = {name for m in arena.rig.read(arena.rig.topics.approved) if (name := _name(m))[0] in streams}
    return sum(name not in arena.load.calls or arena.load.calls[name].reason != "ok" for name in approved)


def _name(message: Message) -> Name:
    decision = json.loads(message.value() or b"null")
    return decision["stream"], decision["response_id"], decision["call_id"]
