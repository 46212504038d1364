"""Walks over a JSON Schema: its subschemas, its references, and how large it becomes when every reference is written out.

Owns the knowledge of which keywords hold schemas, in any draft. It never validates anything, resolves only pointers into the
same document, and is bounded: a schema that is too deep or too large is said to be so, whatever is in it.
"""

from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import unquote


def words(text: str) -> frozenset[str]:
    """A table of keywords, written as words."""
    return frozenset(text.split())


DRAFTS: Final = {
    "http://json-schema.org/draft-04/schema": "draft4",
    "http://json-schema.org/draft-06/schema": "draft6",
    "http://json-schema.org/draft-07/schema": "draft7",
    "https://json-schema.org/draft/2019-09/schema": "draft2019-09",
    "https://json-schema.org/draft/2020-12/schema": "draft2020-12",
}
"""Drafts by the identifier of their meta-schema, without an empty fragment."""
DEFAULT_DRAFT: Final = "draft2020-12"
"""What a schema without `$schema` is read as."""

ONE: Final = words(
    "not if then else contains propertyNames additionalProperties additionalItems items unevaluatedItems "
    "unevaluatedProperties contentSchema"
)
"""Keywords that hold one schema (`items` may hold a list as well)."""
LIST: Final = frozenset({"allOf", "anyOf", "oneOf", "prefixItems", "items"})
"""Keywords that hold a list of schemas."""
MAP: Final = frozenset({"properties", "patternProperties", "dependentSchemas", "$defs", "definitions", "dependencies"})
"""Keywords that hold schemas by name."""
REFERENCES: Final = frozenset({"$ref", "$dynamicRef", "$recursiveRef"})
"""Keywords that name another schema."""
ASIDE: Final = frozenset({"$defs", "definitions"})
"""Schemas that apply only where something refers to them."""
_DESCENDS: Final = words(
    "properties patternProperties additionalProperties unevaluatedProperties propertyNames items prefixItems "
    "additionalItems unevaluatedItems contains"
)
"""Keywords whose schemas apply to a part of the instance, so that a cycle through them ends with the instance."""


def draft_of(schema: Any) -> str | None:
    """Name of the draft a schema declares, the default one where it declares none, None where it is unknown."""
    if not isinstance(schema, dict) or "$schema" not in schema:
        return DEFAULT_DRAFT
    declared = schema["$schema"]
    return DRAFTS.get(declared.removesuffix("#")) if isinstance(declared, str) else None


def pointer(path: Iterator[Any] | list[Any] | tuple[Any, ...]) -> str:
    """JSON Pointer (RFC 6901) of a path of names and indexes."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)


def children(schema: dict[str, Any]) -> Iterator[tuple[str, tuple[str | int, ...], Any]]:
    """Direct subschemas: keyword, path below the schema, subschema."""
    for keyword, value in schema.items():
        if keyword in MAP and isinstance(value, dict):
            for name, part in value.items():
                if isinstance(part, dict | bool):
                    yield keyword, (keyword, name), part
        elif keyword in LIST and isinstance(value, list):
            for index, part in enumerate(value):
                yield keyword, (keyword, index), part
        elif keyword in ONE and isinstance(value, dict | bool):
            yield keyword, (keyword,), value


def subschemas(schema: Any) -> Iterator[tuple[tuple[str | int, ...], dict[str, Any]]]:
    """Every schema object of a document with its path, the document itself first."""
    todo: list[tuple[tuple[str | int, ...], Any]] = [((), schema)]
    while todo:
        path, part = todo.pop()
        if isinstance(part, dict):
            yield path, part
            todo.extend(((*path, *below), child) for _, below, child in children(part))


def depth_of(value: Any, bound: int) -> int:
    """Nesting of a JSON value, counted no further than the bound."""
    level: list[Any] = [value]
    depth = 0
    while level and depth <= bound:
        below: list[Any] = []
        for part in level:
            if type(part) is dict:
                below.extend(part.values())
            elif type(part) is list:
                below.extend(part)
        depth += 1
        level = [part for part in below if type(part) is dict or type(part) is list]
    return depth


def resolve(document: Any, reference: str) -> Any:
    """The value that a reference of the form `#/a/b` points to; None where it has another form or points nowhere."""
    if reference in {"#", ""}:
        return document
    if not reference.startswith("#/"):
        return None
    part = document
    for step in unquote(reference[2:]).split("/"):
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(part, dict) and name in part:
            part = part[name]
        elif isinstance(part, list) and name.isdecimal() and int(name[:9]) < len(part):
            part = part[int(name[:9])]
        else:
            return None
    return part


class TooLarge(ValueError):
    """A schema that costs more than it may: its text says which bound it breaks."""


def expanded_size(document: Any, bound: int) -> int:
    """Schemas to be visited when every reference is written out, cycles once.

    Raises TooLarge over the bound, and for a reference that comes back to itself without descending into the instance.
    """
    return Expansion(document, bound).of(document)


def weight(document: Any) -> int | None:
    """What listing the errors of an instance costs at most for each part of it, in schemas and what they list.

    None where there is no such number. The engine remembers what it has found where it only says valid or not, and forgets it
    where it lists errors: a cycle with two ways back for one part of the instance then doubles the cost at each level (52 s for
    12 levels were measured).
    """
    try:
        return Expansion(document, HEAVIEST, remember=False).weight()
    except TooLarge:
        return None


class Expansion:
    """One count of schemas, of a document that may refer to itself."""

    def __init__(self, document: Any, bound: int, *, remember: bool = True) -> None:
        self.document = document
        self.bound = bound
        self.remember = remember
        self.sizes: dict[int, int] = {}
        """Of finished schemas, by identity."""
        self.open: dict[int, int] = {}
        """Schemas being counted, with the number of descents into the instance on the way to them."""
        self.returns: list[tuple[str | int, ...]] = []
        """Ways into the instance by which cycles come back."""
        self.visited = 0
        self.named: dict[str, dict[str, Any]] | None = None
        """Schemas by anchor or identifier, once a reference asks for them."""

    def weight(self) -> int | None:
        """Size, or None where two ways back go into the same part of the instance."""
        size = self.of(self.document)
        ways = self.returns
        return None if any(_overlap(one, other) for place, one in enumerate(ways) for other in ways[:place]) else size

    def of(self, schema: Any, way: tuple[str | int, ...] = ()) -> int:
        """Size of one schema, reached by this way into the instance."""
        if not isinstance(schema, dict):
            return 1
        mark = id(schema)
        if mark in self.open:
            return self.again(mark, way)
        if mark in self.sizes:
            return self.sizes[mark]
        if len(self.open) > MAX_NESTED:
            message = f"nested or referring deeper than {MAX_NESTED}"
            raise TooLarge(message)
        self.open[mark] = len(way)
        size = 1 if self.remember else self.add(1, _listed(schema))
        for keyword, below, child in children(schema):
            if keyword not in ASIDE:
                size = self.add(size, self.of(child, (*way, *_step(keyword, below))))
        for keyword in REFERENCES & schema.keys():
            size = self.add(size, self.of(self.target(schema[keyword]), way))
        del self.open[mark]
        if self.remember:
            self.sizes[mark] = size
        return size

    def add(self, size: int, more: int) -> int:
        """Sum, within the bound."""
        self.visited += 1
        if size + more > self.bound or (not self.remember and self.visited > self.bound):
            message = f"over {self.bound} schemas when its references are written out"
            raise TooLarge(message)
        return size + more

    def again(self, mark: int, way: tuple[str | int, ...]) -> int:
        """A reference back to a schema that is being counted."""
        descents = way[self.open[mark] :]
        if not descents:
            message = "a reference comes back to itself without descending into the arguments"
            raise TooLarge(message)
        if not self.remember:
            self.returns.append(descents)
            if len(self.returns) > MAX_RETURNS:
                message = f"over {MAX_RETURNS} cycles"
                raise TooLarge(message)
        return 1

    def target(self, reference: Any) -> Any:
        """What a reference inside the document points to: by pointer, by anchor or by identifier."""
        if not isinstance(reference, str):
            return None
        if reference == "#" or reference.startswith("#/"):
            return resolve(self.document, reference)
        base, _, fragment = reference.partition("#")
        if self.named is None:
            self.named = dict(_names(self.document))
        if not base:
            return self.named.get("#" + fragment)
        part = self.named.get(base.rpartition("/")[2])
        return resolve(part, "#" + fragment) if fragment else part


def _listed(schema: dict[str, Any]) -> int:
    """Names and values that a schema lists: each missing name is an error of its own (16 million were, of a 10 kB schema)."""
    lists = [schema.get("enum"), schema.get("required")]
    for keyword in ("dependentRequired", "dependencies"):
        named = schema.get(keyword)
        lists += named.values() if isinstance(named, dict) else ()
    return sum(len(each) for each in lists if isinstance(each, list))


def _names(document: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Names by which schemas of a document can be referred to: `#anchor`, and the last part of an identifier."""
    for _, part in subschemas(document):
        for keyword in ("$anchor", "$dynamicAnchor"):
            if isinstance(part.get(keyword), str):
                yield "#" + part[keyword], part
        identifier = part.get("$id", part.get("id"))
        if isinstance(identifier, str) and identifier:
            yield (identifier if identifier.startswith("#") else identifier.rstrip("#").rpartition("/")[2]), part


MAX_NESTED: Final = 200
"""Nesting of schemas, references included, that is followed: far beyond any tool, far below any stack."""
MAX_RETURNS: Final = 50
"""Ways back that are compared with each other."""
HEAVIEST: Final = 20_000
"""Weight beyond which no errors are listed."""


def _overlap(one: tuple[str | int, ...], other: tuple[str | int, ...]) -> bool:
    return all(a == b or "*" in (a, b) for a, b in zip(one, other, strict=False))


def _step(keyword: str, below: tuple[str | int, ...]) -> tuple[str | int, ...]:
    """The part of the instance that a keyword descends to; nothing where it stays."""
    if keyword not in _DESCENDS:
        return ()
    return (below[1],) if keyword == "properties" else ("*",)
