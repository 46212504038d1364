"""Finds Java, and Apache Kafka's jars: from a folder that is named, from the cache, or once through Maven.

Two starters at once are safe: one fetches under a lock, into a folder that gets its final name only when it is whole. It must
never fetch when the cache is there: the second start needs no network.
"""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from processor.broker.errors import BrokerUnavailable

OVERRIDE = "CALLGATE_TEST_KAFKA_JARS"
"""Environment variable that names a folder with Kafka's jars: nothing is fetched then. Its name is one of those that `callgate
run` does not take for a setting."""

POM = Path(__file__).with_name("pom.xml")
ROOT = Path(__file__).resolve().parents[2]
OLDEST_JAVA = 17
FETCH_SECONDS = 600

Note = Callable[[str], None]
"""Told what takes long, in one line for a person."""


@dataclass(frozen=True, slots=True)
class Tools:
    """The programs that a broker needs."""

    java: str
    maven: str | None
    """Only needed to fetch Kafka the first time."""


def find_tools() -> Tools:
    """Find Java and Maven: `JAVA_HOME` first, then PATH.

    Raises BrokerUnavailable, saying what to install, where there is no Java of a sufficient version, or no Maven although
    Kafka was not fetched yet.
    """
    home = os.environ.get("JAVA_HOME")
    java = (shutil.which("java", path=str(Path(home) / "bin")) if home else None) or shutil.which("java")
    if java is None:
        raise BrokerUnavailable(
            f"Java was not found: install a Java runtime, version {OLDEST_JAVA} or later, or set JAVA_HOME."
        )
    version = java_version(java)
    if version < OLDEST_JAVA:
        raise BrokerUnavailable(
            f"Java {version} is too old for Kafka: install version {OLDEST_JAVA} or later, or set JAVA_HOME."
        )
    maven = shutil.which("mvn")
    if maven is None and not cached():
        raise BrokerUnavailable(
            f"Maven was not found: install it (command mvn), or set {OVERRIDE} to a folder with the jars of Apache Kafka."
        )
    return Tools(java, maven)


def java_version(java: str) -> int:
    """Major version of a Java runtime; 0 where it does not say."""
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    found = re.search(r'version "(\d+)(?:\.(\d+))?', said.stderr + said.stdout)
    if found is None:
        return 0
    major = int(found[1])
    return int(found[2] or 0) if major == 1 else major


def cache_folder() -> Path:
    """Where jars are kept: in the checkout's own `.cache` where this is one, else in the user's cache."""
    name = hashlib.sha256(POM.read_bytes()).hexdigest()[:12]
    if (ROOT / "pyproject.toml").is_file() and (ROOT / "Makefile").is_file():
        return ROOT / ".cache" / "kafka" / name
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "callgate" / "kafka" / name


def cached() -> Path | None:
    """The folder of jars that is already there, if any."""
    named = os.environ.get(OVERRIDE)
    folder = Path(named) if named else cache_folder()
    return folder if any(folder.glob("kafka-server-4*.jar")) or any(folder.glob("kafka_2.13-*.jar")) else None


def find_jars(note: Note = lambda _: None) -> Path:
    """Return the folder of Kafka's jars, fetched once through Maven.

    Raises BrokerUnavailable where the named folder holds no Kafka, Maven is missing, or Maven could not fetch.
    """
    found = cached()
    if found is not None:
        return found
    named = os.environ.get(OVERRIDE)
    if named:
        raise BrokerUnavailable(f"{OVERRIDE} names {named}, where there are no jars of Apache Kafka.")
    folder = cache_folder()
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _locked(folder.with_suffix(".lock")):
        found = cached()
        if found is None:
            maven = find_tools().maven
            note("Fetching Apache Kafka through Maven (44 MB, only the first time) ...")
            _fetch(maven or "mvn", folder)
        return folder


def _fetch(maven: str, folder: Path) -> None:
    """Let Maven copy the jars into a folder beside, and give it its name when it is whole."""
    with tempfile.TemporaryDirectory(prefix="fetch-", dir=folder.parent) as work:
        # A copy: the package may lie where nothing can be written.
        pom = shutil.copy(POM, work)
        jars = Path(work) / "jars"
        command = [maven, "-q", "-B", "-f", pom, "dependency:copy-dependencies", f"-DoutputDirectory={jars}"]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, timeout=FETCH_SECONDS
            )
        except subprocess.TimeoutExpired:
            raise BrokerUnavailable(f"Maven did not fetch Apache Kafka within {FETCH_SECONDS} seconds.") from None
        if done.returncode != 0:
            lines = [line for line in (done.stdout + done.stderr).splitlines() if "ERROR" in line] or ["it gave no cause"]
            raise BrokerUnavailable(f"Maven could not fetch Apache Kafka: {lines[0].strip()}")
        jars.rename(folder)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a lock between processes; the system drops it when its holder dies."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
