"""Runs seeds one after the other: the same seed gives the same run, in any process.

Owns what all seeds of a process share: the toolset, virtual time, and quiet.
"""

import contextlib
import logging
import sys
import warnings
from collections.abc import Callable, Iterator

import pytest

from processor.adapters import runner, tenure
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
    kept, sys.unraisablehook = sys.unraisablehook, lambda _: None
    try:
        with virtual_time(), pytest.MonkeyPatch.context() as patch:
            # Bounds as small as the input, so that they are met.
            patch.setattr(tenure, "CHUNK", 5)
            patch.setattr(tenure, "PENDING_RECORDS", 6)
            patch.setattr(runner, "FETCH_TIMEOUT_MS", 400)
            yield Core(SETTINGS, toolset())
    finally:
        sys.unraisablehook = kept
        logging.disable(logging.NOTSET)


def toolset() -> FixedToolset:
    """The tools of the workload."""
    files = [ToolFile("tools.json", None, TOOLS)]
    return build(files, compiler(SETTINGS))


def run(seed: int, core: Core, say: Callable[[str], None] | None = None) -> World:
    """Run one seed. Raises Violation."""
    world = World(seed, core, say)
    world.run()
    return world


def mutated(mutation: Mutation, seed: int, core: Core) -> World:
    """Run one seed with a mistake in the code; only what is published counts. Raises Violation."""
    world = World(seed, core)
    world.only_truth = True
    with pytest.MonkeyPatch.context() as patch:
        mutation.mutate(patch, world)
        world.run()
    return world
