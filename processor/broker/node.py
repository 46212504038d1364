"""One Java process of Kafka under its guard: start, stop, kill, and know whether it is there.

Owns the pipe to the guard, which ends the process with its parent. It knows nothing of Kafka's properties, and never touches a
process that it did not start.
"""

import contextlib
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

GUARD = Path(__file__).with_name("guard.py")


class Node:
    """A process that may be started again after it ended."""

    def __init__(self, command: Sequence[str], home: Path, log: Path) -> None:
        """Nothing runs yet. `home`: working folder, removed if the parent dies. `log`: what it says is added there."""
        self._command = list(command)
        self._home = home
        self._log = log
        self._guard: subprocess.Popen[str] | None = None
        self._pid = 0

    @property
    def running(self) -> bool:
        """Whether the process is there."""
        return self._guard is not None and self._guard.poll() is None

    @property
    def pid(self) -> int:
        """Process id of Java; 0 while it does not run."""
        return self._pid if self.running else 0

    def start(self) -> None:
        """Start; what ran before must have ended."""
        guard = [sys.executable, "-I", "-S", str(GUARD), str(self._home), *self._command]
        with self._log.open("a") as log:
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

    def end(self, order: str, grace: float) -> None:
        """Give an order (`term` or `kill`), and after `grace` seconds use force. May be called again."""
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
