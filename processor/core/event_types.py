"""The names of streaming events: Open Responses, spec version 2026-04-24, and the OpenAI Responses API.

Owns the lists alone: the typed decoder is made from them, so that it knows these names and no others.
"""

RESPONSE_CREATE = "response.create"
"""The request of the WebSocket form; the only client message that matters here (design section 3, form 6)."""

RESPONSE_FAILED = "response.failed"

TERMINAL_TYPES = frozenset(
    (
        "response.completed",
        "response.incomplete",
        RESPONSE_FAILED,
        "response.cancelled",
        "error",
    )
)
"""Events that end a response. `response.cancelled` is read as failed (rule 17), `error` releases nothing either."""

CREATED = "response.created"

LIFECYCLE_TYPES = frozenset(("response.queued", CREATED, "response.in_progress")) | TERMINAL_TYPES
"""Events about a response as a whole."""

_CALLS = frozenset(
    (
        "response.output_item.added",
        "response.output_item.done",
        "response.function_call_arguments.delta",
        "response.function_call_arguments.done",
    )
)

DECIDING_TYPES = LIFECYCLE_TYPES | _CALLS
"""Events that a decision is made from. All others only say that the stream is alive and carry a sequence number."""

_TEXT = frozenset(
    (
        "response.content_part.added",
        "response.content_part.done",
        "response.output_text.delta",
        "response.output_text.done",
        "response.output_text.annotation.added",
        "response.output_text_annotation.added",
        "response.refusal.delta",
        "response.refusal.done",
        "response.reasoning.delta",
        "response.reasoning.done",
        "response.reasoning_part.added",
        "response.reasoning_part.done",
        "response.reasoning_text.delta",
        "response.reasoning_text.done",
        "response.reasoning_summary.delta",
        "response.reasoning_summary.done",
        "response.reasoning_summary_part.added",
        "response.reasoning_summary_part.done",
        "response.reasoning_summary_text.delta",
        "response.reasoning_summary_text.done",
        "response.audio.delta",
        "response.audio.done",
        "response.audio.transcript.delta",
        "response.audio.transcript.done",
    )
)

_OTHER_TOOLS = frozenset(
    (
        "response.web_search_call.in_progress",
        "response.web_search_call.searching",
        "response.web_search_call.completed",
        "response.file_search_call.in_progress",
        "response.file_search_call.searching",
        "response.file_search_call.completed",
        "response.code_interpreter_call.in_progress",
        "response.code_interpreter_call.interpreting",
        "response.code_interpreter_call.completed",
        "response.code_interpreter_call_code.delta",
        "response.code_interpreter_call_code.done",
        "response.image_generation_call.in_progress",
        "response.image_generation_call.generating",
        "response.image_generation_call.partial_image",
        "response.image_generation_call.completed",
        "response.mcp_call.in_progress",
        "response.mcp_call.completed",
        "response.mcp_call.failed",
        "response.mcp_call_arguments.delta",
        "response.mcp_call_arguments.done",
        "response.mcp_list_tools.in_progress",
        "response.mcp_list_tools.completed",
        "response.mcp_list_tools.failed",
        "response.custom_tool_call_input.delta",
        "response.custom_tool_call_input.done",
        "response.apply_patch_call_operation_diff.delta",
        "response.apply_patch_call_operation_diff.done",
        "response.shell_call_command.added",
        "response.shell_call_command.delta",
        "response.shell_call_command.done",
        "response.shell_call_output_content.delta",
        "response.shell_call_output_content.done",
    )
)

EVENT_TYPES = DECIDING_TYPES | _TEXT | _OTHER_TOOLS | frozenset(("keepalive",))
"""Every streaming event type that is known by name."""
