"""Findings as text for people, as JSON for programs, and as SARIF 2.1.0 for code scanning.

Owns the three forms. It decides nothing.
"""

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from processor import __version__
from processor.lint.findings import Finding, Level, Rule

SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def text(findings: Sequence[Finding]) -> str:
    """One line a finding, and a line with the counts."""
    lines = [
        f"{each.level.value}: {each.file}{'#' + each.pointer if each.pointer else ''}: {each.detail} [{each.rule.value}]"
        for each in findings
    ]
    # Names come from files: what is no character to look at becomes its escape.
    lines = ["".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line) for line in lines]
    counts = Counter(each.level for each in findings)
    lines.append(", ".join(f"{counts[level]} {level.value}{'s' * (counts[level] != 1)}" for level in Level) + ".")
    return "\n".join(lines) + "\n"


def as_json(findings: Sequence[Finding]) -> str:
    """One JSON array."""
    return json.dumps([_plain(each) for each in findings], indent=2) + "\n"


def sarif(findings: Sequence[Finding], folder: str) -> str:
    """One SARIF log with one run; places are the file below `folder`, and the JSON Pointer as a logical location."""
    rules = list(Rule)
    driver = {
        "name": "callgate",
        "version": __version__,
        "rules": [
            {
                "id": rule.value,
                "shortDescription": {"text": rule.__doc__},
                "defaultConfiguration": {"level": rule.level.value},
            }
            for rule in rules
        ],
    }
    results = [
        {
            "ruleId": each.rule.value,
            "ruleIndex": rules.index(each.rule),
            "level": each.level.value,
            "message": {"text": f"{each.tool}: {each.detail}" if each.tool else each.detail},
            "locations": [
                {
                    "physicalLocation": {
                        "artifactLocation": {"uri": quote(f"{folder.rstrip('/')}/{each.file}")},
                        # A place inside of the file is a pointer; viewers that want a line get the first.
                        "region": {"startLine": 1},
                    },
                    "logicalLocations": [{"fullyQualifiedName": each.pointer or "/", "kind": "member"}],
                }
            ],
        }
        for each in findings
    ]
    log = {"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}
    return json.dumps(log, indent=2) + "\n"


def _plain(each: Finding) -> dict[str, Any]:
    return {
        "rule": each.rule.value,
        "level": each.level.value,
        "file": each.file,
        "pointer": each.pointer,
        "tool": each.tool,
        "detail": each.detail,
    }
