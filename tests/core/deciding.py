"""Runs a log through one partition with the real gate, and says what was decided.

Owns nothing of the rules: settings and records in, published decisions out.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from processor.app import Core
from processor.core.decide import Outgoing, Route
from processor.core.pipeline import Partition
from processor.core.registry import ToolFile, build
from processor.core.toolsets import Compiler
from processor.settings import Settings
from tests import factories as make
from tests.factories import Json, Record

ALERTS = make.tool("list_alerts", {})
PAY = make.tool("pay_invoice", {"invoice": {"type": "string"}}, ["invoice"])
TOOLSET = build([ToolFile("tools.json", None, [make.WEATHER, ALERTS, PAY])], Compiler("jsonschema-rs"))
"""The registry: `get_weather` (city), `list_alerts` (nothing), `pay_invoice` (invoice)."""

LEEDS, YORK = '{"city":"Leeds"}', '{"city":"York"}'


def weather(call_id: str | None = "c1", arguments: Any = LEEDS, **more: Any) -> Json:
    """A good call of `get_weather`, with changes."""
    return make.function_call(call_id, "get_weather", arguments) | more


def partition(**settings: Any) -> Partition:
    """A partition that has read nothing."""
    made = Core(Settings(**settings), TOOLSET).partition("responses.events", 0)
    made.resume(None, 0)
    return made


def published(outgoing: Iterable[Outgoing]) -> list[Json]:
    """Decisions as they are published; a dead letter is its cause alone."""
    return [
        {"decision": "dead_letter", "reason": out.reason, "call_id": None}
        if out.route is Route.DEAD_LETTER
        else json.loads(out.value or b"")
        for out in outgoing
    ]


def decide(values: Iterable[Any], *, silence: bool = False, **settings: Any) -> list[Json]:
    """Everything that is published for these records, in order.

    A value that is no Record becomes the next one under the usual key. `silence`: nothing else ever comes.
    """
    log = [value if isinstance(value, Record) else make.record(place, value) for place, value in enumerate(values)]
    at_work = partition(**settings)
    at_work.feed(log, now_ms=0)
    if silence:
        at_work.end_of_archive(0)
    return published(at_work.take())


def reasons(values: Sequence[Any], *, silence: bool = False, **settings: Any) -> list[tuple[str | None, str]]:
    """The call_id and the reason of everything that is published, in order."""
    return [(line["call_id"], line["reason"]) for line in decide(values, silence=silence, **settings)]
