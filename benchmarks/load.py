"""Puts a workload onto a topic, as fast as the broker takes it.

Owns how keys find their partitions (murmur2, as every Java client does it) and the gate: records are written in a transaction
that stays open, so that a read_committed consumer can start, join its group and settle before the first record exists for it,
and then finds all of them there at once.
"""

import argparse
import time
from collections.abc import Sequence

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from benchmarks.stream import Shape
from benchmarks.workload import Workload, make

TRANSACTION_MS = 900_000
"""How long a loaded topic may wait behind its gate: the broker's own bound."""


def create(bootstrap: str, topics: Sequence[str], partitions: int) -> None:
    """Create topics, and wait until every partition has a leader.

    Raises KafkaException where the broker refuses.
    """
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.create_topics([NewTopic(name, partitions, 1) for name in topics]).values():
        try:
            future.result(30)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise
    wanted = set(topics)
    while wanted:
        known = admin.list_topics(timeout=10).topics
        wanted = {n for n in wanted if n not in known or any(p.leader < 0 for p in known[n].partitions.values())}
        # The broker may have the same processor.
        time.sleep(0.02)


def delete(bootstrap: str, topics: Sequence[str]) -> None:
    """Delete topics; one that is not there is no error."""
    # Its futures end with the client: it is held by a name.
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.delete_topics(list(topics)).values():
        try:
            future.result(30)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise


class Load:
    """A workload on a topic, behind its gate until `open` is called."""

    def __init__(self, bootstrap: str, topic: str, workload: Workload) -> None:
        """Write all records. Raises KafkaException where one of them was refused."""
        self._failed: list[KafkaError] = []
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "transactional.id": f"benchmark-load-{topic}",
                "transaction.timeout.ms": TRANSACTION_MS,
                # The default partitioner of this client is another one; decisions and state are the same, traffic is not.
                "partitioner": "murmur2_random",
                "log_level": 3,
                "linger.ms": 20,
                "batch.size": 262_144,
                "queue.buffering.max.messages": 500_000,
            }
        )
        self._producer.init_transactions(60)
        self._producer.begin_transaction()
        for key, value in zip(workload.keys, workload.values, strict=True):
            self._produce(topic, key, value)
        left = self._producer.flush(120)
        if self._failed or left:
            raise KafkaException(self._failed[0] if self._failed else KafkaError(KafkaError._MSG_TIMED_OUT))

    def _produce(self, topic: str, key: bytes, value: bytes) -> None:
        while True:
            try:
                self._producer.produce(topic, value, key, on_delivery=self._delivered)
                self._producer.poll(0)
                return
            except BufferError:
                self._producer.poll(0.1)

    def _delivered(self, error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            self._failed.append(error)

    def open(self) -> None:
        """Open the gate: every record is there for a committed reader from now on."""
        self._producer.commit_transaction(60)


def main() -> None:
    """Load one workload onto a topic, gate open."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--bootstrap", default="127.0.0.1:29092")
    parser.add_argument("--topic", default="bench-in")
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--events", type=int, default=Shape().events)
    parser.add_argument("--seed", type=int, default=Shape().seed)
    options = parser.parse_args()
    workload = make(Shape(events=options.events, seed=options.seed))
    print(workload.summary())
    create(options.bootstrap, [options.topic], options.partitions)
    Load(options.bootstrap, options.topic, workload).open()


if __name__ == "__main__":
    main()
