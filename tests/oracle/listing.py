"""The terminal list against what was streamed: which entry is whose (rule 4)."""

from collections.abc import Sequence

from tests.factories import Json
from tests.oracle.use import COUNTED_ONLY, Use, contradicts, says, take, twin


def match(uses: Sequence[Use], entries: Sequence[Json]) -> list[Use]:
    """Give every entry to its use; those that no event announced come back as uses of their own."""
    # A second use of a finished call_id that passed a bound is none to be listed.
    streamed = [u for u in uses if not u.silent and not u.counted_only]
    entries = [e for e in entries if e.get("type") not in COUNTED_ONLY]
    free = list(entries)
    _by_call_id(streamed, entries, free)
    _by_place(streamed, entries, free)
    _by_request(streamed, entries, free)
    said = [u.entry for u in streamed if u.entry is not None]
    own = []
    for number, entry in enumerate(free):
        again = any(says(entry) == says(other) for other in [*said, *free[:number]] if entry.get("call_id"))
        if again:
            continue
        own.append(Use(None, entry=entry, identified=True))
    return own


def _by_call_id(streamed: list[Use], entries: Sequence[Json], free: list[Json]) -> None:
    listed = dict.fromkeys(e["call_id"] for e in entries if e.get("call_id"))
    sharing = [(call_id, u) for call_id in listed for u in streamed if call_id in u.ids]
    # What is finished has the first claim to the entry that agrees with it; of a limited call no content is kept.
    for call_id, use in [(c, u) for c, u in sharing if u.done is not None and not u.limited]:
        mine = [e for e in free if e.get("call_id") == call_id]
        agreeing = [e for e in mine if not contradicts(use, e)]
        if use.entry is None and agreeing:
            use.entry = agreeing[0]
            take(free, agreeing[0])
    without: list[Use] = []
    for call_id, use in sharing:
        mine = [e for e in free if e.get("call_id") == call_id]
        if use.entry is not None or any(u is use for u in without):
            continue
        if mine:
            use.entry = mine[0]
            take(free, mine[0])
        else:
            without.append(use)
            use.spoiled = True


def _by_place(streamed: list[Use], entries: Sequence[Json], free: list[Json]) -> None:
    for entry in [e for e in free if not e.get("call_id")]:
        place = [e for e in entries if e.get("type") == entry.get("type")]
        nth = next(i for i, e in enumerate(place) if e is entry)
        alike = [u for u in streamed if u.identified and entry.get("type") == u.first_type]
        alike.sort(key=lambda u: (u.index is None, u.index))
        if nth < len(alike) and alike[nth].entry is None:
            alike[nth].entry = entry
            take(free, entry)


def _by_request(streamed: list[Use], entries: Sequence[Json], free: list[Json]) -> None:
    for use in streamed:
        listed = any(e.get("call_id") in use.ids for e in entries)
        twins = [] if listed or use.limited else [e for e in free if e.get("call_id") and twin(use, e)]
        if use.entry is None and use.identified and use.is_call and twins:
            # A call that had no call_id so far is not renamed by its entry, but named.
            use.renamed_to = twins[0]["call_id"] if use.ids or use.done is not None else None
            use.entry = twins[0]
            for same in [t for t in twins if t["call_id"] == twins[0]["call_id"]]:
                take(free, same)
