"""What a PromQL expression names: metrics, and labels in matchers and groupings. Read by words, which is enough for names.

Whether an expression is PromQL at all is for promtool to say. It must never be lenient: a name it cannot place is a metric.
"""

import re
from dataclasses import dataclass

TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|\'[^\']*\'|\[[^\]]*\]|\$\w+|[A-Za-z_:][\w:]*|[{}()=!~<>,+*/%-]|\d[\w.]*|\S')
KEYWORDS = {
    "by",
    "without",
    "on",
    "ignoring",
    "group_left",
    "group_right",
    "and",
    "or",
    "unless",
    "bool",
    "offset",
    "inf",
    "nan",
}
GROUPINGS = {"by", "without", "on", "ignoring", "group_left", "group_right"}


@dataclass(frozen=True)
class Names:
    """What an expression names."""

    metrics: frozenset[str]
    labels: frozenset[tuple[str, str]]
    """Label and the metric that it is asked of; every metric of the expression for a grouping."""
    values: frozenset[tuple[str, str, str]]
    """Metric, label and the text it is compared with."""


def names(expression: str) -> Names:
    """Read one expression; variables of a dashboard may stand in it."""
    tokens = TOKEN.findall(re.sub(r"#[^\n]*", "", expression))
    metrics: list[str] = []
    matched: set[tuple[str, str]] = set()
    values: set[tuple[str, str, str]] = set()
    grouped: set[str] = set()
    inside = ""
    for number, token in enumerate(tokens):
        following = tokens[number + 1] if number + 1 < len(tokens) else ""
        if token in ")}":
            inside = ""
        elif token == "{":
            inside = "{"
        elif token == "(" and number and tokens[number - 1] in GROUPINGS:
            inside = "("
        elif not re.match(r"[A-Za-z_:]", token):
            continue
        elif inside == "{":
            matched.add((token, metrics[-1]))
            text = next(each for each in tokens[number + 1 :] if each[0] in "\"'")
            values.add((metrics[-1], token, text[1:-1]))
        elif inside == "(":
            grouped.add(token)
        elif token not in KEYWORDS and following != "(" and following not in GROUPINGS:
            metrics.append(token)
    everything = matched | {(label, metric) for label in grouped for metric in metrics}
    return Names(frozenset(metrics), frozenset(everything), frozenset(values))
