"""Reads the settings: one TOML or YAML file, the environment above it, `--set` above both.

Owns the order of sources and the report of faults: all of them together, one sentence each, with the source. It never prints
a secret, and never guesses: an unknown key is an error.
"""

import difflib
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

from processor.settings import Http, Kafka, Log, Setting, Settings, Topics, catalogue
from processor.values import SECRET, SECRET_FILE, Kind, Secret, host_and_port

__all__ = ["ConfigError", "Fault", "Http", "Kafka", "Log", "Secret", "Settings", "Topics", "load"]

PREFIX = "CALLGATE_"
RESERVED = re.compile(r"CALLGATE_(CONFIG|TEST_.*|DEMO_.*)")
"""Names of the environment that are no settings: the file's path, and what points tests and demo elsewhere."""
SERVICE_LINK = re.compile(
    r"CALLGATE_(.+_)?(SERVICE_HOST|SERVICE_PORT(_.+)?|PORT(_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)"
)
"""What Kubernetes puts into every pod's environment for a Service named `callgate...`: not ours, and no error."""


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong with the settings."""

    source: str
    """The file's path, `environment`, `--set`, or `settings` where several of them do not go together."""
    sentence: str

    def __str__(self) -> str:
        """Write the source, then the sentence."""
        return f"{self.source}: {self.sentence}"


class ConfigError(Exception):
    """The settings cannot be used; `faults` has everything that is wrong with them."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        """Hold the faults, in the order found."""
        self.faults = tuple(faults)
        super().__init__("\n".join(map(str, self.faults)))


@dataclass(frozen=True)
class _Given:
    """A value for a key, and where it is from."""

    source: str
    shown: str
    """The key as it is written there."""
    kind: Kind
    value: Any


def load(path: Path | None = None, environ: Mapping[str, str] | None = None, sets: Iterable[str] = ()) -> Settings:
    """Put the settings together; raises ConfigError with every fault at once.

    `environ` is the process's environment (none: it is not looked at), `sets` the `key=value` texts of the command line.
    """
    faults: list[Fault] = []
    given: dict[str, _Given] = {}
    known = {setting.key: setting for setting in catalogue()}
    kinds = {key: setting.kind for key, setting in known.items()}
    kinds.update({f"{key}_file": SECRET_FILE for key, kind in kinds.items() if kind is SECRET})
    for source in (
        _from_file(path, kinds, faults),
        _from_environ(environ or {}, kinds, faults),
        _from_sets(sets, kinds, faults),
    ):
        layer = dict(source)
        for key in [key for key in layer if kinds[key] is SECRET_FILE]:
            if key.removesuffix("_file") in layer:
                faults.append(Fault(layer[key].source, f"`{layer[key].shown}` and the secret itself are both given."))
            layer[key.removesuffix("_file")] = layer.pop(key)
        given.update(layer)
    values: dict[str, Any] = {}
    for key, one in given.items():
        try:
            values[key] = one.kind.parse(one.value)
        except ValueError as fault:
            faults.append(Fault(one.source, f"`{one.shown}` {fault}."))
    settings: Settings = _build(Settings, known, values)
    if not faults:
        faults.extend(Fault("settings", sentence) for sentence in _together(settings))
    if faults:
        raise ConfigError(faults)
    return settings


def _build(of: type, known: Mapping[str, Setting], values: Mapping[str, Any], prefix: str = "") -> Any:
    made: dict[str, Any] = {}
    for each in fields(of):
        key = prefix + each.name.removesuffix("_ms")
        if isinstance(each.type, type) and is_dataclass(each.type):
            made[each.name] = _build(each.type, known, values, f"{prefix}{each.name}.")
        elif key in values:
            made[each.name] = values[key]
    return of(**made)


def _unknown(key: str, kinds: Mapping[str, Kind], shown: str) -> str:
    near = difflib.get_close_matches(key, kinds, n=1)
    return f"`{shown}` is no setting" + (f"; did you mean `{near[0]}`?" if near else ".")


def _from_file(path: Path | None, kinds: Mapping[str, Kind], faults: list[Fault]) -> Iterator[tuple[str, _Given]]:
    if path is None:
        return
    source = str(path)
    try:
        tree = _parse_file(path)
    except ValueError as fault:
        faults.append(Fault(source, f"{fault}."))
        return
    for key, value in _flatten(tree, kinds):
        if key in kinds:
            yield key, _Given(source, key, kinds[key], value)
        else:
            faults.append(Fault(source, _no_section(key, kinds) if isinstance(value, dict) else _unknown(key, kinds, key)))


def _no_section(name: str, kinds: Mapping[str, Kind]) -> str:
    sections = {key.partition(".")[0] for key in kinds if "." in key}
    near = difflib.get_close_matches(name, sections, n=1)
    return f"`[{name}]` is no section" + (f"; did you mean `[{near[0]}]`?" if near else ".")


def _parse_file(path: Path) -> Mapping[str, Any]:
    if path.suffix not in {".toml", ".yaml", ".yml"}:
        message = "the file must end in .toml, .yaml or .yml"
        raise ValueError(message)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as fault:
        message = f"the file cannot be read ({getattr(fault, 'strerror', None) or 'it is not UTF-8'})"
        raise ValueError(message) from None
    if path.suffix == ".toml":
        try:
            return tomllib.loads(text)
        except tomllib.TOMLDecodeError as fault:
            message = f"the file is not TOML: {_toml_cause(str(fault))}"
            raise ValueError(message) from None
    import yaml  # noqa: PLC0415 - a slow import that most starts do not need

    try:
        tree = yaml.safe_load(text)
    except yaml.YAMLError as fault:
        message = f"the file is not YAML: {_yaml_cause(fault)}"
        raise ValueError(message) from None
    if tree is None:
        return {}
    if not isinstance(tree, dict):
        message = "the file must hold names and values"
        raise ValueError(message)  # noqa: TRY004 - the content is at fault, as above
    return tree


def _toml_cause(message: str) -> str:
    """The place, and the cause where it is one that is known to quote nothing: what stands there may be a secret."""
    found = re.search(r"at line \d+, column \d+|at end of document", message)
    place = found[0] if found else "it cannot be read"
    cause = next((said for start, said in TOML_CAUSES.items() if message.startswith(start)), "")
    return f"{cause}, {place}" if cause else place


TOML_CAUSES = {
    "Invalid value": "no value stands there (texts need quotes)",
    "Invalid initial character for a key": "no name stands there",
    "Invalid statement": "neither a name nor a section stands there",
    "Expected newline or end of document": "something follows a value that is complete",
    "Expected '=' after a key": "a name without `=`",
    "Expected ']' at the end of a table": "a section without its `]`",
    "Expected ']]' at the end": "a section without its `]]`",
    "Unclosed array": "a list without its `]`",
    "Unclosed inline table": "a table without its `}`",
    "Unterminated string": "a text without its closing quote",
    "Expected \"'": "a text without its closing quote",
    "Cannot overwrite a value": "a name comes twice",
    "Duplicate inline table key": "a name comes twice",
    "Cannot declare": "a section comes twice",
    "Cannot mutate immutable namespace": "a table is added to after its end",
    "Unescaped '\\\\' in a string": "a backslash that is not escaped",
    "Illegal character": "a character that may not stand there",
    "Found invalid character": "a character that may not stand there",
    "Invalid hex value": "a broken escape in a text",
    "Escaped character is not": "a broken escape in a text",
    "Invalid date": "a broken date",
}
"""Causes by how the parser's message begins, in words that hold nothing of the file."""


def _yaml_cause(fault: Exception) -> str:
    """Place and cause; of what the parser quotes, only its own words and punctuation are left."""
    mark, problem = getattr(fault, "problem_mark", None), getattr(fault, "problem", None)
    place = f"at line {mark.line + 1}, column {mark.column + 1}" if mark else "it cannot be read"
    if not isinstance(problem, str):
        return place
    cause = re.sub(r"(['\"])(?!<[a-z ]+>\1|[]\[{},:?-]\1).*\1", "something", problem, flags=re.DOTALL)
    return f"{cause}, {place}"


def _flatten(tree: Mapping[str, Any], kinds: Mapping[str, Kind], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in tree.items():
        key = f"{prefix}{name}"
        if isinstance(value, dict) and key not in kinds and any(known.startswith(f"{key}.") for known in kinds):
            yield from _flatten(value, kinds, f"{key}.")
        else:
            yield key, value


def _from_environ(environ: Mapping[str, str], kinds: Mapping[str, Kind], faults: list[Fault]) -> Iterator[tuple[str, _Given]]:
    names = {PREFIX + key.upper().replace(".", glue): key for glue in ("_", "__") for key in kinds}
    for name, value in sorted(environ.items()):
        if name in names:
            yield names[name], _Given("environment", name, kinds[names[name]], value)
        elif name.startswith(PREFIX) and not RESERVED.fullmatch(name) and not SERVICE_LINK.fullmatch(name):
            key = name.removeprefix(PREFIX).lower().replace("__", ".")
            faults.append(Fault("environment", _unknown(key, kinds, name)))


def _from_sets(sets: Iterable[str], kinds: Mapping[str, Kind], faults: list[Fault]) -> Iterator[tuple[str, _Given]]:
    for text in sets:
        key, equals, value = text.partition("=")
        key = key.strip()
        if not equals:
            faults.append(Fault("--set", f"`{key}` has no value; write key=value."))
        elif key in kinds:
            yield key, _Given("--set", key, kinds[key], value)
        else:
            faults.append(Fault("--set", _unknown(key, kinds, key)))


def _together(settings: Settings) -> Iterator[str]:
    """Faults that only several settings together have."""
    kafka = settings.kafka
    if settings.engine == "fastjsonschema" and settings.tools != "registry":
        yield (
            f"`engine = fastjsonschema` compiles schemas into code, and `tools = {settings.tools}` takes schemas from the "
            "stream, which are not trusted: use another engine, or `tools = registry`."
        )
    if len({settings.topics.events, settings.topics.approved, settings.topics.rejected, settings.topics.dead_letter}) < 4:
        yield "`topics.events`, `topics.approved`, `topics.rejected` and `topics.dead_letter` must be four different topics."
    for server in kafka.bootstrap_servers:
        try:
            host_and_port(server)
        except ValueError as fault:
            yield f"`kafka.bootstrap_servers`: {fault}."
    if bool(kafka.ssl_certfile) != bool(kafka.ssl_keyfile):
        yield "`kafka.ssl_certfile` and `kafka.ssl_keyfile` go together: give both or neither."
    if kafka.security_protocol.startswith("SASL_"):
        if kafka.sasl_mechanism == "OAUTHBEARER":
            if not kafka.sasl_oauth_token:
                yield "`kafka.sasl_mechanism = OAUTHBEARER` needs `kafka.sasl_oauth_token` or `kafka.sasl_oauth_token_file`."
        elif not (kafka.sasl_username and kafka.sasl_password):
            yield f"`kafka.sasl_mechanism = {kafka.sasl_mechanism}` needs `kafka.sasl_username` and `kafka.sasl_password`."
    if kafka.heartbeat_interval_ms >= kafka.session_timeout_ms:
        yield "`kafka.heartbeat_interval` must be shorter than `kafka.session_timeout`."
    if settings.commit_interval_ms >= kafka.transaction_timeout_ms:
        yield "`commit_interval` must be shorter than `kafka.transaction_timeout`."
