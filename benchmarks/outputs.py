"""Reads what a processor published, as its consumers do, and compares it with the oracle.

Owns the comparison: every call decided exactly once, for the right reason, an approval with the exact arguments, on the right
topic, nothing else there. A row whose outputs differ does not count.
"""

import time
from collections.abc import Mapping, Sequence

import msgspec
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, TopicPartition

from benchmarks.stream import Expected


class Decision(msgspec.Struct):
    """What is compared of a decision."""

    decision: str
    reason: str
    call_id: str | None = None
    name: str | None = None
    arguments: str | None = None


class Outputs:
    """A committed reader of the output topics."""

    def __init__(self, bootstrap: str, topics: Mapping[str, str], partitions: int, calls: Mapping[str, Expected]) -> None:
        """`topics`: name of each by `approved` and `rejected`, and of others that must stay empty."""
        self._calls = calls
        self._names = {topic: word for word, topic in topics.items()}
        self._found: list[tuple[str, bytes]] = []
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "benchmark-outputs",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
            }
        )
        self._consumer.assign([TopicPartition(t, p, OFFSET_BEGINNING) for t in self._names for p in range(partitions)])

    def complete(self) -> bool:
        """Whether as many records as there are calls can be read."""
        deadline = time.monotonic() + 0.5
        while time.monotonic() < deadline:
            for message in self._consumer.consume(5_000, 0.1):
                error = message.error()
                if error is not None:
                    raise KafkaException(error)
                self._found.append((self._names[message.topic() or ""], message.value() or b""))
        return len(self._found) >= len(self._calls)

    def faults(self) -> list[str]:
        """One line for each difference from the oracle."""
        return differences(self._found, self._calls)

    def close(self) -> None:
        """Leave."""
        self._consumer.close()


def differences(found: Sequence[tuple[str, bytes]], calls: Mapping[str, Expected]) -> list[str]:
    """One line for each difference between what was found, as (`approved` or `rejected`, value), and the oracle."""
    seen: set[str | None] = set()
    faults = []
    for word, value in found:
        try:
            made = msgspec.json.decode(value, type=Decision)
        except msgspec.DecodeError as error:
            faults.append(f"on {word}: not a decision: {error}")
            continue
        wanted = calls.get(made.call_id or "")
        if wanted is None:
            faults.append(f"{made.call_id}: no such call")
            continue
        if made.call_id in seen:
            faults.append(f"{made.call_id}: decided twice")
        seen.add(made.call_id)
        verdict = "approved" if wanted.reason == "ok" else "rejected"
        if (word, made.decision, made.reason) != (verdict, verdict, wanted.reason):
            faults.append(f"{made.call_id}: {made.decision}, {made.reason} on {word}, not {wanted.reason}")
        elif made.name != wanted.name or (verdict == "approved" and made.arguments != wanted.arguments):
            faults.append(f"{made.call_id}: name or arguments are not those of the call")
    return faults + [f"{call_id}: not decided" for call_id in calls if call_id not in seen]
