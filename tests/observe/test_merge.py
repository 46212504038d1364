"""Pages of several workers made one: every sample is there once, under its worker."""

from prometheus_client.parser import text_string_to_metric_families

from processor.observe.merge import merge
from processor.observe.meters import Meters


def samples(page: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """Every sample of a page, as Prometheus' own parser reads it."""
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
    }


def page_of(partition: int, rebuilt: float) -> str:
    """The page of a worker with one partition, whose topic has a name that is hard to read."""
    meters = Meters("1")
    meters.rebuilt(rebuilt)
    meters.partition('a{b} "c\\', partition).lag(to_position=partition, to_commit=None, held=None, state="live")
    return meters.exposition().decode()


def test_every_sample_is_there_once() -> None:
    """What a worker shows is what the one page shows of it, with the label `worker` besides."""
    pages = {"0": page_of(3, 0.5), "1": page_of(4, 7.0)}
    merged = merge(pages)
    expected = {
        (name, labels | {("worker", worker)}): value
        for worker, page in pages.items()
        for (name, labels), value in samples(page).items()
    }
    assert samples(merged) == expected


def test_a_family_has_one_head() -> None:
    """Prometheus refuses a page on which a family comes twice."""
    merged = merge({"0": page_of(3, 0.5), "1": page_of(4, 7.0)})
    heads = [line.split(" ")[2] for line in merged.splitlines() if line.startswith("# HELP")]
    assert len(heads) == len(set(heads))
    assert merge({}) == ""
