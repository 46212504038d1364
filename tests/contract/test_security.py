"""Logging in to a real broker in every way that there is, and what is said where it does not work."""

import asyncio
import base64
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from processor.adapters.kafka_client import probe
from processor.adapters.offset_fetch import Reader
from processor.adapters.publish import TransactionalPublisher
from processor.adapters.source import Source
from processor.broker import Broker, Certificates
from processor.errors import Fatal, Refused, Unreachable, Unusable
from processor.settings import Kafka, Settings, Topics
from processor.values import Secret
from tests.certificates import Authority
from tests.conftest import create_topic
from tests.contract.kit import Lines, commit_at, decision, input_partition, read_all

pytestmark = pytest.mark.kafka

PASSWORD = "in-wonderland-behind-the-glass"
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Give an authority for this module."""
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def secure(authority: Authority) -> Iterator[Broker]:
    """Give a broker with a listener of each kind."""
    certificate, key = authority.issue("broker")
    certificates = Certificates(certificate=certificate, key=key, authority=authority.file)
    with Broker(certificates=certificates, users={"alice": PASSWORD}) as running:
        yield running


def token() -> str:
    """Make an unsigned token that is fresh, as the broker's test handler wants it."""

    def part(value: dict[str, Any]) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    now = int(time.time())
    return f"{part({'alg': 'none'})}.{part({'sub': 'alice', 'iat': now, 'exp': now + 3600})}."


def sasl(mechanism: str, folder: Path) -> dict[str, Any]:
    """Settings that log alice in; the secret comes from a file."""
    secret = folder / "secret"
    secret.write_text((token() if mechanism == "OAUTHBEARER" else PASSWORD) + "\n")
    if mechanism == "OAUTHBEARER":
        return {"sasl_mechanism": mechanism, "sasl_oauth_token": Secret(path=secret)}
    return {"sasl_mechanism": mechanism, "sasl_username": "alice", "sasl_password": Secret(path=secret)}


async def go_through(broker: Broker, kafka: Kafka, topic: str) -> None:
    """Use each of the clients once: reader, producer, consumer."""
    await create_topic(broker.bootstrap, topic)
    settings = Settings(
        group=f"group-{topic}", kafka=kafka, topics=Topics(events=topic, approved=topic, rejected=topic, dead_letter=topic)
    )
    await probe(kafka)
    reader, publisher = Reader(kafka, settings.group, Lines()), TransactionalPublisher(settings, input_partition(settings))
    source = Source(settings, lambda: None)
    try:
        await reader.start()
        await publisher.start()
        await publisher.publish([decision(b"through")], commit_at(1))
        found = await reader.committed(input_partition(settings))
        assert found is not None
        assert found.offset == 1
        await source.start()
        assert list(source.owned) == [0]
    finally:
        await source.close()
        await publisher.close()
        await reader.close()
    assert [record.value for record in await read_all(broker.bootstrap, topic)] == [b"through"]


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL"])
def test_sasl(secure: Broker, authority: Authority, tmp_path: Path, mechanism: str, protocol: str) -> None:
    """Every mechanism, with and without TLS, carries reading, transactions and the group."""
    kafka = Kafka(
        bootstrap_servers=(secure.address(protocol),),
        security_protocol=protocol,
        ssl_cafile=str(authority.file) if protocol == "SASL_SSL" else "",
        **sasl(mechanism, tmp_path),
    )
    asyncio.run(go_through(secure, kafka, f"{protocol}-{mechanism}".lower()))


@pytest.mark.parametrize("listener", ["SSL", "MTLS"])
def test_tls(secure: Broker, authority: Authority, listener: str) -> None:
    """TLS works with the broker's certificate alone, and mutually."""
    own: dict[str, Any] = {}
    if listener == "MTLS":
        certificate, key = authority.issue("client")
        own = {"ssl_certfile": str(certificate), "ssl_keyfile": str(key)}
    kafka = Kafka(bootstrap_servers=(secure.address(listener),), security_protocol="SSL", ssl_cafile=str(authority.file), **own)
    asyncio.run(go_through(secure, kafka, f"tls-{listener}".lower()))


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_refused_credentials_are_one_sentence_without_them(
    secure: Broker, mechanism: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A wrong password or token is said plainly; neither it nor the right one is in the message or in any log."""
    wrong = "through-the-wrong-looking-glass"
    options: dict[str, Any] = (
        {"sasl_oauth_token": Secret(wrong)} if mechanism == "OAUTHBEARER" else {"sasl_password": Secret(wrong)}
    )
    kafka = Kafka(
        bootstrap_servers=(secure.address("SASL_PLAINTEXT"),),
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism=mechanism,
        sasl_username="alice",
        **options,
    )
    with caplog.at_level("INFO"), pytest.raises(Refused, match="refused the credentials") as refusal:
        asyncio.run(probe(kafka))
    assert wrong not in str(refusal.value) + repr(kafka) + caplog.text


def test_an_untrusted_broker_is_refused(secure: Broker) -> None:
    """A certificate of an unknown authority ends the connection, with the cause."""
    kafka = Kafka(bootstrap_servers=(secure.address("SSL"),), security_protocol="SSL")
    with pytest.raises(Refused, match="not trusted"):
        asyncio.run(probe(kafka))


def test_a_missing_client_certificate_is_said(secure: Broker, authority: Authority) -> None:
    """Where the broker wants a certificate and there is none, the start fails with a sentence."""
    kafka = Kafka(bootstrap_servers=(secure.address("MTLS"),), security_protocol="SSL", ssl_cafile=str(authority.file))
    with pytest.raises(Fatal):
        asyncio.run(probe(kafka))


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
def test_sasl_at_a_port_without_it_is_said(secure: Broker, tmp_path: Path, mechanism: str) -> None:
    """The sentence names the setting to look at, and holds none of the client's objects."""
    kafka = Kafka(bootstrap_servers=(secure.bootstrap,), security_protocol="SASL_PLAINTEXT", **sasl(mechanism, tmp_path))
    with pytest.raises(Refused, match=r"does not expect SASL on this port: check `kafka\.security_protocol`") as refusal:
        asyncio.run(probe(kafka))
    assert "<" not in str(refusal.value)


@pytest.mark.parametrize(
    ("protocol", "listener", "said"),
    [
        ("SSL", "", "perhaps this is no TLS port"),
        ("SASL_SSL", "", "perhaps this is no TLS port"),
        ("SSL", "SASL_PLAINTEXT", "perhaps this is no TLS port"),
        ("PLAINTEXT", "SSL", "perhaps this is a TLS or SASL port"),
        ("PLAINTEXT", "SASL_PLAINTEXT", "perhaps this is a TLS or SASL port"),
        ("SASL_PLAINTEXT", "SASL_SSL", "perhaps this is a TLS or SASL port"),
    ],
)
def test_the_wrong_protocol_is_guessed_at(secure: Broker, tmp_path: Path, protocol: str, listener: str, said: str) -> None:
    """A port that speaks another protocol than the one that is set hangs up: the sentence says what may be behind it."""
    address = secure.address(listener) if listener else secure.bootstrap
    more = sasl("PLAIN", tmp_path) if protocol.startswith("SASL_") else {}
    with pytest.raises(Fatal, match=said) as fault:
        asyncio.run(probe(Kafka(bootstrap_servers=(address,), security_protocol=protocol, **more)))
    assert "<" not in str(fault.value)


def test_files_that_cannot_be_used_are_said(tmp_path: Path) -> None:
    """A file of the TLS settings that is no certificate is named by its setting."""
    nothing = tmp_path / "nothing.pem"
    nothing.write_text("nothing")
    for kafka, name in (
        (Kafka(security_protocol="SSL", ssl_cafile=str(nothing)), "ssl_cafile"),
        (Kafka(security_protocol="SSL", ssl_certfile=str(nothing), ssl_keyfile=str(nothing)), "ssl_certfile"),
        (Kafka(security_protocol="SSL", ssl_cafile=str(tmp_path / "absent")), "ssl_cafile"),
    ):
        with pytest.raises(Unusable, match=name):
            asyncio.run(probe(kafka))


def test_no_broker_is_one_sentence() -> None:
    """Where nobody listens, the sentence names every address and its cause."""
    kafka = Kafka(bootstrap_servers=("127.0.0.1:1", "localhost:2"))
    with pytest.raises(Unreachable, match=r"127\.0\.0\.1:1: .*; localhost:2: "):
        asyncio.run(probe(kafka))
    with pytest.raises(Unusable, match="not `host:port`"):
        asyncio.run(probe(Kafka(bootstrap_servers=("nonsense",))))
