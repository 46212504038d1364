"""When Python looks for circles of garbage, for the commands that read long logs. It owns the figures, and nothing else."""

import gc

THRESHOLDS = (50_000, 10, 10)
"""Python's own 700 made 285 searches and pauses of up to 22 ms in 100,000 events. What counts is how much there is more than at
the last search, and records that are fetched and not yet decided are 20,000 to 40,000 objects: 10,000 made 30 searches in
200,000 events, for 0.37 us each event, a longest pause of 9 ms and 52 objects found; 50,000 make one, of 13 ms, for 0.07 us.
On 64 partitions: 0.6 us and 26 ms against 0.24 us and 15 ms. More saves little, has longer pauses, holds buffers longer."""


def calm() -> None:
    """Search less often from now on, and never again through what the start has made: modules, schemas, validators."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
