"""The validators behind one small port: jsonschema-rs decides, fastjsonschema is the second, independently written one.

Owns how schemas are compiled and values judged. Nothing here fetches anything, runs a backtracking regular expression, or lets
an engine's exception out: what an engine cannot judge does not fit. Errors name places and keywords, never values.
"""

import copy
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any, Final, Protocol, TypeAlias

import fastjsonschema
import jsonschema_rs
from msgspec import Struct
from msgspec.structs import replace

from processor.core.patterns import fault_of_pattern
from processor.core.proven import unproven
from processor.core.schema_walk import draft_of, pointer, subschemas, weight

Schema: TypeAlias = dict[str, Any] | bool
"""A JSON Schema, parsed."""
IsValid: TypeAlias = Callable[[Any], bool]
"""Says whether a value fits; never raises."""

MAX_FLAWS: Final = 8
"""Errors that a decision carries: enough to correct a call by."""
MAX_LISTED: Final = 1000
"""Errors of an engine that are looked at for them: it gives one for each missing member."""
MAX_MISSING: Final = 20
"""Missing members that one error names."""
MAX_EFFORT: Final = 50_000
"""Parts of the arguments times weight of the schema up to which all errors are listed: some 0.5 s at the very worst."""
MAX_ALLOWANCE: Final = 4 * MAX_EFFORT
"""The same for all calls that one record releases: there may be thousands."""
MAX_POINTER: Final = 200
"""Characters of a pointer: names in it come from the arguments."""
MAX_CAUSE: Final = 300
"""Characters of the cause of a schema's fault."""


class Flaw(Struct, frozen=True, omit_defaults=True):
    """One place where a value does not fit its schema."""

    at: str
    """JSON Pointer into the arguments."""
    schema: str
    """JSON Pointer into the schema."""
    keyword: str
    """The keyword that is not satisfied."""
    missing: tuple[str, ...] = ()
    """Names that the schema requires and that are not there: the schema's words, so that they tell nothing of the arguments."""


_NO_PLACE: Final = (Flaw("", "", ""),)
"""It does not fit, and to say where would cost too much."""
_BRANCHING: Final = frozenset({"anyOf", "oneOf", "not", "if", "contains", "propertyNames", "dependencies", "dependentSchemas"})
"""Keywords whose one error holds the errors of schemas below, or whose schemas are tried out."""


class Allowance:
    """What listing errors may still take, in parts of arguments times weight of a schema: estimated, never measured."""

    __slots__ = ("left",)

    def __init__(self, left: int = MAX_ALLOWANCE) -> None:
        """Begin with so much."""
        self.left = left


class SchemaFault(ValueError):
    """A schema cannot be used: where in it, and why."""

    def __init__(self, at: str, cause: str) -> None:
        super().__init__(f"{at}: {cause}" if at else cause)
        self.at = at
        """JSON Pointer into the schema."""
        self.cause = cause


class Validator(Protocol):
    """One compiled schema."""

    @property
    def quick(self) -> IsValid:
        """The same as `is_valid`, but it may raise: for callers that fall back on that then."""

    def is_valid(self, value: Any) -> bool:
        """Whether the value fits. Never raises."""

    def flaws(self, value: Any, allowance: Allowance | None = None) -> tuple[Flaw, ...]:
        """At most MAX_FLAWS places where it does not; fewer where the allowance does not suffice. Never raises."""


class Engine(Protocol):
    """A way to compile schemas."""

    name: str

    def compile(self, schema: Schema) -> Validator:
        """Compile one schema. Raises SchemaFault."""


class _RustValidator:
    """A schema compiled by jsonschema-rs."""

    def __init__(self, compiled: jsonschema_rs.Validator, schema: Schema) -> None:
        self.compiled = compiled
        self.quick: IsValid = compiled.is_valid
        self.weight = weight(schema)
        self.plain = not any(_BRANCHING & part.keys() for _, part in subschemas(schema))

    def is_valid(self, value: Any) -> bool:
        try:
            return self.compiled.is_valid(value)
        except Exception:  # noqa: BLE001 - what it cannot judge (nesting over its own bound) does not fit
            return False

    def flaws(self, value: Any, allowance: Allowance | None = None) -> tuple[Flaw, ...]:
        allowance = allowance or Allowance()
        try:
            # The engine lists all errors before it gives the first one (10 s were measured for 20,000 of them), so that only
            # what is small enough is listed; of the rest the first error, where finding that lists nothing else.
            most = min(MAX_EFFORT, allowance.left) // self.weight if self.weight else 0
            if (parts := _parts(value, most)) <= most:
                allowance.left -= parts * (self.weight or 0)
                return _each_once(map(_flaw, islice(self.compiled.iter_errors(value), MAX_LISTED)))
            if self.plain:
                self.compiled.validate(value)
        except jsonschema_rs.ValidationError as error:
            return (_flaw(error),)
        except Exception:  # noqa: BLE001, S110 - an explanation is never worth a crash
            pass
        return _NO_PLACE


def _parts(value: Any, enough: int) -> int:
    """Values inside of a value, itself among them, counted no further than just past `enough`."""
    todo = [value]
    for part in todo:
        if len(todo) > enough:
            break
        if type(part) is dict:
            todo.extend(part.values())
        elif type(part) is list:
            todo.extend(part)
    return len(todo)


def _flaw(error: jsonschema_rs.ValidationError) -> Flaw:
    kind = error.kind
    missing = kind.property if isinstance(kind, jsonschema_rs.ValidationErrorKind.Required) else None
    return Flaw(
        pointer(error.instance_path)[:MAX_POINTER],
        pointer(error.schema_path)[:MAX_POINTER],
        str(error.schema_path[-1]) if error.schema_path else "",
        (missing[:MAX_POINTER],) if isinstance(missing, str) else (),
    )


def _each_once(flaws: Iterable[Flaw]) -> tuple[Flaw, ...]:
    """At most MAX_FLAWS of them, one for each place and keyword; it names all members that are missing there."""
    found: dict[tuple[str, str], Flaw] = {}
    for flaw in flaws:
        key = flaw.at, flaw.schema
        before = found.get(key)
        if before is None:
            if len(found) == MAX_FLAWS:
                break
            found[key] = flaw
        elif flaw.missing and len(before.missing) < MAX_MISSING:
            found[key] = replace(before, missing=tuple(dict.fromkeys(before.missing + flaw.missing)))
    return tuple(found.values())


class RustEngine:
    """jsonschema-rs, with linear-time patterns, nothing fetched, and formats as a setting."""

    name = "jsonschema-rs"

    def __init__(self, *, formats: bool = False, remotes: Callable[[str], Any] | None = None) -> None:
        """Assert formats or not; `remotes` serves remote references to tests of the engine, and is never set in production."""
        self._options: dict[str, Any] = {
            "validate_formats": formats,
            "pattern_options": jsonschema_rs.RegexOptions(),
            **({"retriever": remotes} if remotes else {"offline": True}),
        }

    def compile(self, schema: Schema) -> Validator:
        """Compile one schema. Raises SchemaFault."""
        if not isinstance(schema, dict | bool):
            raise SchemaFault("", "a schema is an object or a boolean")
        check_patterns(schema)
        try:
            compiled = jsonschema_rs.validator_for(schema, **self._options)
        except jsonschema_rs.ValidationError as error:
            raise SchemaFault(_place(schema, error), _cause(error)) from None
        except BaseException as error:
            # A panic of the Rust side is no Exception; everything else that is none (an interrupt) must go on.
            if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
                raise
            raise SchemaFault("", _cause(error)) from None
        return _RustValidator(compiled, schema)


class _FastValidator:
    """A schema compiled by fastjsonschema; its errors are explained by jsonschema-rs, which says more."""

    def __init__(self, check: Callable[[Any], Any], explain: Validator | None) -> None:
        self._check = check
        self._explain = explain
        self.quick: IsValid = self.is_valid

    def is_valid(self, value: Any) -> bool:
        try:
            self._check(value)
        except Exception:  # noqa: BLE001 - JsonSchemaValueException says no, and so does everything that goes wrong
            return False
        return True

    def flaws(self, value: Any, allowance: Allowance | None = None) -> tuple[Flaw, ...]:
        return (self._explain.flaws(value, allowance) if self._explain else ()) or _NO_PLACE


class FastEngine:
    """fastjsonschema, for schemas whose every keyword it is proven to honour (`proven.py`)."""

    name = "fastjsonschema"

    def __init__(self, *, formats: bool = False, explain: Engine | None = None) -> None:
        self._formats = formats
        self._explain = explain

    def compile(self, schema: Schema) -> Validator:
        """Compile one schema. Raises SchemaFault, also for what it is not proven to honour."""
        found = unproven(schema, formats=self._formats)
        if found:
            at, keyword = found
            raise SchemaFault(at, f"fastjsonschema is not proven to honour {keyword} in {draft_of(schema)}")
        explain = self._explain.compile(schema) if self._explain else None
        try:
            # It rewrites references inside of what it is given: a copy keeps the schema, and its hash, as they are.
            check = fastjsonschema.compile(
                copy.deepcopy(schema),
                handlers={"": _refuse, "http": _refuse, "https": _refuse, "file": _refuse},
                use_default=False,
                use_formats=False,
            )
        except Exception as error:  # noqa: BLE001 - whatever it trips over, the schema cannot be used with it
            raise SchemaFault("", _cause(error)) from None
        return _FastValidator(check, explain)


def _refuse(uri: str) -> Any:
    message = f"remote reference {uri}"
    raise ValueError(message)


def check_patterns(schema: Schema) -> None:
    """Raise SchemaFault for the first pattern that ECMA-262 and a linear-time engine do not read alike."""
    for path, part in subschemas(schema):
        named = part.get("patternProperties")
        for pattern in named if isinstance(named, dict) else ():
            if fault := fault_of_pattern(pattern):
                raise SchemaFault(pointer((*path, "patternProperties", pattern))[:MAX_POINTER], fault)
        pattern = part.get("pattern")
        if isinstance(pattern, str) and (fault := fault_of_pattern(pattern)):
            raise SchemaFault(pointer((*path, "pattern"))[:MAX_POINTER], fault)


def _cause(error: BaseException) -> str:
    return (str(error).strip().split("\n", 1)[0] or type(error).__name__)[:MAX_CAUSE]


def _place(schema: Schema, error: jsonschema_rs.ValidationError) -> str:
    """Where in the schema: jsonschema-rs names the place of a wrong keyword, but not that of a reference."""
    if error.instance_path:
        return pointer(error.instance_path)[:MAX_POINTER]
    if "meta-schema" in error.message:
        return "/$schema"
    for path, part in subschemas(schema):
        for keyword in ("$ref", "$dynamicRef", "$recursiveRef"):
            reference = part.get(keyword)
            if isinstance(reference, str) and reference.strip("#") and reference.removeprefix("#") in error.message:
                return pointer((*path, keyword))[:MAX_POINTER]
    return ""
