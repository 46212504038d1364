"""Where a broker listens, and with what security: ports, and the properties that Kafka wants for them.

Owns the spelling of server.properties. It starts nothing and must never listen beyond loopback.
"""

import random
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

HOST = "127.0.0.1"

PORTS = range(15_000, 32_000)
"""Below Linux's range for outgoing connections: a client that keeps trying while the broker is down could otherwise be given
the broker's own port, and connect to itself."""

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")

_SECURITY = "org.apache.kafka.common.security"
_UNSECURED = f"{_SECURITY}.oauthbearer.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"


@dataclass(frozen=True, slots=True)
class Certificates:
    """PEM files of the broker; its certificate must be good for 127.0.0.1."""

    certificate: Path
    """The broker's certificate, with the chain to `authority` behind it."""
    key: Path
    """Its private key, PKCS 8, not encrypted."""
    authority: Path
    """Who signs the clients' certificates (listener MTLS)."""


def listener_names(certificates: Certificates | None, users: Mapping[str, str], *, front: bool = False) -> list[str]:
    """Names of the listeners, the controller's last. PLAINTEXT is always there."""
    names = ["PLAINTEXT"]
    if certificates:
        names += ["SSL", "MTLS"]
    if users:
        names.append("SASL_PLAINTEXT")
    if certificates and users:
        names.append("SASL_SSL")
    if front:
        names.append("FRONT")
    return [*names, "CONTROLLER"]


def free_ports(count: int) -> list[int]:
    """Ports on loopback that nobody listens on now. Somebody else may take them before Kafka does: the caller tries again."""
    found: list[int] = []
    for port in random.SystemRandom().sample(PORTS, len(PORTS)):
        with socket.socket() as probe:
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
        found.append(port)
        if len(found) == count:
            return found
    raise OSError("no free ports on loopback")


def in_use(port: int) -> bool:
    """Whether somebody listens on a port of loopback; connections that are only lingering do not count."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return True
    return False


def properties(
    data: Path,
    ports: Mapping[str, int],
    certificates: Certificates | None,
    users: Mapping[str, str],
    front: int | None = None,
    role: str | None = None,
) -> dict[str, str]:
    """Everything in server.properties but the caller's own wishes.

    `front`: port at which the listener FRONT is advertised. `role`: `broker` or `controller`; None: one node is both.
    """
    node = _node(data, ports, front) | _small() | (_apart(role, ports) if role else {})
    return node | (_tls(certificates) if certificates else {}) | _sasl(ports, users)


def _node(data: Path, ports: Mapping[str, int], front: int | None) -> dict[str, str]:
    """One node that is broker and controller."""
    plain = {"CONTROLLER": "PLAINTEXT", "FRONT": "PLAINTEXT", "MTLS": "SSL"}
    protocols = {name: plain.get(name, name) for name in ports}
    told = {name: port for name, port in ports.items() if name != "CONTROLLER"}
    if front is not None:
        told["FRONT"] = front
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@{HOST}:{ports['CONTROLLER']}",
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "PLAINTEXT",
        "listeners": ",".join(f"{name}://{HOST}:{port}" for name, port in ports.items()),
        "advertised.listeners": ",".join(f"{name}://{HOST}:{port}" for name, port in told.items()),
        "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, protocol in protocols.items()),
        "log.dirs": str(data),
    }


def _apart(role: str, ports: Mapping[str, int]) -> dict[str, str]:
    """What differs where broker and controller are two processes."""
    found = {
        "process.roles": role,
        "controller.quorum.voters": f"2@{HOST}:{ports['CONTROLLER']}",
        # A controlled stop gives the leaderships away, to nobody, while transactions are still being ended: Kafka 4.3.1 takes
        # partitions without a leader for deleted ones, and leaves their markers out.
        "controlled.shutdown.enable": "false",
        # Kafka's default: one that lives, and is taken for dead on a loaded machine, has partitions without a leader too.
        "broker.session.timeout.ms": "9000",
    }
    if role == "controller":
        listener = f"CONTROLLER://{HOST}:{ports['CONTROLLER']}"
        return found | {"node.id": "2", "listeners": listener, "advertised.listeners": listener}
    return found | {"listeners": ",".join(f"{name}://{HOST}:{port}" for name, port in ports.items() if name != "CONTROLLER")}


def _small() -> dict[str, str]:
    """A broker for one machine and a few minutes: no waiting, little memory, few files."""
    return {
        "auto.create.topics.enable": "false",
        "default.replication.factor": "1",
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "4",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "transaction.state.log.num.partitions": "4",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
        "share.coordinator.state.topic.num.partitions": "1",
        "group.initial.rebalance.delay.ms": "0",
        # A broker that was killed may only come back when its session is over (9 s by default;
        # shorter than this and a loaded machine loses it).
        "broker.session.timeout.ms": "5000",
        "broker.heartbeat.interval.ms": "500",
        # Tests kill members: their session must be able to end soon, and so must what they left open.
        "group.min.session.timeout.ms": "500",
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
        # Two indexes a partition are made in full at once (10 MB each by default), and the cleaner's buffer is 128 MB.
        "log.index.size.max.bytes": "1048576",
        "log.cleaner.dedupe.buffer.size": "16777216",
        "num.network.threads": "2",
        "num.io.threads": "4",
        "num.recovery.threads.per.data.dir": "2",
        # A single node that stops has nobody to hand over to.
        "controlled.shutdown.enable": "true",
    }


def _tls(certificates: Certificates) -> dict[str, str]:
    """TLS on the listeners that have it; MTLS asks the client for its certificate too."""
    key, chain = certificates.key.read_text().strip(), certificates.certificate.read_text().strip()
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": key,
        "ssl.keystore.certificate.chain": chain,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": certificates.authority.read_text().strip(),
        "listener.name.mtls.ssl.client.auth": "required",
    }


def _sasl(ports: Mapping[str, int], users: Mapping[str, str]) -> dict[str, str]:
    """The same users under every mechanism; an OAUTHBEARER token is an unsigned JWT that only has to be fresh."""
    if not users:
        return {}
    plain = " ".join(f'user_{name}="{password}"' for name, password in users.items())
    found = {"sasl.enabled.mechanisms": ",".join(MECHANISMS)}
    for listener in ("SASL_PLAINTEXT", "SASL_SSL"):
        if listener not in ports:
            continue
        prefix = f"listener.name.{listener.lower()}"
        found |= {
            f"{prefix}.plain.sasl.jaas.config": f"{_SECURITY}.plain.PlainLoginModule required {plain};",
            f"{prefix}.scram-sha-256.sasl.jaas.config": f"{_SECURITY}.scram.ScramLoginModule required;",
            f"{prefix}.scram-sha-512.sasl.jaas.config": f"{_SECURITY}.scram.ScramLoginModule required;",
            f"{prefix}.oauthbearer.sasl.jaas.config": f"{_SECURITY}.oauthbearer.OAuthBearerLoginModule required "
            'unsecuredLoginStringClaim_sub="broker";',
            f"{prefix}.oauthbearer.sasl.server.callback.handler.class": _UNSECURED,
        }
    return found


def render(settings: Mapping[str, str]) -> str:
    """Text of a Java properties file."""
    return "".join(f"{name}={_escaped(value)}\n" for name, value in settings.items())


def _escaped(value: str) -> str:
    """A value on one line, as java.util.Properties reads it."""
    return value.replace("\\", "\\\\").replace("\r", "").replace("\n", "\\n")
