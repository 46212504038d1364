"""What judging arguments by a schema may cost at most: rates by kind of value, from the schema alone, times the arguments.

Owns the estimate, in nanoseconds, and its table of rates: each was measured on jsonschema-rs 0.61, rounded up, and is held
against the clock by `python -m benchmarks.effort`. It is a function of schema and arguments, never of a clock, so that every
run gives the same verdict. It validates nothing and never raises for a schema whose expanded size is bounded.

Why rates by kind: a limit of 0.5 takes 0.7 us for an integer, and 17 us for 5e-324, since the engine compares numbers exactly.
"""

from operator import add
from typing import Any, Final, NamedTuple

from processor.core.patterns import states
from processor.core.schema_walk import ASIDE, REFERENCES, Expansion, children, subschemas


class Rates(NamedTuple):
    """Nanoseconds for each part of the arguments, by kind."""

    part: int = 0
    """Any value, whatever it is."""
    char: int = 0
    """A character of text."""
    whole: int = 0
    """A whole number up to 2^53."""
    real: int = 0
    """Another number of ordinary size."""
    far: int = 0
    """A number far from 1: the engine writes out its digits."""

    def plus(self, other: "Rates") -> "Rates":
        """Both together."""
        return Rates(*map(add, self, other))

    def times(self, factor: int) -> "Rates":
        """So many of it."""
        return Rates(*(factor * rate for rate in self))

    def most_a_char(self) -> int:
        """The most that one character of JSON text can bring: `1,` is a part of two, `.5,` is not JSON, `1e9,` has four."""
        return -(-self.part // 2) + self.char + max(-(-self.whole // 2), -(-self.real // 4), -(-self.far // 5))


Size = Rates
"""How many there are of each kind."""
_NONE: Final = Rates()
_STEP: Final = Rates(part=15)
"""A schema, looked at."""
_NAME: Final = Rates(part=25)
"""A name, looked up."""
_SMALL: Final = Rates(part=15, whole=15, real=850, far=3_500)
"""Comparing or dividing by a whole number up to 2^53."""
_BROKEN: Final = Rates(part=15, whole=3_500, real=3_500, far=35_000)
"""By another number of ordinary size."""
_FAR: Final = Rates(part=15, whole=21_000, real=21_000, far=36_000)
"""By a number far from 1."""
_EQUAL: Final = Rates(part=15, whole=40, real=4_000, far=20_000)
"""Being the same as a whole number."""
_UNIQUE: Final = Rates(part=550, whole=400, real=6_600, far=400_000)
"""`uniqueItems`: up to 15 items are compared each with each, more are hashed."""
_FORMAT: Final = Rates(part=200, char=30)
_PATTERN: Final = Rates(part=200)
"""A pattern, begun; each of its states takes STATE_NS a character where the engine cannot make them one machine."""
STATE_NS: Final = 10
NESTED: Final = 64
"""How often a part may be hashed again where the schema refers back to itself: the default depth of arguments."""

_EXACT: Final = 1 << 53
_NEAR: Final = 1e-20
_FAR_OFF: Final = 1e25
_BOUNDS: Final = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"})
_TEXTS: Final = frozenset({"format", "contentEncoding", "contentMediaType"})
_IN_PLACE: Final = frozenset({"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"})
"""Keywords whose schemas are asked again which members they have seen."""
_UNEVALUATED: Final = frozenset({"unevaluatedProperties", "unevaluatedItems"})


class Effort:
    """What one schema may cost."""

    def __init__(self, schema: Any) -> None:
        """Raise TooLarge for a reference that comes back to itself at once, or is nested too deep."""
        self.common, self.members = _Sum(schema).split()
        """For all of the arguments; and besides, for the member of each name."""
        most = max(map(Rates.most_a_char, self.members.values()), default=0)
        self.most_a_char = self.common.most_a_char() + most + 1
        """Nanoseconds that a character of arguments costs at the most."""

    def of(self, value: dict[str, Any]) -> int:
        """Nanoseconds that judging these arguments costs at the most. Walks all of them: some 0.1 us a part."""
        whole = size_of({})
        cost = 0
        for name, member in value.items():
            size = size_of(member).plus(Size(char=len(name)))
            whole = whole.plus(size)
            if name in self.members:
                cost += _product(self.members[name], size)
        return cost + _product(self.common, whole)


def size_of(value: Any) -> Size:
    """Count the parts of a value."""
    char = whole = real = far = 0
    todo = [value]
    for part in todo:
        kind = type(part)
        if kind is str:
            char += len(part)
        elif kind is dict:
            char += sum(map(len, part))
            todo.extend(part.values())
        elif kind is list:
            todo.extend(part)
        elif kind is int or kind is float:
            if kind is int and -_EXACT <= part <= _EXACT:
                whole += 1
            elif _is_near(part):
                real += 1
            else:
                far += 1
    return Size(len(todo), char, whole, real, far)


def states_of(schema: Any) -> int:
    """States of all patterns of a schema, each counted once: what compiling it takes, some 7 us each."""
    return sum(states(pattern) for _, part in subschemas(schema) for pattern in _patterns(part))


def _product(rates: Rates, size: Size) -> int:
    return sum(rate * count for rate, count in zip(rates, size, strict=True))


def _is_near(number: float) -> bool:
    return number == 0 or _NEAR <= abs(number) <= _FAR_OFF


def _patterns(schema: dict[str, Any]) -> list[str]:
    named = schema.get("patternProperties")
    found = list(named) if isinstance(named, dict) else []
    return [*found, schema["pattern"]] if isinstance(schema.get("pattern"), str) else found


class _Sum(Expansion):
    """One sum over a schema with its references written out."""

    def __init__(self, document: Any) -> None:
        super().__init__(document, bound=0)
        self.summed: dict[int, tuple[Rates, Rates]] = {}
        self.cyclic = False
        self.nested = NESTED if _refers_back(document) else 1

    def split(self) -> tuple[Rates, dict[str, Rates]]:
        """Rates for everything, and those that hold below one member only."""
        root = self.document
        named = root.get("properties") if isinstance(root, dict) else None
        if not isinstance(named, dict):
            named = {}
        members = {name: self.rates(part)[0] for name, part in named.items()}
        common = self.rates(root | {"properties": dict.fromkeys(named, True)} if named else root)[0]
        if self.cyclic:
            # What is said of one member may be said of any part. Twice: two schemas of one cycle, entered at each.
            self.summed.clear()
            return self.rates(root)[0].times(2), {}
        return common, members

    def rates(self, schema: Any) -> tuple[Rates, Rates]:
        """Of judging by a schema; and of asking it again what it has seen, for `unevaluatedProperties` around it."""
        if not isinstance(schema, dict):
            return _STEP, _STEP
        mark = id(schema)
        if mark in self.open:
            self.cyclic = True
            return _STEP, _STEP
        if mark in self.summed:
            return self.summed[mark]
        self.open[mark] = 0
        judge, again = self.own(schema), _STEP
        for keyword, _, child in children(schema):
            if keyword in ASIDE:
                continue
            first, second = self.rates(child)
            judge = judge.plus(first)
            if keyword in _IN_PLACE:
                again = again.plus(first).plus(second)
            else:
                again = again.plus(first if keyword == "contains" else _NAME)
        for keyword in REFERENCES & schema.keys():
            first, second = self.rates(self.target(schema[keyword]))
            judge = judge.plus(first)
            again = again.plus(first).plus(second)
        if isinstance(schema.get("patternProperties"), dict):
            again = again.plus(self.own({"patternProperties": schema["patternProperties"]}))
        if _UNEVALUATED & schema.keys():
            judge = judge.plus(again)
        del self.open[mark]
        self.summed[mark] = judge, again
        return judge, again

    def own(self, schema: dict[str, Any]) -> Rates:
        """Of the keywords of a schema by themselves."""
        rates = _STEP.times(1 + len(schema))
        for keyword, value in schema.items():
            if keyword in _BOUNDS:
                rates = rates.plus(_number(value, _SMALL))
            elif keyword in _TEXTS:
                rates = rates.plus(_FORMAT)
            elif keyword == "const":
                rates = rates.plus(_same(value))
            elif keyword == "enum" and isinstance(value, list) and not all(isinstance(entry, str) for entry in value):
                for entry in value:
                    rates = rates.plus(_same(entry))
            elif keyword == "uniqueItems" and value is not False:
                rates = rates.plus(_UNIQUE.times(self.nested))
            elif keyword in {"dependentRequired", "dependentSchemas", "dependencies"} and isinstance(value, dict):
                rates = rates.plus(_NAME.times(len(value)))
        for pattern in _patterns(schema):
            rates = rates.plus(_PATTERN).plus(Rates(char=STATE_NS * states(pattern)))
        return rates


def _number(value: Any, whole: Rates) -> Rates:
    """Of a number that every number in the arguments is held against."""
    if type(value) is bool or not isinstance(value, int | float):
        return _NONE
    if isinstance(value, int) and -_EXACT <= value <= _EXACT:
        return whole
    return _BROKEN if _is_near(value) else _FAR


def _same(value: Any) -> Rates:
    """Of a value that may be equal: each part of the arguments is held against one part of it."""
    found = Rates(part=30)
    todo = [value]
    for part in todo:
        if type(part) is dict:
            todo.extend(part.values())
        elif type(part) is list:
            todo.extend(part)
        else:
            found = Rates(*map(max, found, _number(part, _EQUAL)))
    return found


def _refers_back(document: Any) -> bool:
    """Whether the schema may apply to a part of what it applies to: any reference is taken for one that does."""
    return any(REFERENCES & part.keys() for _, part in subschemas(document))
