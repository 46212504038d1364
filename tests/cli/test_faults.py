"""What can go wrong on the command line: one clear sentence and a documented exit code each, never a traceback."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from processor.cli.exits import Exit
from tests.cli.command import Ended, callgate

ARCHIVE = str(Path(__file__).parents[2] / "processor" / "demo" / "streams" / "conflict.jsonl")


def sentences(ended: Ended, code: Exit) -> list[str]:
    """What it said, having ended as documented."""
    assert ended.code == code, ended
    assert "Traceback" not in ended.err
    return ended.err.splitlines()


def test_wrong_settings() -> None:
    """Every wrong setting is named, with its source."""
    said = sentences(callgate("replay", ARCHIVE, "--set", "relese=item", "--set", "max_calls=0"), Exit.USAGE)
    assert said == [
        "callgate: --set: `relese` is no setting; did you mean `release`?",
        "callgate: --set: `max_calls` must be a whole number of 1 or more.",
    ]


def test_wrong_usage() -> None:
    """An unknown option or command ends as usage errors do."""
    assert callgate("replay").code == Exit.USAGE
    assert callgate("reply", "x").code == Exit.USAGE
    assert callgate("replay", ARCHIVE, "--nope").code == Exit.USAGE


def test_missing_archive(tmp_path: Path) -> None:
    """An archive that is not there."""
    said = sentences(callgate("replay", str(tmp_path / "a"), "--set", "tools=stream"), Exit.FILES)
    assert said == [f"callgate: {tmp_path / 'a'} cannot be read: No such file or directory."]


def test_unwritable_output(tmp_path: Path) -> None:
    """An output that cannot be written."""
    output = tmp_path / "none" / "out"
    said = sentences(callgate("replay", ARCHIVE, "--set", "tools=stream", "--decisions", str(output)), Exit.FILES)
    assert said == [f"callgate: {output}: No such file or directory."]


def test_unusable_schemas(tmp_path: Path) -> None:
    """Every schema that cannot be used is named, with file, pointer and cause."""
    (tmp_path / "a.json").write_text('{"type": "function", "name": "a", "parameters": {"type": "objekt"}}')
    (tmp_path / "b.json").write_text("{")
    for command in (["replay", ARCHIVE], ["schemas", "list"], ["check", ARCHIVE]):
        said = sentences(callgate(*command, "--set", f"schemas={tmp_path}"), Exit.SCHEMAS)
        assert any("a.json#/parameters/type" in line for line in said)
        assert any("b.json" in line for line in said)


def test_no_schemas(tmp_path: Path) -> None:
    """A folder of schemas that is not there."""
    (said,) = sentences(callgate("replay", ARCHIVE, "--set", f"schemas={tmp_path / 'none'}"), Exit.SCHEMAS)
    assert str(tmp_path / "none") in said


@pytest.mark.parametrize("command", ["run", "topics"])
def test_unreachable_broker(command: str) -> None:
    """No broker: the sentence says where it was looked for."""
    ended = callgate(
        command, "--set", "tools=stream", "--set", "kafka.bootstrap_servers=127.0.0.1:1", "--set", "log.level=error"
    )
    (said,) = sentences(ended, Exit.UNREACHABLE)
    assert "127.0.0.1:1" in said


@pytest.mark.parametrize("command", ["run", "topics"])
def test_settings_of_the_broker_are_looked_at_first(command: str, tmp_path: Path) -> None:
    """An address without a port and files of TLS that cannot be read are faults of the settings, said before any work."""
    absent = tmp_path / "absent.toml"
    files = ("kafka.ssl_cafile", "kafka.ssl_certfile", "kafka.ssl_keyfile")
    tls = ["--set", "kafka.security_protocol=SSL", *(part for name in files for part in ("--set", f"{name}={absent}"))]
    for arguments, said in (
        (
            ["--set", "kafka.bootstrap_servers=127.0.0.1,localhost:0"],
            [
                "settings: `kafka.bootstrap_servers`: `127.0.0.1` is not `host:port`.",
                "settings: `kafka.bootstrap_servers`: `localhost:0` is not `host:port`.",
            ],
        ),
        (tls, [f"`{name}` (`{absent}`) cannot be read: No such file or directory." for name in files]),
        (["--config", str(absent)], [f"{absent}: the file cannot be read (No such file or directory)."]),
    ):
        found = sentences(callgate(command, "--set", "tools=stream", *arguments), Exit.USAGE)
        assert found == [f"callgate: {each}" for each in said]


def test_schemas_list(tmp_path: Path) -> None:
    """`schemas list` shows each tool, for people and for programs."""
    (tmp_path / "crm").mkdir()
    (tmp_path / "crm" / "a.json").write_text('{"type": "function", "name": "find", "parameters": {"type": "object"}}')
    listed = callgate("schemas", "list", "--json", "--set", f"schemas={tmp_path}")
    (row,) = map(json.loads, listed.out.splitlines())
    assert (row["namespace"], row["name"], row["file"]) == ("crm", "find", "crm/a.json")
    people = callgate("schemas", "list", "--set", f"schemas={tmp_path}")
    assert "find" in people.out
    assert "1 tool in " in people.out


def test_a_fault_of_ours_quotes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """An unexpected exception says where it happened, not what it read."""

    def fail(*_: object) -> None:
        raise ValueError("hunter2")

    monkeypatch.setattr("processor.app.build_core", fail)
    (said,) = sentences(callgate("replay", ARCHIVE), Exit.INTERNAL)
    assert "ValueError" in said
    assert "test_faults.py" in said
    assert "hunter2" not in said


def shell(*command: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run Python as a process of its own."""
    return subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, check=False, env={**os.environ, **environ}, timeout=60
    )


def test_optimised_python_is_refused() -> None:
    """`python -O` removes the Kafka client's own checks: `run` refuses it."""
    ended = shell("-O", "-m", "processor", "run", "--set", "tools=stream")
    assert (ended.returncode, "-O" in ended.stderr, "Traceback" in ended.stderr) == (Exit.FATAL, True, False)


def test_help_and_version() -> None:
    """`--help` names the commands and the exit codes; every command's help has examples."""
    ended = callgate("--help")
    assert ended.code == 0
    assert all(command in ended.out for command in ("check", "replay", "run", "topics", "schemas", "demo"))
    assert callgate("--version").out.startswith("callgate ")
    for command in ("check", "replay", "run", "topics", "demo"):
        assert "Examples" in callgate(command, "--help").out


def test_environment_reaches_the_settings() -> None:
    """The environment is above the file."""
    ended = shell("-m", "processor", "replay", ARCHIVE, CALLGATE_TOOLS="nowhere")
    assert ended.returncode == Exit.USAGE
    assert "environment: `CALLGATE_TOOLS` must be one of" in ended.stderr


def test_closed_pipe_is_no_fault(tmp_path: Path) -> None:
    """A reader that goes away (`| head -1`) ends the command without a word."""
    many = tmp_path / "a.jsonl"
    many.write_text("nonsense\n" * 100_000)
    replay = f"'{sys.executable}' -m processor replay '{many}' --set tools=stream --dead-letters - --quiet"
    command = replay + " | head -c 1 > /dev/null; exit ${PIPESTATUS[0]}"
    ended = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False, timeout=60)
    assert (ended.returncode, ended.stderr) == (Exit.PIPE, "")
