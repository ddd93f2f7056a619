"""Turns a recorded run into a picture and a page: ``python -m ffclock.report RUN -o DIR``.

RUN is a directory with ``samples.csv`` (and, where recorded, ``exchanges.csv`` and ``summary.json``), or one CSV file: samples, or the
output of ``ffclock replay --output``. DIR receives ``report.png`` and ``report.html``; the page holds the picture inside itself, runs no
script and loads nothing, so it can be mailed or kept as it is.
"""

from __future__ import annotations

import argparse
import base64
import io
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from .runs import Event, Figure, Run

_MISSING: Final = """the report needs numpy, matplotlib and polars ({name} is missing)
install them with: pip install 'ffclock[analysis]', or pip install -r python/requirements.txt in a checkout"""

_PAGE: Final = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
body {{ font: 15px/1.45 system-ui, "DejaVu Sans", sans-serif; color: #1a1a1a; background: #fff; margin: 2rem auto; max-width: 88rem;
       padding: 0 1.5rem; }}
h1 {{ margin: 0 0 .3rem; font-size: 1.7rem; }}
h2 {{ margin: 2rem 0 .6rem; font-size: 1.15rem; }}
p.conditions {{ margin: 0 0 1rem; color: #444; }}
p.verdict {{ margin: 1rem 0; padding: .6rem .9rem; border-left: .4rem solid; background: #f6f6f6; }}
.kept {{ border-color: #009e73; }} .broken {{ border-color: #d55e00; }} .unknown {{ border-color: #8a8a8a; }}
img {{ width: 100%; height: auto; }}
.tables {{ display: flex; flex-wrap: wrap; gap: 0 3.5rem; }}
table {{ border-collapse: collapse; font-variant-numeric: tabular-nums; }}
th, td {{ padding: .28rem .9rem .28rem 0; border-bottom: 1px solid #e3e3e3; text-align: left; vertical-align: top; }}
th {{ color: #444; font-weight: 600; }}
td.number {{ text-align: right; white-space: nowrap; }}
td.missed {{ color: #a84300; font-weight: 600; }} td.met {{ color: #00704f; }}
footer {{ margin: 2.5rem 0 1rem; color: #666; font-size: .85rem; }}
@media print {{ body {{ margin: 0; max-width: none; }} table, img {{ break-inside: avoid; }} }}
</style>
</head>
<body>
<h1>{title}</h1>
<p class="conditions">{conditions}</p>
{verdict}
<img alt="{alternative}" src="data:image/png;base64,{picture}">
<div class="tables">
{tables}
</div>
<footer>Error is clock minus truth, positive when the clock is ahead. The bound is the largest error that the clock admits; the uncertainty
is its likely error without the constant asymmetry of the path, and is therefore drawn around the median. Connected means synchronised,
after warm-up ({warm_up} s) and outside the shaded events. Made from {source}.</footer>
</body>
</html>
"""

_PICTURE_TEXT: Final = (
    "Error with bound and uncertainty, error enlarged, round trips and their floor, and rate error over time; histogram of the error"
)


def write_report(run: Run, directory: Path) -> tuple[Path, Path]:
    """Writes ``report.png`` and ``report.html`` into ``directory``, made if needed; returns their paths. OSError if that fails."""
    from .plots import draw  # noqa: PLC0415  so that --help and the import of this module work without matplotlib

    picture = io.BytesIO()
    draw(run).savefig(picture, format="png")
    directory.mkdir(parents=True, exist_ok=True)
    image, page = directory / "report.png", directory / "report.html"
    image.write_bytes(picture.getvalue())
    page.write_text(page_text(run, picture.getvalue()), encoding="utf-8")
    return image, page


def page_text(run: Run, picture: bytes) -> str:
    """The HTML page of ``run`` around the PNG ``picture``."""
    from .figures import table  # noqa: PLC0415

    summary = run.summary
    tables = [
        _stated_figures(summary.figures),
        _table("Computed from the samples", ("what", "value"), table(run)),
    ]
    tables.append(_events(summary.events))
    return _PAGE.format(
        title=escape(summary.title),
        conditions=" · ".join(escape(line) for line in summary.conditions),
        verdict=_verdict(run),
        alternative=escape(_PICTURE_TEXT),
        picture=base64.b64encode(picture).decode("ascii"),
        tables="\n".join(table for table in tables if table),
        warm_up=f"{summary.warm_up_s:g}",
        source=escape(run.source.name or str(run.source)),
    )


def _verdict(run: Run) -> str:
    """The first thing that a reader wants to know, in words."""
    from .figures import containment  # noqa: PLC0415

    inside = containment(run.samples.error_s, run.samples.bound_s)
    if inside is None or not inside.count:
        return '<p class="verdict unknown">Whether the bound held is not known: the run has no true time or no bound.</p>'
    if inside.outside:
        return f'<p class="verdict broken">The bound was broken in {inside.outside} of {inside.count} samples.</p>'
    return f'<p class="verdict kept">The true time stayed inside the bound in all {inside.count} samples.</p>'


def _stated_figures(figures: Sequence[Figure]) -> str:
    rows = [(f.name, _quantity(f.value, f.unit), _quantity(f.goal, f.unit), _met(f.met)) for f in figures]
    return _table("Figures and goals", ("what", "measured", "goal", ""), rows)


def _quantity(value: float | str | None, unit: str) -> str:
    from .scales import number_text, time_text  # noqa: PLC0415

    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if unit == "s" and value != 0.0:
        return time_text(value)
    return f"{number_text(value)} {unit}".strip()


def _met(met: bool | None) -> str:
    return {True: "✓ met", False: "✗ missed", None: ""}[met]


def _events(events: Sequence[Event]) -> str:
    rows = [(f"{e.t_s:g} s", f"{e.duration_s:g} s" if e.duration_s else "", e.text) for e in events]
    return _table("Events", ("at", "for", "what"), rows)


def _table(title: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    body = "\n".join("<tr>" + "".join(_cell(text, place) for place, text in enumerate(row)) + "</tr>" for row in rows)
    if not body:
        return ""
    head = "".join(f"<th>{escape(text)}</th>" for text in heads)
    return f"<section><h2>{escape(title)}</h2>\n<table>\n<tr>{head}</tr>\n{body}\n</table></section>"


def _cell(text: str, place: int) -> str:
    kind = "missed" if text.startswith("✗") else "met" if text.startswith("✓") else "number" if place == 1 else ""
    return f'<td class="{kind}">{escape(text)}</td>' if kind else f"<td>{escape(text)}</td>"


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m ffclock.report",
        description="Draw a recorded run: report.png and a self-contained report.html.",
        epilog="example: ffclock replay trace.csv --output replay.csv && python -m ffclock.report replay.csv -o out",
    )
    parser.add_argument("run", type=Path, metavar="RUN", help="directory with samples.csv, or a CSV file of samples or of a replay")
    parser.add_argument("-o", "--output", type=Path, default=Path(), metavar="DIR", help="where to put the report (default: here)")
    parser.add_argument("--title", help="heading, instead of the one in summary.json")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns 0, or 2 with one message on standard error if the input or the output directory is unusable."""
    options = _arguments(arguments)
    try:
        from .runs import RunError, read_run  # noqa: PLC0415
    except ModuleNotFoundError as error:
        print(f"ffclock.report: {_MISSING.format(name=error.name)}", file=sys.stderr)
        return 2
    try:
        run = read_run(options.run)
        if options.title:
            run = replace(run, summary=replace(run.summary, title=options.title))
        for path in write_report(run, options.output):
            print(path)
    except (RunError, OSError) as error:
        print(f"ffclock.report: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
