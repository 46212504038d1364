"""Compares what a committed reader finds in the output topics with what the load was made of.

Owns the words lost, twice and wrong. It never asks callgate what it thinks.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from tests.chaos.load import Name
from tests.e2e.workload import Call


class Verdict(NamedTuple):
    """What was found; all three are empty where the promise was kept."""

    decided: int
    """Decisions found."""
    dead_letters: int
    """Dead letters found."""
    lost: list[str]
    """Calls without a decision, and dead letters that are not there."""
    twice: list[str]
    """Calls with more than one decision, decision ids used more than once, dead letters that are there too often."""
    wrong: list[str]
    """Decisions of calls that nobody made, with another reason, or with other arguments than were sent."""

    @property
    def clean(self) -> bool:
        """Whether nothing is lost, twice or wrong."""
        return not (self.lost or self.twice or self.wrong)

    def __str__(self) -> str:
        """In one line, with the first of each."""
        found = {"lost": self.lost, "twice": self.twice, "wrong": self.wrong}
        parts = [f"{name} {len(what)}{f' (first: {what[:3]})' if what else ''}" for name, what in found.items()]
        return f"{self.decided} decisions, {self.dead_letters} dead letters: " + ", ".join(parts)


def compare(
    decisions: Iterable[bytes], dead_letters: Iterable[bytes], calls: Mapping[Name, Call], unreadable: Iterable[bytes]
) -> Verdict:
    """Compare decisions and dead letters as read with the calls and the unreadable values that were written."""
    lost: list[str] = []
    twice: list[str] = []
    wrong: list[str] = []
    names: Counter[Name] = Counter()
    ids: Counter[str] = Counter()
    for value in decisions:
        decision = json.loads(value)
        name = decision["stream"], decision["response_id"], decision["call_id"]
        names[name] += 1
        ids[decision["id"]] += 1
        expected = calls.get(name)
        if expected is None:
            wrong.append(f"{name}: nobody made it")
        elif decision["reason"] != expected.reason:
            wrong.append(f"{name}: {decision['reason']}, not {expected.reason}")
        elif expected.arguments is not None and decision["arguments"] != expected.arguments:
            wrong.append(f"{name}: other arguments")
    lost += [str(name) for name in calls if name not in names]
    twice += [str(name) for name, count in names.items() if count > 1]
    twice += [name for name, count in ids.items() if count > 1]
    kept, sent = Counter(dead_letters), Counter(unreadable)
    lost += [f"dead letter {value!r}" for value in (sent - kept).elements()]
    twice += [f"dead letter {value!r}" for value in (kept - sent).elements()]
    return Verdict(names.total(), kept.total(), lost, twice, wrong)
