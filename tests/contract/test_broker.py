"""The broker that the project starts: real Kafka, that keeps its data over stops and crashes and leaves nothing behind."""

import asyncio
import base64
import datetime as dt
import json
import os
import secrets
import select
import shutil
import signal
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.abc import AbstractTokenProvider
from aiokafka.errors import KafkaConnectionError, KafkaError
from aiokafka.helpers import create_ssl_context

from processor.broker import Broker, BrokerUnavailable, Certificates, find_jars, find_tools
from processor.broker.jars import OVERRIDE
from tests.certificates import Authority
from tests.conftest import MakeTopic, create_topic

pytestmark = pytest.mark.kafka

USERS = {"alice": "in-wonderland"}


async def produce(bootstrap: str, topic: str, values: list[bytes], **security: Any) -> None:
    """Write values to partition 0, acknowledged by the broker."""
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, acks="all", **security)
    try:
        await producer.start()
        for value in values:
            await producer.send_and_wait(topic, value, partition=0)
    finally:
        # `async with` would not stop one that could not start.
        await producer.stop()


async def consume(bootstrap: str, topic: str, count: int, **security: Any) -> list[bytes | None]:
    """Read the first values of partition 0."""
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest", **security)
    await consumer.start()
    try:
        consumer.assign([TopicPartition(topic, 0)])
        return [(await consumer.getone()).value for _ in range(count)]
    finally:
        await consumer.stop()


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


def test_data_survives_stop_and_crash() -> None:
    """After an orderly stop and after SIGKILL the broker serves the same records at the same address."""
    with Broker() as broker:
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
    broker = Broker().start()
    pid, folder = broker.pid, broker.log.parent
    assert folder.is_dir()
    broker.close()
    broker.close()
    assert gone(pid)
    assert not folder.exists()


def test_the_broker_dies_with_its_parent() -> None:
    """A parent that is killed with SIGKILL takes its broker and the folder along: no Java is orphaned."""
    script = (
        "import sys, threading\nfrom processor.broker import Broker\nbroker = Broker().start()\n"
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


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Give the authority of this module's certificates."""
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def secured(authority: Authority) -> Iterator[Broker]:
    """Give a broker with every listener there is, and a topic `safe`."""
    certificate, key = authority.issue("broker")
    with Broker(certificates=Certificates(certificate, key, authority.file), users=USERS) as running:
        asyncio.run(create_topic(running.bootstrap, "safe"))
        yield running


def round_trip(broker: Broker, listener: str, **security: Any) -> None:
    """Write one record through a listener and find it at the end of the topic, through the same listener."""
    value = secrets.token_bytes(8)

    async def both() -> list[bytes | None]:
        address = broker.address(listener)
        await produce(address, "safe", [value], **security)
        consumer = AIOKafkaConsumer("safe", bootstrap_servers=address, auto_offset_reset="earliest", **security)
        await consumer.start()
        try:
            found: list[bytes | None] = []
            while value not in found:
                found.append((await consumer.getone()).value)
            return found
        finally:
            await consumer.stop()

    assert asyncio.run(both())[-1] == value


def test_tls(secured: Broker, authority: Authority) -> None:
    """Listener SSL: the client checks the broker's certificate and host name."""
    context = create_ssl_context(cafile=str(authority.file))
    round_trip(secured, "SSL", security_protocol="SSL", ssl_context=context)


def test_tls_with_a_foreign_authority(secured: Broker) -> None:
    """A client that does not know the broker's authority refuses the connection."""
    with pytest.raises(KafkaConnectionError):
        round_trip(secured, "SSL", security_protocol="SSL", ssl_context=ssl.create_default_context())


def test_mutual_tls(secured: Broker, authority: Authority) -> None:
    """Listener MTLS: a client with a certificate of the authority is served."""
    certificate, key = authority.issue("client")
    context = create_ssl_context(cafile=str(authority.file), certfile=str(certificate), keyfile=str(key))
    round_trip(secured, "MTLS", security_protocol="SSL", ssl_context=context)


def test_mutual_tls_without_certificate(secured: Broker, authority: Authority) -> None:
    """Listener MTLS: a client without a certificate is turned away."""
    context = create_ssl_context(cafile=str(authority.file))
    with pytest.raises(KafkaConnectionError):
        round_trip(secured, "MTLS", security_protocol="SSL", ssl_context=context)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize("listener", ["SASL_PLAINTEXT", "SASL_SSL"])
def test_passwords(secured: Broker, authority: Authority, listener: str, mechanism: str) -> None:
    """Users log in with each mechanism that has passwords, in the clear and over TLS."""
    context = create_ssl_context(cafile=str(authority.file)) if listener == "SASL_SSL" else None
    login = {"sasl_mechanism": mechanism, "sasl_plain_username": "alice", "sasl_plain_password": USERS["alice"]}
    round_trip(secured, listener, security_protocol=listener, ssl_context=context, **login)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_wrong_password(secured: Broker, mechanism: str) -> None:
    """A wrong password does not get in."""
    login = {"sasl_mechanism": mechanism, "sasl_plain_username": "alice", "sasl_plain_password": "wrong"}
    with pytest.raises(KafkaConnectionError):
        round_trip(secured, "SASL_PLAINTEXT", security_protocol="SASL_PLAINTEXT", **login)


class FreshToken(AbstractTokenProvider):
    """Tokens as Kafka's own unsecured validator takes them: no signature, subject and times only."""

    async def token(self) -> str:
        """Return a token that is good for an hour."""
        return unsigned_token(dt.timedelta(hours=1))


class StaleToken(AbstractTokenProvider):
    """A token whose time is over."""

    async def token(self) -> str:
        """Return a token that ended an hour ago."""
        return unsigned_token(dt.timedelta(hours=-1))


def unsigned_token(life: dt.timedelta) -> str:
    """Make an unsigned JWT for `alice`."""
    end = dt.datetime.now(dt.UTC) + life
    claims = {"sub": "alice", "iat": int((end - dt.timedelta(hours=2)).timestamp()), "exp": int(end.timestamp())}
    parts = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in ({"alg": "none"}, claims)]
    return ".".join([*parts, ""])


def test_oauth_tokens(secured: Broker) -> None:
    """OAUTHBEARER: a fresh token gets in, a stale one does not."""
    login: dict[str, Any] = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "OAUTHBEARER"}
    round_trip(secured, "SASL_PLAINTEXT", sasl_oauth_token_provider=FreshToken(), **login)
    # aiokafka takes the broker's refusal for a login, and only notices that the connection is closed afterwards.
    with pytest.raises(KafkaError):
        round_trip(secured, "SASL_PLAINTEXT", sasl_oauth_token_provider=StaleToken(), request_timeout_ms=1000, **login)
