"""Runs seeds one after the other: the same seed gives the same run, in any process.

Owns what all seeds of a process share: the toolset, virtual time, and quiet.
"""

import contextlib
import gc
import logging
import sys
import warnings
from collections.abc import Iterator

import pytest

from processor.adapters import hand, runner, tenure
from processor.app import Core, compiler
from processor.core.registry import ToolFile, build
from processor.core.toolsets import FixedToolset
from tests.e2e.workload import TOOLS
from tests.simulation.clock import virtual_time
from tests.simulation.mutations import Mutation
from tests.simulation.world import SETTINGS, World


@contextlib.contextmanager
def prepared() -> Iterator[Core]:
    """Make what the seeds share."""
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    # Searching for garbage takes time, and would run what is left of one seed in the middle of another.
    gc.collect()
    gc.freeze()
    gc.disable()
    kept, sys.unraisablehook = sys.unraisablehook, lambda _: None
    try:
        with virtual_time(), pytest.MonkeyPatch.context() as patch:
            # Bounds as small as the input, so that they are met.
            patch.setattr(tenure, "CHUNK", 5)
            patch.setattr(hand, "LEAST_SHARE", 8_000)
            patch.setattr(tenure, "PENDING_RECORDS", 6)
            patch.setattr(runner, "FETCH_TIMEOUT_MS", 400)
            yield Core(SETTINGS, toolset())
    finally:
        gc.enable()
        gc.unfreeze()
        gc.collect()
        sys.unraisablehook = kept
        logging.disable(logging.NOTSET)


def toolset() -> FixedToolset:
    """The tools of the workload."""
    files = [ToolFile("tools.json", None, TOOLS)]
    return build(files, compiler(SETTINGS))


def describe(seed: int) -> str:
    """Say how to bring a seed back."""
    return f"CALLGATE_TEST_SIMULATION_SEED={seed} python -m pytest tests/simulation"


def mutated(mutation: Mutation, seed: int, core: Core) -> World:
    """Run one seed with a mistake in the code; only what is published counts. Raises Violation."""
    world = World(seed, core, deeds=mutation.deeds, busy=mutation.busy)
    world.only_truth = True
    with pytest.MonkeyPatch.context() as patch:
        mutation.mutate(patch, world)
        world.run()
    return world


def search(mutation: Mutation, core: Core) -> dict[str, object]:
    """Look for a mistake: first with the seed that is known to show it, then with others."""
    tried = 0
    for seed in mutation.seeds:
        tried += 1
        try:
            mutated(mutation, seed, core)
        except Exception as fault:  # noqa: BLE001 - a mistake may show in any way
            return {"tried": tried, "seed": seed, "found": f"{type(fault).__name__}: {fault}"[:300]}
    return {"tried": tried, "seed": None, "found": None}
