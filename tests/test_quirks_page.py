"""Every quirk on `docs/quirks.md` has a fixture, and is decided as the page says."""

import json

import pytest

from processor.adapters.inspect import inspect
from processor.core.limits import TOLERANCES
from tests.quirks import FIXTURES, NOW_MS, PAGE, Quirk, core_for, decide, drawn, listing

QUIRKS = listing()
TOLERABLE = [quirk for quirk in QUIRKS if quirk.tolerance]
NEVER = [quirk for quirk in QUIRKS if quirk.never]

every = pytest.mark.parametrize("quirk", QUIRKS, ids=lambda quirk: quirk.name)


def test_page_is_fresh() -> None:
    """The tables of the page are those that the listing gives: `make docs` draws them again."""
    page = PAGE.read_text(encoding="utf-8")
    assert page == drawn(page)


def test_listing_and_fixtures_fit() -> None:
    """Each quirk has one fixture of its own, no fixture is left over, and each tolerance has an example (rule 34)."""
    assert sorted(path.name for path in FIXTURES.glob("*.jsonl")) == sorted(quirk.fixture.name for quirk in QUIRKS)
    assert {quirk.tolerance for quirk in TOLERABLE} == set(TOLERANCES)
    assert not any(quirk.tolerance for quirk in NEVER)


@every
def test_decided_by_default(quirk: Quirk) -> None:
    """A quirk is decided as the page says, and no tolerance is used by default."""
    decided = decide(quirk)
    assert decided.pairs == quirk.expect
    assert decided.dead_letters == quirk.dead_letters
    assert decided.tolerated == {}


@every
def test_decided_at_item(quirk: Quirk) -> None:
    """The same under `release = "item"`."""
    decided = decide(quirk, release="item")
    assert decided.pairs == quirk.item
    assert decided.dead_letters == quirk.dead_letters


@pytest.mark.parametrize("quirk", TOLERABLE, ids=lambda quirk: quirk.name)
def test_let_through_by_its_tolerance(quirk: Quirk) -> None:
    """Rule 34: with its tolerance, and with no other, it is approved; the decision names it, and it is counted."""
    decided = decide(quirk, tolerate=[quirk.tolerance])
    assert decided.pairs == quirk.tolerated
    assert [each["decision"] for each in decided.decisions] == ["approved"] * len(quirk.tolerated)
    assert all(each["tolerated"] == [quirk.tolerance] for each in decided.decisions)
    assert decided.tolerated == {quirk.tolerance: len(quirk.tolerated)}
    others = decide(quirk, tolerate=[name for name in TOLERANCES if name != quirk.tolerance])
    assert "approved" not in {each["decision"] for each in others.decisions}


@pytest.mark.parametrize("quirk", TOLERABLE, ids=lambda quirk: quirk.name)
def test_text_that_was_checked(quirk: Quirk) -> None:
    """Rule 34: where a tolerance makes the text that is checked, the decision has that text and says `normalised`."""
    (decision,) = decide(quirk, tolerate=[quirk.tolerance]).decisions
    normalises = quirk.tolerance in {"empty_arguments", "arguments_object"}
    assert decision.get("normalised", False) is normalises
    assert json.loads(decision["arguments"]) == ({} if quirk.tolerance == "empty_arguments" else {"city": "Leeds"})


@pytest.mark.parametrize("quirk", NEVER, ids=lambda quirk: quirk.name)
def test_never_tolerated(quirk: Quirk) -> None:
    """What is never tolerated is decided the same with every tolerance there is, alone and all together."""
    for tolerate in (*((name,) for name in TOLERANCES), TOLERANCES):
        decided = decide(quirk, tolerate=tolerate)
        assert (decided.pairs, decided.dead_letters) == (quirk.expect, quirk.dead_letters)


@every
def test_check_names_the_tolerance(quirk: Quirk) -> None:
    """`callgate check` names the tolerance that would have let a call through, and none where none would."""
    core = core_for(quirk)
    content = quirk.fixture.read_bytes()
    verdicts = inspect(content, lambda more: core.tolerating(more).partition("check", 0), TOLERANCES, NOW_MS)
    named = {verdict.tolerance for verdict in verdicts if verdict.tolerance}
    assert named == ({quirk.tolerance} if quirk.tolerance else set())
