"""`callgate run` as a process of its own, for the demo: start, wait until it is ready, stop.

It knows the process by its log and its port alone.
"""

import http.client
import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from processor.errors import Fatal

STOP_SECONDS = 30.0


class Processor:
    """One `callgate run`; its log goes to a file beside its settings."""

    def __init__(self, config: Path) -> None:
        self._config = config
        self._log = config.with_name("run.log")
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """Process id."""
        return self._running.pid

    @property
    def _running(self) -> subprocess.Popen[bytes]:
        if self._child is None:
            raise Fatal("The processor was not started.")
        return self._child

    def __enter__(self) -> Self:
        command = [sys.executable, "-m", "processor", "run", "--config", str(self._config)]
        with self._log.open("wb") as log:
            # A session of its own: Ctrl-C ends the demo, and the demo ends its processor.
            self._child = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)  # noqa: S603 - our own
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._running.poll() is None:
            self._running.kill()
            self._running.wait()

    def wait_until_ready(self, seconds: float) -> int:
        """Wait for `/readyz`; returns the port. Raises Fatal with the last line of the log where it ends or takes too long."""
        patience = time.monotonic() + seconds
        while time.monotonic() < patience and self._running.poll() is None:
            port = self._port()
            if port and _asks_ready(port):
                return port
            time.sleep(0.05)
        last = (self._log.read_text(errors="replace").strip().splitlines() or ["nothing in its log"])[-1]
        raise Fatal(f"`callgate run` does not get ready: {last}")

    def _port(self) -> int:
        for line in self._log.read_bytes().splitlines():
            try:
                found = json.loads(line)
            except ValueError:
                continue
            if found.get("event") == "http_listening":
                return int(found["port"])
        return 0

    def stop(self) -> int:
        """End it cleanly; returns its exit code."""
        self._running.send_signal(signal.SIGTERM)
        return self._running.wait(STOP_SECONDS)


def _asks_ready(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2.0)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == http.HTTPStatus.OK
    except OSError:
        return False
    finally:
        connection.close()
