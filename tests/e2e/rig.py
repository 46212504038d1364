"""What the end-to-end tests share: topics, members as processes of their own, a paced writer, a committed reader.

Owns the processes that it starts: each ends with the test, whatever happens.
"""

import asyncio
import contextlib
import http.client
import json
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from aiokafka import structs
from confluent_kafka import Consumer, Message, Producer, TopicPartition

from processor.adapters.offset_fetch import Reader
from processor.core.offsets import Commit, decode
from processor.errors import Retryable
from processor.settings import Kafka
from tests.conftest import MakeTopic
from tests.contract.kit import Lines
from tests.e2e.workload import CLOSED_MEMORY_MS, STREAM_TIMEOUT_MS, TOOLS, Workload

OUTPUT = {"max.message.bytes": str(8 << 20)}
PATIENCE_SECONDS = 60.0


class Topics(NamedTuple):
    """Names of one test's topics."""

    events: str
    approved: str
    rejected: str
    dead_letter: str


class Rig:
    """One test's topics, group and members."""

    def __init__(self, bootstrap: str, make_topic: MakeTopic, folder: Path, partitions: int = 4, **settings: Any) -> None:
        """Make the topics and write the settings; `settings` go on top of the usual ones."""
        self.bootstrap = bootstrap
        self.partitions = partitions
        self.folder = folder
        self.group = f"e2e-{secrets.token_hex(4)}"
        names = ("events", "approved", "rejected", "dead-letter")
        made = [make_topic(name, partitions=partitions, config={} if name == "events" else OUTPUT) for name in names]
        self.topics = Topics(*made)
        tools = folder / "tools"
        tools.mkdir(exist_ok=True)
        (tools / "tools.json").write_text(json.dumps(TOOLS))
        self.config = folder / "callgate.yaml"
        self.config.write_text(json.dumps(self._settings(tools, settings)))
        self.members: list[Member] = []

    def _settings(self, tools: Path, more: dict[str, Any]) -> dict[str, Any]:
        kafka = {
            "bootstrap_servers": [self.bootstrap],
            "session_timeout": "1500ms",
            "heartbeat_interval": "200ms",
            "rebalance_timeout": "3s",
            "transaction_timeout": "10s",
        }
        return {
            "group": self.group,
            "schemas": str(tools),
            "stream_timeout": f"{STREAM_TIMEOUT_MS}ms",
            "closed_memory": f"{CLOSED_MEMORY_MS}ms",
            "idle_after": "10m",
            "progress_interval": "500ms",
            "topics": self.topics._asdict(),
            "kafka": kafka | more.pop("kafka", {}),
            "http": {"port": 0},
            "log": {"format": "json"},
            **more,
        }

    @contextlib.contextmanager
    def running(self) -> Iterator["Rig"]:
        """Kill every member at the end."""
        try:
            yield self
        finally:
            for member in self.members:
                member.kill()

    def start(self, *sets: str) -> "Member":
        """Start a member."""
        member = Member(self, len(self.members), sets)
        self.members.append(member)
        return member

    def write(self, work: Workload) -> None:
        """Write a workload at once."""
        write(self, work)

    # -- what the broker knows

    def commits(self) -> dict[int, Commit]:
        """W, P and the rest, of each partition that has a commit of callgate's."""
        # Not with librdkafka: the metadata that it hands to Python is at times another memory's.
        return asyncio.run(self._commits())

    async def _commits(self) -> dict[int, Commit]:
        reader = Reader(Kafka(bootstrap_servers=(self.bootstrap,)), self.group, Lines())
        found: dict[int, Commit] = {}
        await reader.start()
        try:
            for number in range(self.partitions):
                committed = await reader.committed(structs.TopicPartition(self.topics.events, number))
                commit = committed and decode(*committed)
                if isinstance(commit, Commit):
                    found[number] = commit
        except Retryable:
            # A broker that is just up has no coordinator yet.
            return {}
        finally:
            await reader.close()
        return found

    def ends(self) -> dict[int, int]:
        """End of each input partition."""
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": "nobody"})
        try:
            names = [TopicPartition(self.topics.events, number) for number in range(self.partitions)]
            return {one.partition: consumer.get_watermark_offsets(one, timeout=30)[1] for one in names}
        finally:
            consumer.close()

    def decided_up_to_the_end(self) -> bool:
        """Whether P is at the end everywhere."""
        commits = self.commits()
        return all(end == 0 or (n in commits and commits[n].position >= end) for n, end in self.ends().items())

    def read(self, topic: str) -> list[Message]:
        """Everything that a reader of committed records sees in a topic, up to its end."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": "nobody",
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
                "enable.auto.commit": False,
            }
        )
        try:
            consumer.assign([TopicPartition(topic, number, 0) for number in range(self.partitions)])
            found, ended = [], 0
            while ended < self.partitions:
                message = consumer.poll(PATIENCE_SECONDS)
                assert message is not None, "the output cannot be read to its end"
                fault = message.error()
                if fault is None:
                    found.append(message)
                else:
                    assert fault.name() == "_PARTITION_EOF", fault
                    ended += 1
            return found
        finally:
            consumer.close()

    def decisions(self) -> list[dict[str, Any]]:
        """All decisions."""
        messages = self.read(self.topics.approved) + self.read(self.topics.rejected)
        return [json.loads(message.value() or b"null") for message in messages]

    def settle(self) -> None:
        """Wait until everything is decided and committed."""
        wait_until(self.decided_up_to_the_end, "P never reached the end", self.explain)

    def explain(self) -> str:
        """Say where things stand, for a test that fails."""
        tails = [f"--- member {m.index}\n" + "\n".join(m.log().splitlines()[-12:]) for m in self.members[-3:]]
        where = {n: (c.offset, c.position) for n, c in self.commits().items()}
        return f"W, P {where}, ends {self.ends()}\n" + "\n".join(tails)


class Member:
    """One `callgate run`, as a process of its own."""

    def __init__(self, rig: Rig, index: int, sets: Sequence[str]) -> None:
        self.index = index
        self._file = rig.folder / f"member-{index}.log"
        command = [sys.executable, "-m", "processor", "run", "--config", str(rig.config)]
        command += [part for text in sets for part in ("--set", text)]
        with self._file.open("wb") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def log(self) -> str:
        """What it has written so far."""
        return self._file.read_text(errors="replace")

    def lines(self) -> list[dict[str, Any]]:
        """Its log lines."""
        return [json.loads(line) for line in self.log().splitlines() if line.startswith("{")]

    def get(self, path: str) -> tuple[int, str]:
        """Status and body of a page of its HTTP server."""
        wait_until(lambda: any(line["event"] == "http_listening" for line in self.lines()), "it never listened", self.log)
        port = next(line["port"] for line in self.lines() if line["event"] == "http_listening")
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def kill(self) -> None:
        """SIGKILL, if it still runs."""
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self, timeout: float = 30.0) -> int:
        """SIGTERM, once it listens to signals; returns the exit code."""
        wait_until(lambda: '"started"' in self.log() or self.process.poll() is not None, "it never started", self.log)
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout)


class Writer:
    """Writes a workload at a steady pace, in a thread of its own."""

    def __init__(self, rig: Rig, work: Workload, per_second: float) -> None:
        self._rig = rig
        self._work = work
        self._pause = 1 / per_second
        self._allowed = len(work.records)
        self._thread = threading.Thread(target=self._write, daemon=True)
        self.fault: BaseException | None = None

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def allow(self, share: float) -> None:
        """Let it write up to this share of the workload, and then wait: a slow machine must not miss what is tested."""
        self._allowed = int(share * len(self._work.records))

    def join(self) -> None:
        """Wait for the end; raises what went wrong."""
        self._thread.join()
        if self.fault is not None:
            raise self.fault

    def _write(self) -> None:
        try:
            write(self._rig, self._work, self._pause, lambda: self._allowed)
        except BaseException as fault:  # noqa: BLE001 - raised again in the test's thread
            self.fault = fault


def write(rig: Rig, work: Workload, pause: float = 0.0, allowed: Callable[[], int] | None = None) -> None:
    """Write a workload, one record every `pause` seconds, and never more than is allowed."""
    producer = Producer({"bootstrap.servers": rig.bootstrap, "linger.ms": 5, "enable.idempotence": True})
    last = max((late for *_, late in work.records), default=0)
    base = int(time.time() * 1000) - last
    began = time.monotonic()
    for count, (number, key, value, late) in enumerate(work.records):
        producer.produce(rig.topics.events, value, key, number, timestamp=base + late)
        if count % 50 == 0:
            producer.poll(0)
            while allowed is not None and count >= allowed():
                producer.poll(0.01)
                began += 0.01
            ahead = count * pause - (time.monotonic() - began)
            if ahead > 0:
                time.sleep(ahead)
    assert producer.flush(PATIENCE_SECONDS) == 0


def wait_until(what: Callable[[], bool], otherwise: str, explain: Callable[[], str] = str) -> None:
    """Poll until it holds; an assertion with an explanation where it does not in time."""
    patience = time.monotonic() + float(os.environ.get("CALLGATE_TEST_PATIENCE", PATIENCE_SECONDS))
    while not what():
        assert time.monotonic() < patience, f"{otherwise}\n{explain()}"
        time.sleep(0.05)
