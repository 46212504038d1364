"""Every setting and bound that the state of a partition depends on, with unit, motive and what hitting it means.

These travel in the commit's metadata (design section 7): a rebuild up to P uses the ones stored there. What only a verdict
depends on (argument depth, toolset, policy, engine) is not here.
"""

from msgspec import Struct

MEANING = 1
"""Version of the core's meaning: raised whenever the same log and settings would give another state. A commit with another
version is refused by name, never guessed at."""

METADATA_BYTES = 2_500
"""Bound on the encoded metadata of a commit; the broker's own bound is 4,096 and over it the producer is dead."""

MAX_HEADS = 16
"""Responses without `response.created` that a commit names one by one; from the next one on any may begin so in a rebuild."""

SHARED_BYTES = 16 << 20
"""Bytes of tools, of names, and of lists that were read, each: kept so that equal ones are one object; past it a
partition begins anew."""

UNREAD_BYTES = 4 << 20
"""Bytes of records that a rebuild of a partition holds unread; past it those of the newest response are read. At P all are
read at a stretch, which takes no longer than the largest record may."""

TOLERANCES = (
    "status_absent",
    "empty_arguments",
    "arguments_object",
    "call_id_renamed",
    "response_id_rotates",
    "namespace_functions",
    "added_again",
)
"""Rule 34, by name; all off by default."""


class Bounds(Struct, frozen=True, kw_only=True, array_like=True, forbid_unknown_fields=True):
    """Settings on which the state of a partition depends."""

    release: str = "response"
    """`response`: a decision waits for the terminal event; `item`: it is made at `response.output_item.done`."""
    stream_timeout_ms: int = 20 * 60_000
    """Silence after which a stream's open calls are `timeout`: silent reasoning of more than 8 minutes is normal."""
    closed_memory_ms: int = 2 * 60_000
    """How long a closed response stays known after a terminal event."""
    max_calls: int = 128
    """Calls a response; those beyond it are `limit`."""
    max_argument_bytes: int = 1 << 20
    """UTF-8 bytes of arguments a call; over, not at, the bound is `limit`."""
    max_response_bytes: int = 8 << 20
    """Bytes buffered a response; past it all of its undecided calls are `limit`."""
    max_streams: int = 100_000
    """Keys a partition with a record within stream_timeout + closed_memory; past it the one silent longest goes whole, as
    `limit`."""
    tolerate: tuple[str, ...] = ()
    """Names out of TOLERANCES, sorted."""
    key_header: str = ""
    """Header that names the stream where the record key is null; empty: none."""
