"""Liveness and readiness, as rules and over HTTP."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from processor.adapters.http import HttpServer
from processor.observe.health import Gauges, PartitionStatus, Status, live, ready
from processor.observe.meters import Meters

STALL_S = 10.0


def partition(state: str = "live", /, **fields: Any) -> PartitionStatus:
    """One partition's status."""
    status = PartitionStatus(
        state=state,
        why="",
        position=5,
        committed_w=2,
        committed_p=5,
        end=5,
        lag_w=3,
        lag_p=0,
        backlog=0,
        progress_age_s=0.0,
    )
    status.update(fields)  # type: ignore[typeddict-item]  # the fields of a test
    return status


def status(*partitions: PartitionStatus, joined: bool = True, fetch_age_s: float = 0.0) -> Status:
    """A runner's status."""
    return Status(joined=joined, fetch_age_s=fetch_age_s, ready=False, partitions=dict(enumerate(partitions)))


def test_ready_needs_the_group_and_live_partitions() -> None:
    """Ready: the group is joined and every assigned partition is live."""
    assert ready(status(partition(), partition()))[0]
    assert not ready(status(partition(), joined=False))[0]
    assert not ready(status(partition()), stopping=True)[0]
    good, detail = ready(status(partition(), partition("rebuilding"), partition("stopped", why="MessageSizeTooLarge")))
    assert not good
    assert detail["waiting"] == [
        {"partition": 1, "state": "rebuilding"},
        {"partition": 2, "state": "stopped", "why": "MessageSizeTooLarge"},
    ]


def test_member_without_partitions_is_ready() -> None:
    """More members than partitions: the spare one is ready, or a roll-out would never end."""
    assert ready(status())[0]


def test_stall_needs_backlog_and_silence() -> None:
    """Alive while there is progress or nothing to do; not when records wait and nothing moves."""
    assert live(status(partition(lag_p=9, progress_age_s=STALL_S - 1)), STALL_S)[0]
    assert live(status(partition(lag_p=0, progress_age_s=STALL_S * 9)), STALL_S)[0]
    for waiting in (partition(lag_p=9, progress_age_s=STALL_S), partition(backlog=9, progress_age_s=STALL_S)):
        good, detail = live(status(partition(), waiting), STALL_S)
        assert not good
        assert [each["partition"] for each in detail["stalled"]] == [1]


def test_stopped_partition_is_unready_not_dead() -> None:
    """A restart would not cure it, and would take the other partitions down."""
    stopped = status(partition("stopped", lag_p=9, progress_age_s=STALL_S * 9))
    assert live(stopped, STALL_S)[0]
    assert not ready(stopped)[0]


def test_loop_that_does_not_come_round_is_dead() -> None:
    """A fetch loop that hangs is not alive, whatever the partitions say; one that still joins is."""
    assert not live(status(fetch_age_s=STALL_S), STALL_S)[0]
    assert live(status(fetch_age_s=STALL_S, joined=False), STALL_S)[0]


def test_gauges_follow_the_status() -> None:
    """Section 7: both lags are exported, and partitions that leave take their gauges along."""
    meters = Meters("1")
    gauges = Gauges(meters, "t")
    gauges.set(status(partition(lag_p=1, lag_w=8), partition("rebuilding")))
    labels = {"topic": "t", "partition": "0"}
    assert meters.registry.get_sample_value("callgate_lag_to_position", labels) == 1
    assert meters.registry.get_sample_value("callgate_lag_to_commit", labels) == 8
    assert meters.registry.get_sample_value("callgate_held", labels) == 7
    assert meters.registry.get_sample_value("callgate_partition_live", {"topic": "t", "partition": "1"}) == 0
    gauges.set(status())
    assert meters.registry.get_sample_value("callgate_held", labels) is None
    assert meters.registry.get_sample_value("callgate_assigned_partitions") == 0


def test_unknown_lag_is_no_series() -> None:
    """Section 7: a lag that is not known is never shown as 0, nor is the last one that was."""
    meters = Meters("1")
    gauges = Gauges(meters, "t")
    labels = {"topic": "t", "partition": "0"}
    names = ("callgate_lag_to_position", "callgate_lag_to_commit", "callgate_held")
    unknown = status(partition("takeover", lag_p=None, lag_w=None))
    for now, shown in (
        (unknown, [None, None, None]),
        (status(partition(lag_p=1, lag_w=8)), [1, 8, 7]),
        (unknown, [None, None, None]),
    ):
        gauges.set(now)
        assert [meters.registry.get_sample_value(name, labels) for name in names] == shown
    gauges.set(status())


def test_takeover_is_no_stall() -> None:
    """A takeover waits for the broker: records that wait behind it do not make the process dead."""
    assert live(status(partition("takeover", lag_p=9, progress_age_s=STALL_S * 9)), STALL_S)[0]


def serve(work: Callable[[int], Awaitable[None]], now: Callable[[], Status] = status) -> None:
    """Run `work` beside a server on a free port."""

    async def run() -> None:
        server = HttpServer(
            "127.0.0.1",
            0,
            exposition=lambda: b"m 1\n",
            live=lambda: live(now(), STALL_S),
            ready=lambda: ready(now()),
        )
        port = await server.start()
        try:
            await work(port)
        finally:
            await server.close()

    asyncio.run(run())


async def ask(port: int, request: bytes) -> tuple[int, bytes]:
    """One request's status and body."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    answer = await reader.read()
    writer.close()
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), body


@pytest.mark.parametrize(
    ("request_head", "code", "body"),
    [
        (b"GET /metrics HTTP/1.1\r\n\r\n", 200, b"m 1\n"),
        (b"HEAD /metrics HTTP/1.1\r\n\r\n", 200, b""),
        (b"GET /metrics?x=1 HTTP/1.0\r\nHost: a\r\n\r\n", 200, b"m 1\n"),
        (b"POST /metrics HTTP/1.1\r\n\r\n", 405, b""),
        (b"GET / HTTP/1.1\r\n\r\n", 404, b"/metrics /healthz /readyz\n"),
        (b"\xff\xfe\r\n\r\n", 400, b""),
        (b"\r\n\r\n", 400, b""),
    ],
)
def test_requests(request_head: bytes, code: int, body: bytes) -> None:
    """The three endpoints answer GET and HEAD; anything else gets its status."""

    async def work(port: int) -> None:
        assert await ask(port, request_head) == (code, body)

    serve(work)


def test_health_over_http() -> None:
    """200 or 503, with the detail as JSON."""
    now = [status(joined=False)]

    async def work(port: int) -> None:
        code, body = await ask(port, b"GET /readyz HTTP/1.1\r\n\r\n")
        assert (code, json.loads(body)["joined"]) == (503, False)
        now[0] = status(partition())
        assert (await ask(port, b"GET /readyz HTTP/1.1\r\n\r\n"))[0] == 200
        assert (await ask(port, b"GET /healthz HTTP/1.1\r\n\r\n"))[0] == 200
        now[0] = status(partition(lag_p=4, progress_age_s=STALL_S))
        code, body = await ask(port, b"GET /healthz HTTP/1.1\r\n\r\n")
        assert (code, json.loads(body)["stalled"][0]["lag"]) == (503, 4)

    serve(work, lambda: now[0])


def test_oversized_request_is_dropped() -> None:
    """A request that never ends is closed, and the next one is answered."""

    async def work(port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"x" * 100_000)
        assert await reader.read() == b""
        writer.close()
        assert (await ask(port, b"GET /metrics HTTP/1.1\r\n\r\n"))[0] == 200

    serve(work)
