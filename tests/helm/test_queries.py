"""Alerts and dashboard ask only what callgate says: every metric, label and value of a query is one of the catalogue's.

Expressions are held by promtool, and each alert is shown series on which it must fire, and others on which it must not.
"""

import json
import re
import subprocess
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from processor.core.reasons import Reason
from processor.observe.catalogue import CATALOGUE, Kind
from processor.observe.emit import HAPPENINGS
from tests.helm.promql import names
from tests.helm.tools import CHART, ROOT, Prometheus

ALERTS = CHART / "alerts.yaml"
CASES = Path(__file__).with_name("alerts_test.yaml")
RULES = [rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]]
BOARD = json.loads((CHART / "dashboard.json").read_text())
PANELS = [panel for panel in BOARD["panels"] if panel["type"] != "row"]
QUERIES = [(panel["title"], target["expr"]) for panel in PANELS for target in panel["targets"]]
EXPRESSIONS = [(rule["alert"], rule["expr"]) for rule in RULES] + QUERIES
TARGETS = {"job", "instance", "namespace", "worker"}
"""Labels that Prometheus puts on what it scrapes, and callgate itself where it has workers."""
OF_PROMETHEUS = {"up"}
VARIABLES = {"$job": ".*", "$__rate_interval": "1m"}
"""What a dashboard's variables stand for here."""


def labels_by_metric() -> dict[str, set[str]]:
    """Labels of every series, by its name."""
    found: dict[str, set[str]] = {name: set() for name in OF_PROMETHEUS}
    for metric in CATALOGUE:
        own = set(metric.labels)
        if metric.kind is Kind.HISTOGRAM:
            found |= {f"{metric.name}_{ending}": own for ending in ("count", "sum")} | {f"{metric.name}_bucket": {*own, "le"}}
        else:
            found[metric.name] = own
    return found


KNOWN = labels_by_metric()


def plain(expression: str) -> str:
    """An expression of the dashboard with something in place of its variables."""
    for variable, value in VARIABLES.items():
        expression = expression.replace(variable, value)
    return expression


@pytest.mark.parametrize(("where", "expression"), EXPRESSIONS, ids=[f"{n}-{w}" for n, (w, _) in enumerate(EXPRESSIONS)])
def test_queries_ask_what_is_there(where: str, expression: str) -> None:
    """Every metric is declared, every label is one of its own or of its target, and reasons and the like are real ones."""
    asked = names(expression)
    assert asked.metrics, where
    assert asked.metrics <= set(KNOWN), asked.metrics - set(KNOWN)
    # In a grouping over several metrics each must have the label: they are joined on it.
    strange = {(label, metric) for label, metric in asked.labels if label not in KNOWN[metric] | TARGETS}
    assert not {(label, metric) for label, metric in strange if not any(label in KNOWN[other] for other in asked.metrics)}
    closed = {
        ("callgate_decisions_total", "decision"): {"approved", "rejected"},
        ("callgate_decisions_total", "reason"): set(map(str, Reason)),
        ("callgate_happenings_total", "happening"): {each.name for each in HAPPENINGS},
    }
    for metric, label, value in asked.values:
        if label not in TARGETS:
            assert set(value.split("|")) <= closed[metric, label]


def test_names_are_read() -> None:
    """The reader of names sees metrics, matchers, groupings and values, and takes no function or variable for one."""
    asked = names(
        'sum by (a, b) (rate(x_total{c=~"u|v", d="w"}[5m])) / on (e) group_left () y:z > bool 3 and absent(q) or vector(0)'
    )
    assert asked.metrics == {"x_total", "y:z", "q"}
    assert {("c", "x_total"), ("d", "x_total"), ("a", "y:z"), ("e", "q")} <= asked.labels
    assert ("c", "y:z") not in asked.labels
    assert asked.values == {("x_total", "c", "u|v"), ("x_total", "d", "w")}


def test_every_metric_is_shown_or_left_out_on_purpose() -> None:
    """The dashboard shows every metric but these."""
    shown = {metric for _, expression in QUERIES for metric in names(expression).metrics}
    endings = ("_bucket", "_count", "_sum")
    families = {metric.name for metric in CATALOGUE if shown & {metric.name, *(metric.name + ending for ending in endings)}}
    left_out = {metric.name for metric in CATALOGUE} - families
    # By type they say what the traffic is made of, not how callgate is; a worker that is down is replaced, which is shown.
    types = {"callgate_events_total", "callgate_items_total", "callgate_in_band_lookups_total", "callgate_tools"}
    assert left_out == types | {"callgate_worker_up"}


def test_log_panels_have_every_event() -> None:
    """The panels of errors and warnings ask for every event of their level: a new one must not go unseen."""
    asked = {value for _, expression in QUERIES for metric, label, value in names(expression).values if label == "happening"}
    levels = {level: {each.name for each in HAPPENINGS if each.level == level} for level in ("error", "warning")}
    assert [set(each.split("|")) for each in sorted(asked, key=len)] == sorted(levels.values(), key=len)


def test_every_error_has_an_alert() -> None:
    """What the log calls an error, a person must act on: an alert speaks of it, or its members are gone."""
    text = ALERTS.read_text()
    by_alert = {"failed": "CallgateMemberDown"}
    for each in HAPPENINGS:
        if each.level == "error":
            assert by_alert.get(each.name, f"`{each.name}`") in text, each.name


def test_alerts_say_what_to_do() -> None:
    """Each has a severity, what it means, what to do, and a section of the guide that is there; names are unique."""
    headings = {
        page: set(re.findall(r"^#+ (.*)$", (ROOT / page).read_text(), re.MULTILINE)) for page in ("docs/operations.md",)
    }
    assert len({rule["alert"] for rule in RULES}) == len(RULES)
    for rule in RULES:
        assert rule["labels"]["severity"] in {"critical", "warning"}
        said = rule["annotations"]
        assert set(said) == {"summary", "description", "action", "section"}
        page, _, heading = said["section"].partition(", ")
        assert heading in headings[page], heading
        assert "://" not in json.dumps(said)


def test_the_settings_and_commands_in_alerts_are_real() -> None:
    """What an alert names in backticks is a setting, a metric, an event, a reason or a command, as the guides spell it."""
    known = " ".join(path.read_text() for path in (ROOT / "docs").rglob("*.md"))
    for rule in RULES:
        for name in re.findall(r"`([^`]+)`", json.dumps(rule["annotations"])):
            assert name in known, name


def test_rules_are_rules(prometheus: Prometheus, tmp_path: Path) -> None:
    """Promtool takes the alerts, and every query of the dashboard as a rule."""
    check = [prometheus.promtool, "check", "rules", "--lint-fatal"]
    subprocess.run([*check, str(ALERTS)], check=True, capture_output=True, timeout=60)
    rules = [{"record": f"dashboard:query{n}", "expr": plain(expression)} for n, (_, expression) in enumerate(QUERIES)]
    file = tmp_path / "queries.yaml"
    file.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))
    done = subprocess.run([*check, str(file)], check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    rules[0]["expr"] += ")"
    file.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))
    assert subprocess.run([*check, str(file)], check=False, capture_output=True, timeout=60).returncode != 0


def test_alerts_fire_and_keep_silent(prometheus: Prometheus, tmp_path: Path) -> None:
    """On the series of `alerts_test.yaml` each alert does what is written there, as Prometheus itself reckons."""
    groups = yaml.safe_load(ALERTS.read_text())
    for rule in (rule for group in groups["groups"] for rule in group["rules"]):
        # Promtool compares all annotations or none: the sentences need not be written twice.
        rule["annotations"] = {"summary": rule["annotations"]["summary"]}
    (tmp_path / "alerts.yaml").write_text(json.dumps(groups))
    file = tmp_path / "cases.yaml"
    file.write_text(CASES.read_text())
    done = subprocess.run(
        [prometheus.promtool, "test", "rules", str(file)], check=False, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_is_tried_both_ways() -> None:
    """Each alert has a case in which it fires, and one in which it does not."""
    tried: list[dict[str, Any]] = [
        one for case in yaml.safe_load(CASES.read_text())["tests"] for one in case["alert_rule_test"]
    ]
    alerts = {rule["alert"] for rule in RULES}
    assert {one["alertname"] for one in tried if one["exp_alerts"]} == alerts
    assert {one["alertname"] for one in tried if not one["exp_alerts"]} == alerts


def test_the_board_is_whole() -> None:
    """Panels have ids of their own, do not overlap, ask the data source that is chosen, and say what they show or are plain."""
    ids = [panel["id"] for panel in BOARD["panels"]]
    assert len(set(ids)) == len(ids)
    assert [one["name"] for one in BOARD["templating"]["list"]] == ["datasource", "job"]
    taken: set[tuple[int, int]] = set()
    for panel in BOARD["panels"]:
        place = panel["gridPos"]
        cells = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        assert max(x for x, _ in cells) < 24
        assert not cells & taken, panel["title"]
        taken |= cells
    for panel in PANELS:
        assert {each["datasource"]["uid"] for each in (panel, *panel["targets"])} == {"${datasource}"}
        assert all('job=~"$job"' in target["expr"] for target in panel["targets"])


def test_the_rows_are_in_the_order_of_questions() -> None:
    """First whether all is decided, last what went wrong; no row is empty."""
    rows = [panel["title"] for panel in BOARD["panels"] if panel["type"] == "row"]
    assert rows == ["Are all partitions decided?", "What is decided?", "How fast?", "What is held?", "What goes wrong?"]
    kinds = [panel["type"] for panel in BOARD["panels"]]
    assert not [pair for pair in pairwise(kinds) if pair == ("row", "row")]
