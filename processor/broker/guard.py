"""Stands between a broker and whoever started it, so that no Java outlives its parent, however that one ends.

Run as a script: `guard.py FOLDER COMMAND...`. It starts the command, says its pid in one line, and obeys the lines `term` and
`kill` on its standard input. When that closes, its parent is gone, SIGKILL or not: it ends the command and removes FOLDER
(empty: nothing). It imports nothing of the package, and must never write where its parent does not read.

The alternative, PR_SET_PDEATHSIG alone, fires when the *thread* that started the child ends, and Linux only has it; here it
only covers the death of this guard itself.
"""

import contextlib
import ctypes
import shutil
import signal
import subprocess
import sys
import threading

GRACE_SECONDS = 10
PR_SET_PDEATHSIG = 1


def die_with_guard() -> None:
    """Ask Linux to kill the command when this guard is killed; elsewhere nothing."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def main(folder: str, command: list[str]) -> int:
    """Start, guard, and pass the command's exit code on."""
    orphaned = threading.Event()
    # One thread so far: nothing can hold a lock across the fork.
    child = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr,
        preexec_fn=die_with_guard,  # noqa: PLW1509 - single-threaded here
    )
    sys.stdout.write(f"{child.pid}\n")
    sys.stdout.flush()

    def obey() -> None:
        for line in sys.stdin:
            child.kill() if line.strip() == "kill" else child.terminate()
        orphaned.set()
        child.terminate()
        try:
            child.wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()

    threading.Thread(target=obey, daemon=True).start()
    code = child.wait()
    if orphaned.is_set() and folder:
        shutil.rmtree(folder, ignore_errors=True)
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    # Its parent may already be gone when it writes.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.exit(main(sys.argv[1], sys.argv[2:]))
