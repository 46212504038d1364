"""The topics: makes what is missing, checks what is there (design sections 2 and 7).

Owns what each topic must be, and says each finding in one sentence. A topic is configured when it is made and never altered:
the client's `alter_configs` resets every setting that it does not name.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aiokafka import errors as kafka
from aiokafka.admin import NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.protocol.metadata import MetadataRequest

from processor.adapters.kafka_client import translate
from processor.adapters.offset_fetch import Reader
from processor.adapters.publish import BATCH_BYTES, topics_of
from processor.core.outgoing import Route
from processor.errors import Fatal, Refused, Unfit
from processor.settings import BROKER_DEFAULT_BYTES, DECISION_ROOM_BYTES, Settings, Topics
from processor.values import show_duration, show_size

SLOWEST_BYTES_PER_MS = 512
"""What is read of the most laborious JSON on a slow machine, about: while a record is read nothing else happens, heartbeats
included."""
LARGEST_LEAD_MS = 60_000
"""How far ahead of the broker a producer's clock may be: it moves the watermark, and all that is silent expires by it."""
DAY_MS = 86_400_000
NOT_ALLOWED = (kafka.TopicAuthorizationFailedError.errno, kafka.ClusterAuthorizationFailedError.errno)


@dataclass(frozen=True)
class Finding:
    """One thing about the topics that is not as it must be."""

    sentence: str
    stops: bool
    """Whether `run` refuses to start over it."""


@dataclass(frozen=True)
class Topic:
    """One topic as it is."""

    name: str
    partitions: int
    configs: Mapping[str, str] | None
    """None: this client may not ask for them."""

    def text(self, name: str, otherwise: str = "") -> str:
        """A setting as text; `otherwise` where the broker does not say."""
        return (self.configs or {}).get(name) or otherwise

    def number(self, name: str) -> int:
        """A setting as a number; -1 where the broker does not say."""
        try:
            return int(self.text(name))
        except ValueError:
            return -1


def largest_decision(settings: Settings, route: Route, input_bytes: int) -> int:
    """Bytes that a topic must take in one record, so that everything that is decided can be published.

    Rejected: what cannot be cut down is the input's key. Dead letter: the record as read, and its headers.
    """
    if route is Route.APPROVED:
        return settings.largest_approval()
    copied = max(input_bytes, BATCH_BYTES) + DECISION_ROOM_BYTES
    return max(settings.largest_rejection(), copied) if route is Route.REJECTED else copied


async def check(reader: Reader, settings: Settings) -> list[Finding]:
    """Look at the topics; an empty list: all is well. Raises Retryable, Refused."""
    names = settings.topics
    found = await describe(reader, _names(names))
    findings = [
        Finding(f"Topic `{name}` is missing: `callgate topics`, with the same settings (`--config`, `--set`), makes it.", True)
        for name in _names(names)
        if name not in found
    ]
    findings += [
        Finding(f"The settings of topic `{topic.name}` cannot be checked: this client lacks the right to describe them.", False)
        for topic in found.values()
        if topic.configs is None
    ]
    if (events := found.get(names.events)) and events.configs is not None:
        findings += _check_input(events, settings)
    for route, name in topics_of(settings).items():
        if topic := found.get(name):
            findings += _check_output(topic, route, found.get(names.events), settings)
    return findings


async def require(reader: Reader, settings: Settings) -> list[Finding]:
    """Check at the start. Raises Unfit with every finding that stops it, Retryable, Refused; returns the others."""
    findings = await check(reader, settings)
    if stopping := [finding.sentence for finding in findings if finding.stops]:
        raise Unfit(*stopping)
    return findings


async def create(reader: Reader, settings: Settings) -> list[str]:
    """Make the topics that are missing; returns their names. Raises Retryable, Refused, Fatal."""
    names = settings.topics
    found = await describe(reader, _names(names))
    events = found.get(names.events)
    partitions = events.partitions if events else names.partitions
    input_bytes = events.number("max.message.bytes") if events else BROKER_DEFAULT_BYTES
    wanted: dict[str, dict[str, str]] = {}
    if events is None:
        retention = max(7 * DAY_MS, 2 * (settings.stream_timeout_ms + settings.closed_memory_ms))
        wanted[names.events] = {
            "message.timestamp.type": "LogAppendTime",
            "retention.ms": str(retention),
            "max.message.bytes": str(input_bytes),
        }
    for route, name in topics_of(settings).items():
        if name not in found:
            wanted[name] = {"max.message.bytes": str(largest_decision(settings, route, input_bytes))}
    if not wanted:
        return []
    replicas = names.replication_factor or await _default_replicas(reader)
    new = [
        NewTopic(name, partitions, replicas, topic_configs={"cleanup.policy": "delete", **configs})
        for name, configs in wanted.items()
    ]
    try:
        answer = await reader.admin.create_topics(new)
    except (kafka.KafkaError, OSError, TimeoutError) as fault:
        raise translate(fault, "Making the topics failed") from fault
    for name, code, message, *_ in answer.topic_errors:
        if code and code != kafka.TopicAlreadyExistsError.errno:
            cause = kafka.for_code(code)
            kind = Refused if issubclass(cause, kafka.TopicAuthorizationFailedError) else Fatal
            raise kind(f"Topic `{name}` could not be made: {(message or cause.__name__).rstrip('.')}.")
    return list(wanted)


def _names(names: Topics) -> tuple[str, ...]:
    return names.events, names.approved, names.rejected, names.dead_letter


def _check_input(events: Topic, settings: Settings) -> list[Finding]:
    name, findings = events.name, []
    needed = settings.stream_timeout_ms + settings.closed_memory_ms
    retention = events.number("retention.ms")
    if events.text("cleanup.policy", "delete") != "delete":
        findings.append(
            Finding(f"Topic `{name}` is compacted: a rebuild would miss records; `cleanup.policy` must be `delete`.", True)
        )
    if 0 <= retention <= needed:
        findings.append(
            Finding(
                f"Topic `{name}` keeps records for {show_duration(retention)}, but a stream may be open or known for "
                f"{show_duration(needed)} (`stream_timeout` and `closed_memory`): raise `retention.ms` above that.",
                True,
            )
        )
    largest = events.number("max.message.bytes")
    if largest / SLOWEST_BYTES_PER_MS > settings.kafka.session_timeout_ms:
        findings.append(
            Finding(
                f"Topic `{name}` takes records of up to {show_size(largest)}: reading the most laborious one may take longer "
                "than `kafka.session_timeout`, and the group would drop this member each time; raise that, or lower "
                "`max.message.bytes`.",
                False,
            )
        )
    lead = events.number("message.timestamp.after.max.ms")
    if events.text("message.timestamp.type") != "LogAppendTime" and not 0 <= lead <= LARGEST_LEAD_MS:
        findings.append(
            Finding(
                f"Topic `{name}` takes its producers' clocks: one that is ahead expires every silent stream; set "
                "`message.timestamp.type=LogAppendTime`, or `message.timestamp.after.max.ms` to a minute at most.",
                False,
            )
        )
    return findings


def _check_output(topic: Topic, route: Route, events: Topic | None, settings: Settings) -> list[Finding]:
    findings = []
    if events is not None and topic.partitions != events.partitions:
        findings.append(
            Finding(
                f"Topic `{topic.name}` has {topic.partitions} partitions and `{events.name}` has {events.partitions}: they "
                "must have equally many, since a decision goes to the partition of its record's number.",
                True,
            )
        )
    if topic.text("cleanup.policy", "delete") != "delete":
        findings.append(
            Finding(f"Topic `{topic.name}` is compacted: decisions would vanish; `cleanup.policy` must be `delete`.", True)
        )
    needed = largest_decision(settings, route, events.number("max.message.bytes") if events else 0)
    if 0 <= (room := topic.number("max.message.bytes")) < needed:
        findings.append(
            Finding(
                f"Topic `{topic.name}` takes records of up to {show_size(room)}, but the largest one to be written there may "
                f"have {show_size(needed)}: raise `max.message.bytes`.",
                True,
            )
        )
    return findings


async def describe(reader: Reader, wanted: Sequence[str]) -> dict[str, Topic]:
    """The topics that are there, with their settings. Raises Retryable, Refused."""
    doing = "Asking for the topics failed"
    try:
        # The admin client's own call would make a missing topic, where the broker is set to.
        answer = await reader.admin._send_request(MetadataRequest(list(wanted), allow_auto_topic_creation=False))
        found = {one["topic"]: one for one in answer.to_object()["topics"]}
        there = {}
        for name, one in found.items():
            code = one["error_code"]
            if not code:
                there[name] = len(one["partitions"])
            elif code != kafka.UnknownTopicOrPartitionError.errno:
                raise kafka.for_code(code)(name)
        configs = await _configs(reader, ConfigResourceType.TOPIC, list(there))
    except (kafka.KafkaError, OSError, TimeoutError) as fault:
        raise translate(fault, doing) from fault
    return {name: Topic(name, count, configs.get(name)) for name, count in there.items()}


async def _configs(reader: Reader, kind: Any, names: list[str]) -> dict[str, dict[str, str]]:
    if not names:
        return {}
    answers = await reader.admin.describe_configs([ConfigResource(kind, name) for name in names])
    found = {}
    for answer in answers:
        for code, _, _, name, entries, *_ in answer.resources:
            if code in NOT_ALLOWED:
                continue
            if code:
                raise kafka.for_code(code)(name)
            found[name] = {entry[0]: entry[1] for entry in entries}
    return found


async def _default_replicas(reader: Reader) -> int:
    """The broker's default: the client's CreateTopics ends at version 3, which cannot say "default"."""
    try:
        cluster = await reader.admin.describe_cluster()
        node = str(cluster["brokers"][0]["node_id"])
        configs = await _configs(reader, ConfigResourceType.BROKER, [node])
    except (kafka.KafkaError, OSError, TimeoutError) as fault:
        raise translate(fault, "Asking for the broker's default of replicas failed") from fault
    return int(configs.get(node, {}).get("default.replication.factor") or 1)
