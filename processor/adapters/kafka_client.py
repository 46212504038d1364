"""How aiokafka's clients are made, and how its exceptions are translated.

Owns security options and the table from foreign exceptions to ours. A secret is revealed only into the client's constructor:
never into a log, a message or a representation.
"""

import asyncio
import contextlib
import re
import ssl
from pathlib import Path
from typing import Any

from aiokafka import errors as kafka
from aiokafka.abc import AbstractTokenProvider
from aiokafka.conn import create_conn
from aiokafka.protocol.metadata import MetadataRequest

from processor.errors import Fatal, Fenced, Poisoned, Refused, Retryable, Unreachable, Unusable
from processor.settings import Kafka
from processor.values import Secret, host_and_port

PROBE_SECONDS = 10.0
"""How long one broker may take to answer at the start before the next one is asked."""
UNREACHABLE_PAUSE_SECONDS = 0.2
"""Pause after an attempt to reach any broker at all."""

FENCED = (
    kafka.ProducerFenced,
    kafka.InvalidProducerEpoch,
    kafka.InvalidTxnState,
    kafka.InvalidProducerIdMapping,
    kafka.OutOfOrderSequenceNumber,
    kafka.UnknownProducerId,
    kafka.TransactionCoordinatorFenced,
    kafka.CommitFailedError,
    kafka.IllegalGenerationError,
    kafka.UnknownMemberIdError,
    kafka.RebalanceInProgressError,
)
"""Another owner, a transaction that the broker gave up, or a group that moved on."""

REFUSED = (
    kafka.TopicAuthorizationFailedError,
    kafka.GroupAuthorizationFailedError,
    kafka.ClusterAuthorizationFailedError,
    kafka.TransactionalIdAuthorizationFailed,
    kafka.AuthenticationFailedError,
    kafka.AuthenticationMethodNotSupported,
    kafka.SaslAuthenticationFailed,
    kafka.UnsupportedSaslMechanismError,
)
"""No pause cures a missing right."""

POISONED = (
    kafka.MessageSizeTooLargeError,
    kafka.RecordListTooLargeError,
    kafka.InvalidTimestampError,
    kafka.OffsetMetadataTooLargeError,
    kafka.InvalidCommitOffsetSizeError,
    kafka.InvalidTopicError,
)
"""The broker refuses this very record or commit, and would refuse it again."""

FATAL = (kafka.IncompatibleBrokerVersion, kafka.InvalidTransactionTimeout, kafka.UnsupportedVersionError)
"""The broker cannot do what is asked of it."""


NO_TLS = {"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG", "UNEXPECTED_EOF_WHILE_READING"}
"""What OpenSSL calls an answer that is no TLS."""


class FileToken(AbstractTokenProvider):
    """Gives the OAUTHBEARER token; one in a file is read anew at each connection, so that it may be rotated."""

    def __init__(self, secret: Secret) -> None:
        self._secret = secret

    async def token(self) -> str:
        """Return the token of this moment. Raises OSError where its file cannot be read."""
        return self._secret.reveal().strip()


def ssl_context(settings: Kafka) -> ssl.SSLContext | None:
    """Make the context for SSL and SASL_SSL; raises Unusable where a file of it cannot be used."""
    if settings.security_protocol not in {"SSL", "SASL_SSL"}:
        return None
    faults = []
    for name in ("ssl_cafile", "ssl_certfile", "ssl_keyfile"):
        if path := getattr(settings, name):
            try:
                Path(path).open("rb").close()
            except (OSError, ValueError) as fault:
                faults.append(f"`kafka.{name}` (`{path}`) cannot be read: {_cause(fault)}.")
    if faults:
        raise Unusable(*faults)
    try:
        context = ssl.create_default_context(cafile=settings.ssl_cafile or None)
    except (OSError, ssl.SSLError) as fault:
        raise Unusable(f"`kafka.ssl_cafile` cannot be used: {_cause(fault)}.") from None
    context.check_hostname = settings.ssl_check_hostname
    if settings.ssl_certfile:
        try:
            # A callable: with an empty password OpenSSL would ask at the terminal for that of an encrypted key.
            context.load_cert_chain(settings.ssl_certfile, settings.ssl_keyfile or None, settings.ssl_password.reveal)
        except (OSError, ssl.SSLError, ValueError) as fault:
            raise Unusable(f"`kafka.ssl_certfile` and `kafka.ssl_keyfile` cannot be used: {_cause(fault)}.") from None
    return context


def client_options(settings: Kafka) -> dict[str, Any]:
    """Options that consumer, producer and admin client share. Raises Unusable. The answer holds secrets: never print it."""
    options: dict[str, Any] = {
        "bootstrap_servers": list(settings.bootstrap_servers),
        "client_id": settings.client_id,
        "request_timeout_ms": settings.request_timeout_ms,
        "metadata_max_age_ms": settings.metadata_max_age_ms,
        "security_protocol": settings.security_protocol,
        "ssl_context": ssl_context(settings),
    }
    if settings.security_protocol.startswith("SASL_"):
        options["sasl_mechanism"] = settings.sasl_mechanism
        if settings.sasl_mechanism == "OAUTHBEARER":
            options["sasl_oauth_token_provider"] = FileToken(settings.sasl_oauth_token)
        else:
            options["sasl_plain_username"] = settings.sasl_username
            options["sasl_plain_password"] = settings.sasl_password.reveal()
    return options


def patient(client: Any) -> None:
    """Make a client wait after it could not reach any broker.

    It asks for the cluster's layout again at once, from every place that misses a leader, for as long as no broker answers:
    thousands of times a second, and the broker that starts on the same machine gets no processor.
    """
    update = client._metadata_update

    async def update_patiently(*arguments: Any) -> bool:
        updated: bool = await update(*arguments)
        if not updated:
            await asyncio.sleep(UNREACHABLE_PAUSE_SECONDS)
        return updated

    client._metadata_update = update_patiently


async def probe(settings: Kafka) -> None:
    """Log in at one of the brokers, for a clear sentence where the client has only "unable to bootstrap".

    Raises Unusable for the settings' files, Unreachable where none answers, Refused where one does but not to this client.
    """
    options = client_options(settings)
    for name in ("bootstrap_servers", "metadata_max_age_ms"):
        options.pop(name)
    options["request_timeout_ms"] = int(min(settings.request_timeout_ms, PROBE_SECONDS * 1000))
    causes = []
    for server in settings.bootstrap_servers:
        try:
            await _log_in(server, settings, options)
        except (OSError, kafka.KafkaError) as fault:
            causes.append(f"{server}: {_cause(fault)}{_hint(fault, settings)}")
        else:
            return
    raise Unreachable(f"No Kafka broker answers ({'; '.join(causes)}).")


async def _log_in(server: str, settings: Kafka, options: dict[str, Any]) -> None:
    """Connect, log in and ask for something. Raises Refused, Fatal, OSError, KafkaError."""
    try:
        host, port = host_and_port(server)
    except ValueError as fault:
        raise Unusable(f"`kafka.bootstrap_servers`: {fault}.") from None
    refused = f"The broker at {server} refused the credentials ({_how(settings)})"
    connection = None
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            connection = await create_conn(host, port, **options)
            answer = await connection.send(MetadataRequest([]))
        if not answer.brokers:
            # The client takes a refused OAUTHBEARER token for an agreed one; the broker then answers with nothing.
            raise Refused(f"{refused}: it answers nothing.")
    except ssl.SSLError as fault:
        raise Refused(f"The TLS handshake with {server} failed: {_cause(fault)}{_hint(fault, settings)}.") from None
    except kafka.IllegalSaslStateError:
        raise Refused(
            f"The broker at {server} does not expect SASL on this port: check `kafka.security_protocol` ({_how(settings)})."
        ) from None
    except REFUSED as fault:
        raise Refused(f"{refused}: {_cause(fault)}.") from None
    except kafka.KafkaConnectionError:
        if connection is not None and settings.security_protocol != "PLAINTEXT":
            # TLS 1.3 tells that a certificate is missing only after the handshake.
            raise Refused(f"{refused}: it closed the connection.") from None
        raise
    finally:
        if connection is not None:
            with contextlib.suppress(OSError):
                await connection.close()


def _hint(fault: BaseException, settings: Kafka) -> str:
    """What else may be behind it where a port speaks another protocol than the one that is set."""
    if isinstance(fault, ssl.SSLError):
        meant = fault.reason in NO_TLS
    else:
        meant = isinstance(fault, ConnectionError | kafka.KafkaConnectionError) and not isinstance(
            fault, ConnectionRefusedError
        )
    if not meant:
        return ""
    what = "no TLS port" if settings.security_protocol in {"SSL", "SASL_SSL"} else "a TLS or SASL port"
    return f"; perhaps this is {what}: check `kafka.security_protocol`"


def _how(settings: Kafka) -> str:
    """Name the way of logging in."""
    if settings.security_protocol.startswith("SASL_"):
        return f"{settings.security_protocol} with {settings.sasl_mechanism}"
    return settings.security_protocol


def translate(fault: BaseException, doing: str) -> Exception:
    """Our exception for a foreign one, to be raised from it. `doing` begins the sentence: what was being done."""
    if isinstance(fault, Retryable | Fenced | Poisoned | Fatal):
        return fault
    seen: BaseException | None = fault
    while seen is not None:
        # The sender wraps what it did not expect: "Unexpected error during batch delivery" from the real one.
        for kind, ours in ((FENCED, Fenced), (REFUSED, Refused), (POISONED, Poisoned), (FATAL, Fatal)):
            if isinstance(seen, kind):
                return ours(f"{doing}: {_cause(seen)}.")
        seen = seen.__cause__
    if isinstance(fault, ssl.SSLError):
        return Refused(f"{doing}: {_cause(fault)}.")
    return Retryable(f"{doing}: {_cause(fault)}.")


def _cause(fault: BaseException) -> str:
    if isinstance(fault, ssl.SSLCertVerificationError):
        return f"the broker's certificate is not trusted ({fault.verify_message})"
    if isinstance(fault, ssl.SSLError):
        return fault.reason or type(fault).__name__
    if isinstance(fault, TimeoutError):
        return "no answer in time"
    if isinstance(fault, ConnectionResetError):
        return "the connection was reset"
    if isinstance(fault, OSError):
        return fault.strerror or type(fault).__name__
    # Some of the client's exceptions hold its objects, which say nothing to people.
    texts = [re.sub(r"\s*<\w[^<>]*>", "", each) for each in fault.args if isinstance(each, str)]
    return ": ".join(filter(None, (type(fault).__name__, " ".join(texts).strip().rstrip("."))))
