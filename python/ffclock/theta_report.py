"""Turns an analysis of message delays into a page: ``python -m ffclock.theta_report ANALYSIS.json -o DIR``.

ANALYSIS.json is what ``ffclock-lab theta analyse --histograms --json`` prints, or ``-`` for standard input. DIR receives ``theta.png`` and
``theta.html``; the page holds the picture inside itself, runs no script and loads nothing.
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

_FOOTER: Final = "docs/theta.md defines every quantity. Omega is a maximum and grows with the length of the run."


class AnalysisError(ValueError):
    """The input is no analysis, or one without histograms."""


def read_analysis(text: str) -> dict[str, Any]:
    """The analysis in ``text``; AnalysisError if it is none."""
    try:
        analysis = json.loads(text)
    except json.JSONDecodeError as error:
        raise AnalysisError(f"no JSON: {error}") from error
    if not isinstance(analysis, dict) or "first" not in analysis or "all" not in analysis:
        raise AnalysisError("no analysis: ffclock-lab theta analyse --histograms --json prints one")
    if not analysis.get("histograms"):
        raise AnalysisError("the analysis has no histograms: run ffclock-lab theta analyse with --histograms")
    return analysis


def draw(analysis: dict[str, Any]) -> bytes:
    """The picture of an analysis as PNG: h_x, tau+ at switches, and the ratios above 1."""
    import numpy as np  # noqa: PLC0415
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    histograms = analysis["histograms"]
    pairs = analysis.get("pairs") or []
    panels = 4 if pairs else 3
    figure = Figure(figsize=(12.0, 3.0 * panels), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    delays, longest, ratios, *scatter = figure.subplots(panels, 1)

    def steps(axes: Any, histogram: dict[str, Any], scale: float, label: str, shift: float = 0.0) -> None:
        bins = np.asarray(histogram["bins"], dtype=float)
        if bins.size:
            edges = shift + np.arange(bins.size + 1) * histogram["width"] * scale
            axes.stairs(bins, edges, label=label)

    for rank, histogram in enumerate(histograms["delays"]):
        label = "h0: contributed to no advance" if rank == 0 else f"h{rank}"
        steps(delays, histogram, 1e-6, label)
    delays.set(title="Delays by rank among those that made a process advance", xlabel="delay [µs]", ylabel="messages", yscale="log")
    steps(longest, histograms["longest"], 1e-6, "tau+ at first switches")
    longest.set(title="Largest delay in transit", xlabel="delay [µs]", ylabel="switches", yscale="log")
    steps(ratios, histograms["first"], 0.01, "first switches", 1.0)
    steps(ratios, histograms["all"], 0.01, "all switches", 1.0)
    ratios.set(title="Ratios above 1", xlabel="tau+ / tau_r-", ylabel="switches", yscale="log")
    for axes in (delays, longest, ratios):
        if axes.get_legend_handles_labels()[0]:
            axes.legend()
    for axes in scatter:
        relevant, largest = (np.asarray([pair[key] for pair in pairs], dtype=float) * 1e-6 for key in ("relevant_ps", "longest_ps"))
        axes.plot(relevant, largest, ".", markersize=3, alpha=0.5)
        axes.set(title=f"Delays that meet at a first switch: {_tested(analysis)}", xlabel="tau_r-(e) [µs]", ylabel="tau+(e) [µs]")
        axes.set(xscale="log", yscale="log")
    picture = io.BytesIO()
    figure.savefig(picture, format="png")
    return picture.getvalue()


def page_text(analysis: dict[str, Any], title: str, picture: bytes) -> str:
    """The HTML page of ``analysis`` around the PNG ``picture``."""
    both = (analysis["first"], analysis["all"])
    rows = [
        ("switches", *(str(seen["switches"]) for seen in both)),
        ("Omega", *(_ratio((seen["omega"] or {}).get("ratio")) for seen in both)),
        ("Omega with D", *(_ratio(seen["omega_with_delay"]) for seen in both)),
        ("tau_r- [µs]", *(_micros(seen["relevant_min_ps"]) for seen in both)),
        ("Theta_ro", *(_ratio(seen["theta_ro"]) for seen in both)),
        ("g_r", *(_number(seen["g_r"]) for seen in both)),
        ("tau+ [µs]", _micros(analysis["delay_max_ps"]), ""),
        ("tau- [µs]", _micros(analysis["delay_min_ps"]), ""),
        ("Theta_po", _ratio(analysis["theta_po"]), ""),
        ("Theta", _ratio(analysis["theta"]), ""),
    ]
    body = [
        _verdict(analysis),
        page.table("", ["what", "first switches", "all switches"], rows),
        page.picture(picture, "Histograms of delays by rank, of tau+ and of the ratios; the delays that meet at a switch"),
    ]
    return page.document(title, body, _FOOTER)


def _verdict(analysis: dict[str, Any]) -> str:
    wrong = [*analysis["remarks"], *analysis["conformance"]["examples"]]
    if wrong or not analysis["conformance"]["kept"]:
        texts = " · ".join(escape(text) for text in wrong)
        return f'<p class="verdict broken">Partial, or against the rules: {texts}</p>'
    switches = analysis["conformance"]["switches"]
    return f'<p class="verdict kept">The log is whole, and all {switches} switches keep the rules of the algorithm.</p>'


def _tested(analysis: dict[str, Any]) -> str:
    found = analysis["correlation"]
    if found["verdict"] == "not-tested":
        return f"correlation not tested, {found['reason']}"
    chance, algorithm = found["shifted"]["p"], found["redrawn"]["p"]
    words = "shown" if found["verdict"] == "shown" else "not shown"
    return f"correlation {words}: rho {found['rho']:.3f}, p {chance:.3f} by shifts, {algorithm:.3f} by redrawn delays"


def _ratio(ratio: dict[str, Any] | None) -> str:
    return _number(ratio["value"] if ratio else None)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"


def _micros(picoseconds: int | None) -> str:
    return "" if picoseconds is None else f"{picoseconds * 1e-6:.3f}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns 0, or 2 with one message on standard error if the input or the output directory is unusable."""
    parser = argparse.ArgumentParser(
        prog="python -m ffclock.theta_report",
        description="Draw an analysis of message delays: theta.png and a self-contained theta.html.",
        epilog="example: ffclock-lab theta analyse run-1 --histograms --theta --json | python -m ffclock.theta_report - -o out",
    )
    parser.add_argument("analysis", metavar="ANALYSIS", help="the JSON of ffclock-lab theta analyse --histograms, or - for standard input")
    parser.add_argument("-o", "--output", type=Path, default=Path(), metavar="DIR", help="where to put the report (default: here)")
    parser.add_argument("--title", default="Message delay correlation", help="heading")
    options = parser.parse_args(arguments)
    try:
        text = sys.stdin.read() if options.analysis == "-" else Path(options.analysis).read_text(encoding="utf-8")
        analysis = read_analysis(text)
        picture = draw(analysis)
        written = page.write(page_text(analysis, options.title, picture), {"theta.png": picture}, options.output, "theta.html")
    except ModuleNotFoundError as error:
        print(f"ffclock.theta_report: {missing(_NEEDS, error)}", file=sys.stderr)
        return 2
    except (AnalysisError, OSError, UnicodeDecodeError) as error:
        print(f"ffclock.theta_report: {error}", file=sys.stderr)
        return 2
    print("\n".join(map(str, written)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
