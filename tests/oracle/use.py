"""One appearance of an item: the pieces that belong to it, and whether they agree (rules 4 to 7).

Owns what pieces say beside each other. What becomes of an item is decided in `response.py`.
"""

import json
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tests.factories import Json

Token: TypeAlias = tuple[int, ...]
"""Where in the log something happens: place of the record, phase, then order within."""
COUNTED_ONLY = (
    "message",
    "reasoning",
    "web_search_call",
    "file_search_call",
    "code_interpreter_call",
    "image_generation_call",
    "mcp_call",
    "mcp_list_tools",
    "function_call_output",
)
COMPARED = ("type", "namespace", "name", "call_id", "arguments")


@dataclass
class Use:
    """One appearance of an item at an index: every piece that belongs to it."""

    index: int | None
    before: list[Json] = field(default_factory=list)
    """`added` and `arguments.done`, in order."""
    deltas: list[str] = field(default_factory=list)
    done: Json | None = None
    entry: Json | None = None
    """Its entry in the terminal list."""
    identified: bool = False
    """`added` or a final piece was seen; else there are only deltas and `arguments.done`."""
    spoiled: bool = False
    """Pieces cannot be told apart, or one is no text: in conflict."""
    renamed_to: str | None = None
    renames: bool = False
    """It is published under that id (`call_id_renamed`)."""
    decided: bool = False
    cut: bool = False
    limited: bool = False
    """A bound was hit while it was collected: decided at once, and its content is not kept."""
    silent: bool = False
    """Limited, and no decision of its own: something finished under its call_id before."""
    late: bool = False
    """Nothing is decided for it: its call_id has no content (rule 9), or it says what was said before."""
    done_at: Token = ()
    before_restart: bool = False
    """Decided before an unnumbered stream was started again: nothing belongs to it any more."""

    @property
    def final(self) -> Json | None:
        """The piece that must say everything by itself (rule 7)."""
        return self.done if self.done is not None else self.entry

    @property
    def ids(self) -> list[str]:
        """Every non-empty call_id that was seen for it, in order."""
        listed = None if self.renamed_to is not None else self.entry
        pieces = [*self.before, *(p for p in (self.done, listed) if p is not None)]
        return [p["call_id"] for p in pieces if isinstance(p.get("call_id"), str) and p["call_id"]]

    @property
    def call_id(self) -> str | None:
        """Rule 6."""
        if self.ids:
            return self.ids[0]
        pieces = [*self.before, *(p for p in (self.done, self.entry) if p is not None)]
        return "" if any(p.get("call_id") == "" for p in pieces) else None

    @property
    def claims(self) -> set[str]:
        """The ids that it uses up: the one it is published under, and that of its final piece."""
        final = (self.final or {}).get("call_id")
        return {c for c in (self.call_id, final) if isinstance(c, str) and c}

    @property
    def type(self) -> Any:
        """Of the final piece, else of the first that had one; pieces of arguments can only be a function call's."""
        if not self.identified:
            return "function_call"
        pieces = [*([self.final] if self.final is not None else []), *self.before]
        return next((p["type"] for p in pieces if p.get("type") is not None), None)

    @property
    def first_type(self) -> Any:
        """What it was announced as."""
        return next((t for t in self.types if t is not None), None)

    @property
    def types(self) -> list[Any]:
        """Every type that was seen for it."""
        return [p.get("type") for p in [*self.before, *([self.done] if self.done is not None else [])]]

    @property
    def counted_only(self) -> bool:
        """Nothing that was streamed of it says that it is to be decided."""
        said = [t for t in self.types if t is not None]
        return bool(said) and all(t in COUNTED_ONLY for t in said)

    @property
    def is_call(self) -> bool:
        """A function call, or something that was announced as one."""
        return "function_call" in (self.first_type, self.type)

    def content(self) -> str:
        """What it says, for telling a repeat from another use of its call_id."""
        return says({**(self.final or {}), "call_id": None})


def says(piece: Json) -> str:
    """What a piece says in the fields that are compared, as one text."""
    return json.dumps([piece.get(name) for name in COMPARED], sort_keys=True)


def whole(text: Any) -> Any:
    """Join surrogate pairs that were split between two deltas."""
    if isinstance(text, str):
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass") if _paired(text) else text
    return text


def _paired(text: str) -> bool:
    try:
        text.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        return False
    return True


def disagree(use: Use) -> bool:
    """Whether a piece contradicts the final one (rule 7)."""
    if use.spoiled or (use.renamed_to is not None and not use.renames):
        return True
    if use.renames:  # the entry's id is forgiven; what the streamed pieces say of theirs is not
        use = Use(use.index, use.before, use.deltas, done=use.done, entry=anonymous(use.entry))
    final = use.final or {}
    for name in COMPARED:
        if name == "arguments" and not use.is_call:  # Refused for its type.
            continue
        said = [p.get(name) for p in use.before]
        said = [s for s in said if s not in (None, "") and not (name == "arguments" and s == "{}")]
        if len({json.dumps(s, sort_keys=True) for s in said}) > 1:
            return True
        if name == "arguments" and "".join(use.deltas):
            said.append("".join(use.deltas))
        if use.entry is not None and use.entry.get(name) is not None:
            said.append(use.entry[name])
        if name == "call_id" and not final.get(name):
            continue  # Refused for its identity.
        if final.get(name) is not None and any(whole(s) != whole(final[name]) for s in said):
            return True
    return False


def as_texts(value: Any) -> Any:
    """The same, with arguments that are objects as their compact text (`arguments_object`)."""
    if isinstance(value, list):
        return [as_texts(one) for one in value]
    if not isinstance(value, dict):
        return value
    made = {k: as_texts(v) for k, v in value.items() if k not in ("tools", "tool_choice")}
    if isinstance(made.get("arguments"), dict):
        made["arguments"] = json.dumps(value["arguments"], separators=(",", ":"), ensure_ascii=False)
    return made | {k: v for k, v in value.items() if k in ("tools", "tool_choice")}


def same_id(use: Use, item: Json) -> bool:
    """Whether an item carries a call_id that was seen for this use."""
    return bool(item.get("call_id")) and item.get("call_id") in use.ids


def contradicts(use: Use, entry: Json) -> bool:
    """Whether a terminal entry says something else than the final piece of a finished use."""
    said = {name: value for name, value in (use.done or {}).items() if value is not None and (name, value) != ("call_id", "")}
    return any(name in said and entry.get(name) is not None and said[name] != entry[name] for name in COMPARED)


def same_entry(use: Use, entry: Json) -> bool:
    """Whether this is the use's entry in the terminal list, or says the same under the same call_id."""
    return use.entry is entry or (use.entry is not None and bool(entry.get("call_id")) and says(use.entry) == says(entry))


def twin(use: Use, entry: Json) -> bool:
    """Whether an entry under another call_id has this call's name and arguments; placeholders are none (rule 7)."""
    final = use.final or {}
    names = [final.get("name"), next((p["name"] for p in use.before if p.get("name")), None)]
    texts = [p.get("arguments") for p in use.before if p.get("arguments") not in (None, "", "{}")] + ["".join(use.deltas)]
    text = final.get("arguments") if use.final else next((whole(t) for t in texts if t), None)
    return entry.get("name") in [n for n in names if n] and bool(text) and bool(entry.get("arguments") == text)


def take(free: list[Json], entry: Json) -> None:
    """Remove this very entry from those that are free."""
    del free[next(i for i, e in enumerate(free) if e is entry)]


def anonymous(piece: Any) -> Any:
    """The piece without its call_id."""
    return None if piece is None else {**piece, "call_id": None}
