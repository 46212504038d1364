"""Connections between the client and the in-memory broker, in place of sockets.

Owns delays, order, lost requests and lost answers. The client's own objects above a connection are the real ones: consumer,
group coordinator, fetcher, producer, sender, transaction manager. It never reads what it carries.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Iterator
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any

import aiokafka.client
from aiokafka import errors
from aiokafka.conn import CloseReason
from aiokafka.protocol.produce import ProduceRequest

from tests.simulation.broker import HOST, PORT, Broker, version_of
from tests.simulation.loop import PROCESS, Process
from tests.simulation.refusals import refuse

PATIENT = (11, 14)
"""Requests whose answer waits for other members."""


@dataclass
class Fate:
    """What becomes of one request."""

    there: float
    """Seconds on the way to the broker."""
    back: float
    """Seconds on the way back."""
    code: int = 0
    """The broker answers with this error, and does nothing."""
    lost: str = ""
    """`request`: the connection breaks before the broker has it; `answer`: after it was done; `stall`: it was done, and
    nothing is ever heard; `hang`: it was not done, and nothing is ever heard."""
    late_code: int = 0
    """The broker does it, and answers with this error."""


class Network:
    """All connections to one broker."""

    def __init__(self, broker: Broker, fate: Callable[[Process | None, Any], Fate]) -> None:
        """`fate` decides what becomes of each request, by the process that sends it."""
        self.broker = broker
        self.loop = broker.loop
        self.fate = fate
        self.up = True
        """Whether the broker takes connections and answers."""
        self.connections: list[Connection] = []

    async def connect(self, _host: str, _port: int, *, on_close: Any = None, request_timeout_ms: int, **_: Any) -> "Connection":
        """Make a connection, as the client's `create_conn` does. Raises ConnectionRefusedError."""
        await asyncio.sleep(0.0005)
        if not self.up:
            raise ConnectionRefusedError
        connection = Connection(self, PROCESS.get(), request_timeout_ms / 1000, on_close)
        self.connections.append(connection)
        if len(self.connections) > 60:
            self.connections = [one for one in self.connections if one.connected()]
        return connection

    def cut(self, which: Callable[["Connection"], bool] = lambda _: True) -> None:
        """Break connections; what is on the way to the broker may still arrive."""
        for connection in self.connections:
            if connection.connected() and which(connection):
                connection.broken()

    def go_down(self) -> None:
        """The broker is gone: its connections break, and nobody can connect."""
        self.up = False
        self.cut()

    def come_up(self) -> None:
        """The broker is back, with all that it had."""
        self.up = True

    @contextlib.contextmanager
    def installed(self) -> Iterator[None]:
        """Let the client connect here."""
        names: dict[str, Any] = vars(aiokafka.client)
        kept, names["create_conn"] = names["create_conn"], self.connect
        try:
            yield
        finally:
            names["create_conn"] = kept


class Connection:
    """In place of the client's connection: the same methods, as far as the client calls them."""

    host, port = HOST, PORT

    def __init__(self, network: Network, process: Process | None, timeout: float, on_close: Any) -> None:
        self._network = network
        self._process = process
        self._timeout = timeout
        self._on_close = on_close
        self._open = True
        self._context = copy_context()
        self._waiting: deque[asyncio.Future[Any]] = deque()
        self._queue: deque[tuple[Any, Fate, asyncio.Future[Any]]] = deque()
        """What has reached the broker: it works on one request of a connection at a time."""
        self._busy = False
        if process is not None:
            process.on_death.append(self._die)

    def connected(self) -> bool:
        """Whether it is open."""
        return self._open

    def _die(self) -> None:
        self._open = False
        self._waiting.clear()

    def send(self, request: Any, expect_response: bool = True) -> Any:
        """Send a request; returns what the answer comes in."""
        if not self._open:
            raise errors.KafkaConnectionError(f"No connection to broker at {HOST}:{PORT}")
        struct = version_of(request)
        network = self._network
        fate = network.fate(self._process, struct)
        waiting = network.loop.create_future()
        self._waiting.append(waiting)
        if not expect_response or (isinstance(request, ProduceRequest) and request.required_acks == 0):
            waiting.set_result(None)
        if fate.lost or fate.there > 0.1 or fate.back > 0.1 or struct.API_KEY in PATIENT:
            # The others are answered, or their connection breaks.
            timer = network.loop.call_later(self._timeout, _time_out, waiting)
            waiting.add_done_callback(lambda _: timer.cancel())
        if fate.lost == "request":
            network.loop.call_later(fate.there, self.broken)
        elif fate.lost != "hang":
            network.loop.call_later(fate.there, self._arrive, struct, fate, waiting, context=OUTSIDE)
        return waiting

    def _arrive(self, struct: Any, fate: Fate, waiting: asyncio.Future[Any]) -> None:
        if self._network.up:
            self._queue.append((struct, fate, waiting))
            self._next()

    def _next(self) -> None:
        if self._busy or not self._queue:
            return
        self._busy = True
        struct, fate, waiting = self._queue.popleft()
        if fate.code:
            self._answer(refuse(struct, fate.code), fate, waiting)
            return

        def answered(response: Any) -> None:
            self._answer(refuse(struct, fate.late_code) if fate.late_code else response, fate, waiting)

        self._network.broker.handle(struct, answered)

    def _answer(self, response: Any, fate: Fate, waiting: asyncio.Future[Any]) -> None:
        self._busy = False
        loop = self._network.loop
        if fate.lost == "answer":
            loop.call_later(fate.back, self.broken, context=self._context)
        elif fate.lost != "stall":
            loop.call_later(fate.back, self._hear, response, waiting, context=self._context)
        self._next()

    def _hear(self, response: Any, waiting: asyncio.Future[Any]) -> None:
        """The answer reaches the process; also one that is frozen has it in its socket, and reads it later."""
        if self._open and not waiting.done():
            waiting.set_result(response)

    def broken(self) -> None:
        """The connection breaks; the process sees it, unless it is frozen, in its next step."""
        self._network.loop.call_soon(self._see_it_broken, context=self._context)

    def _see_it_broken(self) -> None:
        self.close(reason=CloseReason.CONNECTION_BROKEN)

    def close(self, reason: Any = None, exc: BaseException | None = None) -> asyncio.Future[None]:
        """Close it: what waits for an answer fails."""
        if self._open:
            self._open = False
            if self._process is not None and self._die in self._process.on_death:
                self._process.on_death.remove(self._die)
            for waiting in self._waiting:
                if not waiting.done():
                    error = errors.KafkaConnectionError(f"Connection at {HOST}:{PORT} closed")
                    error.__cause__ = exc
                    waiting.set_exception(error)
            self._waiting.clear()
            if self._on_close is not None:
                tell, self._on_close = self._on_close, None
                tell(self, reason)
        closed: asyncio.Future[None] = self._network.loop.create_future()
        closed.set_result(None)
        return closed


OUTSIDE = copy_context()
"""The context of what is no process's step."""


def _time_out(waiting: asyncio.Future[Any]) -> None:
    if not waiting.done():
        waiting.set_exception(TimeoutError())
