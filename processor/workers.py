"""Several processors on one machine: one process each, started and stopped together (`workers`).

Owns the children. Kafka's consumer group shares the partitions out among them, so they need not know of each other. Where one
ends by itself all are stopped, and its exit code is ours: whoever supervises this process then starts everything anew. Where
this process ends without a word (SIGKILL), Linux tells them to stop cleanly.
"""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from types import FrameType

from processor.settings import Settings

PR_SET_PDEATHSIG = 1


def _end_with(parent: int) -> None:
    """In a child, before it becomes a worker: ask for SIGTERM at the end of its parent. Linux only; elsewhere nothing."""
    if sys.platform != "linux":
        return
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        # It ended before it could be asked for.
        os._exit(1)


def run(settings: Settings, config: Path | None, sets: Sequence[str]) -> int:
    """Run the workers until a signal comes or one of them ends; returns the exit code."""
    children: list[subprocess.Popen[bytes]] = []
    stopping = False

    def pass_on(number: int, _frame: FrameType | None) -> None:
        nonlocal stopping
        # SIGHUP has the children look at their schemas; the others end them.
        stopping = stopping or number != signal.SIGHUP
        for child in children:
            if child.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    child.send_signal(number)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, pass_on)
    for index in range(settings.workers):
        port = settings.http.port and settings.http.port + index
        own = [*sets, "workers=1", f"http.port={port}", f"kafka.client_id={settings.kafka.client_id}-{index}"]
        command = [sys.executable, "-m", "processor", "run"]
        if config is not None:
            command += ["--config", str(config)]
        command += [part for text in own for part in ("--set", text)]
        # A session of its own: Ctrl-C at a terminal reaches it once, through us, and does not count as two signals.
        children.append(
            subprocess.Popen(  # noqa: S603 - our own command
                command,
                start_new_session=True,
                preexec_fn=partial(_end_with, os.getpid()),  # noqa: PLW1509 - one thread so far
            )
        )
    left = {child.pid: child for child in children}
    code = 0
    while left:
        pid, status = os.wait()
        child = left.pop(pid, None)
        if child is None:
            continue
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode and not code:
            code = child.returncode if child.returncode > 0 else 128 - child.returncode
        if not stopping:
            # Once: a second signal would end them without their clean stop.
            pass_on(signal.SIGTERM, None)
    return code
