"""Hot reload of the registry: sees that its folder changed, loads it beside the one in force, and puts it in force at once.

Owns when to look and what is said about it. A folder is looked at every `reload_interval` by the state of its files (links
followed, so that the swap of a Kubernetes ConfigMap shows), and on SIGHUP. Reading and compiling happen in a thread; only the
one assignment that changes toolsets happens in the loop, between two calls. A folder that cannot be used changes nothing: the
toolset in force stays until the folder can be used again.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeAlias

from processor.adapters.schema_files import skipped_files, tool_paths
from processor.core.registry import BadRegistry, LoadFault
from processor.core.toolsets import FixedToolset
from processor.observe import catalogue as of
from processor.observe.meters import Meters
from processor.ports import Log

MOST_FAULTS: Final = 20
"""Faults in one line of the log and in `/readyz`; the rest are counted."""
YOUNG_NS: Final = 1_000_000_000
"""A file that is younger may change again under the same time stamp: clocks of file systems are coarse."""
RETRY_SECONDS: Final = 0.2
"""Pause after a folder that changed while it was read."""

State: TypeAlias = tuple[tuple[Any, ...], ...]
"""State of a folder's files: any change of a file shows in it."""


def state_of(folder: Path) -> State:
    """State of the tool files of a folder: name, identity, size and times of each. Never raises for what is in it."""
    found: list[tuple[Any, ...]] = []
    refused: list[LoadFault] = []
    try:
        for path, namespace in tool_paths(folder, refused):
            try:
                about = path.stat()
            except OSError as error:
                found.append((str(path), namespace, error.errno))
            else:
                found.append(
                    (str(path), namespace, about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns)
                )
    except OSError as error:
        found.append((str(folder), error.errno))
    return (*found, *((each.file, each.cause) for each in refused))


def _young(state: State, now_ns: int) -> bool:
    return any(len(each) > 5 and now_ns - each[-1] < YOUNG_NS for each in state)


def say_what_is_odd(folder: Path, toolset: FixedToolset, skipped: list[str], log: Log) -> None:
    """Warn of a folder that gives no tools, and of files in it that are not read."""
    skipped = skipped[:MOST_FAULTS]
    if not toolset.tools:
        log.warning("no_tools", folder=str(folder), skipped=skipped)
    elif skipped:
        log.warning("files_skipped", folder=str(folder), skipped=skipped)


class Reload:
    """Keeps the toolset in force in step with its folder."""

    def __init__(
        self,
        folder: Path,
        load: Callable[[], FixedToolset],
        use: Callable[[FixedToolset], None],
        *,
        source: str,
        in_force: str,
        seen: State,
        interval_ms: int,
        log: Log,
        meters: Meters,
    ) -> None:
        """Watch a folder whose toolset `in_force` (SHA-256) was loaded after its state was `seen`.

        `source` is the setting `tools`. `load` reads and compiles it, in a thread; `use` puts a toolset in force, in the loop.
        """
        self.folder = folder
        self.in_force = in_force
        """SHA-256 of the toolset in force."""
        self.refused: tuple[LoadFault, ...] = ()
        """What is wrong with the folder as it is now; empty: nothing is."""
        self._source = source
        self._load = load
        self._use = use
        self._interval_s = interval_ms / 1000 or None
        self._log = log
        self._meters = meters
        self._seen: State | None = seen
        self._torn = False
        self._asked = asyncio.Event()

    def ask(self) -> None:
        """Load the folder soon, whatever its files look like (SIGHUP)."""
        self._seen = None
        self._asked.set()

    async def run(self) -> None:
        """Look again and again, until it is cancelled."""
        while True:
            pause = RETRY_SECONDS if self._torn else self._interval_s
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._asked.wait(), pause)
            self._asked.clear()
            await self.look()

    async def look(self) -> bool:
        """Look at the folder once, and load it if it changed; returns whether another toolset is in force now."""
        state = await asyncio.to_thread(state_of, self.folder)
        if state == self._seen:
            return False
        # An answer to a signal that comes while the folder is being read must not be lost.
        self._seen = None if _young(state, time.time_ns()) else state
        try:
            toolset = await asyncio.to_thread(self._load)
        except BadRegistry as error:
            self._refuse(error.faults)
            return False
        except Exception as error:  # noqa: BLE001 - whatever it is, the toolset in force must stay, and be known to be old
            self._refuse((LoadFault(str(self.folder), "", f"it could not be loaded: {type(error).__name__}"),))
            return False
        self._torn = await asyncio.to_thread(state_of, self.folder) != state
        if self._torn:
            # Read while somebody wrote: perhaps half of the old and half of the new. What lies there then is read next.
            self._seen = None
            return False
        changed = self._accept(toolset)
        if changed:
            say_what_is_odd(self.folder, toolset, await asyncio.to_thread(skipped_files, self.folder), self._log)
        return changed

    def status(self) -> dict[str, Any]:
        """For `/readyz`: the toolset in force, and what is wrong with the folder."""
        return {"toolset": self.in_force, "refused": _shown(self.refused)}

    def _accept(self, toolset: FixedToolset) -> bool:
        cured, self.refused = bool(self.refused), ()
        self._meters.stale(now=False)
        changed = toolset.sha256 != self.in_force
        if changed:
            self._use(toolset)
            self.in_force = toolset.sha256
            self._meters.toolset(toolset.sha256, len(toolset.tools))
        if changed or cured:
            self._meters.count(of.RELOADS, "done")
            about = {"toolset": toolset.sha256, "tools": len(toolset.tools), "source": self._source, "folder": str(self.folder)}
            self._log.info("toolset_loaded", **about)
        return changed

    def _refuse(self, faults: tuple[LoadFault, ...]) -> None:
        if faults == self.refused:
            return
        self.refused = faults
        self._meters.stale(now=True)
        self._meters.count(of.RELOADS, "refused")
        self._log.error("toolset_refused", toolset=self.in_force, faults=_shown(faults), count=len(faults))


def _shown(faults: tuple[LoadFault, ...]) -> list[dict[str, str]]:
    return [{"file": each.file, "pointer": each.pointer, "cause": each.cause} for each in faults[:MOST_FAULTS]]
