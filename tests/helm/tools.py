"""The programs that hold the chart, its alerts and its dashboard: Helm through Maven, Prometheus from Debian's packages.

Owns the fetching: once, into the checkout's `.cache`, under a lock; nothing is installed. Programs on PATH go first.
"""

import fcntl
import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from processor.broker import BrokerUnavailable, find_tools

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "helm" / "callgate"
CACHE = ROOT / ".cache" / "helm"
POM = Path(__file__).with_name("pom.xml")
RENDER = Path(__file__).with_name("Render.java")
FETCH_SECONDS = 300
KUBERNETES = "1.31.0"
"""The cluster that Helm is told of: charts may ask for it, and it has no other."""


class ToolUnavailable(RuntimeError):
    """A tool is not here and cannot be had: the message says in one sentence what to install."""


@dataclass(frozen=True)
class Prometheus:
    """Its two programs."""

    server: str
    promtool: str


def render(chart: Path, folder: Path) -> None:
    """Lint a chart, and render it with each `NAME.yaml` of a folder, to `NAME.out` or `NAME.err`.

    Raises ToolUnavailable where Java or Helm cannot be had, and AssertionError where Helm itself fails.
    """
    try:
        java = find_tools().java
    except BrokerUnavailable as missing:
        raise ToolUnavailable(str(missing)) from None
    command = [java, "-cp", f"{_helm_jars()}/*", str(RENDER), str(chart), str(folder), KUBERNETES]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=FETCH_SECONDS)
    assert done.returncode == 0, done.stdout + done.stderr


def prometheus() -> Prometheus:
    """Find Prometheus and promtool, or unpack Debian's package. Raises ToolUnavailable where that cannot be had."""
    server, promtool = shutil.which("prometheus"), shutil.which("promtool")
    if server and promtool:
        return Prometheus(server, promtool)
    programs = _once("prometheus", _unpack_prometheus) / "usr" / "bin"
    return Prometheus(str(programs / "prometheus"), str(programs / "promtool"))


def _helm_jars() -> Path:
    name = hashlib.sha256(POM.read_bytes()).hexdigest()[:12]
    return _once(f"jars-{name}", _fetch_helm)


def _fetch_helm(folder: Path) -> None:
    if shutil.which("mvn") is None:
        raise ToolUnavailable("Helm is fetched through Maven, which was not found: install it (command mvn).")
    # A copy: Maven writes beside it.
    pom = shutil.copy(POM, folder.parent)
    command = ["mvn", "-q", "-B", "-f", str(pom), "dependency:copy-dependencies", f"-DoutputDirectory={folder}"]
    _run(command, "Maven could not fetch Helm", folder.parent)


def _unpack_prometheus(folder: Path) -> None:
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise ToolUnavailable("Prometheus was not found: install it (commands prometheus and promtool).")
    above = folder.parent
    download = ["apt-get", "download", "-q", "prometheus"]
    try:
        _run(download, "", above)
    except ToolUnavailable:
        # A machine that has never asked what there is: it is asked in a folder of our own, so that no root is needed.
        lists = above / "lists"
        (lists / "partial").mkdir(parents=True)
        own = [f"-oDir::State::Lists={lists}", f"-oDir::Cache={above}"]
        _run(["apt-get", *own, "-q", "update"], "apt-get could not say what packages there are", above)
        _run([download[0], *own, *download[1:]], "apt-get could not fetch Prometheus", above)
    (package,) = above.glob("prometheus_*.deb")
    _run(["dpkg-deb", "-x", str(package), str(folder)], "dpkg-deb could not unpack Prometheus", above)


def _run(command: Sequence[str], otherwise: str, folder: Path) -> None:
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, timeout=FETCH_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise ToolUnavailable(f"{otherwise} within {FETCH_SECONDS} seconds.") from None
    if done.returncode != 0:
        lines = (done.stdout + done.stderr).strip().splitlines() or ["it gave no cause"]
        raise ToolUnavailable(f"{otherwise}: {lines[-1]}")


def _once(name: str, fetch: Callable[[Path], None]) -> Path:
    """A folder of the cache, made by `fetch` the first time; it gets its name only when it is whole."""
    folder = CACHE / name
    if not folder.is_dir():
        CACHE.mkdir(parents=True, exist_ok=True)
        with _locked(CACHE / f"{name}.lock"):
            if not folder.is_dir():
                with tempfile.TemporaryDirectory(prefix="fetch-", dir=CACHE) as work:
                    made = Path(work) / name
                    fetch(made)
                    made.rename(folder)
    return folder


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a lock between processes; the system drops it when its holder dies."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
