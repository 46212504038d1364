"""Puts a measured report into its place in a page of docs/, with the commit that it was measured on. It measures nothing."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RELIABILITY = ROOT / "docs" / "reliability.md"


def commit_hash(*paths: str) -> str:
    """Name the commit that is checked out, and say whether one of the paths has changes that are not in it."""

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()

    changed = git("status", "--porcelain", "--untracked-files=no", "--", *paths)
    return (git("rev-parse", "--short=10", "HEAD") or "unknown") + (" with changes" if changed else "")


def put(text: str, name: str, page: Path = RELIABILITY) -> None:
    """Put a text between its marks in a page, `<!-- NAME -->` and `<!-- /NAME -->`. Raises ValueError where they are not."""
    whole = page.read_text(encoding="utf-8")
    before, begin, rest = whole.partition(f"<!-- {name} -->\n")
    _, end, after = rest.partition(f"<!-- /{name} -->")
    if not begin or not end:
        raise ValueError(f"{page} has no place for {name}")
    page.write_text(f"{before}{begin}\n{text}\n{end}{after}", encoding="utf-8")
