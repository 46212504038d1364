"""When Python looks for circles of garbage, for the commands that read long logs. It owns the figures, and nothing else."""

import gc

THRESHOLDS = (10_000, 10, 10)
"""Python's own 700 made 285 searches and pauses of up to 22 ms in 100,000 events; this and the frozen start make 3 and 1.4 ms,
and save 0.5 us of 8.4 an event. Ten times more saved nothing further, and holds buffers longer."""


def calm() -> None:
    """Search less often from now on, and never again through what the start has made: modules, schemas, validators."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
