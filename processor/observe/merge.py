"""Pages of metrics of several processes made one: each sample gets the label `worker`.

Owns the text format between two processes of ours. It knows no metric by name and holds no values.
"""

from collections.abc import Mapping


def merge(pages: Mapping[str, str]) -> str:
    """One page out of those of the workers, by their names; families come in the order of their first appearance.

    What is about a family (its help and kind) is taken from the first page that has it.
    """
    heads: dict[str, list[str]] = {}
    samples: dict[str, list[str]] = {}
    for worker, page in pages.items():
        family, known = "", False
        for line in page.splitlines():
            if line.startswith("# "):
                _, kind, name = line.split(" ", 3)[:3]
                if kind == "HELP":
                    family, known = name, name in heads
                if not known:
                    heads.setdefault(family, []).append(line)
            elif line:
                samples.setdefault(family, []).append(_labelled(line, worker))
    return "".join(f"{line}\n" for family, head in heads.items() for line in (*head, *samples.get(family, ())))


def _labelled(sample: str, worker: str) -> str:
    """A sample with one more label, first of all."""
    end = next(place for place, character in enumerate(sample) if character in "{ ")
    name, rest = sample[:end], sample[end:]
    label = f'worker="{worker}"'
    if rest.startswith("{}"):
        return f"{name}{{{label}}}{rest[2:]}"
    return f"{name}{{{label},{rest[1:]}" if rest.startswith("{") else f"{name}{{{label}}}{rest}"
