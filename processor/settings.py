"""Every setting of callgate: name, kind, default and what it means (design section 10).

Owns the list; `processor.config` fills it from file, environment and command line, `processor.docs` prints it. A field that
holds milliseconds ends in `_ms`, its setting does not: `stream_timeout` is written `20m` and held as 1,200,000.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Annotated, Any, get_type_hints

from processor.core.limits import TOLERANCES, Bounds
from processor.values import (
    FLAG,
    HEADER,
    NAMED,
    SECRET,
    TEXT,
    TOPIC,
    Kind,
    Secret,
    choice,
    duration,
    listing,
    size,
    whole,
)

SECOND = 1_000
MINUTE = 60 * SECOND
MIB = 1 << 20
DECISION_ROOM_BYTES = 128 << 10
"""Room in an output record for everything but the arguments: ids, names, headers, error pointers."""
BROKER_DEFAULT_BYTES = 1_048_588
"""Kafka's default of `max.message.bytes`: no topic is made with less."""


@dataclass(frozen=True, kw_only=True)
class Topics:
    """Names of the topics (design section 2), and how missing ones are made."""

    events: Annotated[str, TOPIC, "Input: the streaming events."] = "responses.events"
    approved: Annotated[str, TOPIC, "Output: approved calls."] = "toolcalls.approved"
    rejected: Annotated[str, TOPIC, "Output: rejected calls."] = "toolcalls.rejected"
    dead_letter: Annotated[str, TOPIC, "Output: records that cannot be read."] = "toolcalls.dead-letter"
    partitions: Annotated[int, whole(1), "Partitions of an input topic that `callgate topics` has to make."] = 12
    replication_factor: Annotated[
        int, whole(0, 32_767), "Replicas of a topic that `callgate topics` has to make; 0: the broker's default."
    ] = 0


@dataclass(frozen=True, kw_only=True)
class Kafka:
    """Connection, security and client options."""

    bootstrap_servers: Annotated[tuple[str, ...], listing(some=True), "Brokers to ask first, as `host:port`."] = (
        "localhost:9092",
    )
    security_protocol: Annotated[
        str, choice("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"), "How the connection is protected."
    ] = "PLAINTEXT"
    ssl_cafile: Annotated[str, TEXT, "PEM file of the authorities to trust; empty: the system's."] = ""
    ssl_certfile: Annotated[str, TEXT, "PEM file of the client's certificate, for mutual TLS."] = ""
    ssl_keyfile: Annotated[str, TEXT, "PEM file of the client's key."] = ""
    ssl_password: Annotated[Secret, SECRET, "Password of the client's key."] = field(default_factory=Secret)
    ssl_check_hostname: Annotated[bool, FLAG, "Whether the broker's certificate must name its host."] = True
    sasl_mechanism: Annotated[
        str, choice("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"), "How the client proves who it is."
    ] = "PLAIN"
    sasl_username: Annotated[str, TEXT, "User name for PLAIN and SCRAM."] = ""
    sasl_password: Annotated[Secret, SECRET, "Password for PLAIN and SCRAM."] = field(default_factory=Secret)
    sasl_oauth_token: Annotated[Secret, SECRET, "Token for OAUTHBEARER; a file is read anew at each connection."] = field(
        default_factory=Secret
    )
    client_id: Annotated[str, NAMED, "Name of this client in the broker's logs and quotas."] = "callgate"
    request_timeout_ms: Annotated[int, duration(100), "How long one request may take."] = 40 * SECOND
    session_timeout_ms: Annotated[int, duration(100), "Silence after which the group drops this member."] = 45 * SECOND
    heartbeat_interval_ms: Annotated[int, duration(10), "Pause between two heartbeats to the group."] = 3 * SECOND
    rebalance_timeout_ms: Annotated[int, duration(100), "How long a member may take to join again."] = MINUTE
    transaction_timeout_ms: Annotated[int, duration(1_000), "Age at which the broker aborts a transaction."] = MINUTE
    retry_backoff_ms: Annotated[
        int, duration(1), "Pause before a request is tried again; the client's own 100 ms is the latency tail."
    ] = 5
    metadata_max_age_ms: Annotated[int, duration(100), "Age at which the list of brokers is asked for again."] = 5 * MINUTE
    fetch_max_bytes: Annotated[int, size(1_024), "Bytes that one answer to a fetch may have."] = 50 * MIB
    fetch_max_wait_ms: Annotated[int, duration(1), "How long the broker may hold back an empty answer."] = 500
    max_partition_fetch_bytes: Annotated[int, size(1_024), "Bytes of one partition in such an answer."] = MIB
    max_buffered_bytes: Annotated[
        int,
        size(1_024),
        "Bytes of records in hand, fetched or decided and not yet published: shared by the partitions; answers come on top.",
    ] = 64 * MIB
    max_poll_records: Annotated[int, whole(1), "Records taken out of the client at once, over all partitions."] = 5_000
    max_request_bytes: Annotated[int, size(1_024), "Bytes that a batch of decisions may have."] = 20 * MIB
    compression: Annotated[
        str,
        choice("none", "gzip", "snappy", "lz4", "zstd"),
        "Compression of what is published; it costs about as much as reading an event.",
    ] = "none"


@dataclass(frozen=True, kw_only=True)
class Http:
    """Where metrics and health are served."""

    host: Annotated[str, NAMED, "Address to listen on; in a container `0.0.0.0`."] = "127.0.0.1"
    port: Annotated[int, whole(0, 65_535), "Port to listen on; 0: a free one, said in the log."] = 9464


@dataclass(frozen=True, kw_only=True)
class Log:
    """The log on standard error."""

    format: Annotated[
        str, choice("auto", "json", "console"), "One JSON object a line, or for people; `auto`: people at a terminal."
    ] = "auto"
    level: Annotated[str, choice("debug", "info", "warning", "error"), "The least that is written."] = "info"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """All settings, checked."""

    release: Annotated[
        str, choice("response", "item"), "When a decision is made: at the end of the response, or at `output_item.done`."
    ] = "response"
    tools: Annotated[
        str, choice("registry", "stream", "both"), "Where tools come from: files, the response's own echo, or both at once."
    ] = "registry"
    schemas: Annotated[str, NAMED, "Folder of the tool schemas."] = "schemas/tools"
    reload_interval_ms: Annotated[
        int, duration(0), "Pause between looks at that folder for changes; `0ms`: only on SIGHUP."
    ] = 5 * SECOND
    mode: Annotated[
        str, choice("enforce", "observe"), "`observe` approves what only policy, toolset or schema would reject, and says so."
    ] = "enforce"
    observe_tools: Annotated[
        tuple[str, ...], listing(), "Tools that are only observed while the mode is `enforce`; written as in `allow`."
    ] = ()
    allow: Annotated[
        tuple[str, ...],
        listing(),
        "Tools that local policy allows, as `name` or `namespace/name`, with `*` in either part; empty: all.",
    ] = ()
    deny: Annotated[tuple[str, ...], listing(), "Tools that local policy forbids, whatever `allow` says."] = ()
    tolerate: Annotated[tuple[str, ...], listing(TOLERANCES), "Quirks of providers that are let through (rule 34)."] = ()
    engine: Annotated[
        str, choice("jsonschema-rs", "fastjsonschema", "both"), "Which validator decides; `both`: only what both accept."
    ] = "jsonschema-rs"
    formats: Annotated[str, choice("annotation", "assertion"), "Whether `format` in a schema is checked."] = "annotation"
    arguments: Annotated[str, choice("omit", "hash", "include"), "What a rejection says about the arguments."] = "omit"
    key_header: Annotated[str, HEADER, "Header that names the stream where the record key is null."] = ""
    stream_timeout_ms: Annotated[int, duration(), "Silence after which a stream's open calls are rejected."] = 20 * MINUTE
    closed_memory_ms: Annotated[int, duration(0), "How long an ended response stays known."] = 2 * MINUTE
    idle_after_ms: Annotated[int, duration(), "Quiet of a partition, read to its end, after which the wall clock counts."] = (
        MINUTE
    )
    max_calls: Annotated[int, whole(1), "Calls a response."] = 128
    max_argument_bytes: Annotated[int, size(), "Bytes of arguments a call, as UTF-8."] = MIB
    max_argument_depth: Annotated[int, whole(1, 512), "Levels of nesting in the arguments."] = 64
    max_in_band_effort_ms: Annotated[
        int,
        duration(),
        "Time that judging a call by schemas of its stream may take at the worst, as estimated from their sizes.",
    ] = SECOND
    max_response_bytes: Annotated[int, size(), "Bytes buffered a response."] = 8 * MIB
    max_streams: Annotated[int, whole(1), "Streams a partition that are open or known."] = 100_000
    delivery: Annotated[
        str, choice("exactly_once", "at_least_once"), "`at_least_once` is for brokers without transactions."
    ] = "exactly_once"
    group: Annotated[str, NAMED, "Consumer group; also part of the transactional ids."] = "callgate"
    offset_reset: Annotated[
        str,
        choice("error", "earliest", "latest"),
        "Where to start if the committed offset has fallen out of retention; a group with none starts at the earliest record.",
    ] = "error"
    commit_interval_ms: Annotated[int, duration(), "Longest wait of a decision for its transaction."] = 100
    progress_interval_ms: Annotated[int, duration(), "Pause between commits that only move the position on."] = 5 * SECOND
    shutdown_grace_ms: Annotated[int, duration(100), "Time for a clean stop after SIGTERM."] = 25 * SECOND
    stall_after_ms: Annotated[
        int, duration(100), "Time without progress, with records waiting, after which `/healthz` fails."
    ] = 2 * MINUTE
    worker_timeout_ms: Annotated[
        int, duration(500), "Silence of a worker process, or of its health, after which it is killed and replaced."
    ] = 30 * SECOND
    workers: Annotated[int, whole(1, 256), "Processes on this machine."] = 1
    topics: Topics = field(default_factory=Topics)
    kafka: Kafka = field(default_factory=Kafka)
    http: Http = field(default_factory=Http)
    log: Log = field(default_factory=Log)

    def largest_approval(self) -> int:
        """Bytes of the largest record that may be approved (design section 7); the approved topic is made for it.

        The arguments twice (by themselves and in the item), as JSON inside a JSON string: what was parsed as JSON has nothing
        that takes more than two bytes for one.
        """
        return max(4 * self.max_argument_bytes + DECISION_ROOM_BYTES, BROKER_DEFAULT_BYTES)

    def largest_rejection(self) -> int:
        """Bytes that a rejection may have before it is cut down.

        With `arguments = include` it has them once, but they may be anything, so that one byte may take six.
        """
        arguments = 6 * self.max_argument_bytes if self.arguments == "include" else 0
        return max(arguments + DECISION_ROOM_BYTES, BROKER_DEFAULT_BYTES)

    def bounds(self) -> Bounds:
        """Return the settings on which the state of a partition depends; they travel in the commit's metadata."""
        return Bounds(
            release=self.release,
            stream_timeout_ms=self.stream_timeout_ms,
            closed_memory_ms=self.closed_memory_ms,
            max_calls=self.max_calls,
            max_argument_bytes=self.max_argument_bytes,
            max_response_bytes=self.max_response_bytes,
            max_streams=self.max_streams,
            tolerate=tuple(sorted(self.tolerate)),
            key_header=self.key_header,
        )


@dataclass(frozen=True)
class Setting:
    """One setting, as documented and as parsed."""

    key: str
    """Dotted, as it is written: `kafka.session_timeout`."""
    path: tuple[str, ...]
    """Attributes from Settings to the value."""
    kind: Kind
    meaning: str
    default: Any


def catalogue(of: type = Settings, prefix: str = "", path: tuple[str, ...] = ()) -> Iterator[Setting]:
    """Every setting, in the order of declaration."""
    hints = get_type_hints(of, include_extras=True)
    defaults = of()
    for each in fields(of):
        hint = hints[each.name]
        if isinstance(hint, type) and is_dataclass(hint):
            yield from catalogue(hint, f"{prefix}{each.name}.", (*path, each.name))
            continue
        kind, meaning = hint.__metadata__
        yield Setting(
            key=prefix + each.name.removesuffix("_ms"),
            path=(*path, each.name),
            kind=kind,
            meaning=meaning,
            default=getattr(defaults, each.name),
        )
