"""Structured logs on standard error: one event name a line, JSON for machines or columns for people.

Owns the set-up of structlog. Levels say what an operator must do: `error` means that a person must act, `warning` that one
should look, `info` what happened. A rejected call is data and no log line. Argument values never get here.
"""

import logging
import sys
import time
from collections.abc import Callable, MutableMapping
from typing import Any, TextIO, cast

import structlog
from structlog.typing import FilteringBoundLogger

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}

QUIET_SECONDS = 10.0
"""Pause between two lines of a library from the same place in its code."""
KINDS = 256
"""Places that are remembered."""
EXPECTED = ("Marking the coordinator dead", "Group Coordinator Request failed")
"""What the Kafka client warns of at a first start, and cures within a second: the broker is making the groups' own topic."""
START_SECONDS = 30.0
"""How long it may take; what is said later, or after the group was joined, is a warning."""


def open_log(form: str = "auto", level: str = "info", stream: TextIO | None = None) -> FilteringBoundLogger:
    """Make a log on `stream` (standard error where none is given); nothing global is touched."""
    target = sys.stderr if stream is None else stream
    people = form == "console" or (form == "auto" and target.isatty())
    renderer = (
        structlog.dev.ConsoleRenderer(colors=target.isatty()) if people else structlog.processors.JSONRenderer(default=str)
    )
    log = structlog.wrap_logger(
        structlog.WriteLogger(target),  # a line in one piece, also where workers share the pipe and nothing is buffered
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            _no_traceback,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS[level]),
        context_class=dict,
    )
    return cast("FilteringBoundLogger", log)


def _no_traceback(_logger: Any, _method: str, line: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Name an exception's class only: its text may quote what was read."""
    caught = line.pop("exc_info", None)
    if isinstance(caught, BaseException):
        line["exception"] = type(caught).__name__
    elif caught:
        line["exception"] = getattr(sys.exc_info()[0], "__name__", "unknown")
    return line


class LibraryLog(logging.Handler):
    """Passes what a library logs (aiokafka, asyncio) on as lines of ours: its logger's name and its message."""

    def __init__(self, log: FilteringBoundLogger, joined: Callable[[], bool] | None = None) -> None:
        """`joined` says whether the group was ever joined; without it nothing is taken for part of a start."""
        super().__init__(logging.WARNING)
        self._log = log
        self._joined = joined
        self.began = time.time()
        """When it was made, in seconds since the epoch."""
        self._said: dict[tuple[str, str, int], tuple[float, int]] = {}
        """When each place of the library was last heard, in seconds, and how often it was not since."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line; a library's `error` is our `warning`: it tries again, and nobody must act yet.

        The first line of the message only: what follows may show objects, and with them what was read. While a broker is away
        a client says the same thing many times a second: one line of a kind in `QUIET_SECONDS`, with the count of the others.
        """
        level = logging.INFO if self._expected(record) else min(record.levelno, logging.WARNING)
        place = record.name, str(record.msg), level
        last, unsaid = self._said.get(place, (-QUIET_SECONDS, 0))
        if record.created - last < QUIET_SECONDS:
            self._said[place] = last, unsaid + 1
            return
        if len(self._said) >= KINDS:
            self._said.clear()
        self._said[place] = record.created, 0
        message = record.getMessage().partition("\n")[0]
        more = {"repeated": unsaid} if unsaid else {}
        self._log.log(level, "library", logger=record.name, message=message, **more)

    def _expected(self, record: logging.LogRecord) -> bool:
        """Whether it belongs to a start, and alarms people for nothing."""
        starting = self._joined is not None and record.created - self.began < START_SECONDS and not self._joined()
        return starting and str(record.msg).startswith(EXPECTED)


def attach_library(log: FilteringBoundLogger, name: str, joined: Callable[[], bool] | None = None) -> LibraryLog:
    """Send the library's log through ours; `logging.getLogger(name).removeHandler` takes it back.

    Never below `warning`, whatever our own level is: aiokafka's `debug` shows keys and values.
    """
    handler = LibraryLog(log, joined)
    library = logging.getLogger(name)
    library.setLevel(logging.WARNING)
    library.addHandler(handler)
    library.propagate = False
    return handler
