"""`--workers` as processes on the real broker: one that is killed or stopped is replaced, and all of them end together."""

import http.client
import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from processor.cli.exits import Exit
from processor.demo.driver import TOOLS
from tests.cli.command import callgate
from tests.observe.test_merge import samples

PATIENCE_SECONDS = 90.0


@pytest.fixture
def config(tmp_path: Path, bootstrap: str) -> Path:
    """Settings for topics and a group of this test's own."""
    name = f"cli-{secrets.token_hex(4)}"
    path = tmp_path / "callgate.yaml"
    settings: dict[str, Any] = {
        "group": name,
        "schemas": str(TOOLS),
        "workers": 2,
        "worker_timeout": "4s",
        "shutdown_grace": "4s",
        "topics": {each: f"{name}.{each}" for each in ("events", "approved", "rejected", "dead_letter")}
        | {"partitions": 2, "replication_factor": 1},
        "kafka": {"bootstrap_servers": [bootstrap], "session_timeout": "2s", "heartbeat_interval": "300ms"},
        "http": {"port": 0},
        "log": {"format": "json"},
    }
    path.write_text(json.dumps(settings))
    return path


def until(true: Callable[[], Any], why: Callable[[], Any]) -> None:
    """Wait for something that must come."""
    patience = time.monotonic() + PATIENCE_SECONDS
    while not true():
        assert time.monotonic() < patience, why()
        time.sleep(0.1)


class Workers:
    """A supervisor with its workers."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self.process = process
        self._log = log

    def lines(self, event: str) -> list[dict[str, Any]]:
        """Lines of the common log with this event, in order."""
        found = [json.loads(line) for line in self._log.read_text().splitlines() if line.startswith("{")]
        return [line for line in found if line["event"] == event]

    def pids(self) -> list[int]:
        """Processes that got to work, in order."""
        return [line["pid"] for line in self.lines("worker_started")]

    def get(self, path: str) -> tuple[int, str]:
        """Status and body of a page of all of them."""
        port = next(line["port"] for line in self.lines("http_listening") if "workers" in line)
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def ready(self) -> bool:
        """Whether all of them are."""
        return bool(self.lines("http_listening")) and self.get("/readyz")[0] == 200

    def until_ready(self) -> None:
        """Wait for it."""
        until(lambda: len(self.pids()) >= 2 and self.ready(), self._log.read_text)

    def told(self) -> str:
        """The log as it is, for a test that fails."""
        return self._log.read_text()


@contextmanager
def started(config: Path) -> Iterator[Workers]:
    """Start them; whatever happens, none is left."""
    assert callgate("topics", "--config", str(config)).code == 0
    path = config.with_name("run.log")
    command = [sys.executable, "-m", "processor", "run", "--config", str(config)]
    with path.open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        workers = Workers(process, path)
        try:
            yield workers
        finally:
            process.kill()
            for pid in workers.pids():
                if Path(f"/proc/{pid}/cmdline").exists() and b"processor" in Path(f"/proc/{pid}/cmdline").read_bytes():
                    os.kill(pid, signal.SIGKILL)


def test_a_killed_and_a_stopped_worker_are_replaced(config: Path) -> None:
    """Issue 6: SIGKILL and SIGSTOP: each is noticed, said and replaced, and the partitions are decided again."""
    with started(config) as workers:
        workers.until_ready()
        first, second = workers.pids()
        os.kill(first, signal.SIGKILL)
        until(lambda: len(workers.pids()) == 3 and workers.ready(), workers.told)
        (ended,) = workers.lines("worker_ended")
        assert ended["exit_code"] == 128 + signal.SIGKILL
        os.kill(second, signal.SIGSTOP)
        until(lambda: len(workers.pids()) == 4 and workers.ready(), workers.told)
        (silent,) = workers.lines("worker_silent")
        assert silent["pid"] == second
        page = samples(workers.get("/metrics")[1])
        places = [("callgate_worker_restarts_total", frozenset({("worker", place)})) for place in ("0", "1")]
        assert [page[place] for place in places] == [1.0, 1.0]
        workers.process.terminate()
        assert workers.process.wait(PATIENCE_SECONDS) == 0


def test_one_scrape_shows_all(config: Path) -> None:
    """One address: the partitions of both, each series under its worker; `/healthz` and `/readyz` speak for all."""
    with started(config) as workers:
        workers.until_ready()

        def live() -> set[tuple[str, str]]:
            page = samples(workers.get("/metrics")[1])
            names = [dict(labels) for (name, labels), value in page.items() if name == "callgate_partition_live" and value]
            return {(labels["worker"], labels["partition"]) for labels in names}

        until(lambda: {partition for _, partition in live()} == {"0", "1"}, workers.told)
        assert {worker for worker, _ in live()} == {"0", "1"}
        assert samples(workers.get("/metrics")[1])["callgate_worker_up", frozenset({("worker", "1")})] == 1.0
        assert workers.get("/healthz")[0] == 200
        detail = json.loads(workers.get("/readyz")[1])
        assert [worker["ready"] for worker in detail["workers"]] == [True, True]
        workers.process.terminate()
        assert workers.process.wait(PATIENCE_SECONDS) == 0
    assert len(workers.lines("stopped")) == 2


def test_a_stopped_worker_does_not_hold_up_the_end(config: Path) -> None:
    """SIGTERM is handed down; one that does not hear it is killed after the grace period, the other ends cleanly."""
    with started(config) as workers:
        workers.until_ready()
        os.kill(workers.pids()[0], signal.SIGSTOP)
        workers.process.terminate()
        assert workers.process.wait(PATIENCE_SECONDS) == 128 + signal.SIGKILL
    assert len(workers.lines("stopped")) == 1


def test_what_stops_one_at_the_start_ends_all(config: Path) -> None:
    """Without topics the next worker would fare no better: it ends with the exit code of one, and replaces nothing."""
    command = [sys.executable, "-m", "processor", "run", "--config", str(config)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS)
    assert ended.returncode == Exit.TOPICS
    assert "worker_ended" not in ended.stderr
    assert "is missing" in ended.stderr
