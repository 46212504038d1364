"""The broker that the project starts: real Kafka, that keeps its data over stops and crashes and leaves nothing behind."""

import asyncio
import os
import select
import shutil
import signal
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from processor.broker import Broker, BrokerFailed, BrokerUnavailable, find_jars, find_tools
from processor.broker.jars import OVERRIDE
from processor.broker.listeners import free_ports, in_use
from processor.broker.probe import answers
from tests.conftest import MakeTopic, create_topic
from tests.traffic import consume, produce

pytestmark = pytest.mark.kafka


def gone(pid: int) -> bool:
    """Whether a process has ended (reaped or not)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def test_records_go_in_and_come_out(bootstrap: str, make_topic: MakeTopic) -> None:
    """What is written to the session's broker is read back, in order."""
    topic = make_topic("smoke", partitions=2)
    asyncio.run(produce(bootstrap, topic, [b"one", b"two"]))
    assert asyncio.run(consume(bootstrap, topic, 2)) == [b"one", b"two"]


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_every_codec(bootstrap: str, make_topic: MakeTopic, codec: str) -> None:
    """All four codecs of Kafka work with what is installed: topics may use any of them."""
    topic = make_topic(codec)
    asyncio.run(produce(bootstrap, topic, [b"x" * 1000], compression_type=codec))
    assert asyncio.run(consume(bootstrap, topic, 1)) == [b"x" * 1000]


def test_an_id_that_looks_like_an_option(monkeypatch: pytest.MonkeyPatch) -> None:
    """One random cluster id in 64 begins with a dash; Kafka's formatter once took it for an option, and the start failed."""
    dashed = uuid.UUID(bytes=b"\xf8" + b"\x01" * 15)
    monkeypatch.setattr("processor.broker.server.uuid.uuid4", lambda: dashed)
    with Broker(quick=True) as broker:
        assert answers("127.0.0.1", int(broker.bootstrap.rpartition(":")[2]))


def test_data_survives_stop_and_crash() -> None:
    """After an orderly stop and after SIGKILL the broker serves the same records at the same address."""
    with Broker(quick=True) as broker:
        address = broker.bootstrap
        asyncio.run(create_topic(address, "kept"))
        asyncio.run(produce(address, "kept", [b"before"]))
        broker.restart()
        asyncio.run(produce(address, "kept", [b"between"]))
        broker.kill()
        assert not broker.running
        broker.start()
        assert broker.bootstrap == address
        assert asyncio.run(consume(address, "kept", 2)) == [b"before", b"between"]


def test_nothing_is_left_behind() -> None:
    """`close` ends the process and removes the folder, and may be called twice."""
    broker = Broker(quick=True).start()
    pid, folder = broker.pid, broker.log.parent
    assert folder.is_dir()
    broker.close()
    broker.close()
    assert gone(pid)
    assert not folder.exists()


def test_the_broker_dies_with_its_parent() -> None:
    """A parent that is killed with SIGKILL takes its broker and the folder along: no Java is orphaned."""
    script = (
        "import sys, threading\nfrom processor.broker import Broker\nbroker = Broker(quick=True).start()\n"
        "print(broker.pid, broker.log, flush=True)\nsys.stdin.read()"
    )
    root = Path(__file__).resolve().parents[2]
    with subprocess.Popen(
        [sys.executable, "-c", script], cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        pid, log = parent.stdout.readline().split()
        guard = parent_of(int(pid))
        watch = os.pidfd_open(guard)
        parent.send_signal(signal.SIGKILL)
        wait_for(watch)
    assert gone(int(pid))
    assert not Path(log).parent.exists()


def test_a_port_that_is_taken(broker: Broker) -> None:
    """A second broker on the port of a running one is refused, though somebody answers there."""
    port = int(broker.bootstrap.rsplit(":", 1)[1])
    second = Broker(port=port)
    with pytest.raises(BrokerFailed, match=f"Port {port} is already in use"):
        second.start()
    assert broker.running


def test_the_foreground_command() -> None:
    """`python -m processor.broker` says its address, serves until SIGTERM, and exits 0 with nothing left."""
    root = Path(__file__).resolve().parents[2]
    command = [sys.executable, "-m", "processor.broker", "--heap-mb", "256"]
    with subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        host, port = process.stdout.readline().strip().rsplit(":", 1)
        served = answers(host, int(port))
        process.terminate()
    assert served
    assert process.returncode == 0
    assert not in_use(int(port))


def parent_of(pid: int) -> int:
    """Process id of the parent."""
    return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])


def wait_for(pidfd: int) -> None:
    """Return when the process behind the descriptor has ended."""
    try:
        ready, _, _ = select.select([pidfd], [], [], 60)
        assert ready, "the guard did not end"
    finally:
        os.close(pidfd)


def test_missing_tools_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without Java, Maven or the named jars there is one sentence that says what to install."""
    monkeypatch.setenv(OVERRIDE, str(tmp_path))
    with pytest.raises(BrokerUnavailable, match=OVERRIDE):
        find_jars()
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BrokerUnavailable, match="install a Java runtime"):
        find_tools()


@pytest.mark.slow
def test_two_starters_fetch_kafka_once(tmp_path: Path) -> None:
    """Two who need Kafka at once fetch it once between them; whoever comes later needs neither Maven nor a network."""
    package = Path(__file__).resolve().parents[2] / "processor"
    shutil.copytree(package / "broker", tmp_path / "processor" / "broker", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(package / "__init__.py", tmp_path / "processor")
    # Outside a checkout the user's own cache is used.
    cache = tmp_path / "cache"
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache), "PYTHONPATH": str(tmp_path)}
    environment.pop(OVERRIDE, None)
    command = [sys.executable, "-c", "from processor.broker import find_jars; print(find_jars(print))"]
    both = [
        subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    said = [process.communicate() for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    lines = [out.splitlines() for out, _ in said]
    assert sorted(map(len, lines)) == [1, 2], said
    folders = {Path(out[-1]) for out in lines}
    assert len(folders) == 1
    folder = folders.pop()
    assert folder.is_relative_to(cache)
    assert list(folder.glob("kafka_2.13-*.jar"))
    assert sorted(path.suffix for path in folder.parent.iterdir()) == ["", ".lock"]
    later = subprocess.run(command, cwd=tmp_path, env={**environment, "PATH": ""}, capture_output=True, text=True, check=True)
    assert later.stdout.splitlines() == [str(folder)]


def test_a_controller_apart_outlives_the_broker() -> None:
    """With a controller of its own a broker ends and comes back, after the controller has noticed, with its data and ports."""
    with Broker(quick=True, apart=True) as broker:
        address, controller = broker.bootstrap, broker.log.with_name("controller.log")
        asyncio.run(create_topic(address, "kept"))
        asyncio.run(produce(address, "kept", [b"before"]))
        for noticed, end in enumerate((broker.kill, broker.stop), 1):
            end()
            assert not broker.running
            broker.start()
            assert controller.read_text().count("Fencing broker 1 ") == noticed
        assert "Beginning controlled shutdown" not in broker.log.read_text()
        assert broker.bootstrap == address
        assert asyncio.run(consume(address, "kept", 1)) == [b"before"]


def test_a_front_is_advertised_elsewhere() -> None:
    """A client that comes through the listener FRONT is told the port of the proxy, and not the broker's own."""
    (port,) = free_ports(1)
    with Broker(quick=True, front=port) as broker:
        admin = AdminClient({"bootstrap.servers": broker.address("FRONT"), "log_level": 0})
        told = [f"{node.host}:{node.port}" for node in admin.list_topics(timeout=30).brokers.values()]
        assert told == [f"127.0.0.1:{port}"]
        assert broker.address("FRONT") != f"127.0.0.1:{port}"
