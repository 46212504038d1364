"""Where the time goes: samples of a running process by py-spy, listed by line.

Samples of a process that waits are left out.
"""

import subprocess
import sys
from collections import Counter
from pathlib import Path

RATE = 400
"""Samples a second."""
LINES = 40
IDLE = "select (selectors.py"

PARTS = {
    "core, gate and decide": ("processor/core/pipeline.py", "Partition._emit"),
    "core, decode": ("processor/core/pipeline.py", "processor/core/decode.py"),
    "core, assemble": ("processor/core/pipeline.py",),
    "aiokafka, reading": ("aiokafka/consumer",),
    "aiokafka, writing": ("aiokafka/producer",),
    "aiokafka, client": ("aiokafka/",),
    "metrics and logs": ("processor/observe",),
    "adapters": ("processor/adapters",),
}
"""Parts of a process by what a stack must mention, the first that fits."""


def spy(*arguments: str) -> list[str]:
    """Command line of py-spy."""
    return [str(Path(sys.executable).with_name("py-spy")), *arguments]


def attach(pid: int, out: Path) -> "subprocess.Popen[bytes]":
    """Sample a process until it ends, or until the sampler gets SIGINT."""
    how = ("--nonblocking", "--rate", str(RATE), "--format", "raw", "--output", str(out))
    command = spy("record", *how, "--pid", str(pid))
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def listing(samples: Path, only: tuple[str, ...] = ()) -> str:
    """Shares of parts, lines, and functions; `only`: stacks that mention one of these."""
    parts: Counter[str] = Counter()
    inside: Counter[str] = Counter()
    under: Counter[str] = Counter()
    total = 0
    for line in samples.read_text().splitlines():
        stack, number = line.rsplit(" ", 1)
        frames = stack.split(";")
        if frames[-1].startswith(IDLE) or (only and not any(name in stack for name in only)):
            continue
        count = int(number)
        total += count
        parts[next((part for part, marks in PARTS.items() if all(mark in stack for mark in marks)), "the rest")] += count
        inside[frames[-1]] += count
        for function in {frame.rsplit(":", 1)[0] for frame in frames}:
            under[function] += count
    text = []
    for title, counted in (
        ("by part", parts),
        ("in the line itself, C included", inside),
        ("in and under the function", under),
    ):
        text.append(f"\n{title}:")
        text += [f"{100 * count / max(total, 1):6.1f} %  {name}" for name, count in counted.most_common(LINES)]
    return "\n".join(text)
