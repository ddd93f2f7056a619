"""How every picture of the package looks: fonts, lines, and the colour of each clock, the same in every figure.

The colours are those of Okabe and Ito (see :mod:`ffclock.marks`), which people with any colour vision can distinguish.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

from .marks import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, VERMILLION
from .scales import length_scale, number_text, time_scale, time_text

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
    "kernel-stamps": Dress("kernel stamps", BLUE, 0),
    "user-stamps": Dress("stamps in user space", SKY, 1),
    "published": Dress("published clock", BLUE, 0),
    "smallest-claim": Dress("following the smallest claim", VERMILLION, 1),
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


def grid(picture: Canvas, count: int) -> list[Axes]:
    """``count`` axes in rows of two, or one that fills its row."""
    rows = (count + 1) // 2
    height = picture.get_figheight()
    places = picture.add_gridspec(rows, 2, left=0.065, right=0.985, top=1.0 - 0.52 / height, bottom=0.62 / height, hspace=0.3, wspace=0.17)
    every = [places[place // 2, place % 2] for place in range(count)]
    if count % 2:
        every[-1] = places[rows - 1, :]
    return [picture.add_subplot(place) for place in every]


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


def run_axis(axes: Axes, begin_s: float, end_s: float) -> None:
    """The x axis as the time of a run from ``begin_s`` to ``end_s``, with round numbers of the unit that fits its length."""
    length = end_s - begin_s
    scale = length_scale(length)
    is_seconds = scale.factor >= 1.0 or length <= 0.0
    axes.xaxis.set_major_locator(MaxNLocator(10, steps=[1, 2, 3, 5, 6, 10]) if is_seconds else _Multiples(1.0 / scale.factor, length))
    axes.xaxis.set_major_formatter(lambda value, _: number_text(value * scale.factor))
    axes.set_xlabel(f"time since the start [{scale.name}]")


def unit_axis(axis: Axis, name: str, unit_s: float = 1.0) -> None:
    """Labels an axis of times, whose numbers are multiples of ``unit_s`` seconds, in the unit that fits its range."""
    low, high = axis.get_view_interval()
    scale = time_scale(max(abs(low), abs(high)) * unit_s)
    axis.set_major_formatter(lambda value, _: number_text(value * unit_s * scale.factor))
    axis.set_label_text(f"{name} [{scale.name}]")


class _Multiples(MaxNLocator):
    """Round numbers of a unit other than the second."""

    def __init__(self, seconds: float, length: float) -> None:
        super().__init__(10)
        rough = length / seconds / 10.0
        decade = 10.0 ** np.floor(np.log10(rough))
        self._step = seconds * float(next(decade * m for m in (1, 2, 5, 10) if decade * m >= rough))

    def tick_values(self, vmin: float, vmax: float) -> Any:
        """Multiples of the step from below ``vmin`` to above ``vmax``."""
        return np.arange(np.floor(vmin / self._step), np.ceil(vmax / self._step) + 1) * self._step
