"""The pictures: counterparts of the paper's figures 3 to 8, and one of load jumps and ramps, other D and scheduling."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from ..marks import BLUE, GREEN, GREY, ORANGE, PURPLE, VERMILLION
from ..scales import time_text
from ..style import canvas, plain_logarithmic, styled, time_logarithmic
from .cells import KINDS, Cell, Measured, Run, Where, find
from .values import LEVELS, OMEGA

_COLOURS: Final = {"network": BLUE, "processor": VERMILLION, "both": GREEN}
_PLACES: Final[tuple[Where, ...]] = ("live", "simulated")


def png(made: Canvas) -> bytes:
    """The picture as a file."""
    data = io.BytesIO()
    # Ticks are made only now.
    with styled():
        made.savefig(data, format="png")
    return data.getvalue()


def _curve(measured: Sequence[Measured], where: Where, n: int, kind: str) -> list[Measured]:
    of_kind = [
        found
        for found in measured
        if found.runs
        and (found.cell.where, found.cell.n, found.cell.pattern) == (where, n, "constant")
        and found.cell.kind in {kind, "idle"}
        and found.cell.delay_us == 1000
        and found.cell.scheduling == "real-time"
    ]
    return sorted(of_kind, key=lambda found: found.cell.level)


def by_load(
    measured: Sequence[Measured],
    title: str,
    value: tuple[Callable[[Measured], float], Callable[[Run], float]],
    is_time: bool,
    paper: bool = False,
) -> Canvas:
    """``value`` of cells and of their runs over the load: a row live and one simulated, a column for each n."""
    sizes = sorted({found.cell.n for found in measured}) or [4]
    places = [where for where in _PLACES if any(found.cell.where == where for found in measured)]
    with styled():
        made = canvas(11.0, 1.0 + 3.2 * len(places))
        made.set_layout_engine("constrained")
        grid = made.subplots(len(places), len(sizes), squeeze=False, sharey="row")
        for row, where in enumerate(places):
            for column, n in enumerate(sizes):
                axes = grid[row, column]
                for kind in KINDS:
                    curve = _curve(measured, where, n, kind)
                    levels = [found.cell.level for found in curve]
                    axes.plot(levels, [value[0](found) for found in curve], "o-", color=_COLOURS[kind], label=kind, markersize=4)
                    for found in curve:
                        spread = [value[1](run) for run in found.runs]
                        axes.plot([found.cell.level] * len(spread), spread, ".", color=_COLOURS[kind], alpha=0.45, markersize=3)
                    if paper and (kind, n) in OMEGA:
                        axes.plot(LEVELS, OMEGA[kind, n], ":", color=_COLOURS[kind], linewidth=1.1, label=f"{kind}, paper")
                axes.set(title=f"{title}, {where}, n = {n}", xlabel="load [%]", ylabel=title if column == 0 else "")
                (time_logarithmic if is_time else plain_logarithmic)(axes)
                axes.legend(ncols=2)
        return made


def delays(measured: Sequence[Measured], title: str, value: str, is_least: bool = False) -> Canvas:
    """Figures 3 and 4."""
    best = min if is_least else max
    of_cell = (lambda found: best(getattr(run, value) for run in found.runs), lambda run: float(getattr(run, value)))
    return by_load(measured, title, of_cell, is_time=True)


def omega(measured: Sequence[Measured]) -> Canvas:
    """Figure 5 as curves, the paper's dotted."""
    return by_load(measured, "Omega", (lambda found: found.omega, lambda run: run.omega), is_time=False, paper=True)


def correlation(measured: Sequence[Measured]) -> Canvas:
    """Figure 6."""
    return by_load(measured, "smallest g_r", (lambda found: found.g_r, lambda run: run.g_r), is_time=False)


def _with_histograms(measured: Sequence[Measured]) -> list[tuple[str, Run]]:
    found = []
    for cell in measured:
        run = next((run for run in cell.runs if run.histograms), None)
        if run is not None:
            found.append((f"{cell.cell.where}, {'no load' if cell.cell.kind == 'idle' else f'{cell.cell.kind} {cell.cell.level} %'}", run))
    return found


def _stairs(axes: Axes, histogram: dict[str, Any], until: int, colour: str) -> None:
    """Bins of picoseconds over seconds."""
    bins = np.asarray(histogram["bins"][:until], dtype=float)
    if bins.size:
        axes.stairs(bins, np.arange(bins.size + 1) * histogram["width"] * 1e-12, fill=True, color=colour)


def _reach(histogram: dict[str, Any], share: float = 0.99) -> int:
    """How many bins hold that share."""
    counts = np.cumsum(np.asarray(histogram["bins"], dtype=float))
    return int(np.searchsorted(counts, share * counts[-1])) + 2 if counts.size else 2


def histograms(measured: Sequence[Measured]) -> Canvas | None:
    """Figure 7: h_1 and on, and tau+ at switches; None if none were made."""
    columns = _with_histograms(measured)
    if not columns:
        return None
    rows = [(1, "h1", PURPLE), (2, "h2", BLUE), (3, "h3", GREEN), (0, "h0: contributed to no switch", GREY), (None, "tau+", ORANGE)]
    with styled():
        made = canvas(3.6 * len(columns) + 1.0, 9.0)
        made.set_layout_engine("constrained")
        grid = made.subplots(len(rows), len(columns), squeeze=False, sharex="col")
        for column, (name, run) in enumerate(columns):
            parts = run.histograms or {}
            until = max(_reach(parts["longest"], 0.95), *(_reach(histogram) for histogram in parts["delays"][:4]))
            for row, (rank, label, colour) in enumerate(rows):
                axes = grid[row, column]
                _stairs(axes, parts["longest"] if rank is None else parts["delays"][rank], until, colour)
                axes.set_title(f"{label}, {name}" if row == 0 else label)
                axes.xaxis.set_major_formatter(lambda value, _: time_text(value) if value else "0")
                axes.xaxis.set_major_locator(_few())
                if column == 0:
                    axes.set_ylabel("switches" if rank is None else "messages")
                if row == len(rows) - 1:
                    axes.set_xlabel("delay")
        return made


def _few() -> Any:
    from matplotlib.ticker import MaxNLocator  # noqa: PLC0415

    return MaxNLocator(5)


_LONG_TAIL_BINS: Final = 1000
"""Of ratios that reach beyond 11 a linear axis would show one bar."""


def ratios(measured: Sequence[Measured]) -> Canvas | None:
    """Figure 8: the ratios above 1 in bins of 0.01; None if none were made."""
    columns = _with_histograms(measured)
    if not columns:
        return None
    with styled():
        made = canvas(3.6 * len(columns) + 1.0, 3.2)
        made.set_layout_engine("constrained")
        for column, (name, run) in enumerate(columns):
            axes = made.add_subplot(1, len(columns), column + 1)
            histogram = (run.histograms or {})["all"]
            bins = np.asarray(histogram["bins"][: _reach(histogram, 0.99)], dtype=float)
            if bins.size:
                axes.stairs(bins, 1.0 + np.arange(bins.size + 1) * 0.01, fill=True, color=BLUE)
            if bins.size > _LONG_TAIL_BINS:
                axes.set_xscale("log")
            share = "" if run.at_most_one is None else f"; 1 at {run.at_most_one:.0%}"
            axes.set(title=f"{name}{share}", xlabel="tau+ / tau_r-", ylabel="switches" if column == 0 else "")
        return made


def comparisons(measured: Sequence[Measured]) -> Canvas:
    """Omega of cells beside the cell that each is compared with: another D, jumps, ramps, normal scheduling."""
    pairs: list[tuple[str, Measured, Measured]] = []
    for found in measured:
        cell = found.cell
        calm = Cell(cell.where, cell.n, cell.kind, cell.level)
        other = find(measured, calm)
        if found.runs and other is not None and cell != calm:
            pairs.append((f"{cell.where}: {found.cell.name}", found, other))
    with styled():
        made = canvas(11.0, 1.4 + 0.3 * max(len(pairs), 1))
        made.set_layout_engine("constrained")
        axes = made.subplots()
        for place, (_, found, other) in enumerate(pairs):
            axes.plot([other.omega, found.omega], [place, place], "-", color="#BBBBBB")
            axes.plot([other.omega], [place], "o", color=GREY, label="" if place else "constant load, D = 1 ms, real-time")
            axes.plot([found.omega], [place], "o", color=VERMILLION, label="" if place else "as named")
        axes.set_yticks(range(len(pairs)), [name for name, _, _ in pairs])
        axes.invert_yaxis()
        plain_logarithmic(axes, "x")
        axes.set(title="Omega with another D, with load jumps and ramps, and with normal scheduling", xlabel="Omega", ylabel="cell")
        if pairs:
            axes.legend()
        return made
