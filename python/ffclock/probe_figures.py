"""Counterparts of the figures of "Probing the Latencies of Software Timestamping" (2012), each from a record of ``ffclock-lab probe``.

Delays are against the boundary to the driver, in microseconds, positive in the order of causes. A location has one colour and a load one
shade in all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from .marks import BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, VERMILLION, sparse
from .probe_recording import LOCATIONS, SITES, Floats, Load, Phase, Record, is_outgoing
from .style import canvas, plain_logarithmic, run_axis, styled, unit_axis

COLOURS: Final = {"tap": BLUE, "socket": GREEN, "user": VERMILLION, "driver": GREY}
LOADS: Final = {
    "quiet": "#333333",
    "io": ORANGE,
    "syscall": PURPLE,
    "ip": SKY,
    "cpu": "#882255",
    "interrupt": "#999933",
    "memory": "#332288",
    "network": "#8C510A",
}
"""No colour of a location is among them."""
_WAYS: Final = (("out", 0), ("in", 1))
_US: Final = 1e6
_BOUNDS: Final = "#CCCCCC"
_UNDER_LABEL: Final = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}
"""Stems of others do not cross a label."""


def load_colour(name: str) -> str:
    return LOADS.get(name, "#BBBBBB")


def timeline_figure(record: Record) -> Canvas | None:
    """Figure 1: the way of one packet, and the medians of all; None where no packet came back."""
    quiet = record.loads()[0].phases[0]
    timeline = quiet.findings.get("timeline")
    if not timeline:
        return None
    steps = timeline["steps"]
    with styled():
        made = canvas(11.0, 4.2)
        made.subplots_adjust(left=0.02, right=0.98, top=0.8, bottom=0.05, wspace=0.06)
        made.suptitle(f"Packet {timeline['packet']} on its way through the host, beside the medians of all", x=0.02, ha="left", fontsize=11)
        out = [step for step in steps if is_outgoing(step["site"])]
        back = [step for step in steps if not is_outgoing(step["site"])]
        for place, (name, part) in enumerate((("out", out), ("in", back))):
            _way(made.add_subplot(1, 2, place + 1), name, part)
    return made


def _way(axes: Axes, name: str, steps: Sequence[dict[str, Any]]) -> None:
    axes.set_axis_off()
    axes.set_title(f"{name}, µs since the first stamp shown")
    if not steps:
        return
    first = min(step["packet_ns"] for step in steps)
    first_median = min(step["median_ns"] for step in steps)
    span = max(max(step["packet_ns"] - first, step["median_ns"] - first_median) for step in steps) or 1.0
    highest = 0
    for row, (key, begin, label) in enumerate((("packet_ns", first, "this packet"), ("median_ns", first_median, "median"))):
        y = 1.0 - row
        axes.plot([0.0, span], [y, y], color="#BBBBBB", zorder=1)
        axes.text(-0.01 * span, y, label, ha="right", va="center", fontsize=8)
        taken: list[float] = []
        for step in sorted(steps, key=lambda step: float(step[key])):
            at = step[key] - begin
            # A label is about a fifth of the width: it goes to the lowest level that is free there.
            level = next((number for number, right in enumerate(taken) if right < at), len(taken))
            taken[level : level + 1] = [at + 0.22 * span]
            highest = max(highest, level)
            site = step["site"]
            colour = COLOURS.get(site.split("-")[0], GREY)
            height = 0.14 + 0.12 * level
            axes.plot([at, at], [y, y + height], color=colour, linewidth=0.8)
            axes.plot([at], [y], "o", color=colour, markersize=4, zorder=3)
            axes.text(
                at, y + height, f"{site} {at / 1e3:.2f}", fontsize=7, ha="center", va="bottom", color=colour, bbox=_UNDER_LABEL, zorder=4
            )
    axes.set_xlim(-0.16 * span, 1.12 * span)
    axes.set_ylim(-0.25, 1.3 + 0.12 * highest)


def effect_figure(record: Record) -> Canvas | None:
    """Figure 2: delays between user space and driver, one box for each number of probes between them; None if not measured."""
    if not record.effect:
        return None
    labels = ["none" if level["added"] is None else f"+ {level['added']}" for level in record.effect]
    with styled():
        made = canvas(9.0, 4.0)
        for axes, (name, _) in zip(made.subplots(1, 2), _WAYS, strict=True):
            boxes = [_box_of_level(label, level, name) for label, level in zip(labels, record.effect, strict=True)]
            _draw_boxes(axes, boxes, [GREY] * len(boxes))
            axes.set_title(f"user space to driver, {name}" if name == "out" else f"driver to user space, {name}")
            axes.set_xlabel("probes between them")
            # One pause of the machine is a thousand times what a probe costs.
            plain_logarithmic(axes)
            axes.set_ylabel("delay [µs]")
        made.tight_layout()
    return made


def _box_of_level(label: str, level: dict[str, Any], name: str) -> dict[str, Any]:
    spread, p90 = level[f"{name}_ns"], level[f"{name}_p90_ns"]
    ends = {"q1": spread["p25"], "med": spread["median"], "q3": spread["p75"], "whislo": spread["min"], "whishi": p90}
    return {"label": label, **{end: value / 1e3 for end, value in ends.items()}}


def _box_of(label: str, values: Floats) -> dict[str, Any]:
    """The paper's box: quartiles, and whiskers from the packet that waited least to nine tenths of all.

    Behind the boundary, where delays are negative, the packet that waited least is the largest one.
    """
    q1, median, q3 = np.percentile(values, (25, 50, 75))
    low, high = (0, 90) if median >= 0.0 else (10, 100)
    whislo, whishi = np.percentile(values, (low, high))
    return {"label": label, "q1": q1, "med": median, "q3": q3, "whislo": whislo, "whishi": whishi}


def _draw_boxes(axes: Axes, boxes: list[dict[str, Any]], colours: Sequence[str]) -> None:
    if not boxes:
        axes.text(0.5, 0.5, "not stamped here", transform=axes.transAxes, ha="center", color=GREY)
        return
    drawn = axes.bxp(boxes, showfliers=False, widths=0.6, patch_artist=True, medianprops={"color": "black"})
    for patch, colour in zip(drawn["boxes"], colours, strict=True):
        patch.set(facecolor=colour, alpha=0.55)


def series_figure(record: Record) -> Canvas:
    """Figure 3: delays over time, a row for each load, outgoing at the left and incoming at the right.

    Unlike the paper's, the axis is logarithmic beyond 1 µs: tap and tail of user space lie four orders of magnitude apart here.
    """
    loads = record.loads()
    with styled():
        made = canvas(12.0, 1.1 + 1.9 * len(loads))
        grid = made.subplots(len(loads), 2, squeeze=False)
        for row, load in zip(grid, loads, strict=True):
            for axes, (name, way) in zip(row, _WAYS, strict=True):
                _series(axes, load, way)
                axes.set_title(f"{load.name}, {name}")
            unit_axis(row[0].yaxis, "delay", 1.0 / _US)
        for axes in grid.flat:
            run_axis(axes, *axes.get_xlim())
        for axes in grid[:-1].flat:
            axes.set_xlabel("")
        handles, labels = grid[0][0].get_legend_handles_labels()
        made.tight_layout(rect=(0.0, 0.0, 1.0, 0.97))
        made.legend(handles, labels, loc="upper right", ncols=3, markerscale=4)
    return made


def _series(axes: Axes, load: Load, way: int) -> None:
    for location in reversed(LOCATIONS):
        values = np.concatenate([phase.delay(SITES[location][way]) for phase in load.phases]) * _US
        chosen = np.isfinite(values)
        if not chosen.any():
            continue
        t_s = np.concatenate([phase.time_s() for phase in load.phases])[chosen]
        values = values[chosen]
        places = sparse(values)
        axes.plot(t_s[places], values[places], ".", markersize=1.5, color=COLOURS[location], label=location)
    axes.set_yscale("symlog", linthresh=1.0)


def box_figure(record: Record) -> Canvas:
    """Figure 4: box plots by location (rows, the tap at the bottom) and direction (columns), a box for each load."""
    loads = record.loads()
    with styled():
        made = canvas(11.0, 9.0)
        grid = made.subplots(len(LOCATIONS), 2)
        for row, location in zip(grid, reversed(LOCATIONS), strict=True):
            for axes, (name, way) in zip(row, _WAYS, strict=True):
                found = [(load.name, load.delay(SITES[location][way]) * _US) for load in loads]
                stamped = [(load, values) for load, values in found if values.size]
                _draw_boxes(axes, [_box_of(load, values) for load, values in stamped], [load_colour(load) for load, _ in stamped])
                axes.set_title(f"{location}, {name}")
                unit_axis(axes.yaxis, "delay", 1.0 / _US)
                if location == LOCATIONS[0]:
                    axes.set_xlabel("load")
        made.tight_layout()
    return made


def asymmetry_figure(record: Record) -> Canvas:
    """Figure 5: the asymmetry of each location by load, with its 95 % interval and what round trips alone allow, [-r, r]."""
    phases = [phase for load in record.loads() for phase in load.phases]
    with styled():
        made = canvas(9.5, 8.4)
        rows = made.subplots(len(LOCATIONS), 1)
        for axes, location in zip(rows, reversed(LOCATIONS), strict=True):
            _asymmetries(axes, location, phases)
        rows[-1].set_xlabel("phase, its colour is that of the load")
        made.tight_layout(rect=(0.0, 0.0, 1.0, 0.96))
        made.legend(handles=_asymmetry_marks(), loc="upper right", ncols=3)
    return made


def _asymmetry_marks() -> list[Any]:
    """What is drawn of a phase, in no colour of a load."""
    from matplotlib.lines import Line2D  # noqa: PLC0415

    def mark(label: str, **style: Any) -> Line2D:
        return Line2D([], [], **({"color": "black", "linestyle": "none", "label": label} | style))

    return [
        mark("asymmetry, 95 %", marker="o"),
        mark("asymmetry that is impossible or beyond the reference", marker="x"),
        mark("bounds ±r of round trips", color=_BOUNDS, linestyle="-", linewidth=7, solid_capstyle="butt"),
    ]


def _asymmetries(axes: Axes, location: str, phases: Sequence[Phase]) -> None:
    axes.axhline(0.0, color="#999999", linewidth=0.8)
    for place, phase in enumerate(phases):
        found = next((one for one in phase.findings["asymmetries"] if one["location"] == location), None)
        if found is None:
            axes.text(place, 0.0, "reference", ha="center", va="bottom", fontsize=7, color=GREY)
            continue
        value, limit = found["asymmetry_ns"] * 1e-3, found["limit_ns"] * 1e-3
        low, high = (end * 1e-3 for end in found["interval_ns"])
        is_sound = found["verdict"] == "possible"
        if limit >= 0.0:
            axes.plot([place, place], [-limit, limit], color=_BOUNDS, linewidth=7, solid_capstyle="butt")
        axes.errorbar(
            place,
            value,
            yerr=[[value - low], [high - value]],
            fmt="o" if is_sound else "x",
            color=load_colour(phase.name),
            capsize=4,
            markersize=6,
        )
        if not is_sound:
            axes.text(place + 0.08, value, found["verdict"].replace("-", " "), fontsize=7, va="center")
    axes.set_title(location)
    unit_axis(axes.yaxis, "asymmetry", 1.0 / _US)
    axes.set_xticks(range(len(phases)), [phase.name for phase in phases])
    axes.set_xlim(-0.6, len(phases) - 0.2)


def tail_figure(record: Record) -> Canvas:
    """The share of packets whose delay is larger, by location: quiet as a line, each load dotted in its colour."""
    loads = record.loads()
    with styled():
        made = canvas(11.0, 9.0)
        grid = made.subplots(len(LOCATIONS), 2)
        for row, location in zip(grid, reversed(LOCATIONS), strict=True):
            for axes, (name, way) in zip(row, _WAYS, strict=True):
                for load in loads:
                    _tail(axes, load, SITES[location][way])
                axes.set_title(f"{location}, {name}")
                axes.set(ylabel="share larger", yscale="log")
                axes.set_xscale("symlog", linthresh=1.0)
                unit_axis(axes.xaxis, "delay", 1.0 / _US)
        handles, labels = grid[-1][-1].get_legend_handles_labels()
        made.tight_layout(rect=(0.0, 0.0, 1.0, 0.96))
        if handles:
            made.legend(handles, labels, loc="upper right", ncols=len(labels))
    return made


def _tail(axes: Axes, load: Load, site: str) -> None:
    values = np.sort(load.delay(site)) * _US
    if not values.size:
        return
    larger = 1.0 - np.arange(values.size) / values.size
    # Every point of the tail, and enough of the rest.
    chosen = np.unique(
        np.concatenate((np.linspace(0, values.size - 1, 800).astype(int), np.arange(max(0, values.size - 400), values.size)))
    )
    style = "-" if load.name == "quiet" else ":"
    axes.plot(values[chosen], larger[chosen], style, color=load_colour(load.name), label=load.name, linewidth=1.2)
