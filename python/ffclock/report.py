"""Turns a trace or a run into pictures and a page: ``python -m ffclock.report RUN -o report.html``.

RUN is a trace that ``ffclock-lab replay`` reads; the output of ``replay --output``; a series or a result of ``ffclock-lab sim run``; a
record of ``ffclock-lab probe``; a CSV file of samples; or a directory with ``samples.csv`` (and, where recorded, ``exchanges.csv`` and
``summary.json``). The page holds the pictures inside itself, runs no script and loads nothing, so it can be mailed or kept as it is. Where
the output is a directory, it receives the page and the pictures beside it.
"""

from __future__ import annotations

import argparse
import io
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Final

from . import page
from .errors import missing
from .progress import Progress

if TYPE_CHECKING:
    from .runs import Event, Figure, Run

_NEEDS: Final = "the report needs allantools, numpy, matplotlib and polars"

_FOOTER: Final = """Error is clock minus truth, positive when the clock is ahead. The bound is the largest error that the clock admits; the
uncertainty is its standard uncertainty (k = 1), and the noise the part of it that leaves out the constant asymmetry of the path: it is
drawn around the median.
Connected means synchronised, after warm-up ({warm_up} s) and outside the shaded events, but for congestion and other loads. Deviations
and MTIE are from allantools, on an even grid of {step}; bars are the 68 % confidence interval for the kind of noise found at each
averaging time. Made from {source}."""


@dataclass(frozen=True)
class Drawn:
    """A picture of the page."""

    name: str
    """Of its file, where the output is a directory."""
    png: bytes
    words: str
    """What it shows, for those who do not see it."""


def pictures(run: Run) -> list[Drawn]:
    """The pictures of ``run`` for which anything was recorded, in the order of the page."""
    from . import details, plots, wander  # noqa: PLC0415  so that --help and the import of this module work without matplotlib

    every = (("report.png", plots.draw), ("report-delays.png", details.draw), ("report-stability.png", wander.draw))
    drawn = []
    with Progress(len(every)) as progress:
        progress.say("drawing")
        for name, draw in every:
            picture = draw(run)
            if picture is not None:
                png = io.BytesIO()
                picture.savefig(png, format="png")
                titles = (axes.get_title(loc="left") for axes in picture.axes)
                drawn.append(Drawn(name, png.getvalue(), "; ".join(title for title in titles if title)))
            progress.step("drawing")
    return drawn


def write_report(run: Run, output: Path) -> list[Path]:
    """Writes the page, and its pictures beside it if ``output`` is a directory; returns what was written. OSError if that fails."""
    drawn = pictures(run)
    return page.write(page_text(run, drawn), {picture.name: picture.png for picture in drawn}, output, "report.html")


def page_text(run: Run, drawn: Sequence[Drawn]) -> str:
    """The HTML page of ``run`` around its pictures."""
    from .figures import clocks_table, table  # noqa: PLC0415
    from .page import document, picture  # noqa: PLC0415
    from .page import table as html_table  # noqa: PLC0415

    summary = run.summary
    tables = [
        _stated_figures(summary.figures),
        html_table("Computed from the samples", ("what", "value"), table(run)),
        html_table("All clocks of this run", ("clock", "median", "IQR", "99 % of |error|", "largest"), clocks_table(run)),
        _events(summary.events),
    ]
    shown = [picture(one.png, one.words) for one in drawn]
    conditions = " · ".join(escape(line) for line in summary.conditions)
    body = [f'<p class="conditions">{conditions}</p>', _verdict(run), *shown[:1], '<div class="tables">', *tables, "</div>", *shown[1:]]
    return document(summary.title, body, _footer(run))


def _footer(run: Run) -> str:
    from .scales import time_text  # noqa: PLC0415
    from .wander import lines_of  # noqa: PLC0415

    lines = lines_of(run)
    step = time_text(lines[0].grid.step_s) if lines else "too few samples"
    return _FOOTER.format(warm_up=f"{run.summary.warm_up_s:g}", step=step, source=escape(run.source.name or str(run.source)))


def _verdict(run: Run) -> str:
    """The main result in words."""
    from .figures import containment  # noqa: PLC0415

    inside = containment(run.samples.error_s, run.samples.bound_s)
    if inside is None or not inside.count:
        return '<p class="verdict unknown">Whether the bound held is not known: the run has no true time or no bound.</p>'
    if inside.outside:
        return f'<p class="verdict broken">The bound was broken in {inside.outside} of {inside.count} samples.</p>'
    return f'<p class="verdict kept">The true time stayed inside the bound in all {inside.count} samples.</p>'


def _stated_figures(figures: Sequence[Figure]) -> str:
    from .page import table  # noqa: PLC0415

    rows = [(f.name, _quantity(f.value, f.unit), _quantity(f.goal, f.unit), _met(f.met)) for f in figures]
    return table("Figures and goals", ("what", "measured", "goal", ""), rows)


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
    from .page import table  # noqa: PLC0415

    rows = [(f"{e.t_s:g} s", f"{e.duration_s:g} s" if e.duration_s else "", e.text) for e in events]
    return table("Events", ("at", "for", "what"), rows)


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m ffclock.report",
        description="Draw a trace or a run as a page with pictures that loads nothing.",
        epilog="example: ffclock-lab sim run lan-16 --series lan.csv && python -m ffclock.report lan.csv -o lan.html",
    )
    parser.add_argument(
        "run",
        type=Path,
        metavar="RUN",
        help="a trace, a replay, a simulated run, a record of `ffclock-lab probe`, samples as CSV, or a directory with samples.csv",
    )
    parser.add_argument(
        "-o", "--output", type=Path, default=Path(), metavar="FILE", help="the page, if it ends in .html, or a directory (default: here)"
    )
    parser.add_argument("--title", help="heading, instead of the run's own")
    parser.add_argument("--clock", default="", metavar="NAME", help="which clock of a simulated run is looked at in detail")
    parser.add_argument("--estimator", default="", metavar="NAME", help="the algorithm that replays a trace: classic or learned")
    parser.add_argument(
        "--ffclock-lab", type=Path, metavar="PATH", help="the command that replays traces (default: $FFCLOCK_LAB, the PATH, this checkout)"
    )
    parser.add_argument("--json", action="store_true", help="name what was written as JSON")
    return parser.parse_args(arguments)


def probe_report(options: argparse.Namespace) -> int:
    """The page of a record of ``ffclock-lab probe``, which has figures of its own."""
    from . import probe_report as probe  # noqa: PLC0415

    foreign = [name for name in ("clock", "estimator") if getattr(options, name)]
    if foreign:
        print(f"ffclock.report: {options.run} is a record of ffclock-lab probe, which has no {foreign[0]}", file=sys.stderr)
        return 2
    return probe.run(
        argparse.Namespace(
            record=options.run,
            output=options.output,
            title=options.title or "",
            ffclock_lab=options.ffclock_lab,
            json=options.json,
        )
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns 0, or 2 with one message on standard error if the input or the output is unusable."""
    options = _arguments(arguments)
    try:
        from .inputs import Wishes, read_input  # noqa: PLC0415
        from .probe_recording import is_probe_record  # noqa: PLC0415
        from .program import ProgramError  # noqa: PLC0415
        from .tables import RunError  # noqa: PLC0415
    except ModuleNotFoundError as error:
        print(f"ffclock.report: {missing(_NEEDS, error)}", file=sys.stderr)
        return 2
    if options.run.is_file() and options.output.exists() and options.output.samefile(options.run):
        print("ffclock.report: --output would overwrite the run; name another file", file=sys.stderr)
        return 2
    if is_probe_record(options.run):
        return probe_report(options)
    try:
        run = read_input(options.run, Wishes(options.clock, options.estimator, options.ffclock_lab))
        if options.title:
            run = replace(run, summary=replace(run.summary, title=options.title))
        written = [str(path) for path in write_report(run, options.output)]
    except (RunError, ProgramError, OSError) as error:
        print(f"ffclock.report: {error}", file=sys.stderr)
        return 2
    print(json.dumps({"written": written}) if options.json else "\n".join(written))
    return 0


if __name__ == "__main__":
    sys.exit(main())
