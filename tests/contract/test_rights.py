"""Rights on a broker that asks for them: each one that is missing is named at the start, in a sentence."""

import asyncio
import json
import secrets
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import AclBinding, AclOperation, AclPermissionType
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType

from processor.adapters import rights
from processor.adapters.offset_fetch import Reader
from processor.broker import Broker
from processor.cli.exits import Exit
from processor.settings import Kafka, Settings, Topics
from processor.values import Secret
from tests.conftest import create_topic
from tests.contract.kit import Lines

pytestmark = pytest.mark.kafka

PASSWORD = "in-wonderland"
AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
TOPIC, GROUP, IDS = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID
READ, WRITE, DESCRIBE = AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE
CONFIGS = AclOperation.DESCRIBE_CONFIGS

Grant = tuple[ResourceType, str, AclOperation]


@pytest.fixture(scope="module")
def guarded() -> Iterator[Broker]:
    """Give a broker on which alice may do what she was granted, and whoever is not logged in everything."""
    with Broker(users={"alice": PASSWORD}, settings=AUTHORIZER, quick=True) as running:
        yield running


class Case:
    """Topics and a group of one test."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        name = secrets.token_hex(4)
        self.topics = Topics(events=f"{name}.in", approved=f"{name}.yes", rejected=f"{name}.no", dead_letter=f"{name}.dead")
        self.group = f"group-{name}"
        self.ids = f"callgate/{self.group}/{self.topics.events}/"
        kafka = Kafka(
            bootstrap_servers=(broker.address("SASL_PLAINTEXT"),),
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="SCRAM-SHA-256",
            sasl_username="alice",
            sasl_password=Secret(PASSWORD),
        )
        self.settings = Settings(group=self.group, topics=self.topics, kafka=kafka)
        for topic in self.all():
            config = {} if topic == self.topics.events else {"max.message.bytes": str(8 << 20)}
            asyncio.run(create_topic(broker.bootstrap, topic, config=config))

    def all(self) -> tuple[str, ...]:
        """Names of the topics."""
        return self.topics.events, self.topics.approved, self.topics.rejected, self.topics.dead_letter

    def needed(self) -> dict[Grant, str]:
        """What a processor needs, and the sentence where it lacks it."""
        events, *outputs = self.all()
        lacks = "This client lacks the right"
        found = {(TOPIC, events, READ): f"{lacks} `Read` on topic `{events}`: it is the input."}
        for name in outputs:
            found[TOPIC, name, WRITE] = f"{lacks} `Write` on topic `{name}`: what is decided goes there."
        found[GROUP, self.group, READ] = (
            f"{lacks} `Read` on group `{self.group}`: offsets are committed for it, and its members share the partitions."
        )
        found[IDS, self.ids, WRITE] = (
            f"{lacks} `Write` on transactional ids that begin with `{self.ids}`: every partition has a transaction of its own."
        )
        return found

    def grant(self, *grants: Grant) -> None:
        """Let alice do this."""
        admin = AdminClient({"bootstrap.servers": self.broker.bootstrap})
        bindings = [
            AclBinding(
                kind,
                name,
                ResourcePatternType.PREFIXED if kind is IDS else ResourcePatternType.LITERAL,
                "User:alice",
                "*",
                operation,
                AclPermissionType.ALLOW,
            )
            for kind, name, operation in grants
        ]
        for answer in admin.create_acls(bindings).values():
            answer.result(60)

    def missing(self) -> list[str]:
        """What the check says."""

        async def ask() -> list[str]:
            reader = Reader(self.settings.kafka, self.group, Lines())
            await reader.start()
            try:
                return await rights.missing(reader, self.settings)
            finally:
                await reader.close()

        return asyncio.run(ask())


def test_each_right_is_named(guarded: Broker) -> None:
    """Issue 6: one sentence for each that is missing, whichever; none where all are there."""
    case = Case(guarded)
    needed = case.needed()
    assert case.missing() == list(needed.values())
    left = dict(needed)
    for grant in needed:
        case.grant(grant)
        del left[grant]
        assert case.missing() == list(left.values())


def test_a_weaker_right_is_not_enough(guarded: Broker) -> None:
    """To see a topic or a group is not to read or write it."""
    case = Case(guarded)
    case.grant(*((kind, name, DESCRIBE) for kind, name, _ in case.needed() if kind is not IDS))
    assert case.missing() == list(case.needed().values())


def test_the_start_is_refused_with_them(guarded: Broker, tmp_path: Path) -> None:
    """`callgate run` says each on a line of its own and ends with 7; with the rights it gets as far as its work."""
    case = Case(guarded)
    needed = case.needed()
    grants = list(needed)
    case.grant(*grants[:3], *((TOPIC, name, CONFIGS) for name in case.all()))
    config = tmp_path / "callgate.yaml"
    kafka = {
        "bootstrap_servers": list(case.settings.kafka.bootstrap_servers),
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "SCRAM-SHA-256",
        "sasl_username": "alice",
        "sasl_password": PASSWORD,
    }
    topics = dict(zip(("events", "approved", "rejected", "dead_letter"), case.all(), strict=True))
    settings = {"group": case.group, "tools": "stream", "topics": topics, "kafka": kafka, "http": {"port": 0}}
    config.write_text(json.dumps(settings))
    command = [sys.executable, "-m", "processor", "run", "--config", str(config)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    said = [line for line in ended.stderr.splitlines() if line.startswith("callgate: ")]
    assert (ended.returncode, said) == (Exit.REFUSED, [f"callgate: {needed[grant]}" for grant in grants[3:]])
    case.grant(*grants[3:])
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as running:
        try:
            assert running.stderr is not None
            lines = []
            for line in running.stderr:
                lines.append(line)
                if '"live"' in line:
                    break
            assert '"live"' in lines[-1], lines
        finally:
            running.kill()
