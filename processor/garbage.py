"""When Python looks for circles of garbage, for the commands that read long logs. It owns the figures, and nothing else."""

import gc

THRESHOLDS = (50_000, 10, 10)
"""Objects more than at the last search. Records that are fetched and not yet decided are 20,000 to 40,000: with a smaller
number each fetch sets off a search that finds next to nothing; a larger one saves little, pauses longer and holds more."""


def calm() -> None:
    """Search less often from now on, and never again through what the start has made: modules, schemas, validators."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
