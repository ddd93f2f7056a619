"""Turns the figures of one-way delays into a page: ``python -m ffclock.owd_report FIGURES.json -o DIR``.

FIGURES.json is what ``ffclock-lab owd report --json`` prints, or ``-`` for standard input. DIR receives ``owd.png`` and ``owd.html``; the
page holds the picture inside itself, runs no script and loads nothing.
"""

from __future__ import annotations

import argparse
import io
import json
import sys
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any, Final

from . import page
from .errors import missing

_NEEDS: Final = "the report needs numpy and matplotlib"

_FOOTER: Final = "docs/owd.md defines every figure. A bound is the sum of what both clocks promise."

_WAYS: Final = {"forward": "To the reflector", "backward": "From the reflector"}


class FiguresError(ValueError):
    """The input is no answer of ``ffclock-lab owd report --json``."""


def read_figures(text: str) -> dict[str, Any]:
    """The figures in ``text``; FiguresError if there are none."""
    try:
        answer = json.loads(text)
    except json.JSONDecodeError as error:
        raise FiguresError(f"no JSON: {error}") from error
    if not isinstance(answer, dict) or "figures" not in answer or "heat" not in answer:
        raise FiguresError("no figures of one-way delays: ffclock-lab owd report --json prints them")
    if not any(answer["heat"].get(way) for way in _WAYS):
        raise FiguresError("no packet has a one-way delay, so there is nothing to draw")
    return answer


def draw(answer: dict[str, Any]) -> bytes:
    """The picture as PNG: by direction, delays over time as a heat map, and their histogram with the median bound."""
    import numpy as np  # noqa: PLC0415
    from matplotlib.colors import LogNorm  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    ways = [way for way in _WAYS if answer["heat"].get(way)]
    figure = Figure(figsize=(12.0, 4.2 * len(ways)), dpi=120, layout="constrained")
    panels = figure.subplots(len(ways), 2, squeeze=False, width_ratios=(3, 2))
    for (over_time, histogram), way in zip(panels, ways, strict=True):
        heat = answer["heat"][way]
        counts = np.asarray(heat["counts"], dtype=float)
        edges = np.asarray(heat["edges_ns"]) * 1e-3
        times = np.arange(counts.shape[0] + 1) * heat["column_s"]
        shown = np.ma.masked_equal(counts.T, 0.0)
        mesh = over_time.pcolormesh(times, edges, shown, cmap="viridis", norm=LogNorm(vmin=1.0, vmax=max(2.0, counts.max())))
        over_time.set(title=f"{_WAYS[way]}: delays over time", xlabel="time [s]", ylabel="delay [µs]", yscale="log")
        bar = figure.colorbar(mesh, ax=over_time, label="packets")
        histogram.stairs(counts.sum(axis=0), edges, fill=True, color="#0072B2", label="packets")
        figures = answer["figures"][way]
        median, bound = (figures[name]["median"] * 1e-3 for name in ("delay_ns", "bound_ns"))
        histogram.axvline(median, color="#000000", linewidth=0.9, label=f"median {median:.2f} µs")
        low, high = max(median - bound, edges[0]), min(median + bound, edges[-1])
        histogram.axvspan(low, high, color="#E69F00", alpha=0.2, linewidth=0, zorder=0, label=f"its bound ±{bound:.2f} µs")
        histogram.set(title=f"{_WAYS[way]}: histogram", xlabel="delay [µs]", ylabel="packets", xscale="log", yscale="log")
        histogram.set_xlim(edges[0], edges[-1])
        histogram.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=3, frameon=False)
        per_row = counts.sum(axis=0)
        delays, packets = (edges[0], edges[-1]), (max(1.0, per_row[per_row > 0.0].min()), per_row.max())
        for axis, ends in (
            (over_time.yaxis, delays),
            (histogram.xaxis, delays),
            (histogram.yaxis, packets),
            (bar.ax.yaxis, (1.0, counts.max())),
        ):
            _label_plainly(axis, *ends)
    picture = io.BytesIO()
    figure.savefig(picture, format="png")
    return picture.getvalue()


def _label_plainly(axis: Any, low: float, high: float) -> None:
    """Labels a logarithmic axis with the numbers themselves: few enough not to overlap, over a part of a decade as over many."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter  # noqa: PLC0415

    is_short = high < low * 10**2.5
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if is_short else (1.0,)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def page_text(answer: dict[str, Any], title: str, picture: bytes) -> str:
    """The HTML page of ``answer`` around the PNG ``picture``."""
    figures = answer["figures"]
    columns = ("min", "p25", "median", "p75", "p95", "p99", "p999", "max")
    rows = []
    for name, label in _WAYS.items():
        if figures[name]:
            rows += [(label, figures[name]["delay_ns"]), ("its bound, plus or minus", figures[name]["bound_ns"])]
    rows += [(label, figures[name]) for name, label in (("round_trip_ns", "round trip"), ("held_ns", "in the reflector")) if figures[name]]
    cells = [(label, *(f"{spread[column] * 1e-3:.2f}" for column in columns)) for label, spread in rows]
    heading = ["µs", "min", "25 %", "median", "75 %", "95 %", "99 %", "99.9 %", "max"]
    fates = ", ".join(f"{count} {name}" for name, count in figures["fates"].items())
    is_whole = figures["contradictions"] == 0
    verdict = "No packet contradicts the clocks." if is_whole else "A clock or its claim is false: packets contradict it."
    body = [
        f'<p class="verdict {"kept" if is_whole else "broken"}">{escape(f"{verdict} {fates}.")}</p>',
        page.table("", heading, cells),
        page.picture(picture, "Heat maps of the delays over time and their histograms, by direction"),
    ]
    return page.document(title, body, _FOOTER)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns 0, or 2 with one message on standard error if the input or the output directory is unusable."""
    parser = argparse.ArgumentParser(
        prog="python -m ffclock.owd_report",
        description="Draw one-way delays: owd.png and a self-contained owd.html.",
        epilog="example: ffclock-lab owd report delays.parquet --json | python -m ffclock.owd_report - -o out",
    )
    parser.add_argument("figures", metavar="FIGURES", help="the JSON of ffclock-lab owd report, or - for standard input")
    parser.add_argument("-o", "--output", type=Path, default=Path(), metavar="DIR", help="where to put the report (default: here)")
    parser.add_argument("--title", default="One-way delays", help="heading")
    options = parser.parse_args(arguments)
    try:
        text = sys.stdin.read() if options.figures == "-" else Path(options.figures).read_text(encoding="utf-8")
        answer = read_figures(text)
        picture = draw(answer)
        written = page.write(page_text(answer, options.title, picture), {"owd.png": picture}, options.output, "owd.html")
    except ModuleNotFoundError as error:
        print(f"ffclock.owd_report: {missing(_NEEDS, error)}", file=sys.stderr)
        return 2
    except (FiguresError, OSError, UnicodeDecodeError) as error:
        print(f"ffclock.owd_report: {error}", file=sys.stderr)
        return 2
    print("\n".join(map(str, written)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
