"""What assemble hands to the gate: one call whose evidence is complete, not yet judged by policy, toolset or schema.

Assembly's part of the order of reasons (`namespaced` to `conflict`, and a bound hit while collecting) is settled in `fault`;
everything the state of a partition depends on is decided there. The gate's verdict never flows back (design section 7: the
toolset may change verdicts after P, never timing).
"""

from typing import Any, Final

from msgspec import Struct

from processor.core.reasons import Reason

AUTO: Final = (b'"auto"',)
"""What nearly every response says of its tool_choice: it forbids nothing."""


class Candidate(Struct, kw_only=True):
    """One call to be decided, with all that the gate and the decision record need."""

    stream: str | None
    """Stream id: the key, as text."""
    response_id: str | None
    model: str | None
    call_id: str | None
    """The first non-empty one seen (rule 6); `""` where only empty ones were; None where there was none."""
    output_index: int | None
    type: Any
    """Of the final piece, else of the first piece that had one."""
    namespace: Any
    name: Any
    arguments: Any
    """Of the final piece: whatever JSON was there."""
    item_id: Any
    """`id` of the final piece: put into the portable item where it is a string, never invented."""
    fault: Reason | None
    """Assembly's verdict; None: the gate goes on with `not_allowed`."""
    detail: str
    """For people, with a fault: which pieces differ, which bound; never a value."""
    position: int
    """Place among the function calls of its response, from 0: the second and later ones fall to
    `parallel_tool_calls: false` (rule 22)."""
    parallel: bool
    """False where the response or its request said `parallel_tool_calls: false`."""
    tools: bytes | None
    """JSON text of the tools in force in-band: what the response echoed, else its request's; None where neither said."""
    tool_choices: tuple[bytes, ...]
    """JSON texts of every known tool_choice: all bind (rule 22)."""
    tolerated: tuple[str, ...] = ()
    """Names of the tolerances that assembly needed (rule 34)."""
    usual: bool = False
    """Nothing but its tool and its arguments can be wrong with it: no fault, no namespace, nothing tolerated, parallel calls
    allowed, and AUTO the only tool_choice. Told by assembly in passing; False says nothing."""
    record: Any = None
    """The record that released it, told from others only: all of its calls share what may be spent on explaining them."""
    salt: str = ""
    """Rule 32: what the decision id hashes besides key, response id and call_id."""
    first_offset: int
    last_offset: int
    event_time: int
    """Milliseconds since the epoch: timestamp of the record that released it (rule 35)."""
    traceparent: bytes | None = None
    tracestate: bytes | None = None
