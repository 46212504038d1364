"""`callgate run`: the processor, from Kafka to Kafka."""

from typing import Annotated

import typer

from processor.cli.common import ConfigOption, SetOption, kafka_settings_from

EXAMPLES = """Examples:

* `callgate run --config callgate.toml`
* `CALLGATE_KAFKA_BOOTSTRAP_SERVERS=kafka:9092 callgate run --set tools=stream`

`SIGTERM` or Ctrl-C ends it cleanly within `shutdown_grace` (exit code `0`); a second one at once (`130`). Nothing is lost
either way. Metrics and health are on `http.host` and `http.port`: `/metrics`, `/healthz`, `/readyz`.
"""


def run(
    config: ConfigOption = None,
    sets: SetOption = None,
    workers: Annotated[
        int | None, typer.Option("--workers", min=1, help="Processes on this machine (setting `workers`).")
    ] = None,
    supervisor: Annotated[int | None, typer.Option("--supervisor", hidden=True, help="Process to end with.")] = None,
    tell_port: Annotated[int | None, typer.Option("--tell-port", hidden=True, help="Descriptor to tell the port to.")] = None,
) -> None:
    """Read events from Kafka, and publish every tool call as approved or rejected, exactly once."""
    from processor import service  # noqa: PLC0415 - start-up of the others stays quick
    from processor import workers as processes  # noqa: PLC0415 - as above

    if supervisor is not None:
        processes.end_with(supervisor)
    given = [*(sets or ()), *(() if workers is None else (f"workers={workers}",))]
    settings = kafka_settings_from(config, given)
    code = service.run(settings, tell_port) if settings.workers == 1 else processes.run(settings, config, given)
    if code:
        raise typer.Exit(code)
