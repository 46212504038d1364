"""Values for a schema, some that fit and some that nearly do: what two validators are compared on.

Owns the generator. It is seeded, so that the same schema gives the same cases; it asks no validator, and need not be right: a
value that misses is a case as good as another.
"""

import random
from collections.abc import Iterator
from typing import Any, Final

from processor.core.schema_walk import resolve
from processor.lint.samples import Sampler

_DEEPEST: Final = 6
_TYPES: Final = ("object", "array", "string", "integer", "number", "boolean", "null")
_PLAIN: Final[tuple[Any, ...]] = (None, True, False, 0, 1, -1, 1.0, 0.5, "", "a", [], {}, 2**53, 1e100)
_FORMATS: Final = {
    "date": "2026-04-24",
    "date-time": "2026-04-24T12:00:00Z",
    "time": "12:00:00Z",
    "email": "a@example.com",
    "uri": "https://example.com/a",
    "uuid": "123e4567-e89b-12d3-a456-426614174000",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "hostname": "example.com",
}


class Cases:
    """Makes cases for one schema."""

    def __init__(self, schema: Any, seed: int = 0) -> None:
        self._schema = schema
        self._draw = random.Random(seed)  # noqa: S311 - the same cases each time are the point

    def take(self, count: int) -> Iterator[Any]:
        """So many cases; every third as made, the others with a mutation or two."""
        for number in range(count):
            value = self._value(self._schema, 0)
            for _ in range(number % 3):
                value = self._mutated(value)
            yield value

    def _value(self, schema: Any, depth: int) -> Any:
        draw = self._draw
        if not isinstance(schema, dict) or depth > _DEEPEST:
            return draw.choice(_PLAIN)
        schema = self._flat(schema)
        if "const" in schema:
            return schema["const"]
        if isinstance(schema.get("enum"), list) and schema["enum"]:
            return draw.choice(schema["enum"])
        for keyword in ("examples", "default"):
            given = schema.get(keyword)
            if given is not None and draw.random() < 0.1:
                return draw.choice(given) if keyword == "examples" and isinstance(given, list) and given else given
        return self._of_type(self._type(schema), schema, depth)

    def _flat(self, schema: dict[str, Any]) -> dict[str, Any]:
        """The schema with one of its branches, and what it refers to, beside its own keywords."""
        for _ in range(_DEEPEST):
            more: list[Any] = []
            if isinstance(schema.get("$ref"), str):
                more.append(resolve(self._schema, schema["$ref"]))
            more += schema["allOf"] if isinstance(schema.get("allOf"), list) else []
            for keyword in ("anyOf", "oneOf"):
                if isinstance(schema.get(keyword), list) and schema[keyword]:
                    more.append(self._draw.choice(schema[keyword]))
            more.append(schema.get("then" if self._draw.random() < 0.5 else "else"))
            if not any(isinstance(part, dict) for part in more):
                break
            own = {
                name: part for name, part in schema.items() if name not in {"$ref", "allOf", "anyOf", "oneOf", "then", "else"}
            }
            for part in more:
                if isinstance(part, dict):
                    own = _joined(own, part)
            schema = own
        return schema

    def _type(self, schema: dict[str, Any]) -> str:
        kind = schema.get("type")
        if isinstance(kind, list):
            kind = self._draw.choice(kind or ["null"])
        if isinstance(kind, str):
            return kind
        for keyword, meant in (("properties", "object"), ("required", "object"), ("items", "array"), ("pattern", "string")):
            if keyword in schema:
                return meant
        return "number" if "minimum" in schema or "maximum" in schema else self._draw.choice(_TYPES)

    def _of_type(self, kind: str, schema: dict[str, Any], depth: int) -> Any:
        if kind == "object":
            return self._object(schema, depth)
        if kind == "array":
            return self._array(schema, depth)
        if kind == "string":
            return self._string(schema)
        if kind in {"integer", "number"}:
            return self._number(schema, whole=kind == "integer")
        return self._draw.choice([True, False]) if kind == "boolean" else None

    def _object(self, schema: dict[str, Any], depth: int) -> dict[str, Any]:
        draw = self._draw
        named = schema.get("properties")
        properties: dict[str, Any] = named if isinstance(named, dict) else {}
        required = schema.get("required")
        needed = [name for name in required if isinstance(name, str)] if isinstance(required, list) else []
        chosen = [name for name in properties if name in needed or draw.random() < 0.5]
        made = {name: self._value(properties.get(name, True), depth + 1) for name in dict.fromkeys([*chosen, *needed])}
        for keyword in ("dependentRequired", "dependentSchemas", "dependencies"):
            spoken_of = schema.get(keyword)
            for name in spoken_of if isinstance(spoken_of, dict) else ():
                if draw.random() < 0.5:
                    made.setdefault(name, self._value(properties.get(name, True), depth + 1))
        if draw.random() < 0.2:
            made["surplus"] = self._value(schema.get("additionalProperties", True), depth + 1)
        patterns = schema.get("patternProperties")
        for pattern, part in (patterns if isinstance(patterns, dict) else {}).items():
            made[Sampler(pattern, draw).sample()] = self._value(part, depth + 1)
        return made

    def _array(self, schema: dict[str, Any], depth: int) -> list[Any]:
        items = schema.get("items")
        first = schema.get("prefixItems", items if isinstance(items, list) else [])
        rest = items if isinstance(items, dict) else schema.get("additionalItems", True)
        least, most = _count(schema.get("minItems"), 0), _count(schema.get("maxItems"), 4)
        made = [self._value(part, depth + 1) for part in (first if isinstance(first, list) else [])]
        length = self._draw.randint(min(least, 20), max(min(most, 20), min(least, 20)))
        made += [self._value(rest, depth + 1) for _ in range(length - len(made))]
        return made

    def _string(self, schema: dict[str, Any]) -> str:
        pattern = schema.get("pattern")
        if isinstance(pattern, str):
            return Sampler(pattern, self._draw).sample()
        if schema.get("format") in _FORMATS:
            return _FORMATS[schema["format"]]
        least, most = _count(schema.get("minLength"), 0), _count(schema.get("maxLength"), 8)
        # Some characters count as two where lengths are measured in UTF-16.
        return "".join(self._draw.choice("ab é\U0001f600") for _ in range(self._draw.choice([least, min(most, least + 20)])))

    def _number(self, schema: dict[str, Any], *, whole: bool) -> int | float:
        bounds = [schema.get(name) for name in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")]
        near: list[Any] = [bound for bound in bounds if isinstance(bound, int | float) and not isinstance(bound, bool)]
        number = self._draw.choice([*near, 0, 1, 7, 100]) + self._draw.choice([0, 0, 1, -1])
        return number if self._draw.random() < 0.8 else float(number) if whole else number + 0.5

    def _mutated(self, value: Any) -> Any:
        """Something near it."""
        draw = self._draw
        if isinstance(value, dict) and value and draw.random() < 0.8:
            name = draw.choice(list(value))
            if draw.random() < 0.3:
                return {key: part for key, part in value.items() if key != name}
            return value | {name: self._mutated(value[name])}
        if isinstance(value, list) and value and draw.random() < 0.8:
            place = draw.randrange(len(value))
            if draw.random() < 0.3:
                return [*value, value[place]]
            return [*value[:place], self._mutated(value[place]), *value[place + 1 :]]
        if isinstance(value, str) and draw.random() < 0.7:
            return draw.choice([value + "\n", value + "a", value[:-1], value.upper(), "é" + value])
        if isinstance(value, bool):
            return draw.choice([int(value), float(value), not value, str(value)])
        if isinstance(value, int | float) and abs(value) < 1e15 and draw.random() < 0.8:
            return draw.choice([value + 1, value - 1, float(value), value + 0.1, bool(value), str(value)])
        return draw.choice(_PLAIN)


def _joined(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Both schemas as one, roughly."""
    both = {**one, **other}
    for keyword in ("properties", "required"):
        mine, theirs = one.get(keyword), other.get(keyword)
        if isinstance(mine, dict) and isinstance(theirs, dict):
            both[keyword] = {**mine, **theirs}
        elif isinstance(mine, list) and isinstance(theirs, list):
            both[keyword] = [*mine, *theirs]
    return both


def _count(bound: Any, otherwise: int) -> int:
    return int(bound) if isinstance(bound, int | float) and 0 <= bound < 1e6 else otherwise
