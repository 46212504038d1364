"""A proxy between members and broker that cuts, delays and stalls connections, and holds single messages of the protocol.

Owns its thread, its port and the connections through it. It reads the frames of Kafka's protocol only as far as to know which
request is which, and changes none of them. Members reach it because the broker advertises its port (`Broker(front=...)`).
"""

import asyncio
import contextlib
import random
import struct
import threading
import time
from collections.abc import Callable, Coroutine
from enum import Enum
from typing import Any, Self, TypeVar

from processor.broker.listeners import HOST, free_ports

T = TypeVar("T")


class Api(Enum):
    """Requests that a trap can wait for, by their number in the protocol."""

    PRODUCE = 0
    FETCH = 1
    JOIN_GROUP = 11
    HEARTBEAT = 12
    SYNC_GROUP = 14
    INIT_PRODUCER_ID = 22
    ADD_PARTITIONS = 24
    ADD_OFFSETS = 25
    END_TXN = 26
    TXN_OFFSET_COMMIT = 28


class Link:
    """One connection of a member, and the proxy's own to the broker."""

    def __init__(self, member: asyncio.StreamWriter, broker: asyncio.StreamWriter) -> None:
        self.writers = member, broker
        self.asked: dict[int, int] = {}
        """Requests without an answer yet: correlation id to API number."""
        self.flowing = asyncio.Event()
        self.flowing.set()

    def cut(self) -> None:
        """Reset both ends."""
        for writer in self.writers:
            writer.transport.abort()


class Trap:
    """Holds the next request of a kind, or its answer, and all that comes behind it on the connection."""

    def __init__(self, proxy: "Proxy", api: Api, *, answer: bool) -> None:
        self.api = api
        self.answer = answer
        self._proxy = proxy
        self._caught = threading.Event()
        self.free = asyncio.Event()
        self.link: Link | None = None

    def catch(self, link: Link) -> None:
        """Note what was caught. For the proxy's thread only."""
        self.link = link
        self._caught.set()

    def wait(self, seconds: float) -> bool:
        """Wait until something is held; False where nothing came."""
        return self._caught.wait(seconds)

    def release(self) -> None:
        """Let it pass, however late."""
        self._proxy.call(self.free.set)

    def cut(self) -> None:
        """Reset the connection: what is held is lost."""
        self._proxy.call(self._cut)

    def _cut(self) -> None:
        if self.link is not None:
            self.link.cut()
        self.free.set()


class Proxy:
    """A proxy on loopback, in a thread of its own. Use it as a context manager."""

    def __init__(self) -> None:
        """Choose a port; nothing runs yet."""
        (self.port,) = free_ports(1)
        self.address = f"{HOST}:{self.port}"
        self.delay = 0.0
        """Seconds that each frame waits, in both directions."""
        self._links: set[Link] = set()
        self._traps: list[Trap] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._server: asyncio.Server | None = None
        self._target = 0

    def __enter__(self) -> Self:
        """Run the thread; `lead_to` opens the port."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Cut everything and end the thread."""
        self._run(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def lead_to(self, address: str) -> None:
        """Listen, and connect whoever comes to this address."""
        self._target = int(address.rpartition(":")[2])
        self._run(self._listen())

    def cut(self, rng: random.Random, share: float) -> int:
        """Reset a share of the connections, at least one; returns how many there were."""
        return self._run(self._each(rng, share, Link.cut))

    def stall(self, rng: random.Random, share: float, seconds: float) -> int:
        """Let nothing pass on a share of the connections for some time; nobody is told."""
        count = self._run(self._each(rng, share, lambda link: link.flowing.clear()))
        time.sleep(seconds)
        self._run(self._each(rng, 1.0, lambda link: link.flowing.set()))
        return count

    def trap(self, api: Api, *, answer: bool) -> Trap:
        """Set a trap for the next request of this kind, or for the answer to it."""
        trap = Trap(self, api, answer=answer)
        self.call(lambda: self._traps.append(trap))
        return trap

    def forget(self, trap: Trap) -> None:
        """Take a trap away; what it holds passes."""
        self.call(lambda: self._traps.__setitem__(slice(None), [one for one in self._traps if one is not trap]))
        trap.release()

    def call(self, what: Callable[[], object]) -> None:
        """Do something in the proxy's thread, and wait for it."""

        async def do() -> None:
            what()

        self._run(do())

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    async def _each(self, rng: random.Random, share: float, do: Callable[[Link], None]) -> int:
        links = list(self._links)
        for link in rng.sample(links, min(len(links), max(1, round(share * len(links))))):
            do(link)
        return len(links)

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._serve, HOST, self.port)

    async def _end(self) -> None:
        if self._server is not None:
            self._server.close()
        for link in list(self._links):
            link.cut()
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, member_in: asyncio.StreamReader, member_out: asyncio.StreamWriter) -> None:
        """Carry one connection to its end."""
        try:
            broker_in, broker_out = await asyncio.open_connection(HOST, self._target)
        except OSError:
            member_out.transport.abort()
            return
        link = Link(member_out, broker_out)
        self._links.add(link)
        ways = [
            asyncio.create_task(self._carry(link, member_in, broker_out, answers=False)),
            asyncio.create_task(self._carry(link, broker_in, member_out, answers=True)),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            self._links.discard(link)
            link.cut()

    async def _carry(self, link: Link, source: asyncio.StreamReader, target: asyncio.StreamWriter, *, answers: bool) -> None:
        """Carry frames one way until the connection ends."""
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while True:
                head = await source.readexactly(4)
                frame = await source.readexactly(struct.unpack(">i", head)[0])
                api = self._which(link, frame, answers=answers)
                for trap in self._traps:
                    if trap.api.value == api and trap.answer == answers:
                        self._traps.remove(trap)
                        trap.catch(link)
                        await trap.free.wait()
                        break
                if self.delay:
                    await asyncio.sleep(self.delay)
                await link.flowing.wait()
                target.write(head + frame)
                await target.drain()

    @staticmethod
    def _which(link: Link, frame: bytes, *, answers: bool) -> int | None:
        if answers:
            return link.asked.pop(struct.unpack_from(">i", frame)[0], None)
        api, _, correlation = struct.unpack_from(">hhi", frame)
        link.asked[correlation] = api
        return int(api)
