"""What the runner tells its observers, turned into metrics; fits `processor.ports.Hooks`.

Called at most once a batch; it never blocks and never raises.
"""

from processor.core.pipeline import Partition
from processor.core.signals import Tally
from processor.observe import catalogue as of
from processor.observe.meters import Meters


class Watch:
    """Hooks that count."""

    def __init__(self, meters: Meters) -> None:
        self._meters = meters

    def on_batch(self, partition: Partition) -> None:
        """Flush the tally, and set what the state holds."""
        self._meters.flush(partition.tally)
        partition.tally = Tally()
        gauges = self._meters.partition(partition.topic, partition.number)
        gauges.state(partition.counts(), settings_pending=partition.pending_bounds)

    def on_commit(self, number: int, records: int, seconds: float) -> None:  # noqa: ARG002 - the port's own signature
        """Count a transaction that was committed."""
        self._meters.transaction(seconds)

    def on_failure(self, number: int, kind: str) -> None:  # noqa: ARG002 - as above
        """Count a partition that lost its transaction or its owner."""
        self._meters.count(of.FAILURES, kind)

    def on_rebuilt(self, number: int, seconds: float) -> None:  # noqa: ARG002 - as above
        """Count a rebuild."""
        self._meters.rebuilt(seconds)
