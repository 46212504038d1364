"""One Kafka broker as a child process: start, stop, kill, start again on the same ports and data, and leave nothing behind.

Owns the process and its temporary folder. It never touches a process that it did not start.
"""

import atexit
import base64
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from processor.broker.errors import BrokerFailed, BrokerUnavailable
from processor.broker.jars import Note, find_jars, find_tools
from processor.broker.listeners import HOST, Certificates, free_ports, in_use, listener_names, properties, render
from processor.broker.probe import answers

GUARD = Path(__file__).with_name("guard.py")
LOG_LINES = 12
ATTEMPTS = 3
QUICK = ("-XX:TieredStopAtLevel=1",)
"""Java's first compiler only: a start takes 3.2 instead of 4.8 seconds of processor time."""


class Broker:
    """A broker on loopback. Use it as a context manager, or call `start` and `close`.

    Its data lives until `close`: `stop`, `kill` and `restart` keep it, and the ports too. However the process that made it
    ends, the broker ends with it and its folder is removed.
    """

    def __init__(
        self,
        *,
        port: int | None = None,
        heap_mb: int = 512,
        settings: Mapping[str, str] | None = None,
        certificates: Certificates | None = None,
        users: Mapping[str, str] | None = None,
        quick: bool = False,
        cpus: str | None = None,
        jvm_flags: Sequence[str] = (),
        note: Note = lambda _: None,
    ) -> None:
        """Prepare a broker; nothing runs yet.

        `port`: of the PLAINTEXT listener, a free one by default. `settings`: Kafka properties above the usual ones.
        `certificates`: adds the listeners SSL and MTLS. `users`: names with passwords, adds SASL_PLAINTEXT (with certificates
        SASL_SSL too). `quick`: starts with a third less work and serves more slowly, for tests and demos. `cpus`: as
        `taskset -c` takes them. `note`: told in one line what takes long.
        """
        self._certificates = certificates
        self._users = dict(users or {})
        self._settings = dict(settings or {})
        self._port = port
        self._heap_mb = heap_mb
        self._cpus = cpus
        self._jvm_flags = (*(QUICK if quick else ()), *jvm_flags)
        self._note = note
        self._names = listener_names(certificates, self._users)
        self._ports: dict[str, int] = {}
        self._folder: Path | None = None
        self._guard: subprocess.Popen[str] | None = None
        self._pid = 0
        self._owner = os.getpid()
        self._java: list[str] = []

    @property
    def bootstrap(self) -> str:
        """Address of the PLAINTEXT listener."""
        return self.address("PLAINTEXT")

    @property
    def pid(self) -> int:
        """Process id of Java, for measuring it; 0 while it does not run."""
        return self._pid if self.running else 0

    @property
    def running(self) -> bool:
        """Whether the process is there."""
        return self._guard is not None and self._guard.poll() is None

    @property
    def log(self) -> Path:
        """File of the broker's own log; gone after `close`."""
        return self._home / "server.log"

    @property
    def _home(self) -> Path:
        if self._folder is None:
            raise BrokerFailed("The broker has not been started.")
        return self._folder

    def address(self, listener: str) -> str:
        """`host:port` of a listener: PLAINTEXT, SSL, MTLS, SASL_PLAINTEXT or SASL_SSL. Raises KeyError where it has none."""
        return f"{HOST}:{self._ports[listener]}"

    def start(self, *, timeout: float = 60.0) -> Self:
        """Start, and return when clients are served; nothing happens where it runs already.

        Raises BrokerUnavailable where Java or Kafka is missing, BrokerFailed where Kafka does not serve within `timeout` s.
        """
        if self.running:
            return self
        if self._folder is not None:
            self._launch(timeout)
            return self
        self._prepare()
        for attempt in range(1, ATTEMPTS + 1):
            self._choose_ports()
            try:
                if attempt == 1:
                    self._format()
                self._launch(timeout)
            except BaseException as failure:
                taken = isinstance(failure, BrokerFailed) and "already in use" in str(failure).lower()
                if taken and self._port is None and attempt < ATTEMPTS:
                    continue
                self.close()
                raise
            else:
                return self
        return self

    def stop(self, *, grace: float = 20.0) -> None:
        """Stop in order (SIGTERM), by force after `grace` seconds; data and ports are kept."""
        self._end("term", grace)

    def kill(self) -> None:
        """SIGKILL, as a crash; data and ports are kept."""
        self._end("kill", 5.0)

    def restart(self) -> None:
        """Stop in order and start again on the same ports and data."""
        self.stop()
        self.start()

    def close(self) -> None:
        """Stop, and remove everything. May be called again."""
        atexit.unregister(self.close)
        if os.getpid() != self._owner:
            return
        # The data is thrown away: no need to close it in order.
        self._end("kill", 5.0)
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def __enter__(self) -> Self:
        """Start."""
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Close."""
        self.close()

    def _prepare(self) -> None:
        jars = find_jars(self._note)
        java = find_tools().java
        if self._cpus is not None and shutil.which("taskset") is None:
            raise BrokerUnavailable("taskset was not found: install util-linux, or do not pin the broker to processors.")
        pin = ["taskset", "-c", self._cpus] if self._cpus is not None else []
        heap = [f"-Xms{min(self._heap_mb, 256)}m", f"-Xmx{self._heap_mb}m"]
        quiet = ["-XX:+UseSerialGC", "-Djava.awt.headless=true", "-Dorg.slf4j.simpleLogger.showDateTime=true"]
        self._java = [*pin, java, *heap, *quiet, *self._jvm_flags, "-cp", f"{jars}/*"]
        self._folder = Path(tempfile.mkdtemp(prefix="callgate-kafka-"))
        atexit.register(self.close)

    def _choose_ports(self) -> None:
        self._ports = dict(zip(self._names, free_ports(len(self._names)), strict=True))
        if self._port is not None:
            self._ports["PLAINTEXT"] = self._port
        wanted = properties(self._home / "data", self._ports, self._certificates, self._users) | self._settings
        file = self._home / "server.properties"
        file.touch(mode=0o600)
        file.write_text(render(wanted))

    def _format(self) -> None:
        # One in 64 begins with `-`: as an argument of its own it would be taken for an option.
        cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        scram = [
            part
            for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512")
            for name, password in self._users.items()
            for part in ("--add-scram", f"{mechanism}=[name={name},password={password}]")
        ]
        tool = [*QUICK, "kafka.tools.StorageTool", "format"]
        command = [*self._java, *tool, f"--cluster-id={cluster}", "-c", str(self._home / "server.properties"), *scram]
        done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        if done.returncode != 0:
            lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
            raise BrokerFailed("Kafka could not format its storage:\n" + "\n".join(lines[-LOG_LINES:]))

    def _launch(self, timeout: float) -> None:
        # It may have died by itself.
        self._end("kill", 0.0)
        # Else another broker there would answer for ours.
        taken = [port for port in self._ports.values() if in_use(port)]
        if taken:
            raise BrokerFailed(f"Port {taken[0]} is already in use.")
        deadline = time.monotonic() + timeout
        command = [*self._java, "kafka.Kafka", str(self._home / "server.properties")]
        guard = [sys.executable, "-I", "-S", str(GUARD), str(self._home), *command]
        with self.log.open("a") as log:
            # A session of its own: Ctrl-C at the terminal is for the parent, which then stops the broker when it is ready to.
            self._guard = subprocess.Popen(
                guard,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                cwd=self._home,
                start_new_session=True,
            )
        assert self._guard.stdout is not None  # noqa: S101 - it is a pipe
        self._pid = int(self._guard.stdout.readline() or 0)
        while not answers(HOST, self._ports["PLAINTEXT"]):
            if self._guard.poll() is not None:
                self._end("kill", 0.0)
                raise BrokerFailed(f"Kafka ended while it was starting:\n{self._last_lines()}")
            if time.monotonic() > deadline:
                self._end("kill", 5.0)
                raise BrokerFailed(f"Kafka does not serve after {timeout:.0f} seconds:\n{self._last_lines()}")
            time.sleep(0.05)

    def _end(self, order: str, grace: float) -> None:
        guard, self._guard = self._guard, None
        if guard is None:
            return
        assert guard.stdin is not None  # noqa: S101 - it is a pipe
        assert guard.stdout is not None  # noqa: S101 - it is a pipe
        orders = [order] if order == "kill" else [order, "kill"]
        for line in orders:
            with contextlib.suppress(BrokenPipeError, ValueError):
                guard.stdin.write(f"{line}\n")
                guard.stdin.flush()
            try:
                guard.wait(grace)
                break
            except subprocess.TimeoutExpired:
                grace = 5.0
        if guard.poll() is None:
            guard.kill()
            guard.wait()
        with contextlib.suppress(BrokenPipeError):
            guard.stdin.close()
        guard.stdout.close()

    def _last_lines(self) -> str:
        lines = self.log.read_text(errors="replace").splitlines()
        telling = [line for line in lines if "ERROR" in line or "Exception" in line] or lines
        return "\n".join(telling[-LOG_LINES:])
