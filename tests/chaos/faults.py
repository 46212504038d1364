"""The faults of a chaos run: what each one does, and from when on its pause counts.

Owns the list. A fault returns when its harm is done and whatever it took away is back; that everybody recovers is then the
members' own work, and the run waits for it.
"""

import signal
import time
from collections.abc import Callable
from typing import NamedTuple

from confluent_kafka import TopicPartition
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType  # type: ignore[attr-defined]

from tests.chaos.arena import EXPIRATION_MS, SESSION_SECONDS, Arena, said_by
from tests.chaos.proxy import Api
from tests.e2e.rig import Member

MOST_MEMBERS, FEWEST_MEMBERS = 4, 2
SMALL_BYTES = 120
"""Too small for a dead letter, and large enough for the marker of a transaction (78 bytes)."""
TRAPPED = (Api.PRODUCE, Api.ADD_PARTITIONS, Api.ADD_OFFSETS, Api.TXN_OFFSET_COMMIT, Api.END_TXN)
"""The steps of a transaction."""


class Hit(NamedTuple):
    """What a fault did."""

    since: float
    """Moment (monotonic, in s) from which on its pause counts."""
    landed: bool = True
    """Whether it hit what it was meant to hit."""
    note: str = ""


Fault = Callable[[Arena], Hit]


# -- members


def killed(arena: Arena) -> Hit:
    """SIGKILL of a member; another one starts at once."""
    victim = arena.victim()
    since = time.monotonic()
    victim.kill()
    arena.replace(victim)
    return Hit(since)


def zombie(arena: Arena) -> Hit:
    """SIGSTOP past the session, SIGCONT when another member has taken over."""
    victim = arena.victim()
    before = arena.rig.commits()
    with said_by([m for m in arena.members if m is not victim], "live") as others:
        since = time.monotonic()
        victim.process.send_signal(signal.SIGSTOP)
        try:
            arena.wait(lambda: len({line["partition"] for line in others()}) == len(before), "nobody took over")
            # Some time for the successor to work in, so that the zombie's memory is old.
            ends = list(arena.load.written)
            arena.wait(lambda: arena.caught_up(ends), "the successor does not go on")
        finally:
            victim.process.send_signal(signal.SIGCONT)
    return Hit(since)


def paused(arena: Arena) -> Hit:
    """SIGSTOP for less than the session, SIGCONT."""
    victim = arena.victim()
    since = time.monotonic()
    victim.process.send_signal(signal.SIGSTOP)
    time.sleep(SESSION_SECONDS * arena.rng.uniform(0.2, 0.6))
    victim.process.send_signal(signal.SIGCONT)
    return Hit(since)


def joined(arena: Arena) -> Hit:
    """A member joins."""
    since = time.monotonic()
    arena.join()
    return Hit(since)


def left(arena: Arena) -> Hit:
    """A member leaves after SIGTERM."""
    victim = arena.victim()
    arena.members.remove(victim)
    since = time.monotonic()
    code = victim.stop(60)
    return Hit(since, code == 0, f"exit code {code}" if code else "")


def restarted(arena: Arena, victim: Member) -> Hit:
    """SIGTERM of a member, and another in its place when it is gone: one step of a rolling restart."""
    since = time.monotonic()
    code = victim.stop(60)
    arena.replace(victim)
    return Hit(since, code == 0, f"exit code {code}" if code else "")


# -- the broker


def broker_stopped(arena: Arena) -> Hit:
    """The broker is stopped in order and comes back."""
    arena.broker.stop()
    arena.broker.start()
    return Hit(time.monotonic())


def broker_killed(arena: Arena) -> Hit:
    """SIGKILL of the broker while a transaction is open, or its end is not written everywhere; it comes back."""
    answer = arena.rng.random() < 0.5
    trap = arena.proxy.trap(Api.END_TXN, answer=answer)
    caught = trap.wait(10)
    arena.broker.kill()
    trap.cut()
    arena.proxy.forget(trap)
    arena.broker.start()
    return Hit(time.monotonic(), caught, "the end was decided" if answer else "the transaction was open")


# -- the network


def cut(arena: Arena) -> Hit:
    """Connections between members and broker are reset, some or all."""
    since = time.monotonic()
    arena.proxy.cut(arena.rng, arena.rng.choice((0.3, 0.6, 1.0)))
    return Hit(since)


def delayed(arena: Arena) -> Hit:
    """Every message between members and broker takes longer, for some seconds."""
    since = time.monotonic()
    arena.proxy.delay = arena.rng.uniform(0.05, 0.3)
    time.sleep(arena.rng.uniform(2, 4))
    arena.proxy.delay = 0.0
    return Hit(since)


def stalled(arena: Arena) -> Hit:
    """Connections hang without being closed, shorter or longer than the session."""
    since = time.monotonic()
    arena.proxy.stall(arena.rng, arena.rng.choice((0.3, 0.6, 1.0)), SESSION_SECONDS * arena.rng.uniform(0.5, 2.5))
    return Hit(since)


def answer_lost(arena: Arena) -> Hit:
    """The connection breaks after the broker did a step of a transaction, and before the member knows."""
    api = arena.rng.choice(TRAPPED)
    trap = arena.proxy.trap(api, answer=True)
    caught = trap.wait(10)
    since = time.monotonic()
    trap.cut()
    arena.proxy.forget(trap)
    return Hit(since, caught, api.name)


def request_late(arena: Arena) -> Hit:
    """A step of a transaction arrives when the member has given up and the partition was taken over: nothing may come of it."""
    api = arena.rng.choice(TRAPPED)
    trap = arena.proxy.trap(api, answer=False)
    caught = trap.wait(10)
    since = time.monotonic()
    with said_by(arena.members, "live") as lives:
        arena.wait(lambda: bool(lives()) or not caught, "it never gave up")
    trap.release()
    arena.proxy.forget(trap)
    return Hit(since, caught, api.name)


# -- topics


def dead_letters_refused(arena: Arena) -> Hit:
    """The dead-letter topic takes nothing: partitions stop and say so, until it has room and their member is restarted."""
    topic = arena.rig.topics.dead_letter
    with said_by(arena.members, "partition_stopped") as stops:
        resize(arena, topic, SMALL_BYTES)
        try:
            arena.wait(lambda: bool(stops()), "no partition stopped")
        finally:
            resize(arena, topic, 8 << 20)
        named = all("TooLarge" in line["cause"] for line in stops())
    since = time.monotonic()
    for member in [m for m in arena.members if m.get("/readyz")[0] != 200]:
        member.stop(60)
        arena.replace(member)
    return Hit(since, named)


def resize(arena: Arena, topic: str, size: int) -> None:
    """Set a topic's max.message.bytes."""
    entry = ConfigEntry("max.message.bytes", str(size), incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    for future in arena.admin.incremental_alter_configs([resource]).values():
        future.result(30)


def id_expired(arena: Arena) -> Hit:
    """Nothing is written for so long that the broker forgets the transactional ids; then the load goes on."""
    arena.load.hold()
    ends = list(arena.load.written)
    arena.wait(lambda: arena.caught_up(ends), "P did not reach the end")
    time.sleep(EXPIRATION_MS / 1000 + 2)
    amid = arena.amid_calls()
    with said_by(arena.members, "fenced") as fenced:
        since = time.monotonic()
        arena.load.flow()
        arena.wait(lambda: bool(fenced()), "no id had expired", 20)
        forgotten = any("InvalidProducerIdMapping" in line["cause"] for line in fenced())
    return Hit(since, amid and forgotten)


def retention(arena: Arena) -> Hit:
    """The records between W and P are deleted under a member that lives: it needs them only for a takeover."""
    topic = arena.rig.topics.events
    commits = arena.rig.commits()
    number = arena.rng.choice([n for n, commit in commits.items() if commit.offset < commit.position] or [0])
    before = commits[number].position
    since = time.monotonic()
    for future in arena.admin.delete_records([TopicPartition(topic, number, before)]).values():
        future.result(30)
    # Until W has passed the place no other fault may hit: a takeover would rightly stop by name.
    arena.wait(lambda: arena.rig.commits()[number].offset >= before, "W did not go on")
    return Hit(since, commits[number].offset < before)


FAULTS: dict[str, Fault] = {
    "member killed (SIGKILL)": killed,
    "member stopped past its session (zombie)": zombie,
    "member paused shortly": paused,
    "member joins": joined,
    "member leaves (SIGTERM)": left,
    "broker restarted": broker_stopped,
    "broker killed in mid-transaction": broker_killed,
    "connections cut": cut,
    "connections slow": delayed,
    "connections stalled": stalled,
    "answer to a step of a transaction lost": answer_lost,
    "step of a transaction late": request_late,
    "dead letters refused": dead_letters_refused,
    "transactional ids expired": id_expired,
    "retention overtakes W": retention,
}
