"""What happened, as plain counts: the core adds, adapters flush them into metrics once a batch.

Nothing here is counted while a partition is rebuilt.
"""

from collections import Counter

from msgspec import Struct, field


class Tally(Struct):
    """Counts since the last flush."""

    records: int = 0
    """Records read, dead letters included."""
    value_bytes: int = 0
    """Bytes of their values."""
    events: Counter[str] = field(default_factory=Counter)
    """Events by type; types outside the specification are counted as `extension` (with a colon) or `unknown`."""
    items: Counter[str] = field(default_factory=Counter)
    """Items that are counted and not decided, by type; unknown ones as `unknown`."""
    late: int = 0
    """Events that came for a closed response or a finished item, and decided nothing."""
    repeats: int = 0
    """Events and calls delivered again with the same content, and dropped."""
    gaps: int = 0
    """Steps of a sequence number by more than one."""
    unnumbered: int = 0
    """Streams whose sequence numbers stood still or restarted."""
    foreign: int = 0
    """Lifecycle events that name another response than the open one, and were ignored."""
    null_items: int = 0
    """Item events whose item is null."""
    unknown_tool_choice: int = 0
    """tool_choice texts that are unknown and so forbid nothing (rule 24)."""
    long_call_ids: int = 0
    """Calls whose call_id is longer than the 64 characters that the API's input takes."""
    failed_after_release: int = 0
    """Calls released at `done` whose response then ended badly (`release = "item"`)."""
    mislabelled: int = 0
    """SSE frames whose `event:` contradicts the JSON type (rule 29)."""
    tolerated: Counter[str] = field(default_factory=Counter)
    """Uses of tolerances, by name."""
    dead_letters: Counter[str] = field(default_factory=Counter)
    """Dead letters by cause."""
    decisions: Counter[str] = field(default_factory=Counter)
    """Decisions by reason."""
    would_reject: Counter[str] = field(default_factory=Counter)
    """Approved in observe mode, by the reason that enforce would have given."""
    disagreements: int = 0
    """Calls on which the two engines disagree, rejected (`engine = "both"`)."""
