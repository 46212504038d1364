"""`callgate run`, `topics` and `demo` as processes on the real broker: start, signals, signals' exit codes, metrics, log."""

import asyncio
import http.client
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from processor.cli.exits import Exit
from processor.config import load
from processor.demo.driver import STREAMS, TOOLS
from processor.demo.processor import Processor
from processor.demo.traffic import collect, publish
from processor.observe.emit import BY_NAME
from tests.cli.command import callgate

PATIENCE_SECONDS = 60.0


@pytest.fixture
def config(tmp_path: Path, bootstrap: str) -> Path:
    """Settings for topics and a group of this test's own."""
    name = f"cli-{secrets.token_hex(4)}"
    path = tmp_path / "callgate.yaml"
    settings: dict[str, Any] = {
        "group": name,
        "schemas": str(TOOLS),
        "progress_interval": "200ms",
        "topics": {each: f"{name}.{each}" for each in ("events", "approved", "rejected", "dead_letter")}
        | {"partitions": 2, "replication_factor": 1},
        "kafka": {"bootstrap_servers": [bootstrap]},
        "http": {"port": 0},
        "log": {"format": "json"},
    }
    path.write_text(json.dumps(settings))
    return path


def get(port: int, path: str) -> tuple[int, str]:
    """Status and body."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", path)
    answer = connection.getresponse()
    body = answer.read().decode()
    connection.close()
    return answer.status, body


def until(true: Callable[[], bool]) -> None:
    """Wait for something that must come."""
    patience = time.monotonic() + PATIENCE_SECONDS
    while not true():
        assert time.monotonic() < patience
        time.sleep(0.05)


def log_of(config: Path) -> list[dict[str, Any]]:
    """Lines of the processor's log."""
    return [json.loads(line) for line in config.with_name("run.log").read_text().splitlines()]


def test_topics(config: Path) -> None:
    """`topics check` names what is missing and ends with 4; `topics` makes it; then all is well, and made only once."""
    missing = callgate("topics", "check", "--config", str(config))
    assert missing.code == Exit.TOPICS
    assert missing.out.count("is missing") == 4
    made = callgate("topics", "--config", str(config))
    assert (made.code, made.out.count("made")) == (0, 4)
    again = callgate("topics", "--config", str(config))
    assert (again.code, again.out) == (0, "All topics are as they must be.\n")
    assert callgate("topics", "check", "--config", str(config)).code == 0


def test_missing_topics_refuse_the_start(config: Path) -> None:
    """`run` does not start without its topics: one line for each, exit code 4."""
    ended = subprocess.run(
        [sys.executable, "-m", "processor", "run", "--config", str(config)], capture_output=True, text=True, check=False
    )
    assert ended.returncode == Exit.TOPICS
    assert "Traceback" not in ended.stderr
    said = [line for line in ended.stderr.splitlines() if not line.startswith("{")]
    assert len(said) == 4
    assert all(line.startswith("callgate: Topic `") and "is missing" in line and "`--config`" in line for line in said)


def test_port_in_use(config: Path) -> None:
    """An address that cannot be listened on is one sentence, exit code 8."""
    assert callgate("topics", "--config", str(config)).code == 0
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        command = [sys.executable, "-m", "processor", "run", "--config", str(config), "--set", f"http.port={port}"]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == Exit.FATAL
    assert f"(127.0.0.1:{port}) cannot be listened on" in ended.stderr.splitlines()[-1]
    assert "Traceback" not in ended.stderr


def test_decides_shows_and_stops(config: Path) -> None:
    """Events in, decisions out, both visible in `/metrics`; no argument in the log; SIGTERM ends with 0."""
    assert callgate("topics", "--config", str(config)).code == 0
    settings = load(config)
    with Processor(config) as processor:
        port = processor.wait_until_ready(PATIENCE_SECONDS)
        files = [STREAMS / "parallel-calls.jsonl", STREAMS / "breaks-schema.jsonl", STREAMS / "not-json.jsonl"]
        asyncio.run(publish(settings, files))
        rows = asyncio.run(collect(settings, 5, PATIENCE_SECONDS))
        assert sorted(row.reason for row in rows) == ["arguments_schema", "not_json", "ok", "ok", "ok"]
        sums = 'callgate_decisions_total{decision="approved",reason="ok"} 3.0'
        until(lambda: sums in get(port, "/metrics")[1])
        text = get(port, "/metrics")[1]
        assert 'callgate_decisions_total{decision="rejected",reason="arguments_schema"} 1.0' in text
        assert 'callgate_dead_letters_total{cause="not_json"} 1.0' in text
        assert "callgate_decision_latency_seconds_count 4.0" in text
        assert f'callgate_lag_to_position{{partition="0",topic="{settings.topics.events}"}} 0.0' in text
        assert "callgate_records_total 37.0" in text
        assert get(port, "/healthz")[0] == 200
        status, body = get(port, "/readyz")
        assert (status, json.loads(body)["partitions"]) == (200, 2)
        assert processor.stop() == 0
    lines = log_of(config)
    names = [line["event"] for line in lines]
    assert all(line["level"] == BY_NAME[line["event"]].level for line in lines if line["event"] != "library")
    assert [name for name in names if name in {"started", "stopping", "stopped"}] == ["started", "stopping", "stopped"]
    assert names.count("live") == 2
    loaded = lines[names.index("toolset_loaded")]
    assert (loaded["source"], loaded["folder"]) == ("registry", str(TOOLS))
    assert "amount" not in config.with_name("run.log").read_text()


def test_second_signal_ends_at_once(config: Path) -> None:
    """A second signal does not wait for the clean stop; the process says so and ends with 130."""
    assert callgate("topics", "--config", str(config)).code == 0
    with Processor(config) as processor:
        processor.wait_until_ready(PATIENCE_SECONDS)
        os.kill(processor.pid, signal.SIGTERM)
        os.kill(processor.pid, signal.SIGINT)
        assert processor.stop() == Exit.INTERRUPTED
    assert "ended_at_once" in [line["event"] for line in log_of(config)]


def test_signal_before_the_start_is_complete(config: Path) -> None:
    """A signal that comes while the process is still starting ends it cleanly too."""
    assert callgate("topics", "--config", str(config)).code == 0
    with Processor(config) as processor:
        until(lambda: "toolset_loaded" in config.with_name("run.log").read_text())
        assert processor.stop() == 0


def test_workers(config: Path) -> None:
    """`--workers 2` runs two members that share the partitions, and ends both."""
    assert callgate("topics", "--config", str(config)).code == 0
    command = [sys.executable, "-m", "processor", "run", "--config", str(config), "--workers", "2"]
    with config.with_name("run.log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as parent:
        try:
            until(lambda: len({line["pid"] for line in log_of(config) if line["event"] == "started"} - {parent.pid}) == 2)
            until(lambda: {line["partition"] for line in log_of(config) if line["event"] == "live"} == {0, 1})
            parent.terminate()
            assert parent.wait(PATIENCE_SECONDS) == 0
        finally:
            parent.kill()
    assert [line["event"] for line in log_of(config)].count("stopped") == 2


def test_workers_end_with_their_supervisor(config: Path) -> None:
    """After SIGKILL on the supervisor nobody would stop its workers: they stop by themselves, and cleanly."""
    assert callgate("topics", "--config", str(config)).code == 0
    command = [sys.executable, "-m", "processor", "run", "--config", str(config), "--workers", "2"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as parent:
        try:
            assert parent.stderr is not None
            started = 0
            while started < 2:
                started += json.loads(parent.stderr.readline())["event"] == "started"
        finally:
            parent.kill()
        # They share the pipe: it ends when the last of them has ended.
        said = [json.loads(line)["event"] for line in parent.stderr]
    assert said.count("stopped") == 2


def demo(**environ: str) -> subprocess.CompletedProcess[str]:
    """Run `callgate demo` to its end."""
    return subprocess.run(
        [sys.executable, "-m", "processor", "demo"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, "COLUMNS": "120", **environ},
    )


def test_demo(bootstrap: str) -> None:
    """The demo shows every decision with its reason, compares them with those of `replay`, and stops everything."""
    ended = demo(CALLGATE_TEST_BOOTSTRAP=bootstrap)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "stopped cleanly (exit code 0)" in ended.stdout
    assert "11 calls approved, 12 rejected, 1 dead letter" in ended.stdout
    assert "Every call was decided exactly once" in ended.stdout
    for reason in ("status", "arguments_schema", "unknown_tool", "namespaced", "not_json", "timeout", "conflict"):
        assert reason in ended.stdout


def test_demo_without_java() -> None:
    """Without Java the demo says what to install, and shows the same streams through `replay`."""
    ended = demo(CALLGATE_TEST_BOOTSTRAP="", PATH="/nowhere", JAVA_HOME="")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "install a Java runtime" in ended.stdout
    assert "11 calls approved, 12 rejected, 1 dead letter" in ended.stdout
