"""What this client may do on the broker: every right that a processor lacks, named before it starts.

Owns two requests that the client does not know in the version that answers with rights (KIP-430). It asks only: nothing is
written, and no partition's producer is fenced. A broker that cannot answer is not asked: what is missing is then named when it
is refused.
"""

from typing import Any, NamedTuple

from aiokafka import errors as kafka
from aiokafka.protocol.admin import DescribeGroupsRequest_v3, DescribeGroupsResponse_v3
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import Array, Boolean, Int16, Int32, Schema, String
from aiokafka.structs import TopicPartition

from processor.adapters.kafka_client import translate
from processor.adapters.offset_fetch import Reader
from processor.adapters.publish import transactional_id
from processor.errors import Refused
from processor.settings import Settings

READ, WRITE, DESCRIBE = 3, 4, 8
"""Operations, as the protocol numbers them: each is one bit of the answer."""
NAMES = {READ: "Read", WRITE: "Write", DESCRIBE: "Describe"}
NOT_TOLD = -(1 << 31)
TRANSACTION = 1
"""Kind of coordinator."""
TOPIC_REFUSED = kafka.TopicAuthorizationFailedError.errno
GROUP_REFUSED = kafka.GroupAuthorizationFailedError.errno


class _TopicsAnswer(Response):
    API_KEY = 3
    API_VERSION = 8
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        ("brokers", Array(("node_id", Int32), ("host", String("utf-8")), ("port", Int32), ("rack", String("utf-8")))),
        ("cluster_id", String("utf-8")),
        ("controller_id", Int32),
        (
            "topics",
            Array(
                ("error_code", Int16),
                ("name", String("utf-8")),
                ("is_internal", Boolean),
                (
                    "partitions",
                    Array(
                        ("error_code", Int16),
                        ("partition", Int32),
                        ("leader", Int32),
                        ("leader_epoch", Int32),
                        ("replicas", Array(Int32)),
                        ("in_sync", Array(Int32)),
                        ("offline", Array(Int32)),
                    ),
                ),
                ("rights", Int32),
            ),
        ),
        ("cluster_rights", Int32),
    )


class _TopicsQuestion(RequestStruct):
    API_KEY = 3
    API_VERSION = 8
    RESPONSE_TYPE = _TopicsAnswer
    SCHEMA = Schema(
        ("topics", Array(String("utf-8"))), ("make_missing", Boolean), ("cluster_rights", Boolean), ("topic_rights", Boolean)
    )


class _Topics(Request[_TopicsQuestion]):
    API_KEY = 3

    def __init__(self, names: list[str]) -> None:
        self._names = names

    def build(self, request_struct_class: type[_TopicsQuestion]) -> _TopicsQuestion:
        """Make the request of the version that was agreed on."""
        return request_struct_class(self._names, False, False, True)


class _GroupsQuestion(RequestStruct):
    API_KEY = 15
    API_VERSION = 3
    # The client's own is told to read the answer of version 2.
    RESPONSE_TYPE = DescribeGroupsResponse_v3
    SCHEMA = DescribeGroupsRequest_v3.SCHEMA


class _Groups(Request[_GroupsQuestion]):
    API_KEY = 15

    def __init__(self, names: list[str]) -> None:
        self._names = names

    def build(self, request_struct_class: type[_GroupsQuestion]) -> _GroupsQuestion:
        """Make the request of the version that was agreed on."""
        return request_struct_class(self._names, True)


class _Need(NamedTuple):
    what: str
    operation: int
    why: str

    def sentence(self) -> str:
        return f"This client lacks the right `{NAMES[self.operation]}` on {self.what}: {self.why}."


async def require(reader: Reader, settings: Settings) -> None:
    """Raise Refused with one sentence for each right that is missing. Raises Retryable too."""
    if lacking := await missing(reader, settings):
        raise Refused(*lacking)


async def missing(reader: Reader, settings: Settings) -> list[str]:
    """Rights that a processor with these settings needs and this client lacks, a sentence each. Raises Retryable, Refused."""
    doing = "Asking for this client's rights failed"
    try:
        needs = await _topics(reader, settings) + await _group(reader, settings.group)
        if settings.delivery == "exactly_once":
            needs += await _transactions(reader, settings)
    except (NotImplementedError, kafka.IncompatibleBrokerVersion):
        return []
    except (kafka.KafkaError, OSError, TimeoutError) as fault:
        raise translate(fault, doing) from fault
    return [need.sentence() for need in needs]


async def _topics(reader: Reader, settings: Settings) -> list[_Need]:
    names = settings.topics
    wanted = {names.events: (READ, "it is the input")}
    for name in (names.approved, names.rejected, names.dead_letter):
        wanted[name] = WRITE, "what is decided goes there"
    answer = await reader.admin._send_request(_Topics(list(wanted)))
    found = []
    for code, name, _, _, rights in answer.topics:
        operation, why = wanted[name]
        # A topic that is not there is another check's finding.
        if code == TOPIC_REFUSED or (not code and _lacks(rights, operation)):
            found.append(_Need(f"topic `{name}`", operation, why))
    return found


async def _group(reader: Reader, group: str) -> list[_Need]:
    need = _Need(f"group `{group}`", READ, "offsets are committed for it, and its members share the partitions")
    try:
        coordinator = await reader.admin.find_coordinator(group)
        answer = await reader.admin._send_request(_Groups([group]), coordinator)
    except kafka.GroupAuthorizationFailedError:
        return [need]
    except kafka.GroupCoordinatorNotAvailableError:  # a new cluster: nobody was asked yet who may do what
        return []
    ((code, *_, rights),) = answer.groups
    return [need] if code == GROUP_REFUSED or (not code and _lacks(rights, READ)) else []


async def _transactions(reader: Reader, settings: Settings) -> list[_Need]:
    prefix = transactional_id(settings.group, TopicPartition(settings.topics.events, 0))
    try:
        await reader.admin.find_coordinator(prefix, TRANSACTION)
    except kafka.TransactionalIdAuthorizationFailed:
        named = prefix.removesuffix("0")
        return [_Need(f"transactional ids that begin with `{named}`", WRITE, "every partition has a transaction of its own")]
    except kafka.GroupCoordinatorNotAvailableError:
        pass
    return []


def _lacks(rights: Any, operation: int) -> bool:
    return rights != NOT_TOLD and not rights & (1 << operation)
