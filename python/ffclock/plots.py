"""The picture of a run: what the clock claimed, how far it was off, the round trips it was computed from, and its rate.

Time runs along one shared axis, so that an event is seen in every panel at the same place. What was not recorded has no panel.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Canvas
from matplotlib.gridspec import GridSpec, SubplotSpec

from .marks import View
from .panels import OVER_TIME, figures_panel, has_histogram, histogram, status_strip
from .runs import Event, Run
from .style import STYLE, run_axis

# The figures at the right need this height, in units of the panels.
_LEAST_HEIGHT: Final = 2.2


def draw(run: Run) -> Canvas:
    """The picture of ``run`` on one canvas, without the panels for which nothing was recorded; save it with ``savefig``."""
    view = View.of(run)
    shown = [panel for panel in OVER_TIME if panel.has_data(view)]
    with matplotlib.rc_context(rc=STYLE):
        height = 1.4 + 2.05 * max(sum(panel.height for panel in shown), _LEAST_HEIGHT)
        canvas = Canvas(figsize=(14.0, height), dpi=150)
        FigureCanvasAgg(canvas)
        top, bottom = 1.0 - 1.22 / height, 0.59 / height
        columns = GridSpec(1, 2, figure=canvas, width_ratios=[3.1, 1], left=0.06, right=0.985, top=top, bottom=bottom, wspace=0.13)
        left = columns[0].subgridspec(1 + len(shown), 1, height_ratios=[0.09, *(panel.height for panel in shown)], hspace=0.32)
        strip = canvas.add_subplot(left[0])
        panels = [canvas.add_subplot(left[row], sharex=strip) for row in range(1, 1 + len(shown))]
        status_strip(strip, view)
        for panel, axes in zip(shown, panels, strict=True):
            panel.draw(axes, view)
        _right(canvas, columns[1], view)
        _time_axis(strip, panels, view)
        _event_marks(panels, run.summary.events)
        _event_labels(canvas, strip, run.summary.events)
        canvas.align_ylabels(panels)
        _headline(canvas, run)
    return canvas


def _right(canvas: Canvas, place: SubplotSpec, view: View) -> None:
    """The histogram, where there is one, above the figures."""
    if not has_histogram(view):
        figures_panel(canvas.add_subplot(place), view)
        return
    right = place.subgridspec(2, 1, height_ratios=[1.3, 1.0], hspace=0.2)
    histogram(canvas.add_subplot(right[0]), view)
    figures_panel(canvas.add_subplot(right[1]), view)


def _headline(canvas: Canvas, run: Run) -> None:
    height = canvas.get_figheight()
    canvas.text(0.06, 1.0 - 0.34 / height, run.summary.title, fontsize=15, fontweight="bold", va="center")
    conditions = "  ·  ".join(run.summary.conditions)
    if len(conditions) > 190:
        conditions = conditions[:187].rstrip() + "…"
    canvas.text(0.06, 1.0 - 0.61 / height, conditions, fontsize=9, color="#444444", va="center")


def _time_axis(strip: Axes, panels: Sequence[Axes], view: View) -> None:
    times = view.run.samples.t_s
    begin, end = float(times.min()), float(times.max())
    strip.set_xlim(begin, end if end > begin else begin + 1.0)
    for axes in panels[:-1]:
        axes.tick_params(axis="x", labelbottom=False)
    for axes in panels[-1:]:
        run_axis(axes, begin, end)


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
