"""Exit codes, and the one place where an exception becomes a sentence and a code.

Owns the table. A traceback never reaches a person: expected failures say what is wrong, unexpected ones say where, and neither
quotes what was read.
"""

import sys
from enum import IntEnum
from typing import Self


class Exit(IntEnum):
    """How a command ends."""

    def __new__(cls, code: int, meaning: str) -> Self:
        """Make a member whose value is `code` and whose docstring is `meaning`."""
        member = int.__new__(cls, code)
        member._value_ = code
        member.__doc__ = meaning
        return member

    DONE = 0, "It ran; for `check`: every item was approved."
    REJECTED = 1, "`check`: at least one item was rejected, or could not be read."
    USAGE = (
        2,
        "The command line or the settings are wrong, or a file that they name (`--config`, `kafka.ssl_cafile`) cannot be used.",
    )
    UNREACHABLE = 3, "No Kafka broker answers."
    TOPICS = 4, "A topic is missing, or is not what the guarantees need."
    SCHEMAS = 5, "A tool schema cannot be used."
    FILES = 6, "A file that the command works on (an archive, an output) cannot be read or written."
    REFUSED = 7, "The broker refuses this client: credentials, certificate, rights, or `kafka.security_protocol`."
    FATAL = 8, "The processor cannot go on; the message says why."
    BROKER = 9, "`demo`: the broker on this machine could not be started."
    FINDINGS = 10, "`schemas lint`: something was found that counts (`--fail-on`)."
    INTERNAL = 70, "A fault in callgate itself; please report it."
    INTERRUPTED = 130, "Ended at once by a second signal, or by Ctrl-C."
    PIPE = 141, "Whoever read the output went away (`| head`)."


def report(fault: BaseException) -> Exit:
    """Say on standard error what happened, and return the exit code."""
    code, sentences = _explain(fault)
    for sentence in sentences:
        sys.stderr.write(f"callgate: {sentence}\n")
    return code


def _explain(fault: BaseException) -> tuple[Exit, list[str]]:
    # Imported here: a command that ends well needs none of them.
    from processor.adapters.archive import ArchiveError  # noqa: PLC0415
    from processor.broker.errors import BrokerFailed, BrokerUnavailable  # noqa: PLC0415
    from processor.config import ConfigError  # noqa: PLC0415
    from processor.core.registry import BadRegistry  # noqa: PLC0415
    from processor.errors import Fatal, Refused, Retryable, Unfit, Unreachable, Unusable  # noqa: PLC0415

    if isinstance(fault, ConfigError):
        return Exit.USAGE, [str(each) for each in fault.faults]
    if isinstance(fault, BadRegistry):
        return Exit.SCHEMAS, [f"schemas: {each}" for each in fault.faults]
    known = (
        (Unusable, Exit.USAGE),
        (Unreachable, Exit.UNREACHABLE),
        (Unfit, Exit.TOPICS),
        (Refused, Exit.REFUSED),
        (Fatal, Exit.FATAL),
        (Retryable, Exit.UNREACHABLE),
        (ArchiveError, Exit.FILES),
        (BrokerUnavailable, Exit.BROKER),
        (BrokerFailed, Exit.BROKER),
    )
    for kind, code in known:
        if isinstance(fault, kind):
            return code, [str(each) for each in fault.args] if isinstance(fault, Fatal) else [str(fault)]
    if isinstance(fault, OSError):
        place = f"{fault.filename}: " if fault.filename else ""
        return Exit.FILES, [f"{place}{fault.strerror or type(fault).__name__}."]
    if isinstance(fault, KeyboardInterrupt):
        return Exit.INTERRUPTED, ["Interrupted."]
    return Exit.INTERNAL, [f"Internal fault: {type(fault).__name__} in {_place(fault)}. Please report it."]


def _place(fault: BaseException) -> str:
    """File and line where it was raised: its message may quote arguments, this cannot."""
    trace = fault.__traceback__
    if trace is None:
        return "an unknown place"
    while trace.tb_next is not None:
        trace = trace.tb_next
    return f"{trace.tb_frame.f_code.co_filename.rpartition('site-packages/')[2]}:{trace.tb_lineno}"
