"""The strokes that the panels of a report are made of: colours, lines, bands, dots and notes.

Colours are those of Okabe and Ito, which people with any colour vision can distinguish, and each meaning has one colour in every panel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from .figures import broken, connected, spread
from .runs import SYNCHRONISED, Run
from .scales import Scale
from .tables import Flags, Floats, Places

BLACK: Final = "#000000"
ORANGE: Final = "#E69F00"
SKY: Final = "#56B4E9"
GREEN: Final = "#009E73"
YELLOW: Final = "#F0E442"
BLUE: Final = "#0072B2"
VERMILLION: Final = "#D55E00"
PURPLE: Final = "#CC79A7"
GREY: Final = "#8A8A8A"

STATUS_COLOURS: Final = {
    "synchronised": GREEN,
    "warming-up": YELLOW,
    "holdover": ORANGE,
    "unsynchronised": VERMILLION,
}

NOTE: Final[dict[str, Any]] = {"fontsize": 7.5, "color": "#444444"}

DASHED: Final = (0, (4, 3))

# What the clock says of a server.
STANDING_COLOURS: Final = {
    "believed": GREEN,
    "suspect": ORANGE,
    "falseticker": VERMILLION,
    "undecided": SKY,
}
# In the order of the servers' names.
SERVER_COLOURS: Final = (GREEN, PURPLE, VERMILLION, SKY, ORANGE, BLACK)

# More points than a panel has pixels show nothing more, and a week of samples would take minutes to draw.
BINS: Final = 2400


@dataclass(frozen=True)
class View:
    """A run with everything that several panels need."""

    run: Run
    connected: Flags
    shown: Flags
    """Samples that decide the vertical range: after warm-up, so that the first guess does not flatten the rest."""

    median: float
    """The median error while connected [s]: the constant asymmetry that the noise leaves out; 0 if it is not known."""

    @classmethod
    def of(cls, run: Run) -> View:
        samples = run.samples
        shown = samples.t_s >= run.summary.warm_up_s
        if samples.status is not None:
            begun = np.flatnonzero((samples.status == SYNCHRONISED) & shown)
            if begun.size:
                shown = shown & (np.arange(shown.size) >= begun[0])
        found = spread(samples.error_s, connected(run))
        return cls(run, connected(run), shown if shown.any() else np.ones_like(shown), found.median if found else 0.0)

    def largest(self, values: Floats | None, percent: float = 100.0) -> float:
        """The percentile of the sizes of the shown ``values``; 0 if there is none."""
        if values is None:
            return 0.0
        sizes = np.abs(values[self.shown])
        sizes = sizes[np.isfinite(sizes)]
        return float(np.percentile(sizes, percent)) if sizes.size else 0.0


@dataclass(frozen=True)
class Look:
    """How a series is drawn."""

    colour: str
    label: str
    around: float = 0.0
    """The middle of a band [s]."""
    marker: str = "o"


def known(*every: Floats | None) -> bool:
    """Whether any of the series has a value."""
    return any(values is not None and bool(np.isfinite(values).any()) for values in every)


def where(values: Floats | None, chosen: Flags) -> Floats | None:
    """``values`` with NaN where not chosen, so that lines break instead of jumping across."""
    return None if values is None else np.where(chosen, values, np.nan)


def thinned(t_s: Floats, values: Floats) -> tuple[Floats, Floats]:
    """At most 2 x 2400 points that draw the same line: the smallest and the largest of each bin; a bin of NaN stays a gap."""
    if t_s.size <= 2 * BINS:
        return t_s, values
    starts = np.linspace(0, t_s.size, BINS, endpoint=False).astype(np.intp)
    low, high = np.fmin.reduceat(values, starts), np.fmax.reduceat(values, starts)
    return np.repeat(t_s[starts], 2), np.column_stack((low, high)).ravel()


def sparse(values: Floats) -> Places:
    """Places of at most about 6000 dots that look like all of them: every n-th, and the largest of each piece."""
    if values.size <= 2 * BINS:
        return np.arange(values.size)
    even = np.arange(0, values.size, -(-values.size // (2 * BINS)))
    pieces = np.array_split(np.where(np.isfinite(values), values, -np.inf), BINS // 2)
    ends = np.cumsum([0, *(piece.size for piece in pieces[:-1])])
    largest = np.array([begin + int(np.argmax(piece)) for begin, piece in zip(ends.tolist(), pieces, strict=True)])
    return np.unique(np.concatenate((even, largest)))


def line(axes: Axes, view: View, values: Floats | None, scale: Scale, look: Look) -> None:
    if values is not None:
        t_s, thin = thinned(view.run.samples.t_s, values)
        axes.plot(t_s, thin * scale.factor, color=look.colour, label=look.label, linewidth=0.8, zorder=3)


def band(axes: Axes, view: View, limits: Floats | None, scale: Scale, look: Look) -> None:
    if limits is None:
        return
    t_s, thin = thinned(view.run.samples.t_s, limits)
    thin = np.where(np.isfinite(thin), thin, np.nan)
    low, high = (look.around - thin) * scale.factor, (look.around + thin) * scale.factor
    axes.fill_between(t_s, low, high, color=look.colour, alpha=0.35, linewidth=0, label=look.label, zorder=1)
    for edge in (low, high):
        axes.plot(t_s, edge, color=look.colour, linewidth=0.7, zorder=2)


def dots(axes: Axes, t_s: Floats, values: Floats | None, scale: Scale, look: Look) -> None:
    if values is None or not known(values):
        return
    size = (2.4 if t_s.size < 3000 else 1.2) * (2.0 if look.marker == "x" else 1.0)
    shown = sparse(values)
    axes.plot(
        t_s[shown],
        values[shown] * scale.factor,
        linestyle="",
        marker=look.marker,
        markersize=size,
        color=look.colour,
        label=look.label,
        alpha=0.8,
    )


def mark_broken(axes: Axes, view: View, scale: Scale) -> None:
    samples = view.run.samples
    if samples.error_s is None or samples.bound_s is None:
        return
    outside = broken(samples.error_s, samples.bound_s)
    if outside.any():
        axes.plot(
            samples.t_s[outside],
            samples.error_s[outside] * scale.factor,
            linestyle="",
            marker="x",
            markersize=5,
            color=VERMILLION,
            label="bound broken",
            zorder=4,
        )


def finish(axes: Axes, label: str, limits: tuple[float, float] | None = None) -> None:
    axes.set_ylabel(label)
    if limits is not None:
        axes.set_ylim(*limits)
    if axes.get_yscale() == "linear":
        axes.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))
    if axes.get_legend_handles_labels()[1]:
        # Above the axes, so that it never covers a point.
        axes.legend(
            loc="lower right",
            bbox_to_anchor=(1.0, 0.985),
            ncols=5,
            borderaxespad=0.0,
            handlelength=1.4,
            columnspacing=1.2,
        )
