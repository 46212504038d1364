"""Hot reload: a changed folder is put in force whole or not at all, and what is wrong with it is said once, everywhere."""

import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from processor.adapters import schema_files
from processor.adapters.schema_watch import Reload, state_of
from processor.core.toolsets import Compiler, FixedToolset
from processor.observe.meters import Meters
from tests.contract.kit import Lines


def tool(name: str, **parameters: Any) -> str:
    """A tool file."""
    return json.dumps({"type": "function", "name": name, "parameters": {"type": "object", **parameters}})


class Watched:
    """A folder, and what watching it did."""

    def __init__(self, folder: Path, loading: Callable[[], object] = lambda: None) -> None:
        self.folder = folder
        self.loading = loading
        self.using: Callable[[], object] = lambda: None
        self.used: list[FixedToolset] = []
        self.log = Lines()
        self.meters = Meters("test")
        seen = state_of(folder)
        self.first = self.load()
        self.reload = Reload(
            folder,
            self.load,
            self.use,
            source="both",
            in_force=self.first.sha256,
            seen=seen,
            interval_ms=0,
            log=self.log,
            meters=self.meters,
        )

    def load(self) -> FixedToolset:
        """Read it as the processor does."""
        toolset = schema_files.load(self.folder, Compiler())
        self.loading()
        return toolset

    def use(self, toolset: FixedToolset) -> None:
        """Put it in force."""
        self.used.append(toolset)
        self.using()

    def look(self) -> bool:
        """Look once."""
        return asyncio.run(self.reload.look())

    def metric(self, line: str) -> bool:
        """Whether the exposition has this line."""
        return line in self.meters.exposition().decode().splitlines()


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    """A folder with one tool."""
    folder = tmp_path / "tools"
    folder.mkdir()
    (folder / "a.json").write_text(tool("a"))
    return Watched(folder)


def test_a_folder_that_stays_is_not_loaded_again(watched: Watched) -> None:
    """Nothing changed: nothing is loaded, said or counted."""
    watched.loading = lambda: pytest.fail("it was loaded")
    assert not watched.look()
    assert watched.used == []


@pytest.mark.parametrize("change", ["write", "add", "remove", "namespace"])
def test_a_change_is_in_force_as_a_whole(watched: Watched, change: str) -> None:
    """Written, added, removed, moved into a namespace: the new toolset is used, once, and named."""
    (watched.folder / "b.json").write_text(tool("b"))
    assert watched.look()
    if change == "write":
        (watched.folder / "b.json").write_text(tool("b", required=["x"]))
    elif change == "add":
        (watched.folder / "c.yaml").write_text(tool("c"))
    elif change == "remove":
        (watched.folder / "b.json").unlink()
    else:
        (watched.folder / "crm").mkdir()
        (watched.folder / "b.json").rename(watched.folder / "crm" / "b.json")
    assert watched.look()
    assert [len(each.tools) for each in watched.used] == [2, {"add": 3, "remove": 1}.get(change, 2)]
    now = watched.used[-1].sha256
    assert now == schema_files.load(watched.folder, Compiler()).sha256 == watched.reload.in_force
    assert watched.metric(f'callgate_toolset_info{{toolset="{now}"}} 1.0')
    assert watched.metric('callgate_reloads_total{outcome="done"} 2.0')


def test_the_swap_of_a_config_map_is_seen(tmp_path: Path) -> None:
    """Kubernetes swaps one link, `..data`; the names in the folder stay as they are."""
    for version, text in (("..v1", tool("a")), ("..v2", tool("a", required=["x"]))):
        (tmp_path / version).mkdir()
        (tmp_path / version / "a.json").write_text(text)
        os.utime(tmp_path / version / "a.json", ns=(0, 0))
    (tmp_path / "..data").symlink_to("..v1")
    (tmp_path / "a.json").symlink_to("..data/a.json")
    watched = Watched(tmp_path)
    assert not watched.look()
    (tmp_path / "..new").symlink_to("..v2")
    (tmp_path / "..new").rename(tmp_path / "..data")
    assert watched.look()
    assert watched.used[0].tools[0].schema == {"type": "object", "required": ["x"]}


def test_a_bad_change_leaves_the_toolset_in_force(watched: Watched) -> None:
    """It shows in the log (once), in the metrics and in the detail of `/readyz`; when it is cured, that shows too."""
    (watched.folder / "b.json").write_text(tool("b", pattern="("))
    (watched.folder / "c.json").write_text("{")
    assert not watched.look()
    assert not watched.look()
    assert watched.used == []
    faults = watched.reload.status()["refused"]
    assert watched.reload.status()["toolset"] == watched.first.sha256
    assert {(each["file"], each["pointer"]) for each in faults} == {("b.json", "/parameters/pattern"), ("c.json", "")}
    assert all(each["cause"] for each in faults)
    assert [(level, event, fields["faults"]) for level, event, fields in watched.log.lines] == [
        ("error", "toolset_refused", faults)
    ]
    assert watched.metric("callgate_toolset_stale 1.0")
    assert watched.metric('callgate_reloads_total{outcome="refused"} 1.0')
    (watched.folder / "b.json").unlink()
    (watched.folder / "c.json").unlink()
    assert not watched.look()
    assert watched.reload.status()["refused"] == []
    assert watched.metric("callgate_toolset_stale 0.0")
    _, event, fields = watched.log.lines[-1]
    assert (event, fields["source"], fields["folder"]) == ("toolset_loaded", "both", str(watched.folder))


def test_a_folder_that_is_gone_is_a_bad_change(watched: Watched) -> None:
    """A volume that is not there for a moment takes no tool away."""
    gone = watched.folder.rename(watched.folder.with_name("gone"))
    assert not watched.look()
    assert watched.reload.status()["refused"]
    gone.rename(watched.folder)
    assert not watched.look()
    assert not watched.reload.status()["refused"]


def test_what_was_read_during_a_change_is_not_used(watched: Watched) -> None:
    """Half of the old folder and half of the new one are no toolset: it is read again."""
    (watched.folder / "a.json").write_text(tool("a", required=["x"]))
    watched.loading = lambda: (watched.folder / "b.json").write_text(tool("b"))
    assert not watched.look()
    assert watched.used == []
    watched.loading = lambda: None
    assert watched.look()
    assert [each.name for each in watched.used[0].tools] == ["a", "b"]


def test_sighup_is_answered_without_an_interval(watched: Watched) -> None:
    """With `reload_interval = "0ms"` the folder is looked at when a signal comes, and only then."""

    async def signalled() -> None:
        used = asyncio.Event()
        watched.using = used.set
        running = asyncio.create_task(watched.reload.run())
        (watched.folder / "b.json").write_text(tool("b"))
        watched.reload.ask()
        await asyncio.wait_for(used.wait(), 30)
        running.cancel()

    asyncio.run(signalled())
    assert len(watched.used[0].tools) == 2


def test_a_folder_that_becomes_empty_is_warned_of(watched: Watched) -> None:
    """A toolset without tools is put in force, as it was asked for, and a warning names the files that are not read."""
    (watched.folder / "a.json").rename(watched.folder / "a.jsn")
    assert watched.look()
    level, event, fields = watched.log.lines[-1]
    assert (level, event, fields["skipped"]) == ("warning", "no_tools", ["a.jsn"])
    (watched.folder / "b.json").write_text(tool("b"))
    assert watched.look()
    level, event, fields = watched.log.lines[-1]
    assert (level, event, fields["skipped"]) == ("warning", "files_skipped", ["a.jsn"])
