"""Dashboard and alerts before real data: a real Prometheus scrapes callgate at work, and every query of each panel is asked."""

import http.client
import json
import math
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import yaml

from processor.broker.listeners import free_ports
from tests.conftest import MakeTopic
from tests.e2e.rig import Member, Rig, Writer, wait_until
from tests.e2e.workload import make
from tests.helm.test_queries import ALERTS, QUERIES, plain
from tests.helm.tools import Prometheus

EMPTY = {"Tolerated, a second"}
"""Panels that have nothing to show in this run."""
UNSURE = {"Partition failures, by kind"}
"""Panels that may have something, depending on what a worker did at the moment of its death."""


class Server:
    """A running Prometheus."""

    def __init__(self, port: int) -> None:
        self._port = port

    def ask(self, path: str, **parameters: str) -> dict[str, Any]:
        """The data of an answer of its API; none where it does not answer yet."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=30)
        try:
            connection.request("GET", f"/api/v1/{path}?{urlencode(parameters)}")
            answer = json.loads(connection.getresponse().read())
        except (OSError, ValueError):
            return {}
        finally:
            connection.close()
        assert answer["status"] == "success", answer
        data: dict[str, Any] = answer["data"]
        return data

    def values(self, expression: str) -> list[float]:
        """What an expression comes to now, without what is not a number."""
        found = [float(one["value"][1]) for one in self.ask("query", query=expression).get("result", [])]
        return [value for value in found if math.isfinite(value)]


@contextmanager
def scraping(prometheus: Prometheus, target: int, folder: Path) -> Iterator[Server]:
    """Run a Prometheus with the alerts, that scrapes a port of loopback each second."""
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(ALERTS)],
        "scrape_configs": [{"job_name": "callgate", "static_configs": [{"targets": [f"127.0.0.1:{target}"]}]}],
    }
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
    (port,) = free_ports(1)
    command = [prometheus.server, f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data"]
    command += [f"--web.listen-address=127.0.0.1:{port}"]
    with (folder / "prometheus.log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            yield Server(port)
        finally:
            process.kill()


def workers(member: Member) -> list[int]:
    """Processes of the workers that got to work, in order."""
    return [line["pid"] for line in member.lines() if line["event"] == "worker_started"]


@pytest.mark.slow
def test_every_panel_has_data(bootstrap: str, make_topic: MakeTopic, tmp_path: Path, prometheus: Prometheus) -> None:
    """Each query returns numbers while callgate works, or is known to be empty; the alert on a bad toolset is raised."""
    work = make(21, 5_000, 4)
    rig = Rig(bootstrap, make_topic, tmp_path, workers=2, observe_tools=["leave_note"], reload_interval="500ms")
    # A warning at the start.
    (tmp_path / "tools" / "old.bak").write_text("")
    with rig.running():
        member = rig.start()
        wait_until(lambda: any(line["event"] == "started" for line in member.lines()), "it never started", rig.explain)
        port = next(line["port"] for line in member.lines() if line["event"] == "http_listening" and "workers" in line)
        with scraping(prometheus, port, tmp_path) as server:
            wait_until(lambda: server.values("sum(callgate_partition_live)") == [4], "they are not scraped", rig.explain)
            writer = Writer(rig, work, per_second=200)
            writer.start()
            # Takeovers, and a worker in another's place.
            os.kill(workers(member)[0], signal.SIGKILL)
            wait_until(lambda: len(workers(member)) == 3, "no worker took its place", rig.explain)
            # An error: the older toolset stays in force.
            (tmp_path / "tools" / "broken.json").write_text("{")
            queries = {plain(expression): title for title, expression in QUERIES}
            assert len(queries) == len(QUERIES)
            missing = {query for query, title in queries.items() if title not in EMPTY | UNSURE}

            def all_seen() -> bool:
                missing.difference_update([query for query in missing if server.values(query)])
                return not missing

            wait_until(all_seen, "panels without data", lambda: "\n".join(sorted(missing)))
            writer.join()
            rig.settle()
            wait_until(lambda: server.values('ALERTS{alertname="CallgateToolsetStale"}') == [1], "no alert", rig.explain)
            assert {title for query, title in queries.items() if title in EMPTY and not server.values(query)} == EMPTY
            rules = [rule for group in server.ask("rules")["groups"] for rule in group["rules"]]
            assert {rule["health"] for rule in rules} == {"ok"}
        assert member.stop() == 0
