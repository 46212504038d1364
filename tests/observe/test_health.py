"""Liveness and readiness, as rules and over HTTP."""

import asyncio
import json
from collections.abc import Awaitable, Callable

import pytest

from processor.adapters.http import HttpServer
from processor.observe.health import Health

STALL_MS = 1_000


def test_ready_needs_the_group_and_live_partitions() -> None:
    """Ready: the group is joined and every assigned partition is live."""
    health = Health(STALL_MS)
    assert not health.ready()[0]
    health.assigned({("t", 0), ("t", 1)}, now_ms=0)
    assert not health.ready()[0]
    health.progress("t", 0, position=5, backlog=0, rebuilding=False, now_ms=1)
    ready, detail = health.ready()
    assert not ready
    assert detail["rebuilding"] == [{"topic": "t", "partition": 1}]
    health.progress("t", 1, position=5, backlog=0, rebuilding=False, now_ms=1)
    assert health.ready()[0]
    health.stopping()
    assert not health.ready()[0]


def test_member_without_partitions_is_ready() -> None:
    """More members than partitions: the spare one is ready, or a roll-out would never end."""
    health = Health(STALL_MS)
    health.assigned(set(), now_ms=0)
    assert health.ready()[0]


def test_stall_needs_backlog_and_silence() -> None:
    """Alive while there is progress or nothing to do; not when records wait and nothing moves."""
    health = Health(STALL_MS)
    health.assigned({("t", 0)}, now_ms=0)
    health.progress("t", 0, position=5, backlog=9, rebuilding=False, now_ms=0)
    assert health.live(STALL_MS - 1)[0]
    alive, detail = health.live(STALL_MS)
    assert not alive
    assert detail["stalled"] == [{"topic": "t", "partition": 0, "position": 5, "backlog": 9, "still_ms": STALL_MS}]
    health.progress("t", 0, position=6, backlog=9, rebuilding=False, now_ms=STALL_MS)
    assert health.live(STALL_MS)[0]
    health.progress("t", 0, position=6, backlog=0, rebuilding=False, now_ms=5_000)
    assert health.live(50_000)[0]


def test_revoked_partitions_do_not_stall() -> None:
    """What another member owns is not this one's fault, and kept partitions keep their clock."""
    health = Health(STALL_MS)
    health.assigned({("t", 0), ("t", 1)}, now_ms=0)
    for partition in (0, 1):
        health.progress("t", partition, position=5, backlog=9, rebuilding=False, now_ms=0)
    health.assigned({("t", 1)}, now_ms=900)
    health.progress("t", 0, position=5, backlog=9, rebuilding=False, now_ms=950)
    assert [each["partition"] for each in health.live(STALL_MS)[1]["stalled"]] == [1]


def serve(work: Callable[[HttpServer, int], Awaitable[None]], health: Health | None = None) -> None:
    """Run `work` beside a server on a free port."""

    async def run() -> None:
        server = HttpServer(
            "127.0.0.1", 0, health=health or Health(STALL_MS), exposition=lambda: b"m 1\n", now_ms=lambda: STALL_MS
        )
        port = await server.start()
        try:
            await work(server, port)
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
    ("request_head", "status", "body"),
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
def test_requests(request_head: bytes, status: int, body: bytes) -> None:
    """The three endpoints answer GET and HEAD; anything else gets its status."""

    async def work(_server: HttpServer, port: int) -> None:
        assert await ask(port, request_head) == (status, body)

    serve(work)


def test_health_over_http() -> None:
    """200 or 503, with the detail as JSON."""
    health = Health(STALL_MS)

    async def work(_server: HttpServer, port: int) -> None:
        status, body = await ask(port, b"GET /readyz HTTP/1.1\r\n\r\n")
        assert (status, json.loads(body)["joined"]) == (503, False)
        health.assigned({("t", 0)}, now_ms=0)
        health.progress("t", 0, position=1, backlog=0, rebuilding=False, now_ms=0)
        assert (await ask(port, b"GET /readyz HTTP/1.1\r\n\r\n"))[0] == 200
        assert (await ask(port, b"GET /healthz HTTP/1.1\r\n\r\n"))[0] == 200
        health.progress("t", 0, position=1, backlog=4, rebuilding=False, now_ms=0)
        status, body = await ask(port, b"GET /healthz HTTP/1.1\r\n\r\n")
        assert (status, json.loads(body)["stalled"][0]["backlog"]) == (503, 4)

    serve(work, health)


def test_oversized_request_is_dropped() -> None:
    """A request that never ends is closed, and the next one is answered."""

    async def work(_server: HttpServer, port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"x" * 100_000)
        assert await reader.read() == b""
        writer.close()
        assert (await ask(port, b"GET /metrics HTTP/1.1\r\n\r\n"))[0] == 200

    serve(work)
