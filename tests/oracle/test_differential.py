"""The core against a second reading of the same rules, on seeded logs with faults of every kind.

`CALLGATE_TEST_ORACLE_N` sets the number of seeds, `CALLGATE_TEST_ORACLE_SEED` reproduces one.
"""

import os

from tests.oracle.compare import NaiveJudge, bounds_of, core_decisions, differs, oracle_decisions, shrink, words
from tests.oracle.generate import case

SEEDS = int(os.environ.get("CALLGATE_TEST_ORACLE_N", "2000"))
ONE = os.environ.get("CALLGATE_TEST_ORACLE_SEED")
SHOWN = 3


def test_core_and_oracle_decide_alike() -> None:
    """Sections 4 and 5 and all rules: the same decisions at the same records, in the same order."""
    seeds = [int(ONE)] if ONE else range(SEEDS)
    different = [seed for seed in seeds if differs(case(seed))]
    shown = "\n\n".join(words(shrink(case(seed))) for seed in different[:SHOWN])
    again = f"CALLGATE_TEST_ORACLE_SEED={different[0] if different else ''} python -m pytest tests/oracle/test_differential.py"
    assert not different, f"{len(different)} of {len(seeds)} logs differ: {different[:20]}\n{again}\n\n{shown}"


def test_logs_reach_every_reason() -> None:
    """The generator is worth its name: every reason, approvals and dead letters come up in what it draws."""
    seen = {decision.reason for seed in range(400) for decision in oracle_decisions(case(seed))}
    assert seen >= {
        "namespaced", "not_function_call", "status", "timeout", "identity", "conflict", "not_allowed", "unknown_tool",
        "limit", "arguments_parse", "arguments_schema", "arguments_type", "ok", "dead_letter",
    }  # fmt: skip


def test_same_seed_same_log() -> None:
    """A seed reproduces its log and what the core decides on it."""
    one, other = case(7), case(7)
    assert one == other
    judge = NaiveJudge(one.toolset, bounds_of(one))
    assert core_decisions(one, judge) == core_decisions(other, judge)
