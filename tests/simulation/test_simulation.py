"""Many seeds: members on an in-memory broker, with everything that can happen to them. Nothing is lost, nothing comes twice."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from tests.simulation.mutations import MUTATIONS, Mutation

SEED = os.environ.get("CALLGATE_TEST_SIMULATION_SEED")
"""Only this seed."""
SEEDS = os.environ.get("CALLGATE_TEST_SIMULATION_N", "2000")


def simulate(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the simulation in a process of its own: what a seed means depends on how Python hashes names."""
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    command = [sys.executable, "-m", "tests.simulation", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_no_seed_loses_or_repeats_anything() -> None:
    """Section 7: whatever happens, every call is decided exactly once, as in a run that nothing disturbs."""
    asked = ("--seed", SEED) if SEED else ("--seeds", SEEDS)
    done = simulate(*asked)
    sys.stdout.write(done.stdout)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


def test_a_seed_is_the_same_each_time() -> None:
    """A seed that fails can be brought back: two processes say the same, step by step."""
    said = [simulate("--seed", "7").stdout for _ in range(2)]
    assert said[0] == said[1]
    assert said[0].count("\n") > 20


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    """Give what was found of each variant."""
    done = simulate("--mutations")
    assert done.returncode == 0, done.stderr[-2000:]
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(SEED is not None, reason="one seed is asked for")
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.letter)
def test_a_known_bad_variant_is_found(found: dict[str, Any], mutation: Mutation) -> None:
    """The model's known-bad variants of the protocol, put into the real code: published decisions alone give each away."""
    assert (found[mutation.letter]["found"] is None) == mutation.safe, found[mutation.letter]
