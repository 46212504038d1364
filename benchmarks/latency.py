"""Added latency: from the last event of a response to the moment at which a committed reader has the decision.

Records are written at a steady rate, each to a partition of our choosing, so that its offset is known without asking. A
decision names the offset of the record that released it (`source.last_offset`), and floor 2 is told to write the offset of the
record that each of its own was made of. Both are thus measured in the same way: the reader's clock when it has the record, less
the same clock when the input was given to the client. What is sent in the first seconds does not count. The decisions are held
against the oracle, or the row has no figure.
"""

import argparse
import itertools
import statistics
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import msgspec
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Producer, TopicPartition

from benchmarks import harness, report, rows
from benchmarks.load import create, delete
from benchmarks.measure import MeasureError, Watched, cpu_seconds
from benchmarks.outputs import differences
from benchmarks.stream import Shape
from benchmarks.workload import Workload, make

LOADS = {200: 40.0, 2_000: 15.0, 20_000: 8.0}
"""Events a second, and for how many seconds: enough decisions for a 99th percentile."""
WARM_S = 2.0
"""Seconds at the beginning that do not count: connections, first transactions, branches never taken before."""
LINGER_MS = 5
"""The default of Kafka's own client."""
SLICE_S = 0.001
"""Pause between two looks at what is due."""
LATE_S = 30.0
"""How long the last decision may take."""
QUANTILES = (0.5, 0.99, 0.999)


class Released(msgspec.Struct):
    """What is read of a decision beside its verdict."""

    last_offset: int


class Decided(msgspec.Struct):
    """A decision, as far as it matters here."""

    source: Released


class Found(NamedTuple):
    """What one run of one row showed."""

    seconds: list[float]
    """Latency of each output that counts."""
    cpu_share: float
    """Share of a core that the process took."""


class Pace(threading.Thread):
    """Writes a workload at a steady rate, and knows when each offset was given to the client."""

    def __init__(self, bootstrap: str, topic: str, partitions: int, workload: Workload, rate: int) -> None:
        super().__init__(daemon=True)
        self.topic = topic
        self.rate = rate
        self.workload = workload
        self.sent: list[list[float]] = [[] for _ in range(partitions)]
        """By partition and offset."""
        self.began = 0.0
        self.late_s = 0.0
        """The furthest that the writer was behind its plan: how well the rate was kept."""
        self.failed: list[str] = []
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                # In order on one connection, and nothing is sent twice: a record that fails ends the run. (An idempotent
                # producer of this library takes a whole processor while its five requests in flight are not answered.)
                "enable.idempotence": False,
                "retries": 0,
                "linger.ms": LINGER_MS,
                "delivery.report.only.error": True,
                "queue.buffering.max.messages": 500_000,
                "log_level": 3,
                "topic.metadata.refresh.fast.interval.ms": 10,
            }
        )
        # A client that knows a partition without a leader holds its records back for seconds.
        while any(each.leader < 0 for each in self._producer.list_topics(topic, 10).topics[topic].partitions.values()):
            time.sleep(0.05)

    def run(self) -> None:
        """Write everything."""
        producer, sent, clock = self._producer, self.sent, time.perf_counter
        records = enumerate(zip(self.workload.keys, self.workload.values, strict=True))
        partitions = len(sent)
        self.began = clock()
        for batch in self._due(records):
            for key, value in batch:
                partition = zlib.crc32(key) % partitions
                sent[partition].append(clock())
                producer.produce(self.topic, value, key, partition, on_delivery=self._refused)
            producer.poll(0)
        if producer.flush(60):
            self.failed.append("records were left unsent")

    def _due(self, records: Iterator[tuple[int, tuple[bytes, bytes]]]) -> Iterator[list[tuple[bytes, bytes]]]:
        done, total = 0, len(self.workload.values)
        while done < total:
            passed = time.perf_counter() - self.began
            count = min(int(passed * self.rate), total) - done
            if count > 0:
                self.late_s = max(self.late_s, passed - (done + 1) / self.rate)
                yield [record for _, record in itertools.islice(records, count)]
                done += count
            time.sleep(SLICE_S)

    def _refused(self, error: object, _message: object) -> None:
        self.failed.append(str(error))


class Reader:
    """A committed reader of the outputs that stamps what it reads."""

    def __init__(self, bootstrap: str, topics: dict[str, str], partitions: int) -> None:
        self._names = {topic: word for word, topic in topics.items()}
        self.read: list[tuple[float, int, str, bytes]] = []
        """Time, partition, word of the topic, value."""
        options = {"bootstrap.servers": bootstrap, "group.id": "benchmark-latency", "isolation.level": "read_committed"}
        self._consumer = Consumer({**options, "enable.auto.commit": False})
        self._consumer.assign([TopicPartition(t, p, OFFSET_BEGINNING) for t in self._names for p in range(partitions)])

    def take(self, wait_s: float) -> None:
        """Read what comes within so long."""
        until = time.perf_counter() + wait_s
        while (left := until - time.perf_counter()) > 0:
            message = self._consumer.poll(left)
            now = time.perf_counter()
            if message is None:
                return
            if (error := message.error()) is not None:
                raise KafkaException(error)
            self.read.append((now, message.partition() or 0, self._names[message.topic() or ""], message.value() or b""))

    def close(self) -> None:
        """Leave."""
        self._consumer.close()


def floor(commit_ms: int) -> Callable[[rows.Run], tuple[list[str], dict[str, str]]]:
    """Make a row of floor 2."""

    def prepare(run: rows.Run) -> tuple[list[str], dict[str, str]]:
        output = run.outputs["approved"]
        create(run.setting.bootstrap, [run.topic, output], run.setting.partitions)
        more = ["--output", output, "--partitions", str(run.setting.partitions), "--per", str(run.setting.per)]
        more += ["--carry", "--commit-ms", str(commit_ms)]
        return [*rows.script("floor_transaction", run), *more], {"approved": output}

    return prepare


def callgate(run: rows.Run) -> tuple[list[str], dict[str, str]]:
    """Callgate with default settings."""
    options = rows.callgate_options(run)
    rows.callgate_topics(options)
    return [sys.executable, "-m", "processor", "run", *options], run.outputs


ROWS = {"floor-2": floor(100), "floor-2-20": floor(20), "callgate": callgate}
MEANING = {
    "floor-2": "floor 2, commit every 100 ms",
    "floor-2-20": "floor 2, commit every 20 ms",
    "callgate": "callgate, default settings",
}


def measure(setting: rows.Setting, row: str, rate: int, number: int) -> Found:
    """Run one row once at one load. Raises MeasureError where it has no figure."""
    run = rows.Run(setting, f"{row}-{rate}", number)
    process = reader = None
    try:
        command, outputs = ROWS[row](run)
        process = Watched(command, setting.core, run.log)
        process.wait_ready(run.joined)
        reader = Reader(setting.bootstrap, outputs, setting.partitions)
        reader.take(0.5)
        pace = Pace(setting.bootstrap, run.topic, setting.partitions, setting.workload, rate)
        before, began = cpu_seconds(process.pid), time.monotonic()
        pace.start()
        wanted = len(setting.workload.calls) if row == "callgate" else int(setting.events / setting.per) - setting.partitions
        while pace.is_alive():
            reader.take(0.1)
        used = (cpu_seconds(process.pid) - before) / (time.monotonic() - began)
        deadline = time.monotonic() + LATE_S
        while len(reader.read) < wanted and time.monotonic() < deadline:
            reader.take(0.1)
        process.stop()
        if pace.failed:
            raise MeasureError(f"the input could not be written: {pace.failed[0]}")
        if pace.late_s > 1:
            print(f"the writer was up to {pace.late_s:.1f} s behind its plan: the machine cannot do {rate} a second")
        if row == "callgate":
            faults = differences([(word, value) for _, _, word, value in reader.read], setting.workload.calls)
            if faults:
                raise MeasureError(f"{len(faults)} outputs are not those of the oracle:\n" + "\n".join(faults[:5]))
        return Found(_latencies(row, reader, pace), used)
    finally:
        if process is not None:
            process.kill()
        if reader is not None:
            reader.close()
        delete(setting.bootstrap, run.topics())


def _latencies(row: str, reader: Reader, pace: Pace) -> list[float]:
    """Seconds of each output whose input was sent after the beginning."""
    found = []
    decode = msgspec.json.Decoder(Decided).decode
    for now, partition, _, value in reader.read:
        offset = decode(value).source.last_offset if row == "callgate" else int(value)
        sent = pace.sent[partition][offset]
        if sent - pace.began >= WARM_S:
            found.append(now - sent)
    return found


def quantile(values: Sequence[float], share: float) -> float:
    """Nearest rank."""
    return sorted(values)[min(int(share * len(values)), len(values) - 1)]


def table(found: dict[tuple[int, str], list[Found]]) -> str:
    """One line a load and row: medians over the repeats, with least and most, and the 99th percentile against both floors."""
    lines = [
        "| events/s | row | outputs | p50, ms | p99, ms | p99.9, ms | p99 to floor 2 | p99 to the second | CPU, % of a core |",
        "| ---: | --- | ---: | --- | --- | --- | --- | --- | ---: |",
    ]
    for (rate, row), runs in found.items():
        cells = [f"{rate:,}", MEANING[row], f"{sum(len(run.seconds) for run in runs):,}"]
        cells += [report.spread([1000 * quantile(run.seconds, share) for run in runs], 0) for share in QUANTILES]
        for against in ("floor-2", "floor-2-20"):
            pairs = zip(runs, found.get((rate, against), []), strict=False)
            cells.append(report.spread([quantile(a.seconds, 0.99) / quantile(b.seconds, 0.99) for a, b in pairs]))
        cells.append(f"{100 * statistics.median(run.cpu_share for run in runs):.0f}" if runs else "-")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.latency", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rates", default=",".join(map(str, LOADS)), help="events a second (default: %(default)s)")
    parser.add_argument("--seconds", type=float, help="of each load (default: 40, 15 and 8)")
    parser.add_argument("--repeats", type=int, default=2, help="(default: %(default)s)")
    parser.add_argument("--rows", default=",".join(ROWS), help="(default: %(default)s)")
    parser.add_argument("--partitions", type=int, default=4, help="of every topic (default: %(default)s)")
    parser.add_argument("--set", action="append", default=[], metavar="K=V", help="a further setting of callgate")
    harness.add_options(parser)
    return parser.parse_args()


def main() -> int:
    """Measure. 0: every run has a figure; 1: some have none."""
    options = arguments()
    # The reader must not wait for the writer's turn to end.
    sys.setswitchinterval(0.0005)
    names = options.rows.split(",")
    found: dict[tuple[int, str], list[Found]] = {}
    whole = True
    with harness.started(options) as (bootstrap, folder):
        for rate in map(int, options.rates.split(",")):
            seconds = options.seconds or LOADS.get(rate, 20.0)
            workload = make(Shape(events=int(rate * (seconds + WARM_S))))
            setting = rows.Setting(
                bootstrap=bootstrap,
                workload=workload,
                partitions=options.partitions,
                commit_ms=100,
                core=options.core,
                folder=folder,
                extra=tuple(options.set),
            )
            for repeat in range(options.repeats):
                turn = repeat % len(names)
                for row in names[turn:] + names[:turn]:
                    runs = found.setdefault((rate, row), [])
                    try:
                        runs.append(measure(setting, row, rate, repeat))
                    except (MeasureError, KafkaException) as error:
                        print(f"{row} at {rate}/s: no figure, {error}", flush=True)
                        whole = False
                        continue
                    said = ", ".join(f"{1000 * quantile(runs[-1].seconds, share):.0f}" for share in QUANTILES)
                    print(f"{row} at {rate}/s: p50, p99, p99.9 {said} ms of {len(runs[-1].seconds)}", flush=True)
    ordered = {key: found[key] for rate in map(int, options.rates.split(",")) for row in names if (key := (rate, row)) in found}
    facts = (
        f"{options.partitions} partitions, {options.repeats} repeats. From the input given to the client, which lingers "
        f"{LINGER_MS} ms, to the output in the hands of a committed reader; the first two seconds do not count."
    )
    harness.publish(options, "latency", "Added latency", facts, table(ordered))
    return 0 if whole else 1


if __name__ == "__main__":
    sys.exit(main())
