"""How the text of one setting becomes a value: durations, bytes, lists, choices, secrets.

Owns units and their spelling. It knows no setting by name, and never puts a secret into a message or a representation.
"""

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DURATION_UNITS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
BYTE_UNITS = {"": 1, "b": 1, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "kb": 10**3, "mb": 10**6, "gb": 10**9}


@dataclass(frozen=True, repr=False)
class Secret:
    """A password or token, given as text or as a file that is read anew each time, so that it may be rotated."""

    text: str = ""
    """Never to be printed: use `reveal`."""
    path: Path | None = None
    """File whose whole content, less its last line breaks, is the secret."""

    def reveal(self) -> str:
        """Return the secret itself; raises OSError or UnicodeDecodeError where its file cannot be read."""
        if self.path is None:
            return self.text
        return self.path.read_text(encoding="utf-8").rstrip("\r\n")

    def __bool__(self) -> bool:
        """Whether one was given."""
        return self.path is not None or bool(self.text)

    def __repr__(self) -> str:
        """Never the secret."""
        return "Secret(***)" if self else "Secret()"


@dataclass(frozen=True)
class Kind:
    """What a setting's value may be."""

    parse: Callable[[Any], Any]
    """From text or a file's own type to the value; raises ValueError with the end of the sentence `<key> ...`."""
    show: Callable[[Any], str]
    """The value as a person would write it."""
    says: str
    """What may be written, for the documentation."""


def _number(value: Any, says: str) -> int:
    if isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,18}", value.strip()):
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    message = f"must be {says}"
    raise ValueError(message)


def whole(least: int, most: int | None = None) -> Kind:
    """A whole number from `least` to `most`."""
    says = f"a whole number of {least} or more" if most is None else f"a whole number from {least} to {most}"

    def parse(value: Any) -> int:
        number = _number(value, says)
        if number < least or (most is not None and number > most):
            message = f"must be {says}"
            raise ValueError(message)
        return number

    return Kind(parse, str, says)


def duration(least_ms: int = 1) -> Kind:
    """A time span with its unit, held in milliseconds."""

    def parse(value: Any) -> int:
        text = value.replace(" ", "") if isinstance(value, str) else ""
        parts = re.findall(r"([0-9]{1,12}(?:\.[0-9]{1,6})?)(ms|s|m|h|d)", text)
        if not parts or "".join(number + unit for number, unit in parts) != text:
            message = "must be a time with its unit, such as 500ms, 90s, 20m or 2h"
            raise ValueError(message)
        total = round(sum(float(number) * DURATION_UNITS[unit] for number, unit in parts))
        if total < least_ms:
            message = f"must be at least {show_duration(least_ms)}"
            raise ValueError(message)
        return total

    return Kind(parse, show_duration, "a time with its unit (`ms`, `s`, `m`, `h`, `d`)")


def show_duration(span_ms: int) -> str:
    """Write a time span with the largest unit that divides it."""
    for unit in ("d", "h", "m", "s"):
        if span_ms and span_ms % DURATION_UNITS[unit] == 0:
            return f"{span_ms // DURATION_UNITS[unit]}{unit}"
    return f"{span_ms}ms"


def size(least: int = 1) -> Kind:
    """A number of bytes, with or without a unit."""

    def parse(value: Any) -> int:
        if isinstance(value, str) and (found := re.fullmatch(r"([0-9]{1,15})\s*([A-Za-z]*)", value.strip())):
            factor = BYTE_UNITS.get(found[2].lower())
            value = int(found[1]) * factor if factor else None
        number = _number(value, "a number of bytes, such as 1048576, 512KiB or 1MiB")
        if number < least:
            message = f"must be at least {least} bytes"
            raise ValueError(message)
        return number

    return Kind(parse, show_size, "bytes, as a number or with a unit (`KiB`, `MiB`, `GiB`)")


def show_size(count: int) -> str:
    """Write a number of bytes with the largest binary unit that divides it."""
    for unit in ("GiB", "MiB", "KiB"):
        if count and count % BYTE_UNITS[unit.lower()] == 0:
            return f"{count // BYTE_UNITS[unit.lower()]}{unit}"
    return str(count)


def host_and_port(text: str) -> tuple[str, int]:
    """Take an address apart; brackets around an IPv6 host are left out. Raises ValueError where it is not `host:port`."""
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not re.fullmatch("[0-9]{1,5}", port) or not 0 < int(port) < 1 << 16:
        message = f"`{text}` is not `host:port`"
        raise ValueError(message)
    return host, int(port)


def choice(*allowed: str) -> Kind:
    """One word out of a closed list."""
    says = "one of " + ", ".join(f"`{word}`" for word in allowed)

    def parse(value: Any) -> str:
        if isinstance(value, str) and value in allowed:
            return value
        message = f"must be {says}"
        raise ValueError(message)

    return Kind(parse, str, says)


def listing(allowed: Iterable[str] = (), *, some: bool = False) -> Kind:
    """A list of words: an array, or one text with commas; held as a tuple without repeats, in the order given."""
    known = tuple(allowed)

    def parse(value: Any) -> tuple[str, ...]:
        words = _words(value)
        if bad := [word for word in words if known and word not in known]:
            message = f"has unknown entries ({', '.join(bad)}); known are {', '.join(known)}"
            raise ValueError(message)
        if some and not words:
            message = "must not be empty"
            raise ValueError(message)
        return tuple(dict.fromkeys(words))

    says = "a list" + (" out of " + ", ".join(f"`{word}`" for word in known) if known else "")
    return Kind(parse, lambda words: "[" + ", ".join(json.dumps(word) for word in words) + "]", says)


def _words(value: Any) -> list[str]:
    if isinstance(value, str):
        text = value.strip()
        if not text.startswith("["):
            return [word for part in text.split(",") if (word := part.strip())]
        try:
            value = json.loads(text)
        except ValueError:
            value = None
    if not isinstance(value, list | tuple) or not all(isinstance(word, str) and word for word in value):
        message = 'must be a list of texts: write `refund,other` or `["refund", "other"]`'
        raise ValueError(message)
    return list(value)


def _text(value: Any) -> str:
    if not isinstance(value, str) or "\0" in value:
        message = "must be a text"
        raise ValueError(message)
    return value


HEADER_CHARACTERS = 200
"""It travels in the metadata of every commit, where room is scarce."""


def _header(value: Any) -> str:
    name = _text(value)
    if len(name) > HEADER_CHARACTERS or not name.isascii():
        message = f"must be a header's name of at most {HEADER_CHARACTERS} ASCII characters"
        raise ValueError(message)
    return name


def _named(value: Any) -> str:
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        message = "must be a text that is not empty"
        raise ValueError(message)
    return value.strip()


def _flag(value: Any) -> bool:
    words = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.strip().lower() in words:
        return words[value.strip().lower()]
    message = "must be true or false"
    raise ValueError(message)


def _topic(value: Any) -> str:
    if isinstance(value, str) and re.fullmatch(r"[A-Za-z0-9._-]{1,249}", value) and value not in {".", ".."}:
        return value
    message = "must be a topic name: 1 to 249 letters, digits, dots, underscores and hyphens"
    raise ValueError(message)


def _secret(value: Any) -> Secret:
    if isinstance(value, dict):
        if set(value) != {"file"}:
            message = "must be a text, or a table with the one entry `file`"
            raise ValueError(message)
        return _secret_file(value["file"])
    return Secret(_text(value))


def _secret_file(value: Any) -> Secret:
    secret = Secret(path=Path(_named(value)))
    try:
        secret.reveal()
    except (OSError, UnicodeDecodeError) as fault:
        # Named where it can be nothing else than a path: somebody may have put the secret itself there.
        named = f"`{value}`" if Path(value).is_absolute() or value.startswith((".", "~")) else "a file"
        message = f"names {named}, which cannot be read: {getattr(fault, 'strerror', None) or 'it is not UTF-8'}"
        raise ValueError(message) from None
    return secret


HEADER = Kind(_header, lambda text: f'"{text}"', f"a header's name of at most {HEADER_CHARACTERS} characters")
TEXT = Kind(_text, lambda text: f'"{text}"', "a text")
NAMED = Kind(_named, str, "a text that is not empty")
TOPIC = Kind(_topic, str, "a topic name")
FLAG = Kind(_flag, lambda flag: str(flag).lower(), "`true` or `false`")
SECRET = Kind(_secret, lambda _: "", "a text, or in a file with `_file` behind the name")
SECRET_FILE = Kind(_secret_file, lambda _: "", "the path of a file")
