"""How a member ends: by one signal, by two, and what the next one makes of it."""

import signal
from pathlib import Path

import pytest

from tests.conftest import MakeTopic
from tests.e2e.rig import Rig, Writer, wait_until
from tests.e2e.test_kill import check
from tests.e2e.workload import make


def under_way(rig: Rig) -> bool:
    """Whether calls are decided, and others are open."""
    return any(commit.offset < commit.position for commit in rig.commits().values())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_one_signal_ends_cleanly(bootstrap: str, make_topic: MakeTopic, tmp_path: Path, number: int) -> None:
    """Issue 3: a signal ends the transaction, leaves the group and exits with 0, well within the grace period."""
    work = make(11, 3_000, 4)
    with Rig(bootstrap, make_topic, tmp_path, shutdown_grace="10m").running() as rig:
        first = rig.start()
        writer = Writer(rig, work, per_second=700)
        writer.start()
        wait_until(lambda: under_way(rig), "nothing is decided", rig.explain)
        first.process.send_signal(number)
        assert first.process.wait(60) == 0, first.log()
        # It left the group: the next member does not wait for a session to end, and repeats nothing.
        second = rig.start()
        writer.join()
        rig.settle()
        assert second.stop() == 0
        check(rig, work)


def test_two_signals_end_at_once(bootstrap: str, make_topic: MakeTopic, tmp_path: Path) -> None:
    """Issue 3: a second signal ends the process at once, without a commit, and nothing is lost or done twice."""
    work = make(12, 3_000, 4)
    with Rig(bootstrap, make_topic, tmp_path).running() as rig:
        first = rig.start()
        writer = Writer(rig, work, per_second=700)
        writer.start()
        wait_until(lambda: under_way(rig), "nothing is decided", rig.explain)
        first.process.send_signal(signal.SIGTERM)
        first.process.send_signal(signal.SIGINT)
        assert first.process.wait(10) in {0, 130}, first.log()
        rig.start()
        writer.join()
        rig.settle()
        assert rig.members[-1].stop() == 0
        check(rig, work)


def test_at_least_once_needs_no_transactions(bootstrap: str, make_topic: MakeTopic, tmp_path: Path) -> None:
    """Section 7: `at_least_once` commits the same offset and metadata; after a kill decisions may come twice, never less."""
    work = make(13, 3_000, 4)
    with Rig(bootstrap, make_topic, tmp_path, delivery="at_least_once").running() as rig:
        first = rig.start()
        writer = Writer(rig, work, per_second=700)
        writer.start()
        wait_until(lambda: under_way(rig), "nothing is decided", rig.explain)
        first.kill()
        second = rig.start()
        writer.join()
        rig.settle()
        assert second.stop() == 0
        decisions = rig.decisions()
        by_id = {d["id"]: d for d in decisions}
        found = {(d["stream"], d["response_id"], d["call_id"]): d["reason"] for d in by_id.values()}
        assert found == {name: call.reason for name, call in work.calls.items()}
        assert all(d["reason"] == by_id[d["id"]]["reason"] for d in decisions)


def test_a_paused_member_does_no_harm(bootstrap: str, make_topic: MakeTopic, tmp_path: Path) -> None:
    """Section 7, fencing: a member stopped past its session wakes up as a zombie, and neither repeats nor blocks anything."""
    work = make(14, 6_000, 4)
    with Rig(bootstrap, make_topic, tmp_path).running() as rig:
        first = rig.start()
        writer = Writer(rig, work, per_second=600)
        writer.start()
        wait_until(lambda: under_way(rig), "nothing is decided", rig.explain)
        first.process.send_signal(signal.SIGSTOP)
        before = rig.commits()
        second = rig.start()
        wait_until(
            lambda: any(c.position > before[n].position for n, c in rig.commits().items() if n in before),
            "nobody took over",
            rig.explain,
        )
        first.process.send_signal(signal.SIGCONT)
        writer.join()
        rig.settle()
        assert [first.stop(), second.stop()] == [0, 0]
        check(rig, work)
