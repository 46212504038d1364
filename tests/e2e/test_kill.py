"""Exactly once, end to end: members are killed while calls are undecided, and a committed reader sees each call once."""

import random
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.conftest import MakeTopic
from tests.e2e.rig import Member, Rig, Writer, wait_until
from tests.e2e.workload import Workload, make

KILLS = 10
EVENTS = 20_000


def check(rig: Rig, work: Workload) -> None:
    """Compare what a committed reader sees with what was made."""
    decisions = rig.decisions()
    names = [(d["stream"], d["response_id"], d["call_id"]) for d in decisions]
    twice = [name for name, count in Counter(names).items() if count > 1]
    wrong = []
    for name, decision in zip(names, decisions, strict=True):
        expected = work.calls.get(name)
        if (
            expected is None
            or decision["reason"] != expected.reason
            or (expected.arguments is not None and decision["arguments"] != expected.arguments)
        ):
            wrong.append((name, expected and expected.reason, decision["reason"]))
    lost = set(work.calls) - set(names)
    assert (len(lost), twice, wrong) == (0, [], []), f"lost {sorted(lost)[:3]}"
    assert len({d["id"] for d in decisions}) == len(decisions) == len(work.calls)
    assert Counter(m.value() for m in rig.read(rig.topics.dead_letter)) == Counter(work.dead_letters)


def kill_amid_calls(rig: Rig, rng: random.Random, members: list[Member], before: dict[int, int]) -> dict[int, int]:
    """SIGKILL one at a random moment at which W is below P; returns P at the kill."""
    victim = rng.choice(members)

    def moved() -> bool:
        assert victim.process.poll() is None, victim.log()
        return any(commit.position > before.get(number, 0) for number, commit in rig.commits().items())

    wait_until(moved, "nothing is decided any more", rig.explain)
    time.sleep(rng.uniform(0, 0.8))
    victim.kill()
    commits = rig.commits()
    assert any(commit.offset < commit.position for commit in commits.values()), "the kill came when nothing was undecided"
    members[members.index(victim)] = rig.start()
    return {number: commit.position for number, commit in commits.items()}


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("count", [1, 2])
def test_killed_ten_times(bootstrap: str, make_topic: MakeTopic, tmp_path: Path, count: int) -> None:
    """Issue 3: 20,000 events on 4 partitions, SIGKILL ten times (with two members: a rebalance each time), nothing lost."""
    rng = random.Random(count)
    work = make(count, EVENTS, 4)
    with Rig(bootstrap, make_topic, tmp_path).running() as rig:
        members = [rig.start() for _ in range(count)]
        writer = Writer(rig, work, per_second=1_000)
        writer.allow(0)
        writer.start()
        positions: dict[int, int] = {}
        for kill in range(KILLS):
            writer.allow((kill + 1) / (KILLS + 1))
            positions = kill_amid_calls(rig, rng, members, positions)
        writer.allow(1)
        writer.join()
        rig.settle()
        assert [member.stop() for member in members] == [0] * count, rig.explain()
        check(rig, work)
