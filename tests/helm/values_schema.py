"""The part of the chart's values.schema.json that is about callgate's settings, drawn from the settings themselves.

`make docs` (python -m tests.helm.values_schema) writes it into the schema; the rest of the schema is written by hand. It knows
no setting by name but those that are the chart's.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

from processor.settings import Setting, catalogue
from processor.values import SECRET

CHART = Path(__file__).resolve().parents[2] / "helm" / "callgate"
SCHEMA = CHART / "values.schema.json"
OF_THE_CHART = {"schemas", "workers", "shutdown_grace", "http.host", "http.port"}
"""Settings that have values of their own: given in `settings` too, one of the two would be a lie."""
DURATION = r"^([0-9]{1,12}(\.[0-9]{1,6})? *(ms|s|m|h|d) *)+$"
SIZE = r"^[0-9]{1,15} *([KMG]i?B|B)?$"


def settings_schema() -> dict[str, Any]:
    """JSON Schema of `settings`: every setting with its kind, secrets only by the name of a file."""
    root = _section("callgate's settings, by section.")
    for setting in catalogue():
        if setting.key in OF_THE_CHART:
            continue
        section = root["properties"]
        *above, name = setting.key.split(".")
        for each in above:
            section = section.setdefault(each, _section(f"Section `{each}`."))["properties"]
        if setting.kind is SECRET:
            section[f"{name}_file"] = {"type": "string", "description": f"{setting.meaning} Path of a file in the pod."}
        else:
            section[name] = {"description": setting.meaning, **_kind(setting)}
    return root


def _section(description: str) -> dict[str, Any]:
    return {"type": "object", "description": description, "additionalProperties": False, "properties": {}}


def _kind(setting: Setting) -> dict[str, Any]:
    says = setting.kind.says
    words = re.findall(r"`([^`]+)`", says)
    if says.startswith("one of"):
        return {"enum": words}
    if says.startswith("a list"):
        return {"type": "array", "items": {"enum": words} if words else {"type": "string"}}
    if says.startswith("a time"):
        return {"type": "string", "pattern": DURATION}
    if says.startswith("bytes"):
        return {"type": ["integer", "string"], "pattern": SIZE}
    if says.startswith("a whole number"):
        least, *most = map(int, re.findall(r"\d+", says))
        return {"type": "integer", "minimum": least, **({"maximum": most[0]} if most else {})}
    return {"type": "boolean"} if isinstance(setting.default, bool) else {"type": "string"}


def drawn(text: str) -> str:
    """The schema with that part as the settings are now."""
    schema = json.loads(text)
    schema["properties"]["settings"] = settings_schema()
    return json.dumps(schema, indent=2) + "\n"


def main() -> None:
    """Draw it again."""
    SCHEMA.write_text(drawn(SCHEMA.read_text(encoding="utf-8")), encoding="utf-8")
    sys.stdout.write(f"{SCHEMA}\n")


if __name__ == "__main__":
    main()
