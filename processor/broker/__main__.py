"""Runs one broker in the foreground until it is told to stop: `python -m processor.broker [--port P]`."""

import argparse
import signal
import sys
import threading

from processor.broker import Broker, BrokerFailed, BrokerUnavailable


def main(arguments: list[str] | None = None) -> int:
    """Start, print the address, wait for SIGINT or SIGTERM. 0: stopped; 1: there is no broker, with the cause on stderr."""
    parser = argparse.ArgumentParser(prog="python -m processor.broker", description="Run one Kafka broker on loopback.")
    parser.add_argument("--port", type=int, help="port of the PLAINTEXT listener (default: a free one)")
    parser.add_argument("--heap-mb", type=int, default=512, help="heap of the JVM in MB (default: 512)")
    parser.add_argument("--cpus", help="processors to pin it to, as taskset -c takes them")
    parser.add_argument("--set", action="append", default=[], metavar="K=V", help="a Kafka property")
    chosen = parser.parse_args(arguments)
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    settings = dict(pair.split("=", 1) for pair in chosen.set if "=" in pair)
    try:
        with Broker(port=chosen.port, heap_mb=chosen.heap_mb, cpus=chosen.cpus, settings=settings, note=_note) as broker:
            print(broker.bootstrap, flush=True)
            ended.wait()
    except (BrokerFailed, BrokerUnavailable) as failure:
        _note(str(failure))
        return 1
    return 0


def _note(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
