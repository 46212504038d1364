"""CPU time and memory of a process, from the operating system and from outside.

Owns the definition that holds for every row alike: the process starts, joins its group and settles while the topic's records
wait behind their gate; its CPU clock (user and system, all threads and children) is read; the gate opens; the clock is read
again when everything is done and the process has been quiet for QUIET_S. Start-up and shut-down are outside, that one quiet
second is inside. Wall time is no measure here: on a shared machine it says what the neighbours do.
"""

import math
import os
import signal
import subprocess
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

QUIET_S = 1.0
QUIET_SHARE = 0.05
"""Quiet is less than this share of a core over QUIET_S: heartbeats and waiting fetches take less, work takes more."""
SAMPLE_S = 0.02
SETTLE_S = 60.0
TIMEOUT_S = 180.0
STOP_S = 30.0


class MeasureError(Exception):
    """The row has no figure: it ended early, did not finish, or did not stop."""


class Usage(msgspec.Struct, frozen=True):
    """What one run took."""

    cpu_s: float
    wall_s: float
    peak_rss_mb: float


def _family(pid: int) -> Iterator[int]:
    """The process and its descendants."""
    yield pid
    for listing in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in listing.read_text().split():
            yield from _family(int(child))


def cpu_seconds(pid: int) -> float:
    """CPU time of a process and its children, by the nanosecond clock that Linux keeps for each (clock_getcpuclockid)."""
    return sum(time.clock_gettime(((~each) << 3) | 2) for each in _family(pid))


def peak_rss_mb(pid: int) -> float:
    """Highest resident size so far, children added."""
    total = 0
    for each in _family(pid):
        for line in Path(f"/proc/{each}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                total += int(line.split()[1])
    return total / 1024


def pinned(command: Sequence[str], core: int | str) -> list[str]:
    """Run a command on one core, and end it when the harness ends, however that happens."""
    return ["setpriv", "--pdeathsig", "KILL", "taskset", "-c", str(core), *command]


class Watched:
    """A process of its own on a core of its own, watched from outside."""

    def __init__(self, command: Sequence[str], core: int | str, log: Path) -> None:
        """Start it; both of its outputs go to `log`."""
        self.log = log
        with log.open("wb") as out:
            self._process = subprocess.Popen(
                pinned(command, core),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
            )

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def ended(self) -> bool:
        """Whether it is gone."""
        return self._process.poll() is not None

    def _wait_quiet(self, done: Callable[[], bool], limit_s: float) -> tuple[float, float]:
        """CPU clock and time at the end of the first quiet spell at which `done` is true."""
        samples: deque[tuple[float, float]] = deque()
        deadline = time.monotonic() + limit_s
        while True:
            if self._process.poll() is not None:
                raise MeasureError(f"it ended with code {self._process.returncode}:\n{self.tail()}")
            now, cpu = time.monotonic(), cpu_seconds(self._process.pid)
            samples.append((now, cpu))
            while now - samples[0][0] > QUIET_S + SAMPLE_S:
                samples.popleft()
            since, before = samples[0]
            if now - since >= QUIET_S and cpu - before < QUIET_SHARE * (now - since):
                if done():
                    return since, cpu
                samples.clear()
            if now > deadline:
                raise MeasureError(f"it was not done after {limit_s:.0f} s:\n{self.tail()}")
            time.sleep(SAMPLE_S)

    def wait_ready(self, ready: Callable[[], bool]) -> None:
        """Wait until it is ready and quiet. Raises MeasureError where it ends, or is not ready in time."""
        self._wait_quiet(ready, SETTLE_S)

    def run(self, ready: Callable[[], bool], start: Callable[[], None], done: Callable[[], bool]) -> Usage:
        """Wait until it is ready and quiet, let it begin, wait until it is done and quiet.

        Raises MeasureError where it ends by itself, or takes too long.
        """
        _, before = self._wait_quiet(ready, SETTLE_S)
        start()
        began = time.monotonic()
        ended, after = self._wait_quiet(done, TIMEOUT_S)
        return Usage(after - before, ended - began, peak_rss_mb(self._process.pid))

    def stop(self) -> None:
        """SIGTERM, and wait for it. Raises MeasureError where it does not end, or not with 0."""
        self._process.send_signal(signal.SIGTERM)
        try:
            code = self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise MeasureError(f"it did not stop within {STOP_S:.0f} s") from None
        if code != 0:
            raise MeasureError(f"it stopped with code {code}:\n{self.tail()}")

    def kill(self) -> None:
        """End it whatever it does; nothing where it has ended."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()

    def says(self, line: str) -> bool:
        """Whether it has written this line."""
        return line in self.log.read_text(errors="replace").splitlines()

    def tail(self) -> str:
        """The last lines that it wrote."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-15:])


def stamped(command: Sequence[str], core: int | str, log: Path, folder: Path) -> Usage:
    """Measure a reference script by its own definition: CPU at its exit less CPU at its first event, which it prints.

    Raises MeasureError where it fails.
    """
    environment = os.environ | {"PYTHONPATH": str(folder)}
    with log.open("wb") as out:
        process = subprocess.Popen(
            pinned(command, core),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            env=environment,
        )
        _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    lines = log.read_text(errors="replace").splitlines()
    first = next((line.split() for line in lines if line.startswith("FIRST ")), None)
    if process.returncode != 0 or first is None:
        raise MeasureError(f"it ended with code {process.returncode}:\n" + "\n".join(lines[-15:]))
    last = next((float(line.split()[1]) for line in lines if line.startswith("LAST ")), time.time())
    # Its ru_maxrss would begin at the size of this process: a fork counts.
    return Usage(used.ru_utime + used.ru_stime - float(first[2]), last - float(first[1]), math.nan)
