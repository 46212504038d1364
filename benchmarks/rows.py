"""The rows of the table: how each is started, when it is ready and done, and what its outputs must be.

Owns the topics of a run. Each row is a process of its own on a core of its own; broker and harness have the other one.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
from confluent_kafka import ConsumerGroupState, KafkaException
from confluent_kafka.admin import AdminClient

from benchmarks import sampling
from benchmarks.load import Load, create, delete
from benchmarks.measure import MeasureError, Usage, Watched, stamped
from benchmarks.outputs import Outputs
from benchmarks.workload import Workload

REFERENCE = Path(__file__).resolve().parents[2] / "shared" / "bench" / "peers"


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """What all runs share."""

    bootstrap: str
    workload: Workload
    partitions: int
    commit_ms: int
    core: str
    """Processors of the measured process, as taskset takes them."""
    folder: Path
    """For logs, configuration and tools."""
    profile: bool = False
    """Whether each run is sampled with py-spy; its figure is no measure then."""
    extra: tuple[str, ...] = ()
    """Further `--set` of callgate."""

    @property
    def events(self) -> int:
        """Records on the topic."""
        return len(self.workload.values)

    @property
    def per(self) -> float:
        """Records read for each one written."""
        return self.events / len(self.workload.calls)


class Run:
    """One run of one row: its names, topics and log."""

    def __init__(self, setting: Setting, row: str, number: int) -> None:
        self.setting = setting
        self.name = f"bench-{row}-{number}"
        self.topic = f"{self.name}-in"
        self.outputs = {word: f"{self.name}-{word}" for word in ("approved", "rejected", "dead-letter")}
        self.log = setting.folder / f"{self.name}.log"
        self._admin = AdminClient({"bootstrap.servers": setting.bootstrap})

    def joined(self) -> bool:
        """Whether the group is stable and has been given every partition."""
        try:
            group = self._admin.describe_consumer_groups([self.name])[self.name].result(10)
        except KafkaException:
            return False
        given = sum(len(member.assignment.topic_partitions) for member in group.members if member.assignment)
        return bool(group.state == ConsumerGroupState.STABLE) and given == self.setting.partitions

    def topics(self) -> list[str]:
        """All topics of the run."""
        return [self.topic, *self.outputs.values()]

    def outside(self, command: list[str], done: Callable[[Watched], bool]) -> Usage:
        """Load behind the gate, start, settle, open the gate, wait; always cleaned up."""
        setting = self.setting
        load = Load(setting.bootstrap, self.topic, setting.workload)
        process = Watched(command, setting.core, self.log)
        try:
            usage = process.run(self.joined, lambda: self._begin(load, process), lambda: done(process))
            process.stop()
        finally:
            process.kill()
        return usage

    def _begin(self, load: Load, process: Watched) -> None:
        if self.setting.profile:
            sampling.attach(process.pid, self.log.with_suffix(".samples"))
            time.sleep(1)
        load.open()


def floor_read(run: Run) -> Usage:
    """Floor 1: read and throw away."""
    create(run.setting.bootstrap, [run.topic], run.setting.partitions)
    return run.outside(script("floor_read", run), _says_done)


def floor_transaction(run: Run) -> Usage:
    """Floor 2: the bare transactional loop."""
    setting = run.setting
    create(setting.bootstrap, [run.topic, run.outputs["approved"]], setting.partitions)
    more = ["--output", run.outputs["approved"], "--partitions", str(setting.partitions), "--per", str(setting.per)]
    return run.outside([*script("floor_transaction", run), *more, "--commit-ms", str(setting.commit_ms)], _says_done)


def by_hand(run: Run) -> Usage:
    """By hand: no recovery, fewer checks."""
    setting = run.setting
    create(setting.bootstrap, run.topics(), setting.partitions)
    more = ["--output", run.name, "--tools", str(_tools(setting))]
    return run.outside([*script("by_hand", run), *more], _says_done)


def callgate(run: Run) -> Usage:
    """Callgate: exactly once, all checks, metrics and logs on."""
    setting = run.setting
    options = callgate_options(run, ("commit_interval", f"{setting.commit_ms}ms"))
    callgate_topics(options)
    command = [sys.executable, "-m", "processor", "run", *options]
    outputs = Outputs(setting.bootstrap, run.outputs, setting.partitions, setting.workload.calls)
    try:
        usage = run.outside(command, lambda _: outputs.complete())
        outputs.complete()
        faults = outputs.faults()
    finally:
        outputs.close()
    if faults:
        shown = "\n".join(faults[:5])
        raise MeasureError(f"{len(faults)} outputs are not those of the oracle:\n{shown}")
    return usage


def callgate_options(run: Run, *more: tuple[str, str]) -> list[str]:
    """Options of callgate's command line for a run; `more` settings come before those of the benchmark's own `--set`."""
    chosen = {
        "kafka.bootstrap_servers": run.setting.bootstrap,
        "group": run.name,
        "schemas": str(_tools(run.setting).parent),
        "topics.events": run.topic,
        "topics.approved": run.outputs["approved"],
        "topics.rejected": run.outputs["rejected"],
        "topics.dead_letter": run.outputs["dead-letter"],
        "topics.partitions": str(run.setting.partitions),
        "http.port": "0",
        **dict(more),
    }
    sets = [f"{key}={value}" for key, value in chosen.items()] + list(run.setting.extra)
    return [part for each in sets for part in ("--set", each)]


def callgate_topics(options: list[str]) -> None:
    """Make its topics. Raises MeasureError where that fails."""
    command = [sys.executable, "-m", "processor", "topics", *options]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    if made.returncode != 0:
        raise MeasureError(f"its topics could not be made:\n{made.stdout}{made.stderr}")


def reference_read(run: Run) -> Usage:
    """The reference script of floor 1, by its own definition."""
    return _reference("floor_aiokafka", run, [])


def reference_transaction(run: Run) -> Usage:
    """The reference script of floor 2, by its own definition."""
    setting = run.setting
    more = ["--partitions", str(setting.partitions), "--per", str(round(setting.per))]
    return _reference("floor_txn", run, [*more, "--commit-ms", str(setting.commit_ms)])


def reference_by_hand(run: Run) -> Usage:
    """The reference script of the guard by hand, by its own definition."""
    return _reference("plain_aiokafka", run, ["--validator", "jsonschema", "--tools", str(_tools(run.setting))])


def _reference(script: str, run: Run, more: list[str]) -> Usage:
    setting = run.setting
    create(setting.bootstrap, run.topics(), setting.partitions)
    Load(setting.bootstrap, run.topic, setting.workload).open()
    command = [sys.executable, str(REFERENCE / f"{script}.py"), "--bootstrap", setting.bootstrap, "--topic", run.topic]
    command += ["--group", run.name, "--prefix", run.name, "--events", str(setting.events)]
    return stamped([*command, *more], setting.core, run.log, REFERENCE)


def _tools(setting: Setting) -> Path:
    """Write the tools into a folder of their own: the file."""
    file = setting.folder / "tools" / "tools.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(setting.workload.tools))
    return file


def script(module: str, run: Run) -> list[str]:
    """Command line of a module of this folder that reads the topic of a run."""
    command = [sys.executable, "-m", f"benchmarks.{module}", "--bootstrap", run.setting.bootstrap]
    return [*command, "--topic", run.topic, "--group", run.name, "--events", str(run.setting.events)]


def _says_done(process: Watched) -> bool:
    return process.says("DONE")


ROWS: dict[str, Callable[[Run], Usage]] = {
    "floor-1": floor_read,
    "floor-2": floor_transaction,
    "by-hand": by_hand,
    "callgate": callgate,
}
"""Rows by name, in the order of the table."""

REFERENCE_ROWS: dict[str, Callable[[Run], Usage]] = {
    "reference-floor-1": reference_read,
    "reference-floor-2": reference_transaction,
    "reference-by-hand": reference_by_hand,
}
"""Rows of the reference scripts, where they are at hand."""


def measure(setting: Setting, row: str, number: int) -> Usage:
    """Run one row once. Raises MeasureError where it has no figure."""
    run = Run(setting, row, number)
    try:
        return (ROWS | REFERENCE_ROWS)[row](run)
    finally:
        delete(setting.bootstrap, run.topics())
