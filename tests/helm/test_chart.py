"""The chart as real Helm renders it, held against Kubernetes' own types and against the program that it runs."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes_validate.utils import ValidationError, latest_version, validate

from processor import __version__
from processor.adapters.http import HttpServer
from processor.adapters.schema_files import tool_paths
from processor.config import ConfigError, load
from processor.settings import Settings
from processor.workers import ANSWER_SECONDS, KILL_SECONDS
from tests.helm import values_schema
from tests.helm.cases import EVERYTHING, REFUSED, RENDERED
from tests.helm.conftest import Rendered
from tests.helm.tools import CHART, ROOT

VALUES = yaml.safe_load((CHART / "values.yaml").read_text())
SCHEMA = json.loads((CHART / "values.schema.json").read_text())
META = yaml.safe_load((CHART / "Chart.yaml").read_text())
DOCKERFILE = (ROOT / "Dockerfile").read_text()
OLDEST = re.findall(r"\d+\.\d+", META["kubeVersion"])[0]
FOREIGN = {"PodMonitor", "ServiceMonitor", "PrometheusRule", "Notes"}
"""Kinds of the Prometheus operator, which Kubernetes' own types do not have; and the copy of NOTES.txt."""
SECRET_KEYS = {"password": "geheim", "token": "geheim", "ca.crt": "", "tls.crt": "", "tls.key": "", "key-password": "geheim"}


def pod(rendered: Rendered, case: str) -> dict[str, Any]:
    """The pod's spec."""
    spec: dict[str, Any] = rendered.one(case, "Deployment")["spec"]["template"]["spec"]
    return spec


def container(rendered: Rendered, case: str) -> dict[str, Any]:
    """The pod's only container."""
    (only,) = pod(rendered, case)["containers"]
    found: dict[str, Any] = only
    return found


def settings(rendered: Rendered, case: str, folder: Path) -> Settings:
    """What callgate makes of the rendered file and the container's environment, with files where Secrets are mounted."""
    file = folder / "callgate.yaml"
    file.write_text(rendered.one(case, "ConfigMap", "-settings")["data"]["callgate.yaml"])
    environ = {}
    for entry in container(rendered, case)["env"]:
        value = entry.get("value", "somebody")
        if value.startswith(("/etc/callgate/sasl/", "/etc/callgate/tls/")):
            name = Path(value).name
            (folder / name).write_text(SECRET_KEYS[name])
            value = str(folder / name)
        environ[entry["name"]] = value
    return load(file, environ)


def test_lint(rendered: Rendered) -> None:
    """`helm lint --strict` has nothing against the chart."""
    assert rendered.lint.startswith("passed")
    assert "[ERROR]" not in rendered.lint
    assert "[WARNING]" not in rendered.lint


@pytest.mark.parametrize("version", [OLDEST, latest_version()])
@pytest.mark.parametrize("case", RENDERED)
def test_objects_are_kubernetes_own(rendered: Rendered, case: str, version: str) -> None:
    """Every object fits its type strictly, in the oldest version that the chart allows and in the newest that is known."""
    kinds = []
    for one in rendered.objects(case):
        kinds.append(one["kind"])
        if one["kind"] not in FOREIGN:
            validate(one, version, strict=True)
    assert {"Deployment", "Service", "ConfigMap"} <= set(kinds)


def test_an_object_that_is_wrong_is_seen(rendered: Rendered) -> None:
    """The check above refuses an unknown field and a wrong type, deep inside."""
    for change in ({"readonlyRootFilesystem": True}, {"runAsUser": "root"}):
        one = rendered.one("default", "Deployment")
        one["spec"]["template"]["spec"]["containers"][0]["securityContext"] |= change
        with pytest.raises(ValidationError):
            validate(one, OLDEST, strict=True)


def test_every_option_shows(rendered: Rendered) -> None:
    """With all options on, every kind is there, and every free part of the values is in the objects."""
    objects = rendered.objects("everything")
    kinds = {"Deployment", "Service", "ConfigMap", "PodDisruptionBudget", "PodMonitor", "PrometheusRule", "Notes"}
    assert {one["kind"] for one in objects} == kinds
    text = json.dumps(pod(rendered, "everything"))
    for name in ("pull", "high", "guards", "malloc", "/more", "emptyDir", "Exists", "nodeAffinity", "refunds/pay.json"):
        assert name in text
    assert all(one["metadata"]["labels"]["team"] == "agents" for one in objects if one["kind"] != "Notes")
    given = set(EVERYTHING) | {
        "nameOverride",
        "fullnameOverride",
        "resources",
        "strategy",
        "minReadySeconds",
        "revisionHistoryLimit",
    }
    given |= {"probes", "podDisruptionBudget", "topologySpread", "podSecurityContext", "securityContext"}
    assert given == set(VALUES)


@pytest.mark.parametrize("case", RENDERED)
def test_callgate_takes_the_settings(rendered: Rendered, case: str, tmp_path: Path) -> None:
    """The settings file and the the container's environment are settings that callgate accepts, and say what the values say."""
    made = settings(rendered, case, tmp_path)
    values = VALUES | RENDERED[case]
    assert made.workers == values["workers"]
    assert made.http.host == "0.0.0.0"  # noqa: S104 - that is what a pod must listen on
    assert made.http.port == values["port"]
    assert made.shutdown_grace_ms == values["shutdownGraceSeconds"] * 1000


def test_settings_and_secrets_arrive(rendered: Rendered, tmp_path: Path) -> None:
    """What `settings` says is in force, and user, password, token and certificates come from where the Secrets are mounted."""
    made = settings(rendered, "everything", tmp_path)
    assert (made.group, made.release, made.allow, made.max_streams) == ("payments", "item", ("refunds/*",), 2_000_000)
    assert (made.topics.events, made.kafka.max_buffered_bytes) == ("model.events", 128 << 20)
    assert made.stream_timeout_ms == 90 * 60_000
    assert made.kafka.sasl_username == "somebody"
    assert made.kafka.sasl_password.reveal() == "geheim"
    assert made.kafka.ssl_password.reveal() == "geheim"
    assert Path(made.kafka.ssl_keyfile).name == "tls.key"
    assert settings(rendered, "claim", tmp_path).kafka.sasl_oauth_token.reveal() == "geheim"


def test_a_setting_that_is_none_is_seen(rendered: Rendered, tmp_path: Path) -> None:
    """The check above refuses a name of the environment that is no setting."""
    file = tmp_path / "callgate.yaml"
    file.write_text(rendered.one("default", "ConfigMap", "-settings")["data"]["callgate.yaml"])
    with pytest.raises(ConfigError, match="CALLGATE_HTTP_PROT"):
        load(file, {"CALLGATE_HTTP_PROT": "1"})


@pytest.mark.parametrize("case", RENDERED)
def test_everything_that_is_named_is_mounted(rendered: Rendered, case: str) -> None:
    """Paths in arguments, settings and environment lie in a mounted folder, and none in a subPath, which is never updated."""
    one = container(rendered, case)
    mounts = {mount["mountPath"]: mount for mount in one["volumeMounts"]}
    file = yaml.safe_load(rendered.one(case, "ConfigMap", "-settings")["data"]["callgate.yaml"])
    named = [one["args"][-1], f"{file['schemas']}/x", *(entry.get("value", "") for entry in one["env"])]
    for path in [each for each in named if each.startswith("/")]:
        assert str(Path(path).parent) in mounts, path
    assert not [mount for mount in mounts.values() if "subPath" in mount]
    assert {mount["name"] for mount in mounts.values()} == {volume["name"] for volume in pod(rendered, case)["volumes"]}
    schemas = next(volume for volume in pod(rendered, case)["volumes"] if volume["name"] == "schemas")
    wanted = {"claim": "tools", "config-map": "tools", "guide": "agent-tools"}.get(case, "team-callgate-schemas")
    assert wanted in json.dumps(schemas)


def test_schemas_are_tool_files(rendered: Rendered, tmp_path: Path) -> None:
    """What the schema lets through as a file's name, callgate reads as a tool's file."""
    for name in rendered.one("everything", "ConfigMap", "-schemas")["data"]:
        (tmp_path / name).write_text("{}")
    assert [path.name for path, _ in tool_paths(tmp_path, [])] == ["look_up.yaml", "pay.json"]


def test_a_key_can_be_put_into_a_namespace(rendered: Rendered, tmp_path: Path) -> None:
    """A path of `schemas.items`, as a node lays it out, is a tool of its namespace, and seen once."""
    (schemas,) = [volume["configMap"] for volume in pod(rendered, "everything")["volumes"] if volume["name"] == "schemas"]
    (item,) = schemas["items"]
    real = tmp_path / "..v1" / item["path"]
    real.parent.mkdir(parents=True)
    real.write_text("{}")
    (tmp_path / "..data").symlink_to("..v1")
    (tmp_path / real.parent.name).symlink_to(f"..data/{real.parent.name}")
    assert list(tool_paths(tmp_path, [])) == [(tmp_path / "refunds" / "pay.json", "refunds")]


def test_the_command_is_one(rendered: Rendered) -> None:
    """The image's entry point with the container's arguments is `callgate run` with the mounted file."""
    (entry,) = re.findall(r"^ENTRYPOINT (.*)$", DOCKERFILE, re.MULTILINE)
    assert [*json.loads(entry), *container(rendered, "default")["args"]] == shlex.split(
        "callgate run --config /etc/callgate/settings/callgate.yaml"
    )


def test_the_image_is_this_version(rendered: Rendered) -> None:
    """The chart is made for the package beside it, and names no registry; a digest goes before the tag."""
    assert META["appVersion"] == __version__
    assert container(rendered, "default")["image"] == f"callgate:{__version__}"
    assert container(rendered, "everything")["image"].endswith("@sha256:" + "0" * 64)


@pytest.mark.parametrize("case", RENDERED)
def test_probes_ask_what_is_answered(rendered: Rendered, case: str) -> None:
    """Each probe's path is one that callgate serves, at the port where it listens; another path would be 404."""
    one = container(rendered, case)
    server = HttpServer("", 0, exposition=lambda: b"", live=lambda: (True, {}), ready=lambda: (False, {}))
    (port,) = one["ports"]
    (listens,) = [entry["value"] for entry in one["env"] if entry["name"] == "CALLGATE_HTTP_PORT"]
    assert port["containerPort"] == int(listens)
    for probe, status in (("startupProbe", 200), ("livenessProbe", 200), ("readinessProbe", 503)):
        asked = one[probe]["httpGet"]
        answer = server.answer(f"GET {asked['path']} HTTP/1.1\r\n\r\n".encode())
        assert answer.startswith(f"HTTP/1.1 {status} ".encode())
        assert asked["port"] == port["name"]
        assert one[probe]["timeoutSeconds"] > ANSWER_SECONDS


@pytest.mark.parametrize("case", RENDERED)
def test_there_is_time_for_a_clean_stop(rendered: Rendered, case: str, tmp_path: Path) -> None:
    """Kubernetes kills the pod only after `shutdown_grace`, and after callgate itself has killed workers that hang."""
    grace = settings(rendered, case, tmp_path).shutdown_grace_ms / 1000
    assert pod(rendered, case)["terminationGracePeriodSeconds"] > grace + KILL_SECONDS


def test_a_rollout_replaces_one_at_a_time(rendered: Rendered) -> None:
    """A new member joins where an old one has left, so that there is never one more than was planned, and waits to be ready."""
    spec = rendered.one("default", "Deployment")["spec"]
    assert spec["strategy"] == {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}
    readiness = container(rendered, "default")["readinessProbe"]
    assert spec["minReadySeconds"] >= readiness["periodSeconds"] * readiness["failureThreshold"]
    assert rendered.one("claim", "Deployment")["spec"]["strategy"]["type"] == "Recreate"


@pytest.mark.parametrize("case", RENDERED)
def test_everything_selects_the_pods(rendered: Rendered, case: str) -> None:
    """Deployment, Service, budget, spread and monitors select what the pods are labelled with."""
    template = rendered.one(case, "Deployment")["spec"]["template"]
    labels = template["metadata"]["labels"].items()
    checked = 0
    for one in rendered.objects(case):
        if selector := one.get("spec", {}).get("selector"):
            assert selector.get("matchLabels", selector).items() <= labels, one["kind"]
            checked += 1
    assert checked >= (2 if case == "claim" else 3)
    spread = template["spec"].get("topologySpreadConstraints", [])
    assert len(spread) == (0 if case == "claim" else 2)
    assert all(one["labelSelector"]["matchLabels"].items() <= labels for one in spread)
    (port,) = rendered.one(case, "Service")["spec"]["ports"]
    names = {port["name"] for port in template["spec"]["containers"][0]["ports"]}
    monitors = [one["spec"] for one in rendered.objects(case) if one["kind"].endswith("Monitor")]
    endpoints = [one for spec in monitors for one in spec.get("endpoints", []) + spec.get("podMetricsEndpoints", [])]
    assert {port["targetPort"], *(one["port"] for one in endpoints)} == names
    assert [one["path"] for one in endpoints] == ["/metrics"] * len(monitors)


@pytest.mark.parametrize("case", RENDERED)
def test_the_pod_may_do_nothing(rendered: Rendered, case: str) -> None:
    """Kubernetes' restricted profile, and more: no root, no capabilities, nothing to write, no token, the image's own user."""
    spec, one = pod(rendered, case), container(rendered, case)
    (user,) = re.findall(r"^USER (\d+):\1$", DOCKERFILE, re.MULTILINE)
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["runAsUser"] == int(user)
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert one["securityContext"]["allowPrivilegeEscalation"] is False
    assert one["securityContext"]["readOnlyRootFilesystem"] is True
    assert one["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert spec["automountServiceAccountToken"] is False
    assert spec["enableServiceLinks"] is False


def test_there_is_memory_enough(rendered: Rendered) -> None:
    """The pod asks for what the bounds of the settings come to by docs/operations.md, and more for what is open."""
    kafka, partitions, brokers = Settings().kafka, Settings().topics.partitions, 3
    bounds = (60 << 20) + kafka.max_buffered_bytes + brokers * kafka.fetch_max_bytes + partitions * ((256 << 10) + (4 << 20))
    units = {"Mi": 1 << 20, "Gi": 1 << 30}
    resources = container(rendered, "default")["resources"]
    asked, most = (
        int(resources[kind]["memory"][:-2]) * units[resources[kind]["memory"][-2:]] for kind in ("requests", "limits")
    )
    assert bounds < asked < most
    assert "cpu" not in resources["limits"]


def test_other_settings_are_other_pods(rendered: Rendered) -> None:
    """Changed settings roll the pods, since they are read once; changed schemas do not, since they are watched."""
    template = {case: rendered.one(case, "Deployment")["spec"]["template"] for case in RENDERED}
    assert template["default"] != template["other-settings"]
    assert template["default"] == template["other-schemas"]


@pytest.mark.parametrize("case", REFUSED)
def test_mistakes_are_refused(rendered: Rendered, case: str) -> None:
    """Mistyped values, settings and secrets in values end the command, and the complaint names what is wrong."""
    _, names = REFUSED[case]
    assert names in rendered.refused(case)
    assert not (rendered.folder / f"{case}.out").exists()


def test_notes(rendered: Rendered) -> None:
    """The notes say what is missing: the tools, and who scrapes; and nothing of it where it is there."""
    (default,) = [one["text"] for one in rendered.objects("default") if one["kind"] == "Notes"]
    (everything,) = [one["text"] for one in rendered.objects("everything") if one["kind"] == "Notes"]
    assert "There are no tools" in default
    assert "Nobody is told to scrape it" in default
    assert "There are no tools" not in everything
    assert "Nobody is told to scrape it" not in everything


def test_the_files_go_in_as_they_are(rendered: Rendered) -> None:
    """The PrometheusRule and the dashboard's ConfigMap hold the two files, Prometheus' braces and all."""
    rule = rendered.one("everything", "PrometheusRule")
    assert rule["spec"] == yaml.safe_load((CHART / "alerts.yaml").read_text())
    board = rendered.one("everything", "ConfigMap", "-dashboard")
    assert json.loads(board["data"]["callgate.json"]) == json.loads((CHART / "dashboard.json").read_text())
    assert board["metadata"]["labels"]["grafana_dashboard"] == "1"


def test_the_schema_knows_the_settings() -> None:
    """The schema of `settings` is drawn from callgate's own; `make docs` writes it again."""
    text = values_schema.SCHEMA.read_text(encoding="utf-8")
    assert text == values_schema.drawn(text)


def test_the_schema_knows_every_value() -> None:
    """Every value has its place in the schema, and the schema names no other."""

    def names(schema: dict[str, Any], above: str = "") -> set[str]:
        found = schema.get("properties", {})
        return {f"{above}{name}" for name in found} | {n for name, one in found.items() for n in names(one, f"{above}{name}.")}

    def given(values: dict[str, Any], above: str = "") -> set[str]:
        found = set()
        for name, value in values.items():
            found.add(f"{above}{name}")
            if isinstance(value, dict) and names(SCHEMA, "") & {f"{above}{name}.{inner}" for inner in value}:
                found |= given(value, f"{above}{name}.")
        return found

    known = {name for name in names(SCHEMA) if not name.startswith("settings.")} - {"global"}
    own = {name for name in given(VALUES) if not name.startswith("settings.")}
    # `rollingUpdate` may be null, so its names are in an alternative.
    assert own - {"strategy.rollingUpdate.maxSurge", "strategy.rollingUpdate.maxUnavailable"} == known


PASSED_ON = (
    "resources.",
    "strategy.",
    "podSecurityContext.",
    "securityContext.",
    "probes.startup.",
    "probes.liveness.",
    "probes.readiness.",
)
"""What Kubernetes explains; each has a comment at its head."""


def test_every_value_is_explained() -> None:
    """values.yaml has a comment above every value; a group needs none where its members have theirs."""
    lines = (CHART / "values.yaml").read_text().splitlines()
    above: list[str] = []
    seen, bare = set(), []
    for number, line in enumerate(lines):
        if found := re.match(r"((?:  )*)(\w+):(.*)", line):
            above = [*above[: len(found[1]) // 2], found[2]]
            path = ".".join(above)
            seen.add(path)
            commented = lines[number - 1].lstrip().startswith("#")
            if not commented and not path.startswith(PASSED_ON) and found[3].strip():
                bare.append(path)
            if f"{path}." in PASSED_ON:
                assert commented, path
    assert not bare
    assert set(VALUES) <= seen
