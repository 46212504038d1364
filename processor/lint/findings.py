"""What lint can find: a closed list of rules, and one finding of one.

Owns the names of the rules, which suppressions and CI rely on, and their levels.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Self


class Level(StrEnum):
    """How much a finding matters; the words are those of SARIF."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"

    @property
    def rank(self) -> int:
        """Larger is worse."""
        return {"note": 1, "warning": 2, "error": 3}[self.value]


class Rule(StrEnum):
    """One kind of finding."""

    level: Level

    def __new__(cls, code: str, level: Level, meaning: str) -> Self:
        """Make a member whose value is `code` and whose docstring is `meaning`."""
        member = str.__new__(cls, code)
        member._value_ = code
        member.level = level
        member.__doc__ = meaning
        return member

    UNUSABLE = "unusable", Level.ERROR, "The file or its schema cannot be used: `callgate run` would not start with it."
    PATTERN = (
        "pattern",
        Level.ERROR,
        "Only a backtracking engine, or one of another dialect, can run the pattern; it is refused.",
    )
    NO_TOOLS = "no-tools", Level.WARNING, "The folder has no tool: every call will be `unknown_tool`."
    SKIPPED_FILE = "skipped-file", Level.WARNING, "A file of the folder is not read, for the end of its name."
    UNKNOWN_MEMBER = "unknown-member", Level.WARNING, "A tool has a member that none has; it is ignored."
    NO_PARAMETERS = "no-parameters", Level.WARNING, "A tool has no `parameters`: it takes no argument."
    NAME = "name", Level.WARNING, "Providers take names of 1 to 64 letters, digits, underscores and hyphens only."
    ENGINES_DIFFER = (
        "engines-differ",
        Level.WARNING,
        "Two validators read a keyword differently: an executor's may take what callgate rejects, or refuse what it approves.",
    )
    OPEN_OBJECT = (
        "open-object",
        Level.WARNING,
        "An object takes members that it does not name: `additionalProperties` is left open, so misspelt names pass.",
    )
    NOT_ONLY_OBJECTS = "not-only-objects", Level.WARNING, "The schema also takes what is no object; arguments always are one."
    UNREACHABLE = (
        "unreachable",
        Level.WARNING,
        "Nothing can satisfy this part: its branch is never taken, or its member never given.",
    )
    COSTLY = (
        "costly",
        Level.WARNING,
        "Judging large arguments may take over a second, and hold its partition up: bound lists, patterns and branches.",
    )
    STRICT_MODE = "strict-mode", Level.NOTE, "Strict mode of the providers forbids it; a warning where the tool says `strict`."
    CYCLE = "cycle", Level.NOTE, "The schema refers back to itself: arguments may nest as deep as `max_argument_depth`."
    UNBOUNDED_INTEGER = (
        "unbounded-integer",
        Level.NOTE,
        "An integer has no bound on one side: executors keep other ranges of integers than JSON does.",
    )
    ONE_ENGINE = "one-engine", Level.NOTE, 'The second validator cannot be trusted with it: `engine = "both"` checks with one.'


@dataclass(frozen=True)
class Finding:
    """One thing found in one place."""

    rule: Rule
    file: str
    """Relative to the schemas folder; `.` is the folder itself."""
    pointer: str
    """JSON Pointer into the file; empty: the file as a whole."""
    tool: str
    """Name of the tool, with its namespace; empty where it is not known."""
    detail: str
    level: Level


def finding(rule: Rule, file: str, pointer: str, tool: str, detail: str, level: Level | None = None) -> Finding:
    """Make one, with the rule's own level unless another is given."""
    return Finding(rule, file, pointer, tool, detail, level or rule.level)
