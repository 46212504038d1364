"""Cleanup that is run to its end, whoever cancels meanwhile."""

import asyncio

import pytest

from processor.adapters.tenure import finish
from processor.errors import Fenced


@pytest.mark.parametrize("fails", [False, True])
def test_a_cancellation_is_raised_after_the_work_however_it_ends(*, fails: bool) -> None:
    """Seed 110 of the simulation: a member whose right was taken away did not end, as another partition's last commit failed.

    The failure was raised in place of the cancellation, and that partition's task went on by itself.
    """
    ended = []

    async def work() -> None:
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        ended.append(True)
        if fails:
            raise Fenced("late")

    async def cancelled() -> None:
        task = asyncio.create_task(finish(work()))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert ended == [True]

    asyncio.run(cancelled())


def test_without_a_cancellation_the_work_speaks_for_itself() -> None:
    """What the work returns or raises is handed on."""

    async def work(fault: Exception | None) -> int:
        if fault is not None:
            raise fault
        return 7

    assert asyncio.run(finish(work(None))) == 7
    with pytest.raises(Fenced, match="late"):
        asyncio.run(finish(work(Fenced("late"))))
