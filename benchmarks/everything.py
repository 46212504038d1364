"""Makes every section of benchmarks/RESULTS.md anew, one command after the other, each with its own broker: some 25 minutes.

Nothing else should run on the machine meanwhile. The commands are those that each section names; `--only` runs some of them.
"""

import argparse
import shlex
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
FLOORS = ["--rows", "floor-1,floor-2,callgate", "--repeats", "3"]

COMMANDS: dict[str, list[str]] = {
    "rows": ["benchmarks", "--repeats", "3"],
    "tools": ["benchmarks", "--idle-tools", "40", "--events", "40000", *FLOORS, "--title", "40 echoed tools of 1 kB"],
    "partitions": ["benchmarks", "--partitions", "64", "--events", "200000", *FLOORS],
    "gate": ["benchmarks.gate"],
    "effort": ["benchmarks.effort"],
    "latency": ["benchmarks.latency"],
    "memory": ["benchmarks.memory"],
    "spread": ["benchmarks.spread"],
    "idle": ["benchmarks.idle", "--repeats", "1"],
    "workers": ["benchmarks.workers"],
    "replay": ["benchmarks.replay"],
    "start": ["benchmarks.start"],
}
"""By a short name, in the order in which they run."""


def main() -> int:
    """Run them all. 0: every section was made; 1: some have gaps."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.everything", description=__doc__)
    parser.add_argument("--only", default=",".join(COMMANDS), help="which, comma-separated (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=HERE / "RESULTS.md", help="(default: %(default)s)")
    options = parser.parse_args()
    names = options.only.split(",")
    for name in names:
        if name not in COMMANDS:
            parser.error(f"no command {name}; there are {', '.join(COMMANDS)}")
    began, failed = time.monotonic(), []
    for number, name in enumerate(names, 1):
        command = ["python", "-m", *COMMANDS[name]]
        passed = (time.monotonic() - began) / 60
        print(f"\n=== {number} of {len(names)}, {passed:.0f} min: {shlex.join(command)}", flush=True)
        out = [] if options.out == HERE / "RESULTS.md" else ["--out", str(options.out)]
        if subprocess.run([sys.executable, *command[1:], *out], cwd=HERE.parent, check=False).returncode != 0:
            failed.append(name)
    minutes = (time.monotonic() - began) / 60
    print(f"\n{len(names) - len(failed)} of {len(names)} sections are whole, {minutes:.0f} min: {options.out}")
    if failed:
        print(f"With gaps: {', '.join(failed)}.")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
