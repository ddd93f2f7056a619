"""The second picture of a report: how errors and delays are distributed, and what the exchanges look like.

The wedge shows each exchange as the offset that it measured against its round trip. A delay of one packet moves the point along one of
the two lines that begin at the floor, half of the delay up or down: good exchanges lie at the point of the wedge.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap, LogNorm
from matplotlib.figure import Figure as Canvas

from .figures import connected
from .marks import BLACK, BLUE, DASHED, GREEN, NOTE, PURPLE, SKY, VERMILLION, known
from .runs import Exchanges, Run, Samples
from .scales import count_text, time_scale
from .style import canvas, dress, grid, run_axis, styled, time_logarithmic
from .tables import Flags, Floats

# Begins where blue is distinct from white.
_BLUES: Final = ListedColormap(colormaps["Blues"](np.linspace(0.35, 1.0, 256)))
# With more points than this a scatter only shows where there is any.
_DOTS_MAX: Final = 4000


def draw(run: Run) -> Canvas | None:
    """Distribution of the error, wedge, delays each way, and the floor over time, as far as they were recorded; None without any."""
    seen = run.exchanges
    shown: list[Callable[[Axes], None]] = []
    if _every_size(run):
        shown.append(lambda axes: distribution(axes, run))
    if seen is not None and _pairs(seen) is not None:
        shown.append(lambda axes: wedge(axes, seen))
    if seen is not None and _queueing(seen) is not None:
        shown.append(lambda axes: delays(axes, seen))
    if seen is not None and known(seen.floor_s) and _trips(seen).size > 1:
        shown.append(lambda axes: floor(axes, seen))
    if not shown:
        return None
    with styled():
        picture = canvas(14.0, 4.3 * ((len(shown) + 1) // 2))
        for axes, panel in zip(grid(picture, len(shown)), shown, strict=True):
            panel(axes)
    return picture


def distribution(axes: Axes, run: Run) -> None:
    """The share of readings whose error exceeds each size: every clock of the run, on logarithmic axes that keep the tails visible."""
    axes.set_title("How often the error was larger (1 - CDF)")
    sizes = _every_size(run)
    for name in sorted(sizes, key=lambda name: -dress(name).order):
        values = np.sort(sizes[name])
        places = np.unique(np.geomspace(1, values.size, 600).astype(np.intp))
        look = dress(name) if name in run.others or name == run.clock else None
        colour, label = (look.colour, look.label) if look else (BLUE, "error")
        ours = name == (run.clock or "clock")
        axes.plot(values[-places], places / values.size, color=colour, label=label, linewidth=2.0 if ours else 1.1, zorder=4 if ours else 3)
    # Below this, a line only says that no reading is ever exactly right.
    axes.set_xlim(left=min(float(np.percentile(values, 3)) for values in sizes.values()))
    time_logarithmic(axes, "x")
    axes.set_yscale("log")
    axes.set_ylim(top=1.05)
    for share, name in ((0.5, "median"), (0.05, "95 %"), (0.01, "99 %")):
        axes.axhline(share, color="#999999", linewidth=0.7, linestyle=DASHED)
        axes.text(0.995, share, name, transform=axes.get_yaxis_transform(), va="bottom", ha="right", **NOTE)
    axes.set_xlabel("size of the error")
    axes.set_ylabel("share of the readings")
    axes.legend(loc="lower left", reverse=True)


def _every_size(run: Run) -> dict[str, Floats]:
    """The sizes of the errors of every clock that has any [s]."""
    chosen = connected(run)
    every = {run.clock or "clock": run.samples, **run.others}
    return {name: found for name, samples in every.items() if (found := _sizes(run, samples, chosen)) is not None}


def _sizes(run: Run, samples: Samples, chosen: Flags) -> Floats | None:
    if samples.error_s is None:
        return None
    own = chosen if samples is run.samples else connected(replace(run, samples=samples))
    sizes = np.abs(samples.error_s[own])
    sizes = sizes[np.isfinite(sizes) & (sizes > 0.0)]
    return sizes if sizes.size else None


def _pairs(exchanges: Exchanges) -> tuple[Floats, Floats] | None:
    """Round trip and offset of each exchange of which both are known [s]; None without any."""
    if exchanges.round_trip_s is None or exchanges.offset_s is None:
        return None
    both = np.isfinite(exchanges.round_trip_s) & np.isfinite(exchanges.offset_s)
    return (exchanges.round_trip_s[both], exchanges.offset_s[both]) if both.any() else None


def wedge(axes: Axes, exchanges: Exchanges) -> None:
    axes.set_title("Offset against round trip")
    pairs = _pairs(exchanges)
    if pairs is None:
        return
    trips, offsets = pairs
    least, reach = float(trips.min()), float(np.percentile(trips, 99.5))
    reach += 0.15 * (reach - least) or 1e-9
    middle = float(np.median(offsets[trips <= np.percentile(trips, 20)]))
    x_scale, y_scale = time_scale(reach), time_scale(float(np.percentile(np.abs(offsets), 99)))
    _points(axes, trips * x_scale.factor, offsets * y_scale.factor, (least * x_scale.factor, reach * x_scale.factor))
    for side in (-0.5, 0.5):
        ends = np.array([middle, middle + side * (reach - least)])
        axes.plot(
            [least * x_scale.factor, reach * x_scale.factor], ends * y_scale.factor, color=VERMILLION, linewidth=1.0, linestyle=DASHED
        )
    half = 0.62 * (reach - least) * y_scale.factor
    axes.set_ylim(middle * y_scale.factor - half, middle * y_scale.factor + half)
    beyond = int(np.count_nonzero(trips > reach))
    if beyond:
        axes.text(0.995, 0.02, f"{count_text(beyond)} longer ones not shown", transform=axes.transAxes, ha="right", **NOTE)
    axes.text(0.005, 0.97, "dashed: one packet delayed", transform=axes.transAxes, va="top", **NOTE)
    axes.set_xlabel(f"round trip [{x_scale.name}]")
    axes.set_ylabel(f"clock minus server [{y_scale.name}]")


def _points(axes: Axes, x: Floats, y: Floats, extent: tuple[float, float]) -> None:
    """Dots while they are distinct, otherwise their number in each place."""
    inside = (x >= extent[0]) & (x <= extent[1])
    if x.size <= _DOTS_MAX:
        axes.plot(x[inside], y[inside], linestyle="", marker="o", markersize=2.0, alpha=0.5, color=BLUE, markeredgewidth=0)
    else:
        shown = axes.hexbin(x[inside], y[inside], gridsize=(110, 60), mincnt=1, norm=LogNorm(), cmap=_BLUES, linewidths=0.1)
        axes.figure.colorbar(shown, ax=axes, label="exchanges", pad=0.01, aspect=30)
    margin = 0.03 * (extent[1] - extent[0])
    axes.set_xlim(extent[0] - margin, extent[1])


def one_way(exchanges: Exchanges) -> tuple[Floats, Floats, str] | None:
    """Delays to the server and back [s] and what they are: true ones, or as our clock sees them; None where neither is known."""
    if exchanges.forward_s is not None and exchanges.backward_s is not None and np.isfinite(exchanges.forward_s).any():
        return exchanges.forward_s, exchanges.backward_s, "true delays"
    if exchanges.round_trip_s is None or exchanges.offset_s is None:
        return None
    # The clock minus the server in the middle of the exchange is half of the extra delay of the way back.
    half = exchanges.round_trip_s / 2.0
    return half - exchanges.offset_s, half + exchanges.offset_s, "delays by our own clock"


def _queueing(exchanges: Exchanges) -> tuple[Floats, Floats, str] | None:
    """As :func:`one_way`; None where there are too few delays to show how they are distributed."""
    found = one_way(exchanges)
    return found if found is not None and all(int(np.isfinite(way).sum()) > 1 for way in found[:2]) else None


def delays(axes: Axes, exchanges: Exchanges) -> None:
    """Each way's delay above its own smallest one: the queueing, which an estimator has to filter out."""
    found = _queueing(exchanges)
    if found is None:
        return
    axes.set_title(f"Delay of each way above its smallest: {found[2]}")
    ways = [("to the server", found[0], SKY), ("from the server", found[1], PURPLE)]
    finite = [way[np.isfinite(way)] for _, way, _ in ways]
    above = [way - way.min() for way in finite]
    every = np.concatenate(above)
    low = max(float(np.percentile(every[every > 0.0], 0.2)), 1e-9) if (every > 0.0).any() else 1e-9
    bins = np.geomspace(low, max(float(every.max()), 2.0 * low), int(np.clip(np.sqrt(every.size), 12, 90)))
    for (name, way, colour), excess in zip(ways, above, strict=True):
        smallest = time_scale(float(np.nanmin(np.abs(way))))
        label = f"{name}, smallest {np.nanmin(way) * smallest.factor:.4g} {smallest.name}"
        within = np.clip(excess, bins[0], None)
        axes.hist(within, bins=bins.tolist(), histtype="step", color=colour, linewidth=1.6, label=label)
    time_logarithmic(axes, "x")
    axes.set_xlabel("delay above the smallest")
    axes.set_ylabel("exchanges")
    axes.legend(loc="upper right")


def _trips(exchanges: Exchanges) -> Floats:
    """The round trips that are known, or the floors where no round trip was recorded [s]."""
    trips = exchanges.round_trip_s if exchanges.round_trip_s is not None else exchanges.floor_s
    return np.empty(0) if trips is None else trips[np.isfinite(trips)]


def floor(axes: Axes, exchanges: Exchanges) -> None:
    """The floor that the clock believes in, above the smallest round trips of each piece of time."""
    axes.set_title("Floor, and the smallest round trips")
    finite = _trips(exchanges)
    if exchanges.floor_s is None or not finite.size:
        return
    trips = exchanges.round_trip_s if exchanges.round_trip_s is not None else exchanges.floor_s
    scale = time_scale(float(np.median(finite)))
    pieces = np.unique(np.linspace(0, trips.size, min(trips.size, 300), endpoint=False).astype(np.intp))
    smallest = np.fmin.reduceat(trips, pieces)
    axes.plot(
        exchanges.t_s[pieces],
        smallest * scale.factor,
        linestyle="",
        marker="o",
        markersize=3,
        color=GREEN,
        label="smallest round trip",
    )
    axes.step(exchanges.t_s, exchanges.floor_s * scale.factor, where="post", color=BLACK, linewidth=1.4, label="floor")
    run_axis(axes, float(exchanges.t_s[0]), float(exchanges.t_s[-1]))
    axes.set_ylabel(f"round trip [{scale.name}]")
    axes.ticklabel_format(axis="y", useOffset=False, style="plain")
    # The first guesses of a floor are soon replaced.
    seen = np.concatenate((smallest, exchanges.floor_s)) * scale.factor
    low, high = (float(edge) for edge in np.nanpercentile(seen, [0.7, 99.7]))
    axes.set_ylim(low - 0.1 * (high - low) - 1e-9, high + 0.15 * (high - low) + 1e-9)
    axes.legend(loc="best")
