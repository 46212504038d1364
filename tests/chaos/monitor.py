"""An independent reader of the decisions, with another client library: it sees what a committed reader sees, and when.

Owns its consumer and thread. It never decides what is right: that is `verdict`, from a reading of its own.
"""

import json
import threading
import time
from bisect import bisect_right

from confluent_kafka import Consumer, TopicPartition

from tests.chaos.load import HURRY, Name


class Monitor:
    """Notes the arrival of every decision."""

    def __init__(self, bootstrap: str, topics: tuple[str, str], partitions: int) -> None:
        """Nothing is read yet."""
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "monitor",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "fetch.wait.max.ms": 50,
                "fetch.error.backoff.ms": 50,
                **HURRY,
            }
        )
        self._consumer.assign([TopicPartition(topic, number, 0) for topic in topics for number in range(partitions)])
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._ending = False
        self.arrivals: list[list[float]] = [[] for _ in range(partitions)]
        """Moments (monotonic, in s) at which decisions of a partition could be seen, in order."""
        self.decided: set[Name] = set()

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def close(self) -> None:
        """End."""
        self._ending = True
        self._thread.join()
        self._consumer.close()

    def pause(self, number: int, since: float) -> float:
        """Longest time without a decision of a partition from a moment on, in seconds."""
        arrivals = self.arrivals[number]
        later = arrivals[bisect_right(arrivals, since) :]
        return max((b - a for a, b in zip([since, *later], later, strict=False)), default=time.monotonic() - since)

    def _read(self) -> None:
        while not self._ending:
            message = self._consumer.poll(0.2)
            if message is None or message.error() is not None:
                continue
            decision = json.loads(message.value() or b"null")
            self.decided.add((decision["stream"], decision["response_id"], decision["call_id"]))
            number = message.partition()
            assert number is not None
            self.arrivals[number].append(time.monotonic())
