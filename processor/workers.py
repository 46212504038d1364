"""Several processors on one machine: one process each, watched, replaced and ended together (`workers`).

Owns the children and the one address at which all of them are scraped. Kafka's consumer group shares the partitions out among
them, so they need not know of each other. One that ends by itself, or says nothing for `worker_timeout`, is replaced after a
pause that grows; one that never got as far as its work ends them all, since the next one would fare no better. Where this
process ends without a word (SIGKILL), Linux tells the children to stop cleanly.
"""

import asyncio
import contextlib
import ctypes
import os
import signal
import sys
import time
from asyncio.subprocess import Process
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from processor.adapters.http import HttpServer
from processor.observe.catalogue import WORKER_RESTARTS, WORKERS_UP
from processor.observe.logs import open_log
from processor.observe.merge import merge
from processor.settings import Settings

PR_SET_PDEATHSIG = 1
ORPHANED = signal.SIGUSR1
"""Tells a worker that its supervisor has ended: sent once for each thread of it, and no second wish of a person's."""
FIRST_PAUSE_SECONDS, LAST_PAUSE_SECONDS = 1.0, 30.0
"""Pauses before a worker that ended is replaced."""
STEADY_SECONDS = 60.0
"""One that has worked so long begins with the first pause again."""
ANSWER_SECONDS = 2.0
"""How long a worker may take to answer a scrape: one that does not is left out of it, and not waited for again."""
KILL_SECONDS = 5.0
"""Beyond `shutdown_grace`, for a worker that does not end although it was told to."""
LOOPBACK = "127.0.0.1"


def end_with(parent: int) -> None:
    """In a worker, first of all: ask to be told of the end of its supervisor. Linux only; elsewhere nothing."""
    if sys.platform != "linux":
        return
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, ORPHANED)
    if os.getppid() != parent:
        # It ended before it could be asked for.
        os._exit(1)


def run(settings: Settings, config: Path | None, sets: Sequence[str]) -> int:
    """Run the workers until a signal comes; returns the exit code. Raises Fatal where the address cannot be listened on."""
    return asyncio.run(_Supervisor(settings, config, sets).run())


class _Worker:
    """One place for a process, whoever is in it."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.process: Process | None = None
        self.port = 0
        """Of its own pages, on loopback; 0: it does not listen yet."""
        self.worked = False
        """Whether one in this place ever got as far as to listen."""
        self.replaced = 0

    def send(self, number: int) -> None:
        if self.process is not None and self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self.process.send_signal(number)


class _Supervisor:
    def __init__(self, settings: Settings, config: Path | None, sets: Sequence[str]) -> None:
        self._settings = settings
        self._command = [sys.executable, "-m", "processor", "run"]
        if config is not None:
            self._command += ["--config", str(config)]
        self._sets = list(sets)
        self._log = open_log(settings.log.format, settings.log.level)
        self._workers = [_Worker(index) for index in range(settings.workers)]
        self._stopping = asyncio.Event()
        self._code = 0
        self._pages: dict[str, str] = {}
        self._ready: dict[int, bool] = {}

    async def run(self) -> int:
        """Keep every place filled until a signal comes; returns the exit code."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            loop.add_signal_handler(number, self._signalled, number)
        http = self._settings.http
        server = HttpServer(
            http.host,
            http.port,
            exposition=self._exposition,
            live=lambda: (True, self._status()),
            ready=lambda: (len(self._ready) == len(self._workers) and all(self._ready.values()), self._status()),
            before=self._ask_all,
        )
        port = await server.start()
        self._log.info("http_listening", host=http.host, port=port, workers=len(self._workers))
        try:
            async with asyncio.TaskGroup() as group:
                ending = group.create_task(self._end_late_ones())
                await asyncio.wait([group.create_task(self._keep(worker)) for worker in self._workers])
                ending.cancel()
        finally:
            await server.close()
        return self._code

    def _signalled(self, number: int) -> None:
        """Hand it down. SIGHUP has the workers look at their schemas; the others end them, a second one at once."""
        if number != signal.SIGHUP:
            self._stopping.set()
        for worker in self._workers:
            worker.send(number)

    async def _end_late_ones(self) -> None:
        """A worker that is stopped (SIGSTOP) or hangs does not hear that it should end."""
        await self._stopping.wait()
        await asyncio.sleep(self._settings.shutdown_grace_ms / 1000 + KILL_SECONDS)
        for worker in self._workers:
            worker.send(signal.SIGKILL)

    # -- one place

    async def _keep(self, worker: _Worker) -> None:
        pause = FIRST_PAUSE_SECONDS
        while not self._stopping.is_set():
            began = time.monotonic()
            status = await self._one_life(worker)
            code = status if status >= 0 else 128 - status
            if self._stopping.is_set() or not worker.worked:
                told = self._stopping.is_set() and status == -signal.SIGTERM
                self._code = self._code or (0 if told else code)
                if not self._stopping.is_set():
                    self._signalled(signal.SIGTERM)
                return
            if time.monotonic() - began > STEADY_SECONDS:
                pause = FIRST_PAUSE_SECONDS
            worker.replaced += 1
            self._log.warning("worker_ended", worker=worker.index, exit_code=code, pause_s=pause)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._stopping.wait()
            pause = min(pause * 2, LAST_PAUSE_SECONDS)

    async def _one_life(self, worker: _Worker) -> int:
        """Start a process and watch it to its end; returns its status."""
        own = ("workers=1", f"http.host={LOOPBACK}", "http.port=0", f"kafka.client_id={self._client_id(worker)}")
        sets = [part for text in (*self._sets, *own) for part in ("--set", text)]
        told, tell = os.pipe()
        try:
            # A session of its own: Ctrl-C at a terminal reaches it once, through us, and does not count as two signals.
            worker.process = process = await asyncio.create_subprocess_exec(
                *self._command,
                *sets,
                *("--supervisor", str(os.getpid()), "--tell-port", str(tell)),
                pass_fds=(tell,),
                start_new_session=True,
            )
        finally:
            os.close(tell)
        if self._stopping.is_set():
            # The signal came while it was being made.
            worker.send(signal.SIGTERM)
        watching = asyncio.create_task(self._watch(worker, process, told))
        try:
            return await process.wait()
        finally:
            worker.port = 0
            watching.cancel()
            await asyncio.wait([watching])

    def _client_id(self, worker: _Worker) -> str:
        return f"{self._settings.kafka.client_id}-{worker.index}"

    async def _watch(self, worker: _Worker, process: Process, told: int) -> None:
        """Kill a process that does not get to work, or says nothing for too long: it is replaced then."""
        loop, timeout = asyncio.get_running_loop(), self._settings.worker_timeout_ms / 1000
        reader = asyncio.StreamReader()
        pipe, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(told, "rb"))
        try:
            async with asyncio.timeout(self._settings.stall_after_ms / 1000):
                port = await reader.readline()
        except TimeoutError:
            self._silent(worker, process)
            return
        finally:
            pipe.close()
        if not port:
            return
        worker.port, worker.worked = int(port), True
        self._log.info("worker_started", worker=worker.index, pid=process.pid)
        answered = loop.time()
        while loop.time() - answered < timeout:
            if (await self._get(worker, "/healthz", timeout))[0] == 200:
                answered = loop.time()
            await asyncio.sleep(timeout / 10)
        self._silent(worker, process)

    def _silent(self, worker: _Worker, process: Process) -> None:
        self._log.error("worker_silent", worker=worker.index, pid=process.pid)
        with contextlib.suppress(ProcessLookupError):
            process.kill()

    # -- pages

    async def _get(self, worker: _Worker, path: str, seconds: float) -> tuple[int, str]:
        """Status and body of a page of a worker; 0 where it does not answer."""
        try:
            async with asyncio.timeout(seconds):
                reader, writer = await asyncio.open_connection(LOOPBACK, worker.port)
                try:
                    writer.write(f"GET {path} HTTP/1.1\r\nHost: {LOOPBACK}\r\n\r\n".encode())
                    answer = await reader.read()
                finally:
                    writer.close()
        except (OSError, TimeoutError):
            return 0, ""
        head, _, body = answer.partition(b"\r\n\r\n")
        words = head.split(b" ", 2)
        return (int(words[1]) if len(words) == 3 else 0), body.decode()

    async def _ask_all(self) -> None:
        """Ask every worker anew: what is shown is of now."""
        listening = [worker for worker in self._workers if worker.port]
        metrics = await asyncio.gather(*(self._get(worker, "/metrics", ANSWER_SECONDS) for worker in listening))
        ready = await asyncio.gather(*(self._get(worker, "/readyz", ANSWER_SECONDS) for worker in listening))
        pages = {str(worker.index): page for worker, (code, page) in zip(listening, metrics, strict=True) if code == 200}
        self._pages = pages
        self._ready = {worker.index: code == 200 for worker, (code, _) in zip(listening, ready, strict=True)}

    def _exposition(self) -> bytes:
        text = merge(self._pages)
        for metric, values in (
            (WORKERS_UP, {worker.index: int(str(worker.index) in self._pages) for worker in self._workers}),
            (WORKER_RESTARTS, {worker.index: worker.replaced for worker in self._workers}),
        ):
            text += f"# HELP {metric.name} {metric.help}\n# TYPE {metric.name} {metric.kind}\n"
            text += "".join(f'{metric.name}{{worker="{index}"}} {value}.0\n' for index, value in values.items())
        return text.encode()

    def _status(self) -> dict[str, Any]:
        workers = [
            {"listens": worker.port > 0, "ready": self._ready.get(worker.index, False), "replaced": worker.replaced}
            for worker in self._workers
        ]
        return {"workers": workers, "stopping": self._stopping.is_set()}
