"""The load of a chaos run: a workload without end, written at a steady pace, and what is known of it.

Owns the writer's thread and the truth about what it wrote. Event time runs on its own clock, in the past, so that a slow
machine changes nothing about what must be decided.
"""

import contextlib
import threading
import time
from collections import deque

from confluent_kafka import KafkaError, Message, Producer

from tests.e2e.workload import STEP_MS, Call, Workload, make

PAST_MS = 24 * 3_600_000
"""How far in the past event time begins: it may run faster than the clock on the wall, and never overtakes it."""
HURRY = {"reconnect.backoff.ms": 50, "reconnect.backoff.max.ms": 200, "log_level": 0}
"""Nobody should wait for the measuring side after the broker is back; librdkafka's own lines about it are no news."""

Name = tuple[str, str, str]
"""Stream, response and call_id."""


class Load:
    """Writes wave after wave until told to end."""

    def __init__(self, bootstrap: str, topic: str, partitions: int, *, seed: int, per_second: float, wave: int = 8_000) -> None:
        """Nothing is written yet. `per_second`: records over all partitions. `wave`: events made at a time."""
        self._topic = topic
        self._partitions = partitions
        self._seed = seed
        self._pause = 1 / per_second
        self._wave = wave
        self._producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5, "enable.idempotence": True, **HURRY})
        self._thread = threading.Thread(target=self._write, daemon=True)
        self._flows = threading.Event()
        self._flows.set()
        self._ending = self._abandoned = False
        self._begun: deque[list[Name]] = deque()
        self._fault: BaseException | None = None
        self.calls: dict[Name, Call] = {}
        """What must be decided, all waves together."""
        self.dead_letters: list[bytes] = []
        self.written = [0] * partitions
        """End of each partition as far as the broker has acknowledged it."""
        self.records = 0

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def hold(self) -> None:
        """Write nothing for now."""
        self._flows.clear()

    def flow(self) -> None:
        """Go on."""
        self._flows.set()

    def finish(self) -> None:
        """Write this wave to its end, and no other. Raises what went wrong."""
        self._ending = True
        self.flow()
        self._thread.join()
        self.check()

    def abandon(self) -> None:
        """End in the middle, whatever becomes of it."""
        self._abandoned = True
        self.flow()
        self._thread.join(5)

    def check(self) -> None:
        """Raise what went wrong, if anything."""
        if self._fault is not None:
            raise self._fault

    def undecided(self, decided: set[Name]) -> int:
        """Calls of streams that have begun and that nobody has seen a decision of, at least so many."""
        waiting = [left for names in list(self._begun) if (left := [name for name in names if name not in decided])]
        with contextlib.suppress(IndexError):
            while all(name in decided for name in self._begun[0]):
                self._begun.popleft()
        return sum(map(len, waiting))

    def _write(self) -> None:
        try:
            base, wave = int(time.time() * 1000) - PAST_MS, 0
            while not (self._ending or self._abandoned):
                work = make(self._seed * 10_000 + wave, self._wave, self._partitions, prefix=f"wave-{wave}-")
                self.calls |= work.calls
                self.dead_letters += work.dead_letters
                self._write_wave(work, base)
                base += max(late for *_, late in work.records) + STEP_MS
                wave += 1
            assert self._producer.flush(120) == 0, "the load could not be written"
        except BaseException as fault:  # noqa: BLE001 - raised again in the thread that asks
            self._fault = fault

    def _write_wave(self, work: Workload, base: int) -> None:
        first: dict[str, list[Name]] = {}
        for name in work.calls:
            if name[1].endswith("-0"):
                first.setdefault(name[0], []).append(name)
        due = time.monotonic()
        for number, key, value, late in work.records:
            self._flows.wait()
            while not self._abandoned:
                try:
                    self._producer.produce(self._topic, value, key, number, timestamp=base + late, on_delivery=self._delivered)
                    break
                except BufferError:
                    self._producer.poll(0.05)
            if self._abandoned:
                return
            self.records += 1
            if names := first.pop(key.decode(), None):
                self._begun.append(names)
            due = max(due + self._pause, time.monotonic() - 1.0)
            self._producer.poll(max(0.0, due - time.monotonic()))

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        assert error is None, f"the load was refused: {error}"
        number, offset = message.partition(), message.offset()
        assert number is not None
        assert offset is not None
        self.written[number] = max(self.written[number], offset + 1)
