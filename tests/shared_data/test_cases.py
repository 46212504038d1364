"""The black-box cases beside the repository, as a whole: the count of right answers is printed."""

from typing import Any

import pytest

from tests.factories import START_MS, Record, tool
from tests.shared_data.reader import SHARED, Answer, answer, lines

CASES = SHARED / "cases" / "cases.jsonl"
pytestmark = pytest.mark.skipif(not CASES.is_file(), reason="the cases are not here")

WEATHER = tool("get_weather", {"city": {"type": "string", "minLength": 1}}, ["city"])
DIFFERENT: dict[tuple[int, str], str] = {}
"""(case, release) to why callgate answers otherwise, where we are sure; the case is argued in the closing note."""


def answered(case: dict[str, Any], release: str) -> Answer:
    """What the core says to a case."""
    log = [
        Record(i, r.get("ts", START_MS + i), None if r.get("key") is None else r["key"].encode(), _bytes(r["payload"]))
        for i, r in enumerate(case["records"])
    ]
    config = case["config"]
    return answer(
        log,
        release=release,
        tools=config.get("tools", "stream"),
        registry=[(None, WEATHER)] if config.get("tools") == "registry" else [],
        max_argument_bytes=config.get("max_argument_bytes", 1 << 20),
    )


def _bytes(payload: str) -> bytes:
    return payload.encode("utf-8", "surrogatepass")


def test_every_case_is_answered_right(capsys: pytest.CaptureFixture[str]) -> None:
    """Every case gives the decisions, in order, and the dead letters that it expects, under both release rules."""
    wrong: list[str] = []
    cases = lines(CASES)
    for case in cases:
        for release in ("response", "item"):
            got = answered(case, release)
            wanted = [(d["call_id"], d["reason"]) for d in case["expect"][release]]
            right = (got.decisions, got.dead_letters) == (wanted, case["dead_letters"])
            if not right and (case["id"], release) not in DIFFERENT:
                wrong.append(f"{case['id']} {case['kind']} ({release}): {got}, not {wanted}")
    with capsys.disabled():
        print(f"\ncases: {2 * len(cases) - len(wrong)} of {2 * len(cases)} right")  # noqa: T201 - the count is the point
    assert not wrong, "\n".join(wrong)
