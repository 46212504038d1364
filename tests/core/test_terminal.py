"""The end of a response: what is looked up is what comparing one by one finds."""

import json
import random
from typing import Any

import pytest

from processor import app
from processor.core import terminal
from processor.core.toolsets import EMPTY
from processor.settings import Settings
from tests.core.test_redrive import Plain

VALUES: list[Any] = [None, "", "x", "y", 1, 1.0, True, [1], [True], {"a": 1}, {"a": 1.0}, {"a": [1, {"b": 2}]}]


def item(chance: random.Random) -> dict[str, Any]:
    """An item that may say anything, mostly of one call_id."""
    said = {
        "type": chance.choice(["function_call", "shell_call", "shell_call", *VALUES[:4]]),
        "call_id": chance.choice(["a", "a", "a", "b", "", None, 3]),
        "namespace": chance.choice([None, None, *VALUES]),
        "name": chance.choice([None, "x", "x", *VALUES]),
        "arguments": chance.choice([None, "x", "{}", *VALUES]),
        "status": "completed",
    }
    return {name: value for name, value in said.items() if chance.random() < 0.9}


def log(seed: int) -> list[Plain]:
    """Some items that are announced or finished, and a list of as many that may be theirs."""
    chance = random.Random(seed)
    events: list[dict[str, Any]] = [{"type": "response.created", "response": {"id": "r"}}]
    for place in range(chance.randint(1, 8)):
        kind = chance.choice(["added", "done", "done"])
        events.append({"type": f"response.output_item.{kind}", "output_index": place % 5, "item": item(chance)})
    how = chance.choice(["completed", "completed", "incomplete"])
    output = [item(chance) for _ in range(chance.randint(1, 8))]
    events.append({"type": f"response.{how}", "response": {"id": "r", "status": how, "output": output}})
    return [Plain(offset, 1, b"k", json.dumps(event).encode()) for offset, event in enumerate(events)]


def decisions(records: list[Plain], settings: Settings) -> list[bytes | None]:
    """What is published."""
    partition = app.Core(settings, EMPTY).partition("t", 0)
    partition.resume(None, 0)
    partition.feed(records, 1)
    return [out.value for out in partition.take()]


@pytest.mark.parametrize("tolerate", [(), ("arguments_object", "call_id_renamed")])
def test_entries_are_found_as_if_each_were_compared(tolerate: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule 4: which entry is whose does not depend on how many there are."""
    settings = Settings(tolerate=tolerate, arguments="include")
    logs = [log(seed) for seed in range(1500)]
    monkeypatch.setattr(terminal, "FEW_ENTRIES", 1000)
    compared = [decisions(records, settings) for records in logs]
    monkeypatch.setattr(terminal, "FEW_ENTRIES", 0)
    assert [decisions(records, settings) for records in logs] == compared
    assert sum(map(len, compared)) > len(logs)
