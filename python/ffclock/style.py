"""How every picture of the package looks: fonts, lines, and the colour of each clock, the same in every figure.

The colours are those of Okabe and Ito (see :mod:`ffclock.marks`), which people with any colour vision can distinguish.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import LogLocator, NullFormatter

from .marks import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, VERMILLION
from .scales import number_text, time_text

STYLE: Final[Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 9.0,
    "axes.titlesize": 10.0,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#555555",
    "axes.linewidth": 0.8,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#E3E3E3",
    "grid.linewidth": 0.7,
    "xtick.color": "#333333",
    "ytick.color": "#333333",
    "legend.fontsize": 8.0,
    "legend.frameon": False,
    "lines.linewidth": 0.9,
    "figure.facecolor": "white",
}


@dataclass(frozen=True)
class Dress:
    """How a clock is named and drawn wherever it appears."""

    label: str
    colour: str
    order: int
    """Its place in legends and tables; what is drawn later lies on top, so ours come last."""


_CLOCKS: Final = {
    "learned": Dress("ffclock", BLUE, 0),
    "joint": Dress("ffclock", BLUE, 0),
    "classic": Dress("classic feed-forward", SKY, 1),
    "pi": Dress("PI (linuxptp)", ORANGE, 2),
    "ptpd": Dress("PI (ptpd)", VERMILLION, 3),
    "pll": Dress("PLL (ntpd)", PURPLE, 4),
    "ntpd": Dress("ntpd", PURPLE, 4),
    "regression": Dress("regression (chrony)", GREEN, 5),
    "chrony": Dress("chrony", GREEN, 5),
    "oracle": Dress("oracle, past only", BLACK, 6),
    "smoother": Dress("oracle, past and future", "#555555", 7),
}


def dress(clock: str) -> Dress:
    """The style of a clock; unknown clocks are grey."""
    return _CLOCKS.get(clock, Dress(clock.replace("_", " ").replace("-", " "), GREY, len(_CLOCKS)))


def canvas(width: float, height: float) -> Canvas:
    """An empty picture of the given size in inches."""
    made = Canvas(figsize=(width, height), dpi=130)
    FigureCanvasAgg(made)
    return made


def styled() -> Any:
    """The context in which a picture is drawn."""
    return matplotlib.rc_context(rc=STYLE)


def plain_logarithmic(axes: Axes, which: str = "y") -> None:
    """A logarithmic axis that is labelled with the numbers themselves."""
    axis = axes.yaxis if which == "y" else axes.xaxis
    (axes.set_yscale if which == "y" else axes.set_xscale)("log")
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=8))
    axis.set_major_formatter(lambda value, _: number_text(value))
    axis.set_minor_formatter(NullFormatter())


def time_logarithmic(axes: Axes, which: str = "y") -> None:
    """A logarithmic axis of times in seconds, each label with the unit that fits: ``100 ns``, ``1 µs``, ``1 ms``."""
    axis = axes.yaxis if which == "y" else axes.xaxis
    (axes.set_yscale if which == "y" else axes.set_xscale)("log")
    low, high = axes.get_ylim() if which == "y" else axes.get_xlim()
    decades = np.log10(high / low) if low > 0.0 else 9.0
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if decades < 2.2 else (1.0,), numticks=14))
    axis.set_major_formatter(lambda value, _: time_text(value))
    axis.set_minor_formatter(NullFormatter())
