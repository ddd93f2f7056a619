"""The strokes of the paper's figures: time series with histograms beside them, zooms, and bands of percentiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.gridspec import SubplotSpec
from matplotlib.ticker import MaxNLocator

from ..marks import GREY, thinned
from ..scales import Scale, time_scale, time_text
from ..style import dress
from ..tables import Floats
from .worlds import BANDS, World, iqr

_BINS: Final = 90


@dataclass(frozen=True)
class Window:
    """The part of a world that is shown, and the unit of its time axis."""

    begin_s: float
    end_s: float
    zero_s: float
    """Where the axis begins to count [s]."""
    unit: str = "h"

    @property
    def seconds(self) -> float:
        """Length of the unit [s]."""
        return {"min": 60.0, "h": 3600.0, "d": 86400.0}[self.unit]

    def shown(self, t_s: Floats) -> Floats:
        """Times in the unit of the axis."""
        return np.asarray((t_s - self.zero_s) / self.seconds)


@dataclass(frozen=True)
class Row:
    """One row: a title, the clocks in it, and the vertical range [s]."""

    title: str
    clocks: Sequence[str]
    limits: tuple[float, float]


def lines(axes: Axes, world: World, clocks: Sequence[str], window: Window) -> None:
    """The error of each clock over time [s]; ours on top."""
    for name in sorted(clocks, key=lambda name: -dress(name).order):
        samples = world.samples(name)
        if samples.error_s is None:
            continue
        inside = (samples.t_s >= window.begin_s) & (samples.t_s < window.end_s)
        times, errors = thinned(samples.t_s[inside], samples.error_s[inside])
        look = dress(name)
        axes.plot(window.shown(times), errors, color=look.colour, linewidth=0.7, zorder=3 - 0.1 * look.order, label=look.label)
    axes.set_xlim(*(float(edge) for edge in window.shown(np.array([window.begin_s, window.end_s]))))


def time_errors(axes: Axes, limits: tuple[float, float]) -> Scale:
    """A linear axis of errors with the unit that fits ``limits`` [s]."""
    scale = time_scale(max(abs(limits[0]), abs(limits[1])))
    axes.set_ylim(*limits)
    axes.yaxis.set_major_locator(_Round(scale))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value * scale.factor:.6g}")
    axes.set_ylabel(f"error [{scale.name}]")
    return scale


class _Round(MaxNLocator):
    """Ticks at round numbers of the unit that is shown."""

    def __init__(self, scale: Scale) -> None:
        super().__init__(6, steps=[1, 2, 2.5, 5, 10])
        self._factor = scale.factor

    def tick_values(self, vmin: float, vmax: float) -> Sequence[float]:
        """As the base class, in the unit."""
        return [float(tick) / self._factor for tick in super().tick_values(vmin * self._factor, vmax * self._factor)]


def histogram(axes: Axes, world: World, row: Row, window: Window) -> None:
    """How the errors of the window are distributed, lying on its side so that it shares the axis of the time series."""
    edges = np.linspace(*row.limits, _BINS + 1)
    for name in sorted(row.clocks, key=lambda name: -dress(name).order):
        errors = world.errors(name, window.begin_s, window.end_s)
        if not errors.size:
            continue
        counts, _ = np.histogram(errors, bins=edges)
        look = dress(name)
        # Each as high as its own peak: a narrow one would press the others onto the axis.
        peak = max(int(counts.max()), 1)
        outline = np.append(counts / peak, 0.0)
        axes.step(outline, edges, where="pre", color=look.colour, linewidth=1.3, zorder=3 - 0.1 * look.order)
        axes.fill_betweenx(edges, 0.0, outline, step="pre", color=look.colour, alpha=0.12, linewidth=0)
    axes.set_xlim(0, 1.08)
    axes.set_xticks([])
    axes.set_xlabel("readings, each to its peak")
    axes.tick_params(axis="y", labelleft=False)


def legend(axes: Axes, world: World, row: Row, window: Window) -> None:
    """Names with interquartile ranges, above the axes."""
    handles, labels = axes.get_legend_handles_labels()
    names = {dress(name).label: name for name in row.clocks}
    ranges = {label: iqr(world.errors(names[label], window.begin_s, window.end_s)) for label in labels if label in names}
    shown = [f"{label}, IQR {time_text(ranges[label])}" if label in ranges else label for label in labels]
    order = sorted(range(len(labels)), key=lambda place: dress(names.get(labels[place], "")).order)
    axes.legend(
        [handles[place] for place in order],
        [shown[place] for place in order],
        loc="lower right",
        bbox_to_anchor=(1.0, 1.0),
        ncols=4,
        borderaxespad=0.1,
        handlelength=1.2,
        columnspacing=1.1,
    )


def with_histograms(place: tuple[Canvas, SubplotSpec], world: World, rows: Sequence[Row], window: Window) -> list[Axes]:
    """Rows of time series, each with its histograms at its right; returns the time series' axes."""
    canvas, where = place
    grid = where.subgridspec(len(rows), 2, width_ratios=[4.2, 1], wspace=0.03, hspace=0.34)
    made = []
    for index, row in enumerate(rows):
        axes = canvas.add_subplot(grid[index, 0])
        lines(axes, world, row.clocks, window)
        time_errors(axes, row.limits)
        axes.set_title(row.title)
        shade(axes, world, window)
        legend(axes, world, row, window)
        side = canvas.add_subplot(grid[index, 1], sharey=axes)
        histogram(side, world, row, window)
        made.append(axes)
        if index == len(rows) - 1:
            axes.set_xlabel(f"time [{window.unit}]")
    return made


def shade(axes: Axes, world: World, window: Window) -> None:
    """What was done to the world."""
    for event in world.series.events:
        begin, end = (float(edge) for edge in window.shown(np.array([event.t_s, event.end_s])))
        axes.axvspan(begin, end, color="#777777", alpha=0.14, linewidth=0, zorder=0)


def robust(world: World, clocks: Sequence[str], window: Window, percent: float = 99.5) -> tuple[float, float]:
    """A range [s] that holds nearly all errors of the clocks, around the bias that they share."""
    sizes = [np.abs(world.errors(name, window.begin_s, window.end_s) - world.bias_s) for name in clocks]
    reach = 1.15 * max(float(np.percentile(size, percent)) for size in sizes if size.size)
    return world.bias_s - reach, world.bias_s + reach


def bands(axes: Axes, at: float, errors: Floats, colour: str) -> None:
    """The 1, 25, 50, 75, 99 percentiles at one place: a thin line, a thick one, a white mark at the median."""
    low, lower, middle, upper, high = np.percentile(errors, BANDS)
    axes.plot([at, at], [low, high], color=colour, linewidth=1.3, solid_capstyle="butt", zorder=3)
    axes.plot([at, at], [lower, upper], color=colour, linewidth=6.0, solid_capstyle="butt", zorder=3)
    axes.plot([at], [middle], marker="_", markersize=8, markeredgewidth=1.4, color="white", zorder=4)


def bias_line(axes: Axes, bias_s: float) -> None:
    """Where a clock stands that is right but for the asymmetry of the path."""
    axes.axhline(bias_s, color=GREY, linewidth=1.0, zorder=1)
