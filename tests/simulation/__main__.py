import sys, time
from tests.simulation.run import prepared, run

first = int(sys.argv[1])
n = int(sys.argv[2])
say = print if len(sys.argv) > 3 else None
t = time.time()
with prepared() as core:
    for seed in range(first, first + n):
        t0 = time.time()
        try:
            w = run(seed, core, say)
        except BaseException as e:
            import traceback

            traceback.print_exc(limit=-6)
            print("FAILED", seed, flush=True)
            if not isinstance(e, Exception):
                raise
            continue
        if n <= 20:
            print(
                seed,
                round(time.time() - t0, 3),
                round(w.loop.now, 1),
                w.loop.steps,
                dict(w.trouble.counts),
                {k: v for k, v in w.counts.items()},
                len(w.script.writes),
            )
print(time.time() - t)
