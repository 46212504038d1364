"""Hot reload under load: each decision agrees with the toolset that it names, whatever happens to the folder."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from processor.adapters import schema_files
from processor.core.toolsets import Compiler
from tests.conftest import MakeTopic
from tests.e2e.rig import Member, Rig, Writer, wait_until
from tests.e2e.workload import Workload

CALLS, CHANGES, PARTITIONS = 10_000, 100, 4
CLASSES = 7
"""A call carries a number; each toolset takes the numbers of one residue class, and of its neighbour."""
BROKEN = ("{", '[{"type": "function"}]', '{"type": "function", "name": "step", "parameters": {"pattern": "(?=%d)"}}')
"""Files that cannot be used: no JSON, no tool, a pattern for a backtracking engine."""


def takes(generation: int) -> list[int]:
    """Numbers that the toolset of a generation takes."""
    return [number for number in range(CLASSES) if (number - generation) % CLASSES in {0, 1}]


def declaration(generation: int) -> str:
    """The tool file of a generation, which no other generation has."""
    number = {"enum": takes(generation), "title": f"generation {generation}"}
    parameters = {"type": "object", "properties": {"number": number}, "required": ["number"], "additionalProperties": False}
    return json.dumps({"type": "function", "name": "step", "parameters": parameters})


def calls() -> Workload:
    """Whole responses of one call each."""
    work = Workload()
    for place in range(CALLS):
        arguments = json.dumps({"number": place % CLASSES})
        item = {"type": "function_call", "id": "fc", "call_id": f"call-{place}", "name": "step", "arguments": arguments}
        response = {"object": "response", "id": f"resp-{place}", "status": "completed", "model": "some-model"}
        value = {**response, "output": [{**item, "status": "completed"}]}
        work.records.append((place % PARTITIONS, f"stream-{place}".encode(), json.dumps(value).encode(), place))
    return work


def put(folder: Path, text: str) -> None:
    """Put a tool file in the other's place, at once."""
    aside = folder / ".aside"
    aside.write_text(text)
    aside.rename(folder / "tools.json")


def loaded(member: Member, sha256: str) -> bool:
    """Whether the member says that this toolset is in force."""
    return f'"toolset": "{sha256}"' in member.log()


def schemas_of(member: Member) -> tuple[int, dict[str, Any]]:
    """Status of `/readyz`, and what it says of the schemas."""
    status, body = member.get("/readyz")
    return status, json.loads(body)["schemas"]


@pytest.mark.slow
def test_each_decision_agrees_with_the_toolset_that_it_names(bootstrap: str, make_topic: MakeTopic, tmp_path: Path) -> None:
    """Issue 5: 10,000 calls, 100 changes, a third of them broken; every one is noticed, none is judged by two toolsets."""
    with Rig(bootstrap, make_topic, tmp_path, PARTITIONS, reload_interval="20ms").running() as rig:
        folder = tmp_path / "tools"
        generations: dict[str, int] = {}
        put(folder, declaration(0))
        generations[schema_files.load(folder, Compiler()).sha256] = 0
        member = rig.start()
        wait_until(lambda: member.get("/readyz")[0] == 200, "it never became ready", rig.explain)
        writer = Writer(rig, calls(), per_second=2_000)
        writer.allow(0)
        writer.start()
        refused = 0
        for generation in range(1, CHANGES + 1):
            writer.allow(generation / CHANGES)
            if generation % 3 == 2:
                text = BROKEN[generation // 3 % len(BROKEN)]
                put(folder, text.replace("%d", str(generation)) + " " * generation)
                (folder / f"b{generation}.json").write_text("[")
                refused += 1
                wait_until(lambda: member.log().count('"toolset_refused"') >= refused, "it was not refused", rig.explain)  # noqa: B023
                (folder / f"b{generation}.json").unlink()
                continue
            put(folder, declaration(generation))
            sha256 = schema_files.load(folder, Compiler()).sha256
            generations[sha256] = generation
            if generation % 10 == 0:
                member.process.send_signal(signal.SIGHUP)
            wait_until(lambda: loaded(member, sha256), "it was not loaded", rig.explain)  # noqa: B023
        writer.join()
        rig.settle()
        put(folder, BROKEN[0])
        wait_until(lambda: bool(schemas_of(member)[1]["refused"]), "it is not in the detail", rig.explain)
        status, schemas = schemas_of(member)
        assert (status, schemas["toolset"]) == (200, list(generations)[-1])
        assert schemas["refused"][0]["file"] == "tools.json"
        assert "callgate_toolset_stale 1.0" in member.get("/metrics")[1]
        assert member.stop() == 0
        decisions = rig.decisions()
    assert len({each["id"] for each in decisions}) == len(decisions) == CALLS
    named = set()
    for decision in decisions:
        generation = generations[decision["toolset"]]
        named.add(generation)
        number = int(decision["call_id"].removeprefix("call-")) % CLASSES
        assert decision["reason"] == ("ok" if number in takes(generation) else "arguments_schema"), decision
    assert len(named) > CHANGES // 4, "hardly any change came between two calls"
