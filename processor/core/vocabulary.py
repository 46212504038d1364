"""The names of the wire: event and item types of Open Responses (spec version 2026-04-24) and of the OpenAI Responses API.

Owns what each name means for a decision. It never reads bytes and holds no state.
"""

from enum import IntEnum

from processor.core.event_types import EVENT_TYPES
from processor.core.events import Item

FUNCTION_CALL = "function_call"
FUNCTION_CALL_OUTPUT = "function_call_output"
TOOL_SEARCH_CALL = "tool_search_call"

ACTION_ITEM_TYPES = frozenset(
    (
        "custom_tool_call",
        "mcp_approval_request",
        "local_shell_call",
        "shell_call",
        "computer_call",
        "apply_patch_call",
    )
)
"""Items that ask the client to act but are no function call: `not_function_call`.

`shell_call` can also run in a container of the provider. It is refused there too: nobody executes it on this side anyway, and
where it runs is a nested field that providers leave out.
"""

COUNTED_ITEM_TYPES = frozenset(
    (
        "message",
        "reasoning",
        "compaction",
        "compaction_summary",
        "context_compaction",
        "item_reference",
        "web_search_call",
        "file_search_call",
        "code_interpreter_call",
        "image_generation_call",
        "mcp_call",
        "mcp_list_tools",
        "mcp_approval_response",
        "program",
        "program_output",
        "tool_search_output",
        "custom_tool_call_output",
        "local_shell_call_output",
        "shell_call_output",
        "computer_call_output",
        "apply_patch_call_output",
    )
)
"""Items that nobody on this side acts on: texts, what the provider ran itself (`program` too, although it has a call_id), and
outputs of other calls. They are counted, never decided."""

ITEM_TYPES = ACTION_ITEM_TYPES | COUNTED_ITEM_TYPES | {FUNCTION_CALL, FUNCTION_CALL_OUTPUT, TOOL_SEARCH_CALL}
"""Every item type that is known by name."""


class Kind(IntEnum):
    """What an item means for a decision."""

    CALL = 0
    """A function call: it is decided."""
    NAMESPACED = 1
    """Its type is missing, empty, not a string, or has a colon: rejected as `namespaced`."""
    ACTION = 2
    """It asks the client to act but is no function call: rejected as `not_function_call`."""
    COUNTED = 3
    """Counted, never decided."""
    OUTPUT = 4
    """A `function_call_output`: in a journal it must follow its call (rule 30), elsewhere it is only counted."""


def item_kind(item: Item) -> Kind:
    """Say what an item of a stream or of a response means (design section 5, rule 28).

    An unknown type with a `call_id` wants an answer from the client, so it is an action. `tool_search_call` is an action where
    the client is to run the search (`execution: "client"`, or not said but a `call_id` to answer to), else the provider's.
    """
    name = item.type
    if name == FUNCTION_CALL:
        return Kind.CALL
    if not isinstance(name, str) or not name or ":" in name:
        return Kind.NAMESPACED
    if name in COUNTED_ITEM_TYPES:
        return Kind.COUNTED
    if name == FUNCTION_CALL_OUTPUT:
        return Kind.OUTPUT
    if name in ACTION_ITEM_TYPES:
        return Kind.ACTION
    if name == TOOL_SEARCH_CALL and item.execution == "server":
        return Kind.COUNTED
    if name == TOOL_SEARCH_CALL and item.execution == "client":
        return Kind.ACTION
    return Kind.COUNTED if item.call_id is None else Kind.ACTION


def journal_kind(item: Item) -> Kind:
    """Say what an entry of a journal means: as `item_kind`, but an untyped one with role and content is a message (rule 30)."""
    if item.type is None and item.role is not None and item.content is not None:
        return Kind.COUNTED
    return item_kind(item)


def event_label(name: str) -> str:
    """Give the label under which an event type is counted: itself if known, else `extension` or `unknown`."""
    if name in EVENT_TYPES:
        return name
    return "extension" if ":" in name else "unknown"


def item_label(item: Item) -> str:
    """Give the label under which an item is counted: its type if known, else `extension` or `unknown`."""
    name = item.type
    if not isinstance(name, str):
        return "unknown"
    if name in ITEM_TYPES:
        return name
    return "extension" if ":" in name else "unknown"
