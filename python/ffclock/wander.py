"""The third picture of a report: stability over averaging times, with guides, confidence and the masks of the ITU."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from .marks import BLACK, BLUE, DASHED, GREY, NOTE, ORANGE, PURPLE, VERMILLION
from .runs import Run
from .stability import MTIE_MASKS, TDEV_MASKS, Deviation, Grid, Mask, allan, even_grid, modified_allan, mtie, time_deviation
from .style import canvas, dress, grid, styled, time_logarithmic

_MASK_COLOURS: Final = (VERMILLION, ORANGE, PURPLE)
_SLOPES: Final = ((-1.0, "τ⁻¹"), (-0.5, "τ⁻½"), (0.0, "τ⁰"), (0.5, "τ½"))


@dataclass(frozen=True)
class Line:
    """A series whose stability is shown."""

    grid: Grid
    label: str
    colour: str


def lines_of(run: Run) -> list[Line]:
    """The clock against the truth or, without one, against its server; and the counter that it reads."""
    samples, exchanges = run.samples, run.exchanges
    after = samples.t_s >= run.summary.warm_up_s
    found: list[tuple[Grid | None, str, str]] = []
    if samples.error_s is not None and np.isfinite(samples.error_s).any():
        label = f"clock: {dress(run.clock).label}" if run.clock else "clock against the truth"
        found.append((even_grid(samples.t_s[after], samples.error_s[after]), label, BLUE))
    elif exchanges is not None and exchanges.offset_s is not None:
        found.append((even_grid(exchanges.t_s, exchanges.offset_s), "clock against its server, with the path's noise", BLUE))
    if samples.counter_s is not None:
        found.append((even_grid(samples.t_s[after], samples.counter_s[after]), "counter, uncorrected", GREY))
    return [Line(grid, label, colour) for grid, label, colour in found if grid is not None]


def draw(run: Run) -> Canvas | None:
    """Allan, modified Allan and time deviation, and MTIE, as far as there are enough samples; None without any."""
    lines = lines_of(run)
    statistics = [
        ("Allan deviation, overlapping", _found(lines, allan), None),
        ("Modified Allan deviation", _found(lines, modified_allan), None),
        ("Time deviation (TDEV)", _found(lines, time_deviation), TDEV_MASKS),
        ("Maximum time interval error (MTIE)", _found(lines, mtie), MTIE_MASKS),
    ]
    shown = [(title, found, masks) for title, found, masks in statistics if found]
    if not shown:
        return None
    with styled():
        picture = canvas(14.0, 4.7 * ((len(shown) + 1) // 2))
        for axes, (title, found, masks) in zip(grid(picture, len(shown)), shown, strict=True):
            axes.set_title(title)
            _plot(axes, found)
            if masks is None:
                _slope_guides(axes)
                axes.set_ylabel("fractional frequency [s/s]")
                axes.legend(loc="lower left")
            else:
                _against_masks(axes, masks)
    return picture


def _found(lines: Iterable[Line], statistic: Callable[[Grid], Deviation]) -> list[tuple[Line, Deviation]]:
    """The deviation of each line that has any."""
    every = ((line, statistic(line.grid)) for line in lines)
    return [(line, deviation) for line, deviation in every if (deviation.value > 0.0).any()]


def _against_masks(axes: Axes, masks: tuple[Mask, ...]) -> None:
    reach = axes.get_xlim()
    for mask, colour in zip(masks, _MASK_COLOURS, strict=True):
        taus, limits = mask.line()
        axes.plot(taus, limits, color=colour, linewidth=1.2, linestyle=DASHED, label=mask.name, zorder=2)
    axes.set_xlim(*reach)
    time_logarithmic(axes)
    axes.set_ylabel("time error")
    axes.legend(loc="upper left")


def _plot(axes: Axes, found: list[tuple[Line, Deviation]]) -> None:
    """Draws the lines with their confidence."""
    for line, deviation in found:
        good = deviation.value > 0.0
        taus, values = deviation.tau_s[good], deviation.value[good]
        axes.plot(taus, values, color=line.colour, linewidth=1.4, marker="o", markersize=3, label=line.label, zorder=4)
        low, high = values - deviation.low[good], deviation.high[good] - values
        sure = np.isfinite(low) & np.isfinite(high)
        if sure.any():
            bars = np.vstack((low[sure], high[sure])).clip(0.0)
            axes.errorbar(taus[sure], values[sure], yerr=bars, fmt="none", ecolor=line.colour, elinewidth=0.9, capsize=2, zorder=3)
    time_logarithmic(axes, "x")
    axes.set_yscale("log")
    axes.set_xlabel("averaging time τ")
    axes.grid(visible=True, which="minor", alpha=0.35)


def _slope_guides(axes: Axes) -> None:
    """Short strokes in the corner that show what a noise looks like: phase, white frequency, flicker frequency, random walk."""
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    top *= 12.0
    axes.set_ylim(bottom, top)
    begin = right / (right / left) ** 0.27
    end = right / (right / left) ** 0.08
    anchor = top / (top / bottom) ** 0.17
    for slope, name in _SLOPES:
        finish = anchor * (end / begin) ** slope
        axes.plot([begin, end], [anchor, finish], color=BLACK, linewidth=0.8, alpha=0.7, zorder=2)
        axes.text(end * 1.06, finish, name, va="center", clip_on=True, **NOTE)
    axes.set_xlim(left, right)
