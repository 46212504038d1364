"""The README is true: its commands are run, its output is compared, its links lead somewhere.

A block of kind `console` holds commands after `$ ` and what they say; `...` stands for anything. Marked `kafka` it needs the
broker; marked `run` the command does not end by itself, and `make` only has to know its target.
"""

import os
import re
import secrets
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from processor.config import load

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^( *)```(\w+)( \w+)?\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)


def blocks(language: str, mark: str = "") -> list[str]:
    """Blocks of one kind, their indentation removed."""
    found = []
    for indent, kind, marked, body in BLOCK.findall(TEXT):
        if (kind, marked.strip()) == (language, mark):
            found.append("\n".join(line.removeprefix(indent) for line in body.splitlines()))
    return found


def commands(block: str) -> list[tuple[str, str]]:
    """Commands of a block, and what each is shown to say."""
    parts = re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
    return [(part.partition("\n")[0], part.partition("\n")[2].strip()) for part in parts]


CONSOLE = [each for block in blocks("console") for each in commands(block)]
ON_KAFKA = [each for block in blocks("console", "kafka") for each in commands(block)]


def shell(command: str, folder: Path, **environ: str) -> str:
    """Run a command as a reader would, in a folder like the clone's with the settings file; returns all that it says."""
    for name in ("processor", "schemas", "Makefile"):
        (folder / name).symlink_to(ROOT / name)
    (folder / "callgate.toml").write_text(blocks("toml")[0])
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=folder,
        env={**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), **environ},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=120,
    )
    assert "Traceback" not in done.stdout
    return done.stdout


def says(said: str, shown: str) -> bool:
    """Whether the output is what is shown, `...` standing for anything on its line, and spaces at line ends for nothing."""
    pattern = "\n".join(re.escape(line.rstrip()).replace(r"\.\.\.", ".*") for line in shown.splitlines())
    return re.fullmatch(pattern, "\n".join(line.rstrip() for line in said.strip().splitlines())) is not None


@pytest.mark.parametrize(("command", "shown"), CONSOLE, ids=[command[:60] for command, _ in CONSOLE])
def test_commands(command: str, shown: str, tmp_path: Path) -> None:
    """Each command says what the README shows."""
    if command.startswith("make "):
        target = command.split()[1]
        assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
        return
    said = shell(command, tmp_path)
    assert says(said, shown), said


@pytest.mark.parametrize(("command", "shown"), ON_KAFKA, ids=[command for command, _ in ON_KAFKA])
def test_commands_on_kafka(command: str, shown: str, tmp_path: Path, bootstrap: str) -> None:
    """Each command that needs a broker says what the README shows, on topics of its own."""
    name = f"readme-{secrets.token_hex(4)}"
    endings = {"EVENTS": "events", "APPROVED": "approved", "REJECTED": "rejected", "DEAD_LETTER": "dead-letter"}
    topics = {f"CALLGATE_TOPICS_{key}": f"{name}.{ending}" for key, ending in endings.items()}
    said = shell(command, tmp_path, CALLGATE_KAFKA_BOOTSTRAP_SERVERS=bootstrap, CALLGATE_TOPICS_PARTITIONS="2", **topics)
    assert says(said, shown), said


def test_every_command_is_known() -> None:
    """Commands that are shown but not run are at least commands, with options that exist."""
    for block in blocks("console", "run"):
        for command, _ in commands(block):
            name, *words = command.split()
            options = [word for word in words if word.startswith("--")]
            asked = subprocess.run(
                [sys.executable, "-m", "processor", words[0], "--help"], capture_output=True, text=True, check=True, cwd=ROOT
            )
            assert name == "callgate"
            assert all(option in asked.stdout for option in options)


def test_every_command_on_an_own_kafka_names_the_settings() -> None:
    """Where a settings file was written, each command that is shown takes it."""
    own = TEXT.partition("## Use it with your own Kafka")[2]
    shown = re.findall(r"^ *\$ (callgate .*)$", own, re.MULTILINE)
    assert shown
    assert all("--config callgate.toml" in command for command in shown)


def test_settings_that_are_shown(tmp_path: Path) -> None:
    """The settings that are shown are settings, and go together."""
    for block in blocks("toml"):
        tomllib.loads(block)
        secret = tmp_path / "password"
        secret.write_text("x")
        config = tmp_path / "callgate.toml"
        config.write_text(re.sub(r'"/run/secrets/[^"]*"', f'"{secret}"', block))
        assert load(config).group == "callgate"
    assert blocks("toml")


def test_links() -> None:
    """Every link into the repository leads to a file; one to a heading leads to a heading."""
    for target in re.findall(r"\]\((?!https?:)([^)]+)\)", TEXT):
        name, _, anchor = target.partition("#")
        assert (ROOT / name).exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.*)$", (ROOT / name).read_text(), re.MULTILINE)
            assert anchor in {heading.lower().replace(" ", "-") for heading in headings}, target
