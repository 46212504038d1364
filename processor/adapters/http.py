"""Serves `/metrics`, `/healthz` and `/readyz` over HTTP on the processor's own loop.

Owns the socket. It reads no body, knows GET and HEAD alone, and answers every connection once: whoever scrapes must not be able
to hold the loop or its memory.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any

import msgspec

from processor.errors import Fatal

REQUEST_BYTES = 8_192
"""A request longer than this is not a scrape."""
REQUEST_SECONDS = 5.0
"""Time for a client to send its request."""
CONNECTIONS = 64
"""Connections at once; the ones beyond are closed unread."""
ANOTHER_PORT = " Where another callgate has it: set another port (0 for any free one), or run one with `--workers N`."
"""What to do where the port is taken."""

TEXT = "text/plain; version=0.0.4; charset=utf-8"
JSON = "application/json"

Answer = Callable[[], tuple[bool, dict[str, Any]]]
"""Whether it is well, and the detail."""


class HttpServer:
    """The endpoints of one process."""

    def __init__(
        self,
        host: str,
        port: int,
        *,
        exposition: Callable[[], bytes],
        live: Answer,
        ready: Answer,
        before: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """`before` is awaited before each answer: what it gathers, the others show."""
        self._before = before
        self._host = host
        self._port = port
        self._exposition = exposition
        self._live = live
        self._ready = ready
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()

    async def start(self) -> int:
        """Listen, and return the port. Raises Fatal where the address cannot be had."""
        try:
            self._server = await asyncio.start_server(self._accept, self._host, self._port, limit=REQUEST_BYTES)
        except OSError as fault:
            where = f"{self._host}:{self._port}"
            what = f"`http.host` and `http.port` ({where}) cannot be listened on: {fault.strerror}."
            raise Fatal(what + ANOTHER_PORT) from None
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def close(self) -> None:
        """Stop listening and end the connections that are open."""
        if self._server is not None:
            self._server.close()
        for task in list(self._open):
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is None or len(self._open) >= CONNECTIONS:
            writer.close()
            return
        self._open.add(task)
        try:
            with contextlib.suppress(TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
                async with asyncio.timeout(REQUEST_SECONDS):
                    head = await reader.readuntil(b"\r\n\r\n")
                    if self._before is not None:
                        await self._before()
                    writer.write(self.answer(head))
                    await writer.drain()
        finally:
            self._open.discard(task)
            writer.close()

    def answer(self, head: bytes) -> bytes:
        """Answer one request, given its head; never raises for any bytes."""
        words = head.split(b"\r\n", 1)[0].split(b" ")
        if len(words) != 3 or not words[2].startswith(b"HTTP/1."):
            return _response(HTTPStatus.BAD_REQUEST, TEXT, b"", body=True)
        method, path = words[0], words[1].split(b"?", 1)[0]
        if method not in {b"GET", b"HEAD"}:
            return _response(HTTPStatus.METHOD_NOT_ALLOWED, TEXT, b"", body=True)
        body = method == b"GET"
        if path == b"/metrics":
            return _response(HTTPStatus.OK, TEXT, self._exposition(), body=body)
        if path == b"/healthz":
            good, detail = self._live()
        elif path == b"/readyz":
            good, detail = self._ready()
        else:
            return _response(HTTPStatus.NOT_FOUND, TEXT, b"/metrics /healthz /readyz\n", body=body)
        status = HTTPStatus.OK if good else HTTPStatus.SERVICE_UNAVAILABLE
        return _response(status, JSON, msgspec.json.encode(detail) + b"\n", body=body)


def _response(status: HTTPStatus, content_type: str, content: bytes, *, body: bool) -> bytes:
    head = (
        f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: {content_type}\r\nContent-Length: {len(content)}\r\n"
        "Cache-Control: no-store\r\nConnection: close\r\n\r\n"
    )
    return head.encode("ascii") + (content if body else b"")
