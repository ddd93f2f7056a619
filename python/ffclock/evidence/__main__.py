"""``python -m ffclock.evidence``: collects the verdicts that the tools of the figures left, and writes the page as Markdown and HTML."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from .page import NOT_RUN, grouped, html, markdown, summary, worst
from .verdict import FILE, Verdict, VerdictError, read

PLACES: Final = ("target/figures-live", "out/counters", "out/probe", "target/figures-theta", "out/counters/guest", "target/figures")
"""Where the tools put their verdicts, below a checkout."""
_CHECKOUT: Final = Path(__file__).resolve().parents[3]


def collect(checkout: Path, places: Sequence[str] = PLACES) -> tuple[list[Verdict], list[str]]:
    """The verdicts that are there, and the places that have none; :class:`VerdictError` if one holds something else."""
    found: list[Verdict] = []
    missing = []
    for place in places:
        path = checkout / place / FILE
        if path.is_file():
            found += read(path)
        else:
            missing.append(place)
    return found, missing


def write(markdown_to: Path, html_to: Path, verdicts: Sequence[Verdict]) -> None:
    """Writes both pages."""
    for path, text in ((markdown_to, markdown(verdicts)), (html_to, html(verdicts))):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m ffclock.evidence",
        description="Collect the verdicts on every figure of the papers into one table, as docs/evidence.md and as HTML.",
        epilog="example: python -m ffclock.evidence",
    )
    parser.add_argument("--checkout", type=Path, default=_CHECKOUT, metavar="DIR", help="where the tools were run (default: this checkout)")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="the page in Markdown (default: docs/evidence.md of the checkout)")
    parser.add_argument("--html", type=Path, metavar="FILE", help="the same in HTML (default: target/evidence/index.html of the checkout)")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns 0, or 2 with one message on standard error if a file holds no verdicts or cannot be written."""
    options = _arguments(arguments)
    markdown_to = options.markdown or options.checkout / "docs" / "evidence.md"
    html_to = options.html or options.checkout / "target" / "evidence" / "index.html"
    try:
        verdicts, missing = collect(options.checkout)
        write(markdown_to, html_to, verdicts)
    except (VerdictError, ValueError, OSError) as error:
        print(f"ffclock.evidence: {error}", file=sys.stderr)
        return 2
    for place in missing:
        print(f"{place}: {NOT_RUN}")
    for key, rows in grouped(verdicts).items():
        print(f"{key:<15} {worst(rows)}")
    print(summary(verdicts))
    print(f"{markdown_to}, {html_to}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
