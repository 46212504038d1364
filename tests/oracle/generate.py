"""Seeded logs of a partition, with faults of every kind injected: what the differential test feeds to core and oracle.

One seed is one case. It owns what is likely: most logs have one or two faults, some none, a few many.
"""

import json
import random
from dataclasses import dataclass, replace
from typing import Any

from tests import factories as make
from tests.factories import Json, Record
from tests.oracle.faults import ALL
from tests.oracle.scripts import Scripts
from tests.oracle.values import Settings
from tests.oracle.verdict import Toolset

TIMEOUT_MS = 10_000
MEMORY_MS = 4_000
KEYS = ("k0", "k1", "k2")
HEADER = "x-stream"
TOLERANCES = (
    "status_absent", "empty_arguments", "arguments_object", "call_id_renamed", "response_id_rotates", "namespace_functions",
    "added_again",
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """One log and the settings that it is read with."""

    seed: int
    settings: Settings
    toolset: Toolset
    log: tuple[Record, ...]
    idle: tuple[tuple[int, int], ...]
    """Moves of the watermark by the wall clock: (place in the log, ms)."""


def case(seed: int) -> Case:
    """The case of this seed; the same on every machine."""
    return Builder(random.Random(seed)).build(seed)


class Builder(Scripts):
    """Draws one case."""

    def build(self, seed: int) -> Case:
        """Settings, scripts of every key, their interleaving on the wire, and idle moves."""
        rng = self.rng
        settings = self.settings()
        registry = {t["name"]: t["parameters"] for t in ALL}
        toolset = Toolset(rng.choice(("registry", "registry", "stream", "both")), registry)
        keys = KEYS[: rng.choice((1, 1, 2, 3))]
        scripts = {key: self.script() for key in keys}
        log = self.wire(scripts)
        log = log[:90]
        idle: list[tuple[int, int]] = []
        for place in sorted(rng.sample(range(len(log) + 1), min(len(log), rng.choice((0, 0, 0, 1, 3))))):
            near = log[min(place, len(log) - 1)].timestamp
            idle.append((place, near + rng.choice((1_000, MEMORY_MS, TIMEOUT_MS, TIMEOUT_MS + MEMORY_MS, 60_000))))
        return Case(seed, settings, toolset, tuple(log), tuple(idle))

    def settings(self) -> Settings:
        """Mostly the defaults with short times."""
        rng = self.rng
        base = Settings(rng.choice(("response", "item")), TIMEOUT_MS, MEMORY_MS)
        # One bound at a time: what is buffered for a call that is limited already is nobody's concern.
        which = rng.random()
        if which < 0.05:
            base = replace(base, max_argument_bytes=rng.choice((10, 20)))
        elif which < 0.1:
            base = replace(base, max_calls=rng.choice((1, 2)))
        elif which < 0.15:
            base = replace(base, max_streams=rng.choice((1, 2)))
        elif which < 0.25:
            base = replace(base, max_response_bytes=20_000)
        if self.chance(0.2):
            base = replace(base, tolerate=tuple(sorted(rng.sample(TOLERANCES, rng.choice((1, 1, 2))))))
        self.objects = self.chance(0.7 if "arguments_object" in base.tolerate else 0.03)
        self.rotates = self.chance(0.7 if "response_id_rotates" in base.tolerate else 0.01)
        if self.chance(0.1):
            self.keyless = rng.choice((0.1, 1.0))
            base = replace(base, key_header=rng.choice(("", HEADER, HEADER)))
        return base

    # How it travels.

    def wire(self, scripts: dict[str, list[Json | str | bytes]]) -> list[Record]:
        """Interleave the keys; put some neighbours into one record; give times."""
        rng = self.rng
        now = 1_000_000
        log: list[Record] = []
        offset = 0
        while any(scripts.values()):
            key = rng.choice([k for k, said in scripts.items() if said])
            value = scripts[key].pop(0)
            if isinstance(value, dict) and _is_event(value):
                batch = [value]
                while scripts[key] and self.chance(0.06) and isinstance(scripts[key][0], dict) and _is_event(scripts[key][0]):
                    batch.append(scripts[key].pop(0))  # type: ignore[arg-type]
                if len(batch) > 1:
                    body = make.sse(batch, named=self.chance(0.5), close=self.chance(0.5))
                    value = body if self.chance(0.5) else json.dumps(batch)
                elif self.chance(0.02):
                    value = f"event: response.other\ndata: {json.dumps(value)}\n\n"
            now += rng.choice((0, 5, 50, 500))
            if self.chance(0.012):
                now += rng.choice((MEMORY_MS, TIMEOUT_MS - 1, TIMEOUT_MS, TIMEOUT_MS + MEMORY_MS))
            skew = rng.choice((-3_000, -20_000)) if self.chance(0.02) else 0
            bare = self.chance(self.keyless)
            headers = [(HEADER, key.encode())] if bare and self.chance(0.9) else []
            log.append(make.record(offset, value, key=None if bare else key, timestamp=now + skew, headers=headers))
            offset += rng.choice((1, 1, 1, 2))
        return log


def _is_event(value: Any) -> bool:
    return value.get("type") != "response.create" and str(value.get("type", "")).startswith(("response.", "keepalive", "error"))
