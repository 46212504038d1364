"""The quick way through the common life of a call is the long way: the same decisions and the same state."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from processor.core import plain
from processor.core.decide import Outgoing
from processor.core.limits import Bounds
from processor.core.pipeline import Partition
from tests.core.test_rebuild import Recorder
from tests.factories import Record
from tests.oracle.compare import bounds_of
from tests.oracle.generate import case

WAYS = ("announced", "given", "finished", "listed")


@contextmanager
def long_way(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let every quick answer be no."""
    with monkeypatch.context() as patch:
        for name in WAYS:
            patch.setattr(plain, name, lambda *_: False)
        yield


def run(log: list[Record], bounds: Bounds) -> tuple[list[Outgoing], list[dict[str, int]], Any]:
    """Decisions, gauges after each record, and the counts of a whole log."""
    partition = Partition("events", 0, bounds, Recorder())
    partition.resume(None, 0)
    gauges = []
    for record in log:
        partition.feed([record], 0)
        gauges.append(partition.counts())
    partition.end_of_archive(0)
    return partition.take(), gauges, partition.tally


@pytest.mark.parametrize("block", range(8))
def test_quick_and_long_way_are_one(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever `plain` answers, `assemble` and `terminal` would have done the same."""
    taken = dict.fromkeys(WAYS, 0)

    def counting(name: str) -> Callable[..., bool]:
        way = getattr(plain, name)

        def count(*given: Any) -> bool:
            answer: bool = way(*given)
            taken[name] += answer
            return answer

        return count

    for name in WAYS:
        monkeypatch.setattr(plain, name, counting(name))
    for seed in range(30_000 + block, 30_400, 8):
        drawn = case(seed)
        log = [Record(n, r.timestamp, r.key, r.value, tuple(r.headers)) for n, r in enumerate(drawn.log)]
        quick = run(log, bounds_of(drawn))
        with long_way(monkeypatch):
            long = run(log, bounds_of(drawn))
        assert quick == long, f"seed {seed}"
    assert all(taken.values()), f"a way was never taken: {taken}"
