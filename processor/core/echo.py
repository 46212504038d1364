"""What a response says of its own tools: the lists it echoes and the limits it sets (rules 10 and 22)."""

from processor.core.canonical import canonical
from processor.core.events import JsonText, ResponseBody
from processor.core.state import Context, Pending, Response

_SHORT = 16
"""Bytes under which a list of tools may be empty or null in spite of blanks; a longer one is not parsed for that."""


def absorb(response: Response, body: ResponseBody | None, ctx: Context) -> None:
    """Take what a lifecycle event says of tools, tool_choice, parallel calls and the model."""
    if body is None:
        return
    if response.model is None and type(body.model) is str:
        response.model = ctx.names.of(body.model)
    if body.parallel_tool_calls is False:
        response.serial = True
    choice = _text(body.tool_choice)
    if choice is not None and choice != response.choice and _choose(response, ctx.tools.of(choice)):
        response.buffered_bytes += len(choice)
    tools = _text(body.tools)
    if tools is None or _empty(tools):
        return
    if not response.tools_echoed:
        response.tools, response.tools_echoed = ctx.tools.of(tools), True
        response.buffered_bytes += len(tools)
    elif not response.tools_clash and tools != response.tools:
        if response.tools_canonical is None:  # kept: the list may be long, and another spelling of it be said a thousand times
            response.tools_canonical = canonical(response.tools)
        response.tools_clash = canonical(tools) != response.tools_canonical


def inherit(response: Response, pending: Pending) -> None:
    """Take what the request before the response said; an echo takes the place of its tools."""
    response.tools = pending.tools
    response.serial = pending.serial
    if pending.choice is not None:
        _choose(response, pending.choice)
    response.buffered_bytes += len(pending.tools or b"") + len(pending.choice or b"")


def choices(response: Response) -> tuple[bytes, ...]:
    """Every tool_choice that was said, each once: all of them bind (rule 22)."""
    if response.choice is None:
        return ()
    if response.choices is None:  # one for all calls of the response: there may be thousands of both
        response.choices = (response.choice, *(response.other_choices or ()))
    return response.choices


def _choose(response: Response, choice: bytes) -> bool:
    """Keep a tool_choice; False where it was said before."""
    response.choices = None
    if response.choice is None:
        response.choice = choice
        return True
    if response.other_choices is None:
        response.other_choices = {}
    if choice == response.choice or choice in response.other_choices:
        return False
    response.other_choices[choice] = None
    return True


def pending(tools: JsonText, choice: JsonText, *, serial: bool) -> Pending:
    """What a request says of the response to come."""
    text = _text(tools)
    return Pending(None if text is None or _empty(text) else text, _text(choice), serial)


def _text(raw: JsonText) -> bytes | None:
    """Bytes of their own: the raw part is a view that would keep its whole record."""
    text = None if raw is None else bytes(raw)
    return None if text == b"null" else text


def _empty(tools: bytes) -> bool:
    return len(tools) < _SHORT and canonical(tools) in (b"[]", b"null")
