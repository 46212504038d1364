"""The composition root of the core: settings and registry in, partitions out. `processor.service` builds the rest of `run`.

Owns how gate, toolset and partitions are put together. It decides nothing, and imports no Kafka client: `check` and `replay`
start without one.
"""

from dataclasses import replace
from pathlib import Path

from processor.core.decide import Decider
from processor.core.gate import Gate, GateSettings
from processor.core.pipeline import Partition
from processor.core.ports import Judge
from processor.core.toolsets import EMPTY, Compiler, FixedToolset
from processor.settings import Settings

FRAME_BYTES = 1 << 10
"""Room for what Kafka puts around a single record."""


class Core:
    """The pure core, put together for one set of settings."""

    def __init__(self, settings: Settings, toolset: FixedToolset) -> None:
        self.settings = settings
        self.toolset = toolset
        self.gate = Gate(gate_settings(settings), compiler(settings), toolset)
        self.judge: Judge = Decider(self.gate)

    def partition(self, topic: str, number: int) -> Partition:
        """Make the state of one input partition that has read nothing."""
        return Partition(topic, number, self.settings.bounds(), self.judge)

    def tolerating(self, more: tuple[str, ...]) -> "Core":
        """The same core with more tolerances; itself where there are none."""
        if not more:
            return self
        return Core(replace(self.settings, tolerate=(*self.settings.tolerate, *more)), self.toolset)


def gate_settings(settings: Settings) -> GateSettings:
    """The settings on which verdicts depend."""
    return GateSettings(
        tools=settings.tools,
        mode=settings.mode,
        observe=settings.observe_tools,
        allow=settings.allow,
        deny=settings.deny,
        engine=settings.engine,
        formats=settings.formats == "assertion",
        arguments=settings.arguments,
        max_argument_bytes=settings.max_argument_bytes,
        max_argument_depth=settings.max_argument_depth,
        max_in_band_effort_ms=settings.max_in_band_effort_ms,
        tolerate=settings.tolerate,
        # What the topics are made for (design section 7), and what the producer sends at once.
        max_decision_bytes=min(settings.largest_approval(), settings.kafka.max_request_bytes) - FRAME_BYTES,
        max_rejection_bytes=min(settings.largest_rejection(), settings.kafka.max_request_bytes) - FRAME_BYTES,
    )


def compiler(settings: Settings) -> Compiler:
    """Make what compiles schemas, with the engines that are asked for."""
    return Compiler(settings.engine, formats=settings.formats == "assertion")


def load_registry(settings: Settings) -> FixedToolset:
    """Read and compile the registry's folder. Raises BadRegistry with every fault."""
    from processor.adapters import schema_files  # noqa: PLC0415 - YAML is a slow import

    return schema_files.load(Path(settings.schemas), compiler(settings))


def build_core(settings: Settings) -> Core:
    """Put the core together; the registry is only read where `tools` asks for it. Raises BadRegistry."""
    return Core(settings, EMPTY if settings.tools == "stream" else load_registry(settings))
