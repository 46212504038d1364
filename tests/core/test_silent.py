"""Which keys go when there are too many, held against the order of all last records kept the simple way."""

import random
from collections import OrderedDict
from collections.abc import Iterator

import pytest

from processor.core.limits import Bounds
from processor.core.signals import Tally
from processor.core.state import Context
from processor.core.streams import Streams


class Naive:
    """Keys with the watermarks of their last records, the latest last: moved there with every record."""

    def __init__(self) -> None:
        self.last: OrderedDict[bytes, int] = OrderedDict()
        self.crowded = False

    def touch(self, key: bytes, ctx: Context) -> None:
        """A record came under a key."""
        new = key not in self.last
        self.last[key] = ctx.watermark
        self.last.move_to_end(key)
        if not new and not self.crowded:
            return
        self.crowded = False
        latest = ctx.watermark - ctx.bounds.stream_timeout_ms - ctx.bounds.closed_memory_ms
        while next(iter(self.last.values())) <= latest:
            self.last.popitem(last=False)
        while len(self.last) > ctx.bounds.max_streams:
            self.last.popitem(last=False)


def traffic(rng: random.Random) -> Iterator[tuple[bytes, int]]:
    """Keys and the milliseconds before them: some keys come all the time, most for a while, some once."""
    always, young = [b"a%d" % each for each in range(rng.randint(0, 4))], [b"y"]
    pace = rng.choice((0, 1, 5, 40))
    for number in range(400):
        if rng.random() < 0.3:
            young = [*young[-rng.randint(0, 12) :], b"n%d" % number]
        key = rng.choice(always) if always and rng.random() < 0.2 else rng.choice(young)
        yield key, rng.randint(0, 2 * pace) if rng.random() < 0.98 else 1000


@pytest.mark.parametrize("seed", range(60))
def test_the_key_silent_longest_goes(seed: int) -> None:
    """Rule 18, `max_streams`: the same keys are there after every record, whatever came and however settings changed."""
    rng = random.Random(seed)

    def drawn() -> Bounds:
        return Bounds(max_streams=rng.choice((1, 2, 7, 20, 1000)), stream_timeout_ms=rng.choice((50, 300)), closed_memory_ms=50)

    ctx = Context(drawn(), Tally(), watermark=1000)
    streams, naive = Streams(ctx.bounds), Naive()
    went = 0
    for offset, (key, later) in enumerate(traffic(rng)):
        ctx.offset, ctx.watermark = offset, ctx.watermark + later
        if rng.random() < 0.01:
            ctx.bounds = drawn()
            streams.adopt(ctx.bounds)
            naive.crowded = True
        before = len(streams.by_key)
        new = key not in streams.by_key
        stream = streams.touch(key, ctx)
        naive.touch(key, ctx)
        went += before + new - len(streams.by_key)
        assert set(streams.by_key) == set(naive.last), f"record {offset}"
        assert (stream.last, stream.at) == (ctx.watermark, offset)
    assert went > 0 or ctx.bounds.max_streams == 1000
