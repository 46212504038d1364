"""How long a takeover takes, by the number of records between W and P: `python -m benchmarks.recovery`.

One response falls silent at the beginning of a partition of 2,500 events a second and holds W there. A commit says, in
callgate's own words and by its own producer, that everything after it is decided; then a member takes over: it reads from W
to P before it goes on. Beside it the same records are read with aiokafka's getmany and thrown away. The last size is that of
20 minutes of silence, the default `stream_timeout`.

Owns topic, records and the two measured processes, each on a processor of its own; broker and this process have the other one.
"""

import argparse
import asyncio
import contextlib
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from aiokafka import AIOKafkaConsumer
from aiokafka.structs import TopicPartition
from confluent_kafka import Producer

from benchmarks.load import create
from benchmarks.measure import Watched, cpu_seconds
from benchmarks.page import commit_hash, put
from benchmarks.stream import Shape
from benchmarks.workload import Workload, make
from processor.adapters.publish import TransactionalPublisher
from processor.broker.server import Broker
from processor.core.offsets import Commit
from processor.settings import Kafka, Settings, Topics

EVENTS_A_SECOND = 2_500
SIZES = (30_000, 100_000, 300_000, 1_000_000, 3_000_000)
"""Records between W and P; the last one is 20 minutes."""
GROUP = TOPIC = "recovery"
PATIENCE_S = 900.0


class Row(NamedTuple):
    """What one size took, medians."""

    records: int
    takeover_s: float
    """From the assignment to the first record that is decided."""
    takeover_cpu_s: float
    reading_s: float
    reading_cpu_s: float


def records(workload: Workload, count: int) -> Iterator[tuple[bytes, bytes]]:
    """Keys and values: the silent stream, then the workload over and over, each time as other streams."""
    yield b"silent", b'{"type":"response.created","sequence_number":0,"response":{"id":"resp_silent","status":"in_progress"}}'
    made, lap = 1, 0
    while True:
        for key, value in zip(workload.keys, workload.values, strict=True):
            if made == count:
                return
            # Of the same length, so that every lap costs the same.
            other = b"resp_%06d" % lap + key[11:]
            yield other, value.replace(key, other)
            made += 1
        lap += 1


class Writer:
    """Writes the records in parts, with timestamps in the past."""

    def __init__(self, bootstrap: str, workload: Workload, count: int) -> None:
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 50,
                "batch.size": 500_000,
                "queue.buffering.max.messages": 100_000,
            }
        )
        self._records = records(workload, count)
        self._base = int(time.time() * 1000) - count * 1000 // EVENTS_A_SECOND
        self._written = 0

    def up_to(self, count: int) -> None:
        """Write until there are so many."""
        while self._written < count:
            key, value = next(self._records)
            stamp = self._base + self._written * 1000 // EVENTS_A_SECOND
            while True:
                try:
                    self._producer.produce(TOPIC, value, key, 0, timestamp=stamp)
                    break
                except BufferError:
                    self._producer.poll(0.1)
            self._written += 1
        if self._producer.flush(300):
            raise RuntimeError("the records could not be written")


class Member:
    """`callgate run` on its processor, watched through its log."""

    def __init__(self, folder: Path, core: int, number: int) -> None:
        self._log = folder / f"member-{number}.log"
        command = [sys.executable, "-m", "processor", "run", "--config", str(folder / "callgate.yaml")]
        self.process = Watched(command, core, self._log)

    def wait_live(self) -> tuple[float, float]:
        """Wait until the partition is live; returns wall time of the takeover, by its own log, and CPU time since the start."""
        deadline, cpu = time.monotonic() + PATIENCE_S, 0.0
        while time.monotonic() < deadline:
            said = self._log.read_text(errors="replace")
            if not cpu and '"started"' in said:
                cpu = cpu_seconds(self.process.pid)
            for line in said.splitlines():
                if '"live"' in line:
                    return float(json.loads(line)["seconds"]), cpu_seconds(self.process.pid) - cpu
            if self.process.ended:
                break
            time.sleep(0.02)
        raise RuntimeError(f"no takeover:\n{self.process.tail()}")

    def end(self) -> None:
        """Stop it in order: the next one need not wait for its session to end."""
        self.process.stop()


async def decided(bootstrap: str, count: int) -> None:
    """Commit what a member would have committed after so many records: W at the first one, P behind the last."""
    topics = Topics(events=TOPIC, approved="approved", rejected="rejected", dead_letter="dead-letter")
    settings = Settings(group=GROUP, topics=topics, kafka=Kafka(bootstrap_servers=(bootstrap,)))
    publisher = TransactionalPublisher(settings, TopicPartition(TOPIC, 0))
    await publisher.start()
    await publisher.publish([], Commit(offset=0, position=count, watermark=0, moves=(), bounds=settings.bounds()))
    await publisher.close()


async def read(bootstrap: str, count: int) -> tuple[float, float]:
    """Read so many records with getmany; returns wall and CPU seconds, the way there not included."""
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, enable_auto_commit=False, isolation_level="read_committed")
    await consumer.start()
    try:
        where = TopicPartition(TOPIC, 0)
        consumer.assign([where])
        consumer.seek(where, 0)
        began, cpu = time.monotonic(), time.process_time()
        left = count
        while left > 0:
            for found in (await consumer.getmany(timeout_ms=1000, max_records=5_000)).values():
                left -= len(found)
        return time.monotonic() - began, time.process_time() - cpu
    finally:
        await consumer.stop()


def configure(folder: Path, bootstrap: str, workload: Workload) -> None:
    """Write settings and tools."""
    (folder / "tools").mkdir()
    (folder / "tools" / "tools.json").write_text(json.dumps(workload.tools))
    settings = {
        "group": GROUP,
        "schemas": str(folder / "tools"),
        # The records are old by the clock on the wall: it must not let the silent stream expire.
        "idle_after": "10h",
        "topics": {"events": TOPIC, "approved": "approved", "rejected": "rejected", "dead_letter": "dead-letter"},
        "kafka": {"bootstrap_servers": [bootstrap]},
        "http": {"port": 0},
        "log": {"format": "json"},
    }
    (folder / "callgate.yaml").write_text(json.dumps(settings))


def measure(options: argparse.Namespace, bootstrap: str, folder: Path) -> list[Row]:
    """Write, decide and take over, size by size."""
    workload = make(Shape(events=30_000))
    create(bootstrap, [TOPIC], 1)
    configure(folder, bootstrap, workload)
    # It makes the outputs, as large as they must be.
    command = [sys.executable, "-m", "processor", "topics", "--config", str(folder / "callgate.yaml")]
    subprocess.run(command, check=True, capture_output=True)
    writer = Writer(bootstrap, workload, options.sizes[-1])
    rows, number = [], 0
    for size in options.sizes:
        writer.up_to(size)
        asyncio.run(decided(bootstrap, size))
        found: list[tuple[float, float, float, float]] = []
        for _ in range(options.repeats):
            member = Member(folder, options.core, number)
            number += 1
            takeover, cpu = member.wait_live()
            member.end()
            command = [sys.executable, "-m", "benchmarks.recovery", "--read", bootstrap, str(size)]
            said = subprocess.run(
                ["taskset", "-c", str(options.core), *command], capture_output=True, text=True, check=True
            ).stdout
            wall, reading_cpu = map(float, said.split())
            found.append((takeover, cpu, wall, reading_cpu))
            print(f"{size:>9,}: takeover {takeover:.2f} s, reading {wall:.2f} s", flush=True)
        rows.append(Row(size, *(statistics.median(column) for column in zip(*found, strict=True))))
    return rows


def render(rows: list[Row], repeats: int, command: str) -> str:
    """Make the table."""
    commit = commit_hash("processor", "benchmarks")
    where = f"Python {platform.python_version()}, {os.cpu_count()} CPUs, load {os.getloadavg()[2]:.0f} (15 minutes)"
    columns = ["records from W to P", "as silence at 2,500/s"]
    columns += [f"{what}, {unit}" for what in ("takeover", "plain reading") for unit in ("wall s", "CPU s", "records/s")]
    lines = [
        f"`{command}`, commit {commit}, {where}, medians of {repeats}. Rates",
        "are records per second of CPU time, which is what a processor to itself gives; wall time is that of this machine with",
        "its load.",
        "",
        f"| {' | '.join([*columns, 'share'])} |",
        "|" + " ---: |" * (len(columns) + 1),
    ]
    for row in rows:
        silence = f"{row.records / EVENTS_A_SECOND / 60:.1f} min"
        ours, theirs = row.records / row.takeover_cpu_s, row.records / row.reading_cpu_s
        lines.append(
            f"| {row.records:,} | {silence} | {row.takeover_s:.1f} | {row.takeover_cpu_s:.2f} | {ours:,.0f} "
            f"| {row.reading_s:.1f} | {row.reading_cpu_s:.2f} | {theirs:,.0f} | {ours / theirs:.0%} |"
        )
    return "\n".join(lines) + "\n"


def main() -> int:
    """Measure, print, and write the table into docs/reliability.md."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.recovery", description=__doc__)
    parser.add_argument("--sizes", type=lambda text: tuple(map(int, text.split(","))), default=SIZES)
    parser.add_argument("--repeats", type=int, default=3, help="takeovers and readings of each size (default: %(default)s)")
    parser.add_argument("--core", type=int, default=0, help="processor of the measured process (default: %(default)s)")
    parser.add_argument("--broker-core", type=int, default=1, help="of broker and harness (default: %(default)s)")
    parser.add_argument("--write", action="store_true", help="write the table into docs/reliability.md")
    parser.add_argument("--read", nargs=2, metavar=("BOOTSTRAP", "COUNT"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.read:
        print(*asyncio.run(read(options.read[0], int(options.read[1]))))
        return 0
    os.sched_setaffinity(0, {options.broker_core})
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="callgate-recovery-")))
        broker = stack.enter_context(Broker(heap_mb=1024, cpus=str(options.broker_core)))
        rows = measure(options, broker.bootstrap, folder)
    text = render(rows, options.repeats, "python -m benchmarks.recovery --write")
    print(f"\n{text}")
    if options.write:
        put(text, "recovery")
    return 0


if __name__ == "__main__":
    sys.exit(main())
