"""Text as the wire has it: UTF-8 sizes, and surrogate halves that only fit together once fragments are joined."""

from typing import Any, TypeGuard


def filled(value: Any) -> TypeGuard[str]:
    """Whether a field says something: a text that is not empty."""
    return type(value) is str and value != ""


def utf8_bytes(text: str) -> int:
    """Bytes of a text in UTF-8; a lone surrogate counts three, as its escape would be read."""
    return len(text.encode("utf-8", "surrogatepass"))


def halves(before: str, after: str) -> bool:
    """Whether a surrogate pair was split between two fragments: together they are one character of four bytes."""
    return "\ud800" <= before[-1:] <= "\udbff" and "\udc00" <= after[:1] <= "\udfff"


def join(fragments: list[str]) -> str:
    """Join fragments; a pair whose halves came in two fragments becomes its character."""
    text = "".join(fragments)
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return text


def key_text(key: bytes | None) -> str | None:
    """A record key as text: bytes that are not UTF-8 become lone surrogates, so that two keys never fall together."""
    return None if key is None else key.decode("utf-8", "surrogateescape")


def is_text(value: bytes) -> bool:
    """Say whether bytes are UTF-8."""
    if value.isascii():
        return True
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True
