"""The picture of a run: what the clock claimed, how far it was off, the round trips it was computed from, and its rate.

Time runs along one shared axis, so that an event is seen in every panel at the same place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Canvas
from matplotlib.gridspec import GridSpec
from matplotlib.ticker import MaxNLocator

from .marks import View
from .panels import claim_panel, error_panel, exchange_panel, figures_panel, histogram, rate_panel, status_strip
from .runs import Event, Run
from .scales import number_text
from .style import STYLE


def draw(run: Run) -> Canvas:
    """The whole picture of ``run`` on one canvas; save it with ``savefig``."""
    view = View.of(run)
    with matplotlib.rc_context(rc=STYLE):
        canvas = Canvas(figsize=(14.0, 9.8), dpi=150)
        FigureCanvasAgg(canvas)
        columns = GridSpec(1, 2, figure=canvas, width_ratios=[3.1, 1], left=0.06, right=0.985, top=0.875, bottom=0.06, wspace=0.13)
        left = columns[0].subgridspec(5, 1, height_ratios=[0.09, 0.95, 1.15, 1.05, 0.95], hspace=0.32)
        right = columns[1].subgridspec(2, 1, height_ratios=[1.3, 1.0], hspace=0.2)
        strip = canvas.add_subplot(left[0])
        panels = [canvas.add_subplot(left[row], sharex=strip) for row in range(1, 5)]
        status_strip(strip, view)
        claim_panel(panels[0], view)
        error_panel(panels[1], view)
        exchange_panel(panels[2], view)
        rate_panel(panels[3], view)
        histogram(canvas.add_subplot(right[0]), view)
        figures_panel(canvas.add_subplot(right[1]), view)
        _time_axis(strip, panels, view)
        _event_marks(panels, run.summary.events)
        _event_labels(canvas, strip, run.summary.events)
        canvas.align_ylabels(panels)
        _headline(canvas, run)
    return canvas


def _headline(canvas: Canvas, run: Run) -> None:
    canvas.text(0.06, 0.965, run.summary.title, fontsize=15, fontweight="bold", va="center")
    conditions = "  ·  ".join(run.summary.conditions)
    if len(conditions) > 190:
        conditions = conditions[:187].rstrip() + "…"
    canvas.text(0.06, 0.938, conditions, fontsize=9, color="#444444", va="center")


def _time_axis(strip: Axes, panels: Sequence[Axes], view: View) -> None:
    times = view.run.samples.t_s
    begin, end = float(times.min()), float(times.max())
    strip.set_xlim(begin, end if end > begin else begin + 1.0)
    for axes in panels[:-1]:
        axes.tick_params(axis="x", labelbottom=False)
    length = end - begin
    unit, seconds = (
        ("s", 1.0) if length < 600 else ("min", 60.0) if length < 4 * 3600 else ("h", 3600.0) if length < 4 * 86400 else ("d", 86400.0)
    )
    panels[-1].xaxis.set_major_locator(MaxNLocator(10, steps=[1, 2, 3, 5, 6, 10]) if seconds == 1.0 else _Multiples(seconds, length))
    panels[-1].xaxis.set_major_formatter(lambda value, _: number_text(value / seconds))
    panels[-1].set_xlabel(f"time since the start [{unit}]")


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


def _event_marks(panels: Sequence[Axes], events: Sequence[Event]) -> None:
    for event in events:
        for axes in panels:
            if event.duration_s:
                axes.axvspan(event.t_s, event.end_s, color="#777777", alpha=0.13, linewidth=0, zorder=0)
            for edge in {event.t_s, event.end_s}:
                axes.axvline(edge, color="#444444", linewidth=0.8, linestyle=(0, (2, 2)), zorder=2.5)


def _event_labels(canvas: Canvas, strip: Axes, events: Sequence[Event]) -> None:
    """Each text above its event, in the lowest of two lanes where it is free; what finds no lane is left to the report's list."""
    ends = [-np.inf, -np.inf]
    renderer = FigureCanvasAgg(canvas).get_renderer()  # type: ignore[no-untyped-call]
    for event in sorted(events, key=lambda event: event.t_s):
        label = strip.annotate(
            event.text,
            (event.t_s, 1.0),
            xytext=(0, 3),
            textcoords="offset points",
            fontsize=8,
            color="#222222",
            annotation_clip=True,
        )
        box = label.get_window_extent(renderer)
        overhang = box.x1 - strip.get_window_extent(renderer).x1
        if overhang > 0:
            label.set_x(-overhang * 72.0 / canvas.dpi)
            box = label.get_window_extent(renderer)
        lane = next((lane for lane, end in enumerate(ends) if box.x0 > end + 6), None)
        if lane is None:
            label.remove()
            continue
        label.xyann = (label.xyann[0], 3 + 11 * lane)
        ends[lane] = box.x1
