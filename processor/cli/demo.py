"""`callgate demo`: everything at once on one machine."""

import typer

from processor.cli.common import console

EXAMPLES = """Examples:

* `callgate demo`
* `CALLGATE_TEST_BOOTSTRAP=localhost:9092 callgate demo` uses a broker that is there already

Kafka is fetched once (44 MB, through Maven) and runs on a free loopback port in a temporary folder. Where Java or Maven is
missing, the same streams go through `replay`.
"""


def demo() -> None:
    """Start Kafka, publish shipped streams of real shapes, run callgate, and show what it decides."""
    from processor.demo.driver import run  # noqa: PLC0415 - start-up of the others stays quick

    if code := run(console()):
        raise typer.Exit(code)
