"""Coverage-guided fuzzing of the core with atheris: `make fuzz`, or `python fuzz/atheris_target.py --help`.

The input is a log: its first byte picks settings, each further line is the value of one record, and the first byte of a line
picks its key. What must hold is what `tests/fuzz` holds: no exception, memory within the bounds, evidence for every approval.
An input that fails is written to the folder that libFuzzer names; `--show FILE` decides it once more and prints it.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import atheris  # noqa: E402 - its hook comes before what it watches

with atheris.instrument_imports(include=["processor.core"]):
    from processor.core.limits import TOLERANCES, Bounds
    from tests.fuzz.drive import drive

from tests.factories import START_MS, Record  # noqa: E402 - not watched
from tests.fuzz.logs import SHIPPED  # noqa: E402 - not watched

MAX_RECORDS = 40
SETTINGS = (
    Bounds(),
    Bounds(release="item"),
    Bounds(tolerate=tuple(sorted(TOLERANCES))),
    Bounds(release="item", tolerate=tuple(sorted(TOLERANCES))),
    Bounds(max_calls=2, max_response_bytes=4000, max_argument_bytes=64),
    Bounds(max_streams=1),
)


def log_of(content: bytes) -> tuple[list[Record], Bounds]:
    """Read an input as a log and its settings."""
    bounds = SETTINGS[content[0] % len(SETTINGS)] if content else SETTINGS[0]
    lines = [line for line in content[1:].split(b"\n") if line][:MAX_RECORDS]
    log = []
    at = START_MS
    for offset, line in enumerate(lines):
        # A capital letter is another key; a digit is a step in time that nothing survives.
        at += 30 * 60_000 if line[:1].isdigit() else 1
        log.append(Record(offset, at, b"b" if line[:1].isupper() else b"a", line[1:].replace(b"\x1e", b"\n")))
    return log, bounds


def content_of(values: list[bytes], settings: int) -> bytes:
    """Write a log as an input."""
    return bytes([settings]) + b"\n".join(b"." + value.replace(b"\n", b"\x1e") for value in values)


def one_input(content: bytes) -> None:
    """Decide one input, and hold what comes out to what must be true."""
    log, bounds = log_of(content)
    drive(log, bounds)


def write_seeds(folder: Path) -> None:
    """Write the shipped fixtures as inputs to begin with."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, (name, values) in enumerate(SHIPPED.items()):
        (folder / name).write_bytes(content_of(values, number % len(SETTINGS)))


def show(file: Path) -> None:
    """Print an input as a log, and decide it."""
    log, bounds = log_of(file.read_bytes())
    sys.stdout.write(f"{bounds}\n")
    for record in log:
        sys.stdout.write(f"{record.offset} t+{record.timestamp - START_MS} {record.key!r} {record.value!r}\n")
    drive(log, bounds)


def main() -> None:
    """Fuzz; arguments are libFuzzer's own, the first folder is the corpus."""
    if sys.argv[1:2] == ["--show"]:
        show(Path(sys.argv[2]))
        return
    corpus = ROOT / ".cache" / "fuzz"
    write_seeds(corpus)
    atheris.Setup([sys.argv[0], *sys.argv[1:], str(corpus)], one_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
