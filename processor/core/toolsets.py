"""Tools with their compiled schemas, and the sets of them that are in force.

Owns what a tool is, how a toolset is named (SHA-256 of its canonical content), and the finding of a tool. A toolset never
changes once it is made: a call is judged by one toolset from end to end.
"""

from collections.abc import Sequence
from typing import Any, Final, Protocol

from msgspec import Struct

from processor.core.canonical import sha256
from processor.core.effort import Effort, states_of
from processor.core.engines import Allowance, Engine, FastEngine, Flaw, IsValid, RustEngine, Schema, SchemaFault, Validator
from processor.core.proven import unproven
from processor.core.references import unclear
from processor.core.schema_walk import TooLarge, depth_of, draft_of, expanded_size, subschemas

MAX_TRUSTED_SIZE: Final = 200_000
"""Schemas that one of the registry may come to when its references are written out: 4 ms a value at most."""
MAX_IN_BAND_SIZE: Final = 10_000
"""The same for schemas that arrive in-band: nobody has looked at them."""
MAX_IN_BAND_STATES: Final = 20_000
"""States of all patterns of such a schema, repetitions written out: compiling them takes 0.15 s at most."""
MAX_SCHEMA_DEPTH: Final = 200
"""Nesting of a schema's JSON: the engines recurse on the C stack."""
NO_PARAMETERS: Final[Schema] = {"type": "object", "properties": {}, "additionalProperties": False}
"""What a tool without `parameters` takes: the API says that such a function has an empty parameter list."""


class Tool(Struct, frozen=True, kw_only=True):
    """A function tool, ready to judge arguments."""

    namespace: str | None
    name: str
    schema: Schema
    sha256: str
    """Of the schema's canonical form."""
    draft: str
    engines: tuple[str, ...]
    """Names of the engines that check it."""
    is_valid: IsValid
    """The engine that decides."""
    quick: IsValid
    """The same, but it may raise."""
    second: IsValid | None
    """The second engine, where it is proven for this schema: both must accept."""
    flaws: Validator
    """Explains what does not fit."""
    numbers: bool
    """Its schema asks for numbers that may have fractions."""
    effort: Effort | None
    """What judging by it may cost, where nobody has looked at its schema; None: it is trusted."""
    deferred: bool
    """Declared with `defer_loading`: a call whose namespace equals its name fits it too (rule 25)."""
    file: str
    """Where it was declared; empty for in-band tools."""

    def passes(self) -> IsValid:
        """All of its engines as one; it may raise, for callers that fall back on the others then."""
        quick, second = self.quick, self.second
        return quick if second is None else lambda value: quick(value) and second(value)

    def explain(self, value: Any, allowance: Allowance | None = None) -> tuple[Flaw, ...]:
        """Places where a value does not fit, as far as the allowance goes."""
        return self.flaws.flaws(value, allowance)


class Toolset(Protocol):
    """A set of tools in force."""

    sha256: str

    def find(self, namespace: Any, name: Any) -> tuple[Tool, ...]:
        """Tools that a call of this name must all satisfy; empty where there is none."""

    def why_not(self, namespace: Any, name: Any) -> str:
        """Why nothing was found, for people."""


class FixedToolset:
    """The toolset of a registry: all of it compiled beforehand, each (namespace, name) once."""

    def __init__(self, tools: Sequence[Tool]) -> None:
        self.tools = tuple(sorted(tools, key=lambda tool: (tool.namespace or "", tool.name)))
        """Its tools, flat ones first, then by namespace and name."""
        self.sha256 = sha256([[tool.namespace, tool.name, tool.deferred, tool.schema] for tool in self.tools])
        """Of its canonical content: namespace, name, deferred and schema of each tool, in order."""
        found: dict[tuple[Any, Any], tuple[Tool, ...]] = {(tool.namespace, tool.name): (tool,) for tool in self.tools}
        for tool in self.tools:
            if tool.deferred and tool.namespace is None:
                found[tool.name, tool.name] = (*found.get((tool.name, tool.name), ()), tool)
        self._found = found

    def find(self, namespace: Any, name: Any) -> tuple[Tool, ...]:
        """Tools of exactly this (namespace, name)."""
        try:
            return self._found.get((namespace, name), ())
        except TypeError:
            return ()

    def why_not(self, namespace: Any, name: Any) -> str:  # noqa: ARG002 - the other toolset knows more
        """Why nothing was found."""
        return "no tool of that namespace and name is in force"


EMPTY: Final = FixedToolset(())
"""No tools at all."""


class Compiler:
    """Makes tools out of declarations, with the engines that the settings ask for."""

    def __init__(self, engine: str = "jsonschema-rs", *, formats: bool = False) -> None:
        """Compile for `jsonschema-rs`, `fastjsonschema` or `both`."""
        self._rust: Engine = RustEngine(formats=formats)
        self._fast: Engine = FastEngine(formats=formats, explain=self._rust)
        self._engine = engine
        self._formats = formats

    def tool(
        self, namespace: str | None, name: str, schema: Any, *, deferred: bool = False, file: str = "", trusted: bool = True
    ) -> Tool:
        """Compile one tool. Raises SchemaFault.

        An untrusted schema is never compiled by generating code from it, and has a smaller bound.
        """
        if schema is None:
            schema = NO_PARAMETERS
        _check_size(schema, MAX_TRUSTED_SIZE if trusted else MAX_IN_BAND_SIZE)
        if not trusted and states_of(schema) > MAX_IN_BAND_STATES:
            raise SchemaFault("", f"over {MAX_IN_BAND_STATES} states in its patterns")
        rust = self._rust.compile(schema)
        if not trusted and (why := unclear(schema)) is not None:
            raise SchemaFault("", f"its size cannot be known: {why}")
        fast: Validator | None = None
        if trusted and (self._engine == "fastjsonschema" or (self._engine == "both" and self.proven(schema))):
            fast = self._fast.compile(schema)
        first = fast if fast and self._engine == "fastjsonschema" else rust
        second = fast if first is rust else None
        engines = (self._rust.name,) if first is rust else (self._fast.name,)
        return Tool(
            namespace=namespace,
            name=name,
            schema=schema,
            sha256=sha256(schema),
            draft=draft_of(schema) or "",
            engines=(*engines, self._fast.name) if second else engines,
            is_valid=first.is_valid,
            quick=first.quick,
            second=second.is_valid if second else None,
            flaws=rust,
            effort=None if trusted else Effort(schema),
            numbers=any(_asks_for_numbers(part) for _, part in subschemas(schema)),
            deferred=deferred,
            file=file,
        )

    def proven(self, schema: Schema) -> bool:
        """Whether the second engine can check this schema."""
        return unproven(schema, formats=self._formats) is None


def _asks_for_numbers(schema: dict[str, Any]) -> bool:
    kind = schema.get("type")
    return kind == "number" or (isinstance(kind, list) and "number" in kind)


def _check_size(schema: Any, bound: int) -> None:
    """Raise SchemaFault where a schema is too deep, or too large with its references written out."""
    if depth_of(schema, MAX_SCHEMA_DEPTH) > MAX_SCHEMA_DEPTH:
        raise SchemaFault("", f"nested deeper than {MAX_SCHEMA_DEPTH}")
    try:
        expanded_size(schema, bound)
    except TooLarge as error:
        raise SchemaFault("", str(error)) from None
