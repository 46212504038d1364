"""Happenings: one event name a line, at a level that says what to do, counted where it is counted."""

import io
import json
import logging
import re
from pathlib import Path

import pytest

from processor.observe import emit
from processor.observe.emit import HAPPENINGS, Emit, Happening
from processor.observe.logs import LEVELS, START_SECONDS, LibraryLog, attach_library, open_log
from processor.observe.meters import Meters


def test_happenings_are_declared_once() -> None:
    """Names are unique, levels known, and every meaning is a sentence."""
    assert len({each.name for each in HAPPENINGS}) == len(HAPPENINGS)
    assert all(each.level in LEVELS and each.meaning.endswith(".") for each in HAPPENINGS)


@pytest.mark.parametrize("happening", HAPPENINGS, ids=lambda each: each.name)
def test_line_and_count_agree(happening: Happening) -> None:
    """Each happening writes one JSON line under its name, and adds one to its count."""
    out = io.StringIO()
    meters = Meters("1")
    getattr(Emit(open_log("json", "info", out), meters), happening.level)(happening.name, partition=3)
    line = json.loads(out.getvalue())
    assert (line["event"], line["level"], line["partition"]) == (happening.name, happening.level, 3)
    assert line["timestamp"].endswith("Z")
    assert meters.registry.get_sample_value("callgate_happenings_total", {"happening": happening.name}) == 1


def test_list_and_code_agree() -> None:
    """Every event name that the code logs is listed with its level, and nothing is listed that is never logged."""
    calls = re.compile(r"log\.(info|warning|error)\(\s*\"([a-z_]+)\"")
    choice = re.compile(r"event = \"([a-z_]+)\" if [^\n]* else \"([a-z_]+)\"\n\s*self\._log\.(\w+)\(event")
    package = Path(emit.__file__).parents[1]
    files = [*package.glob("adapters/*.py"), *package.glob("*.py"), *package.glob("cli/*.py")]
    texts = [file.read_text() for file in files]
    logged = {(name, level) for text in texts for level, name in calls.findall(text)}
    logged |= {(name, level) for text in texts for *names, level in choice.findall(text) for name in names}
    assert logged == {(each.name, each.level) for each in HAPPENINGS}


def test_level_filters() -> None:
    """What is below the level is not written."""
    out = io.StringIO()
    log = open_log("json", "warning", out)
    log.info("a")
    log.warning("b")
    assert [json.loads(line)["event"] for line in out.getvalue().splitlines()] == ["b"]


def test_exceptions_are_named_not_quoted() -> None:
    """The text of an exception may hold argument values: only its class is logged."""
    out = io.StringIO()
    log = open_log("json", "info", out)
    try:
        int("hunter2")
    except ValueError:
        log.exception("failed")
    assert json.loads(out.getvalue())["exception"] == "ValueError"
    assert "hunter2" not in out.getvalue()


def test_console_is_for_people() -> None:
    """The console form is no JSON, and has no colours where there is no terminal."""
    out = io.StringIO()
    open_log("console", "info", out).info("live", partition=1)
    assert "live" in out.getvalue()
    assert "\x1b" not in out.getvalue()
    assert not out.getvalue().startswith("{")


def test_auto_is_json_without_a_terminal() -> None:
    """`auto` writes JSON where nobody looks."""
    out = io.StringIO()
    open_log("auto", "info", out).info("live")
    assert json.loads(out.getvalue())["event"] == "live"


def test_library_log_passes_through() -> None:
    """What the Kafka client logs becomes a line of ours, never above a warning."""
    out = io.StringIO()
    name = "aiokafka.test"
    handler = attach_library(open_log("json", "info", out), name)
    try:
        logging.getLogger(name).error("broker %s away", "x:1")
        logging.getLogger(name).info("chatter")
    finally:
        logging.getLogger(name).removeHandler(handler)
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [(line["event"], line["level"], line["message"]) for line in lines] == [("library", "warning", "broker x:1 away")]


def test_library_log_does_not_flood() -> None:
    """During an outage a client says one thing many times a second: once in ten seconds it is written, with the count."""
    out = io.StringIO()
    handler = LibraryLog(open_log("json", "info", out))
    for second in (0.0, 0.1, 5.0, 9.9, 10.0, 10.1, 25.0):
        for server in ("a", "b"):
            heard = {"name": "aiokafka", "levelno": logging.ERROR, "msg": "%s away", "args": (server,), "created": 1e9 + second}
            handler.emit(logging.makeLogRecord(heard))
    handler.emit(logging.makeLogRecord({"name": "aiokafka", "levelno": logging.ERROR, "msg": "gone", "created": 1e9 + 25}))
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [(line["message"], line.get("repeated")) for line in lines] == [
        ("a away", None),
        ("a away", 7),
        ("a away", 3),
        ("gone", None),
    ]


def test_library_does_not_alarm_at_a_first_start() -> None:
    """What the client cures by itself until the group is joined is no warning; the same is one later, or where it lasts."""
    out = io.StringIO()
    joined = False
    handler = LibraryLog(open_log("json", "info", out), lambda: joined)
    dead, other = "Marking the coordinator dead (node %s)for group %s.", "Topic %s is not available (%s)"

    def hear(msg: str, second: float) -> tuple[str, str]:
        heard = {
            "name": "aiokafka",
            "levelno": logging.WARNING,
            "msg": msg,
            "args": ("1", "g"),
            "created": handler.began + second,
        }
        handler.emit(logging.makeLogRecord(heard))
        line = json.loads(out.getvalue().splitlines()[-1])
        return line["level"], line["message"]

    assert hear(dead, 1.0) == ("info", "Marking the coordinator dead (node 1)for group g.")
    assert hear(other, 1.1)[0] == "warning"
    joined = True
    assert hear(dead, 1.2)[0] == "warning"
    joined = False
    assert hear(dead, START_SECONDS + 1)[0] == "warning"


def test_library_debug_is_never_on() -> None:
    """At `debug` the Kafka client shows keys and values: its loggers stay at `warning`, whatever our level is."""
    out = io.StringIO()
    handler = attach_library(open_log("json", "debug", out), "aiokafka.other")
    try:
        assert not logging.getLogger("aiokafka.other.producer").isEnabledFor(logging.INFO)
    finally:
        logging.getLogger("aiokafka.other").removeHandler(handler)
