"""Values with which the chart is rendered: as it comes, as the guide has it, with all options on, and with mistakes."""

import re
from pathlib import Path
from typing import Any

import yaml

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "operations.md"
Values = dict[str, Any]

LABELS = {"team": "agents"}

EVERYTHING: Values = {
    "image": {"repository": "images/callgate", "digest": "sha256:" + "0" * 64, "pullPolicy": "Always"},
    "imagePullSecrets": [{"name": "pull"}],
    "replicas": 6,
    "workers": 4,
    "shutdownGraceSeconds": 40,
    "settings": {
        "group": "payments",
        "release": "item",
        "tools": "both",
        "allow": ["refunds/*"],
        "tolerate": ["status_absent"],
        "stream_timeout": "1h30m",
        "max_streams": 2_000_000,
        "max_argument_bytes": "512KiB",
        "topics": {"events": "model.events", "partitions": 24},
        "kafka": {
            "bootstrap_servers": ["kafka-1:9093", "kafka-2:9093"],
            "security_protocol": "SASL_SSL",
            "sasl_mechanism": "SCRAM-SHA-512",
            "max_buffered_bytes": 134_217_728,
        },
        "log": {"level": "debug"},
    },
    "schemas": {
        "files": {"pay.json": "{}", "look_up.yaml": "name: x\n"},
        "items": [{"key": "pay.json", "path": "refunds/pay.json"}],
    },
    "sasl": {"existingSecret": "kafka-user", "usernameKey": "username"},
    "tls": {"existingSecret": "kafka-tls", "certKey": "tls.crt", "keyKey": "tls.key", "passwordKey": "key-password"},
    "port": 9999,
    "service": {"port": 80, "annotations": {"scrape": "true"}},
    "serviceAccountName": "callgate",
    "labels": LABELS,
    "podLabels": {"tier": "guard"},
    "podAnnotations": {"note": "x"},
    "extraEnv": [{"name": "CALLGATE_LOG_LEVEL", "value": "info"}, {"name": "PYTHONMALLOC", "value": "malloc"}],
    "extraEnvFrom": [{"configMapRef": {"name": "more"}}],
    "extraVolumes": [{"name": "more", "emptyDir": {}}],
    "extraVolumeMounts": [{"name": "more", "mountPath": "/more"}],
    "nodeSelector": {"pool": "guards"},
    "tolerations": [{"key": "pool", "operator": "Exists"}],
    "affinity": {"nodeAffinity": {}},
    "priorityClassName": "high",
    "monitor": {"podMonitor": True, "labels": {"release": "prometheus"}},
    "alerts": {"enabled": True, "labels": {"release": "prometheus"}},
    "dashboard": {"enabled": True},
}


def of_the_guide() -> Values:
    """The values that `docs/operations.md` shows."""
    (shown,) = re.findall(r"^```yaml\n(.*?)^```$", GUIDE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    values: Values = yaml.safe_load(shown)
    return values


RENDERED: dict[str, Values] = {
    "default": {},
    "guide": of_the_guide(),
    "everything": EVERYTHING,
    "claim": {
        "schemas": {"existingClaim": "tools"},
        "monitor": {"serviceMonitor": True},
        "sasl": {"existingSecret": "kafka-token", "tokenKey": "token"},
        "tls": {"existingSecret": "kafka-tls"},
        "settings": {"kafka": {"security_protocol": "SASL_SSL", "sasl_mechanism": "OAUTHBEARER"}},
        "podDisruptionBudget": {"enabled": False},
        "topologySpread": {"keys": []},
        "strategy": {"type": "Recreate", "rollingUpdate": None},
    },
    "config-map": {"schemas": {"existingConfigMap": "tools"}, "fullnameOverride": "guard"},
    "other-settings": {"settings": {"group": "other"}},
    "other-schemas": {"schemas": {"files": {"pay.json": "{}"}}},
}

REFUSED: dict[str, tuple[Values, str]] = {
    "no-such-value": ({"replica": 3}, "replica"),
    "text-for-number": ({"replicas": "three"}, "replicas"),
    "no-such-setting": ({"settings": {"stream_time_out": "5m"}}, "stream_time_out"),
    "no-unit": ({"settings": {"stream_timeout": "20"}}, "stream_timeout"),
    "no-such-choice": ({"settings": {"mode": "observed"}}, "mode"),
    "wrong-section": ({"settings": {"kafka": {"group": "x"}}}, "group"),
    "secret-in-values": ({"settings": {"kafka": {"sasl_password": "geheim"}}}, "sasl_password"),
    "of-the-chart": ({"settings": {"shutdown_grace": "5m"}}, "shutdown_grace"),
    "nested-probe": ({"probes": {"liveness": {"period": 3}}}, "period"),
    "file-in-folder": ({"schemas": {"files": {"refunds/pay.json": "{}"}}}, "refunds/pay.json"),
    "two-places": ({"schemas": {"existingConfigMap": "a", "existingClaim": "b"}}, "give one of them"),
    "unused-files": ({"schemas": {"existingConfigMap": "a", "files": {"x.json": "{}"}}}, "would not be used"),
    "two-monitors": ({"monitor": {"podMonitor": True, "serviceMonitor": True}}, "scraped twice"),
}
"""Values, and what the complaint must name."""
