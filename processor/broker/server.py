"""One Kafka broker as a child process: start, stop, kill, start again on the same ports and data, and leave nothing behind.

Owns the temporary folder, the ports, and the order in which broker and controller start. It never touches a process that it
did not start.
"""

import atexit
import base64
import os
import shutil
import subprocess
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
from processor.broker.node import Node
from processor.broker.probe import answers

LOG_LINES = 12
ATTEMPTS = 3
FENCED = b"Fencing broker 1 "
"""What the controller's log says of a broker that is gone."""
QUICK = ("-XX:TieredStopAtLevel=1",)
"""Java's first compiler only: a start takes 3.2 instead of 4.8 seconds of processor time."""


class Broker:
    """A broker on loopback. Use it as a context manager, or call `start` and `close`.

    Its data lives until `close`: `stop`, `kill` and `restart` keep it, and the ports too. However the process that made it
    ends, the broker ends with it and its folder is removed.

    One node is broker and controller, unless `apart` is asked for: then the controller is a process of its own, which `stop`
    and `kill` leave running, and a broker that ended only starts again when the controller has taken its leaderships away.
    Tests that end a broker in mid-transaction need that (docs/reliability.md says why).
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
        apart: bool = False,
        front: int | None = None,
        cpus: str | None = None,
        jvm_flags: Sequence[str] = (),
        note: Note = lambda _: None,
    ) -> None:
        """Prepare a broker; nothing runs yet.

        `port`: of the PLAINTEXT listener, a free one by default. `settings`: Kafka properties above the usual ones.
        `certificates`: adds the listeners SSL and MTLS. `users`: names with passwords, adds SASL_PLAINTEXT (with certificates
        SASL_SSL too). `quick`: starts with a third less work and serves more slowly, for tests and demos. `apart`: the
        controller is a process of its own. `front`: adds the listener FRONT, plain, whose clients are told to come back at
        this port of loopback: that of a proxy, which then leads to the address of FRONT. `cpus`: as `taskset -c` takes them.
        `note`: told in one line what takes long.
        """
        self._certificates = certificates
        self._users = dict(users or {})
        self._settings = dict(settings or {})
        self._port = port
        self._heap_mb = heap_mb
        self._cpus = cpus
        self._jvm_flags = (*(QUICK if quick else ()), *jvm_flags)
        self._note = note
        self._front = front
        self._apart = apart
        self._names = listener_names(certificates, self._users, front=front is not None)
        self._ports: dict[str, int] = {}
        self._folder: Path | None = None
        self._node: Node | None = None
        self._controller: Node | None = None
        self._said_before = 0
        """Size of the controller's log at the last start of the broker."""
        self._owner = os.getpid()
        self._java: list[str] = []

    @property
    def bootstrap(self) -> str:
        """Address of the PLAINTEXT listener."""
        return self.address("PLAINTEXT")

    @property
    def pid(self) -> int:
        """Process id of Java, for measuring it; 0 while it does not run."""
        return self._node.pid if self._node is not None else 0

    @property
    def running(self) -> bool:
        """Whether the process is there."""
        return self._node is not None and self._node.running

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
        """`host:port` of a listener: PLAINTEXT, SSL, MTLS, SASL_PLAINTEXT, SASL_SSL or FRONT. Raises KeyError for another."""
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
        if self._node is not None:
            self._node.end("term", grace)

    def kill(self) -> None:
        """SIGKILL, as a crash; data and ports are kept."""
        if self._node is not None:
            self._node.end("kill", 5.0)

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
        for node in (self._node, self._controller):
            if node is not None:
                node.end("kill", 5.0)
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
        for role in self._roles():
            data = self._home / ("data" if role == "broker" else "metadata")
            wanted = properties(data, self._ports, self._certificates, self._users, self._front, role if self._apart else None)
            file = self._properties(role)
            file.touch(mode=0o600)
            file.write_text(render(wanted | self._settings))

    def _roles(self) -> list[str]:
        return ["controller", "broker"] if self._apart else ["broker"]

    def _properties(self, role: str) -> Path:
        return self._home / f"{role}.properties"

    def _format(self) -> None:
        # One in 64 begins with `-`: as an argument of its own it would be taken for an option.
        cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        scram = [
            part
            for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512")
            for name, password in self._users.items()
            for part in ("--add-scram", f"{mechanism}=[name={name},password={password}]")
        ]
        for role in self._roles():
            tool = [*QUICK, "kafka.tools.StorageTool", "format"]
            command = [*self._java, *tool, f"--cluster-id={cluster}", "-c", str(self._properties(role)), *scram]
            done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
            if done.returncode != 0:
                lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
                raise BrokerFailed("Kafka could not format its storage:\n" + "\n".join(lines[-LOG_LINES:]))

    def _made(self, role: str) -> Node:
        log = self.log if role == "broker" else self._home / "controller.log"
        return Node([*self._java, "kafka.Kafka", str(self._properties(role))], self._home, log)

    def _launch(self, timeout: float) -> None:
        if self._node is not None:
            # It may have died by itself.
            self._node.end("kill", 0.0)
        # Else another broker there would answer for ours.
        standing = self._controller is not None and self._controller.running
        mine = [port for name, port in self._ports.items() if not (standing and name == "CONTROLLER")]
        if taken := [port for port in mine if in_use(port)]:
            raise BrokerFailed(f"Port {taken[0]} is already in use.")
        if self._apart and not standing:
            self._controller = self._made("controller")
            self._controller.start()
        deadline = time.monotonic() + timeout
        if self._apart and self._node is not None:
            self._await_fencing(deadline)
        self._node = node = self._made("broker")
        node.start()
        while not answers(HOST, self._ports["PLAINTEXT"]):
            if not node.running:
                raise BrokerFailed(f"Kafka ended while it was starting:\n{self._last_lines()}")
            if time.monotonic() > deadline:
                node.end("kill", 5.0)
                raise BrokerFailed(f"Kafka does not serve after {timeout:.0f} seconds:\n{self._last_lines()}")
            time.sleep(0.05)

    def _await_fencing(self, deadline: float) -> None:
        """Wait until the controller knows that the broker is gone.

        One that comes back sooner acts on the leaderships that it had: its transaction coordinator ends what was pending, and
        where the controller takes the leaderships away in that moment, Kafka 4.3.1 takes partitions without a leader for
        deleted ones and leaves their markers out.
        """
        controller_log = self._home / "controller.log"
        while True:
            with controller_log.open("rb") as file:
                file.seek(self._said_before)
                if FENCED in file.read():
                    break
            if time.monotonic() > deadline:
                raise BrokerFailed("The controller did not notice that the broker was gone.")
            time.sleep(0.05)
        self._said_before = controller_log.stat().st_size

    def _last_lines(self) -> str:
        lines = self.log.read_text(errors="replace").splitlines()
        telling = [line for line in lines if "ERROR" in line or "Exception" in line] or lines
        return "\n".join(telling[-LOG_LINES:])
