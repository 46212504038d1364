"""The secured listeners of the project's own broker, each with the client library that callgate uses."""

import asyncio
import base64
import datetime as dt
import json
import secrets
import ssl
from collections.abc import Iterator
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.abc import AbstractTokenProvider
from aiokafka.errors import KafkaConnectionError, KafkaError
from aiokafka.helpers import create_ssl_context

from processor.broker import Broker, Certificates
from tests.certificates import Authority
from tests.conftest import create_topic
from tests.traffic import produce

pytestmark = pytest.mark.kafka

USERS = {"alice": "in-wonderland"}


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Give the authority of this module's certificates."""
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def secured(authority: Authority) -> Iterator[Broker]:
    """Give a broker with every listener there is, and a topic `safe`."""
    certificate, key = authority.issue("broker")
    with Broker(quick=True, certificates=Certificates(certificate, key, authority.file), users=USERS) as running:
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
