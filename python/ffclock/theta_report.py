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

# Those of Okabe and Ito, as in ``marks``, which needs matplotlib to be there.
BLUE: Final = "#0072B2"
ORANGE: Final = "#E69F00"
VERMILLION: Final = "#D55E00"
GREY: Final = "#8A8A8A"
_RANKS: Final = (BLUE, ORANGE, "#009E73", VERMILLION, "#CC79A7", "#56B4E9")
"""The colours of h_1 and on."""

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
    """The picture of an analysis as PNG."""
    picture = io.BytesIO()
    figure_of(analysis).savefig(picture, format="png")
    return picture.getvalue()


def figure_of(analysis: dict[str, Any]) -> Any:
    """The figure of an analysis: tails of delays and ratios; where it has pairs, these too, and the ratio over time with Omega marked."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    pairs = analysis.get("pairs") or []
    places: list[Any] = (
        [["delays", "longest"], ["time", "time"], ["ratios", "pairs"]] if pairs else [["delays", "longest"], ["ratios", "ratios"]]
    )
    figure = Figure(figsize=(12.0, 3.6 * len(places)), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplot_mosaic(places)
    histograms = analysis["histograms"]
    _tails(axes["delays"], _delays(histograms["delays"]), 1e-6)
    if axes["delays"].lines:
        # The curves leave no corner free.
        axes["delays"].legend(loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=4, fontsize=8, columnspacing=1.0)
    axes["delays"].set(title="Delays by rank among those that made a process advance", xlabel="delay [µs]", ylabel="share that is longer")
    _tails(axes["longest"], [("tau+ at first switches", histograms["longest"], BLUE)], 1e-6)
    _plain(axes["longest"].xaxis)
    axes["longest"].set(title="Largest delay in transit", xlabel="delay [µs]", ylabel="share that is longer")
    both = [("first switches", histograms["first"], BLUE), ("all switches", histograms["all"], ORANGE)]
    _tails(axes["ratios"], both, 0.01, 1.0)
    axes["ratios"].set(title="Ratios above 1", xlabel="tau+ / tau_r-", ylabel="share that is larger")
    omega = analysis["first"]["omega"]
    if omega:
        axes["ratios"].axvline(omega["ratio"]["value"], color=VERMILLION, linestyle="--", label=f"Omega {_ratio(omega['ratio'])}")
        axes["ratios"].legend()
    if pairs:
        _over_time(axes["time"], pairs, omega)
        _scatter(axes["pairs"], pairs, _tested(analysis))
    return figure


def _delays(histograms: list[dict[str, Any]]) -> list[tuple[str, dict[str, Any], str]]:
    """The histograms h_x that are drawn: with many processes the first ranks and the last, so that each has a colour of its own."""
    last = len(histograms) - 1
    ranks = range(1, last + 1) if last < len(_RANKS) else (*range(1, len(_RANKS)), last)
    named = [(f"h{rank}", histograms[rank], colour) for rank, colour in zip(ranks, _RANKS, strict=False)]
    return [("h0: contributed to no advance", histograms[0], GREY), *named]


def _tails(axes: Any, histograms: list[tuple[str, dict[str, Any], str]], scale: float, shift: float = 0.0) -> None:
    """The share of values that lie in each bin or beyond. Steps that fall once each, where bars of rare delays would cover each other."""
    import numpy as np  # noqa: PLC0415

    for label, histogram, colour in histograms:
        bins = np.asarray(histogram["bins"], dtype=float)
        if bins.sum() > 0.0:
            held = np.nonzero(bins)[0]
            beyond = bins[::-1].cumsum()[::-1] / bins.sum()
            edges = shift + held * histogram["width"] * scale
            axes.step(np.maximum(edges, 0.5 * histogram["width"] * scale), beyond[held], where="pre", color=colour, label=label)
    if axes.lines:
        axes.set(xscale="log", yscale="log")
        _plain(axes.xaxis)
        axes.grid(which="major", color="#E3E3E3")
        axes.legend()


def _over_time(axes: Any, pairs: list[dict[str, int]], omega: dict[str, Any] | None) -> None:
    """The ratio at each first switch, and where it was Omega."""
    import numpy as np  # noqa: PLC0415

    at, relevant, longest = (np.asarray([pair[key] for pair in pairs], dtype=float) for key in ("at_ps", "relevant_ps", "longest_ps"))
    begin = at.min()
    axes.plot((at - begin) * 1e-12, np.maximum(longest / relevant, 1.0), ".", markersize=3, color=BLUE)
    axes.set(title="Ratio at first switches over time", xlabel="time [s]", ylabel="tau+ / tau_r-", yscale="log")
    _plain(axes.yaxis)
    if omega:
        place = ((omega["at_ps"] - begin) * 1e-12, omega["ratio"]["value"])
        axes.plot(*place, "o", markersize=9, markerfacecolor="none", color=VERMILLION)
        words = f"Omega {_ratio(omega['ratio'])} at round {omega['round']} of process {omega['process']}"
        # On the side of the mark where there is room.
        late = place[0] > 0.5 * (at.max() - begin) * 1e-12
        offset, side = ((-8, 0), "right") if late else ((8, 0), "left")
        axes.annotate(words, place, offset, textcoords="offset points", ha=side, va="center", color=VERMILLION)


def _scatter(axes: Any, pairs: list[dict[str, int]], tested: str) -> None:
    relevant, largest = ([pair[key] * 1e-6 for pair in pairs] for key in ("relevant_ps", "longest_ps"))
    axes.plot(relevant, largest, ".", markersize=3, alpha=0.5, color=BLUE)
    axes.set(title=f"Delays that meet at a first switch\n{tested}", xlabel="tau_r-(e) [µs]", ylabel="tau+(e) [µs]")
    axes.set(xscale="log", yscale="log")
    _plain(axes.xaxis, axes.yaxis)


def _plain(*axes: Any) -> None:
    """Logarithmic axes that are labelled with the numbers themselves, few enough not to overlap."""
    from matplotlib.ticker import LogLocator, NullFormatter  # noqa: PLC0415

    for axis in axes:
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=8))
        axis.set_major_formatter(lambda value, _: f"{value:g}")
        axis.set_minor_formatter(NullFormatter())


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
        page.picture(
            picture, "Tails of the delays by rank, of tau+ and of the ratios; the ratio over time; the delays that meet at a switch"
        ),
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
    return f"correlation {words}: rho {found['rho']:.3f}\np {chance:.3f} by shifts, {algorithm:.3f} by redrawn delays"


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
