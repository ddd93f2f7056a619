"""Draws what a bound chosen in calm is worth under load: ``python -m ffclock.theta_coverage COVERAGE.json -o coverage.png``.

COVERAGE.json is what ``ffclock-lab theta coverage --json`` prints, or ``-`` for standard input.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from .errors import missing

_NEEDS: Final = "the picture needs matplotlib"

_MODELS: Final = {
    "timeout": ("timeout on tau+", "#D55E00", "o"),
    "ratio": ("ratio tau+ / tau_r-", "#0072B2", "s"),
    "ratio-with-delay": ("ratio tau+ / (tau_r- + D)", "#009E73", "^"),
}
"""How each model is named and drawn; the colours are those of Okabe and Ito."""


class CoverageError(ValueError):
    """The input is no comparison of two runs."""


def read_coverage(text: str) -> dict[str, Any]:
    """The comparison in ``text``; CoverageError if it is none."""
    try:
        coverage = json.loads(text)
    except json.JSONDecodeError as error:
        raise CoverageError(f"no JSON: {error}") from error
    if not isinstance(coverage, dict) or not coverage.get("curves"):
        raise CoverageError("no comparison: ffclock-lab theta coverage --json prints one")
    return coverage


def figure_of(coverage: dict[str, Any], title: str) -> Any:
    """The figure of a comparison: above the shares of rounds that break a bound in calm and under load, below the bounds themselves."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    from .style import plain_logarithmic  # noqa: PLC0415

    figure = Figure(figsize=(9.0, 8.0), dpi=130, layout="constrained")
    FigureCanvasAgg(figure)
    shares, bounds = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    ratios = bounds.twinx()
    for curve in coverage["curves"]:
        label, colour, mark = _MODELS[curve["model"]]
        points = curve["points"]
        calm = [point["calm_share"] for point in points]
        style: dict[str, Any] = {"color": colour, "marker": mark, "markersize": 4, "label": label}
        shares.plot(calm, [100 * point["loaded"]["share"] for point in points], **style)
        low, high = ([100 * point["loaded"][end] for point in points] for end in ("low", "high"))
        shares.fill_between(calm, low, high, color=colour, alpha=0.15, linewidth=0)
        if curve["model"] == "timeout":
            bounds.plot(calm, [point["bound"] * 1e-6 for point in points], **style)
        else:
            ratios.plot(calm, [point["bound"] for point in points], **style)
    shares.plot(calm, [100 * share for share in calm], color="#8A8A8A", linestyle=":", label="as in calm")
    shares.set(title=title, ylabel="loaded rounds that break it [%]", ylim=(-3, 103))
    bounds.set(xlabel="share of calm rounds that break the bound", ylabel="timeout [µs]")
    ratios.set(ylabel="ratio")
    for axes, which in ((bounds, "x"), (bounds, "y"), (ratios, "y")):
        plain_logarithmic(axes, which)
    shares.legend()
    for axes in (shares, bounds):
        axes.grid(color="#E3E3E3")
    _mark_fits(shares, coverage)
    return figure


def _mark_fits(axes: Any, coverage: dict[str, Any]) -> None:
    """Where bounds are no quantiles of the calm run any more, but come from its tail."""
    fitted = [point["calm_share"] for curve in coverage["curves"] for point in curve["points"] if point["basis"] != "measured"]
    if fitted:
        axes.axvspan(min(fitted) / 1.5, max(fitted) * 1.1, color="#F4F4F4", zorder=0)
        axes.text(min(fitted), 50.0, "beyond the calm run:\nby the fit of its tail", color="#555555", fontsize=8, va="center")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns 0, or 2 with one message on standard error if the input or the file is unusable."""
    parser = argparse.ArgumentParser(
        prog="python -m ffclock.theta_coverage",
        description="Draw what bounds chosen in calm are worth under load, as a PNG file.",
        epilog="example: ffclock-lab theta coverage calm --under loaded --json | python -m ffclock.theta_coverage - -o coverage.png",
    )
    parser.add_argument("coverage", metavar="COVERAGE", help="the JSON of ffclock-lab theta coverage, or - for standard input")
    parser.add_argument(
        "-o", "--output", type=Path, default=Path("coverage.png"), metavar="FILE", help="the picture (default: coverage.png)"
    )
    parser.add_argument("--title", default="Bounds chosen in calm, under load", help="heading")
    options = parser.parse_args(arguments)
    try:
        text = sys.stdin.read() if options.coverage == "-" else Path(options.coverage).read_text(encoding="utf-8")
        figure_of(read_coverage(text), options.title).savefig(options.output, format="png")
    except ModuleNotFoundError as error:
        print(f"ffclock.theta_coverage: {missing(_NEEDS, error)}", file=sys.stderr)
        return 2
    except (CoverageError, OSError, UnicodeDecodeError) as error:
        print(f"ffclock.theta_coverage: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
