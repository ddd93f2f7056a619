"""The panels of a report, each a function that draws one view of a run on the axes it is given.

The claim and the error get a panel each, because a bound is often fifty times the error that it bounds and one scale would hide one of
the two. The noise leaves out the constant asymmetry of the path, so it is drawn around the median error, which is what a constant
asymmetry shifts; so is an uncertainty that stands alone, of a file without the noise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import cycle
from typing import Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator, SymmetricalLogLocator

from .figures import Containment, Spread, containment, spread, table
from .marks import (
    BINS,
    BLACK,
    BLUE,
    DASHED,
    GREEN,
    GREY,
    NOTE,
    ORANGE,
    PURPLE,
    SERVER_COLOURS,
    SKY,
    STANDING_COLOURS,
    STATUS_COLOURS,
    VERMILLION,
    Look,
    View,
    band,
    dots,
    finish,
    known,
    line,
    mark_broken,
    where,
)
from .scales import Scale, count_text, rate_scale, time_scale
from .style import plain_logarithmic, unit_axis
from .tables import Floats, Texts


def status_strip(axes: Axes, view: View) -> None:
    """One thin bar that says what the clock said about itself."""
    axes.set_ylim(0, 1)
    axes.set_yticks([])
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    axes.tick_params(axis="x", bottom=False, labelbottom=False)
    statuses, times = view.run.samples.status, view.run.samples.t_s
    if statuses is None:
        return
    length = max(float(times[-1] - times[0]), 1e-12)
    for word, begin, end in _stretches(statuses, times):
        axes.axvspan(begin, end, color=STATUS_COLOURS.get(word, GREY), alpha=0.75, linewidth=0)
        if (end - begin) / length > 0.010 * len(word):
            axes.text((begin + end) / 2, 0.44, word, ha="center", va="center", fontsize=7.5, clip_on=True)


def _stretches(statuses: Texts, times: Floats) -> Iterator[tuple[str, float, float]]:
    """Runs of equal status as (status, begin, end); a stretch ends where the next one begins."""
    starts = np.concatenate(([0], np.flatnonzero(statuses[1:] != statuses[:-1]) + 1))
    ends = np.append(times[starts[1:]], times[-1])
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        yield str(statuses[start]), float(times[start]), float(end)


def servers_panel(axes: Axes, view: View) -> None:
    """What each server showed, against the truth, and the interval that is right if its claim is; the published clock among them."""
    run = view.run
    for (name, server), colour in zip(run.servers.items(), cycle(SERVER_COLOURS)):
        low, high = server.error_s - server.reach_s, server.error_s + server.reach_s
        axes.fill_between(server.t_s, low, high, step="post", color=colour, alpha=0.14, linewidth=0, zorder=1)
        axes.plot(server.t_s, server.error_s, linestyle="", marker="o", markersize=2.2, color=colour, label=name, zorder=2)
    whole = Scale("s", 1.0)
    bound = run.samples.bound_s
    line(axes, view, bound, whole, Look(SKY, "± bound"))
    line(axes, view, None if bound is None else -bound, whole, Look(SKY, "_"))
    line(axes, view, run.samples.error_s, whole, Look(BLUE, "published"))
    axes.set_title("Servers, their claims, and the clock")
    _fit_servers(axes, view)
    finish(axes, "")
    unit_axis(axes.yaxis, "error")


def _fit_servers(axes: Axes, view: View) -> None:
    """Shows every claim but the rare ones of a packet that waited long, and a lie on the same scale only if it leaves them room."""
    servers = view.run.servers.values()
    ends = np.concatenate([side for server in servers for side in (server.error_s - server.reach_s, server.error_s + server.reach_s)])
    low, high = (float(edge) for edge in np.percentile(ends, [0.7, 99.3]))
    typical = float(np.median(np.abs(ends)))
    if max(-low, high) > 12.0 * typical > 0.0:
        axes.set_yscale("symlog", linthresh=typical, linscale=1.5)
        axes.yaxis.set_major_locator(SymmetricalLogLocator(base=10.0, linthresh=typical, subs=[1.0]))
    axes.set_ylim(1.5 * low if low < 0.0 else -0.1 * high, 1.5 * high if high > 0.0 else -0.1 * low)


def standings_panel(axes: Axes, view: View) -> None:
    """What the clock says of each server: a bar for each."""
    axes.set_title("What the daemon says of each server")
    servers = view.run.servers
    for row, (name, server) in enumerate(servers.items()):
        if not server.asked_s.size:
            continue
        length = max(float(server.asked_s[-1] - server.asked_s[0]), 1e-12)
        for word, begin, end in _stretches(server.standings, server.asked_s):
            colour = STANDING_COLOURS.get(word, GREY)
            axes.barh(row, end - begin, left=begin, height=0.7, color=colour, alpha=0.75, linewidth=0)
            text = f"{name}: {word}"
            if (end - begin) / length > 0.010 * len(text):
                axes.text((begin + end) / 2, row, text, ha="center", va="center", fontsize=7.5, clip_on=True)
    axes.set_yticks([])
    axes.set_ylim(len(servers) - 0.4, -0.6)
    axes.grid(visible=False)


def claim_panel(axes: Axes, view: View) -> None:
    """Error, uncertainty and bound on one scale: does the truth stay inside?"""
    samples = view.run.samples
    limit = max(view.largest(samples.bound_s), view.largest(samples.error_s), view.largest(samples.uncertainty_s))
    scale = time_scale(limit)
    band(axes, view, samples.bound_s, scale, Look(SKY, "± bound"))
    middle = view.median if samples.noise_s is None else 0.0
    band(axes, view, samples.uncertainty_s, scale, Look(ORANGE, "± uncertainty", middle))
    line(axes, view, samples.error_s, scale, Look(BLUE, "error"))
    mark_broken(axes, view, scale)
    inside = containment(samples.error_s, samples.bound_s)
    axes.set_title(_claim_title(inside))
    finish(axes, f"error [{scale.name}]", _around_zero(limit * scale.factor))


def _around_zero(limit: float) -> tuple[float, float] | None:
    return (-1.12 * limit, 1.12 * limit) if limit else None


def _claim_title(inside: Containment | None) -> str:
    if inside is None or not inside.count:
        return "Claimed bound and uncertainty"
    if inside.outside:
        return f"Bound broken in {count_text(inside.outside)} of {count_text(inside.count)} samples"
    return f"Error inside its bound: all {count_text(inside.count)} samples"


def error_panel(axes: Axes, view: View) -> None:
    """The error on its own scale, with the noise behind it as far as it fits."""
    samples = view.run.samples
    low, high = _enlarged_range(view)
    scale = time_scale(max(abs(low), abs(high)))
    has_error = known(samples.error_s)
    name, noise = samples.scatter
    around = f"± {name} around the median" if has_error else f"± {name}"
    band(axes, view, noise, scale, Look(ORANGE, around, view.median))
    line(axes, view, samples.error_s, scale, Look(BLUE, "error"))
    if has_error:
        axes.axhline(view.median * scale.factor, color=BLACK, linewidth=0.8, linestyle=DASHED, label="median, connected")
    axes.set_title("Error enlarged" + (_beyond(samples.error_s[view.shown], (low, high)) if samples.error_s is not None else ""))
    finish(axes, f"error [{scale.name}]", (low * scale.factor, high * scale.factor) if high > low else None)


def _beyond(errors: Floats, edges: tuple[float, float]) -> str:
    outside = int(np.count_nonzero((errors < edges[0]) | (errors > edges[1])))
    return f" ({count_text(outside)} beyond the edges)" if outside else ""


def _enlarged_range(view: View) -> tuple[float, float]:
    """The shown errors without rare excursions, and the noise as long as it leaves the errors a third of the height [s]."""
    samples = view.run.samples
    errors = samples.error_s[view.shown] if samples.error_s is not None else np.empty(0)
    errors = errors[np.isfinite(errors)]
    likely = view.largest(samples.scatter[1], 90.0)
    low = high = 0.0
    if errors.size:
        least, low, high, most = (float(edge) for edge in np.percentile(errors, [0.0, 0.5, 99.5, 100.0]))
        # Half a percent lies beyond either edge by construction; only what lies far beyond is an excursion.
        low, high = low - 0.5 * (high - low), high + 0.5 * (high - low)
        if most - least <= 2.0 * (high - low):
            low, high = least, most
        if high > low:
            likely = min(likely, 1.5 * (high - low))
    low, high = min(low, view.median - likely), max(high, view.median + likely)
    return low - 0.08 * (high - low), high + 0.08 * (high - low)


def exchange_panel(axes: Axes, view: View) -> None:
    axes.set_title("Round trips and their floor")
    exchanges = view.run.exchanges
    if exchanges is None:
        return
    series = [s[np.isfinite(s)] for s in (exchanges.round_trip_s, exchanges.floor_s) if s is not None]
    finite = np.concatenate(series)
    typical = float(np.median(finite))
    scale = time_scale(typical)
    if exchanges.t_s.size <= BINS:
        # More of them would only lie on one another; the delays have a panel of their own.
        dots(axes, exchanges.t_s, exchanges.forward_s, scale, Look(SKY, "to the server"))
        dots(axes, exchanges.t_s, exchanges.backward_s, scale, Look(PURPLE, "from the server"))
    used = exchanges.used if exchanges.used is not None else np.ones(exchanges.t_s.size, dtype=np.bool_)
    dots(axes, exchanges.t_s, where(exchanges.round_trip_s, used), scale, Look(GREEN, "round trip"))
    dots(
        axes,
        exchanges.t_s,
        where(exchanges.round_trip_s, ~used),
        scale,
        Look(VERMILLION, "round trip, not used", marker="x"),
    )
    if exchanges.floor_s is not None:
        axes.step(exchanges.t_s, exchanges.floor_s * scale.factor, where="post", color=BLACK, linewidth=1.2, label="floor")
    # A few stalls of the host would press everything else onto the axis.
    if float(finite.max()) > 12.0 * typical and float(finite.min()) > 0.0:
        plain_logarithmic(axes)
    else:
        axes.set_ylim(0, float(finite.max()) * 1.08 * scale.factor or 1.0)
    finish(axes, f"delay [{scale.name}]")


def rate_panel(axes: Axes, view: View) -> None:
    rates, meaning = _rates(view)
    axes.set_title(meaning)
    limit = view.largest(rates, 99.9) or view.largest(rates)
    scale = rate_scale(limit)
    line(axes, view, rates, scale, Look(BLUE, "rate error"))
    axes.axhline(0.0, color=BLACK, linewidth=0.6)
    finish(axes, f"rate error [{scale.name}]", _around_zero((limit or 1.0) * scale.factor))


def _rates(view: View) -> tuple[Floats | None, str]:
    """The rate error [ppm]: as recorded, or else of the period against the run's own median."""
    samples = view.run.samples
    if samples.rate_error_ppm is not None:
        return samples.rate_error_ppm, "Rate error"
    if samples.period_s is None or not np.isfinite(samples.period_s).any():
        return None, "Rate error"
    chosen = where(samples.period_s, view.connected)
    basis = chosen if chosen is not None and np.isfinite(chosen).any() else samples.period_s
    # A longer period means a faster clock.
    return (samples.period_s / np.nanmedian(basis) - 1.0) * 1e6, "Rate against the run's own median"


def histogram(axes: Axes, view: View) -> None:
    axes.set_title("Error while connected")
    errors = where(view.run.samples.error_s, view.connected)
    found = spread(errors)
    if errors is None or found is None:
        return
    finite = errors[np.isfinite(errors)]
    low, high = (float(edge) for edge in np.percentile(finite, [0.2, 99.8]))
    margin = 0.15 * (high - low) or max(abs(high), 1e-9) * 0.1
    low, high = low - margin, high + margin
    scale = time_scale(max(abs(low), abs(high)))
    bins = int(np.clip(np.sqrt(finite.size), 12, 50))
    axes.hist(finite * scale.factor, bins=bins, range=(low * scale.factor, high * scale.factor), color=BLUE, alpha=0.85)
    axes.set_xlim(low * scale.factor, high * scale.factor)
    axes.set_xlabel(f"error [{scale.name}]")
    axes.set_ylabel("samples")
    axes.xaxis.set_major_locator(MaxNLocator(6))
    _percentile_box(axes, found, scale)
    outside = int(np.count_nonzero((finite < low) | (finite > high)))
    if outside:
        axes.text(0.995, 0.83, f"{count_text(outside)} beyond the edges", transform=axes.transAxes, ha="right", **NOTE)


def _percentile_box(axes: Axes, found: Spread, scale: Scale) -> None:
    """The percentiles in a strip above the bars."""
    axes.set_ylim(top=axes.get_ylim()[1] * 1.24)
    place = axes.get_xaxis_transform()
    at = {percent: value * scale.factor for percent, value in found.percentiles.items()}
    axes.plot([at[1], at[99]], [0.93, 0.93], transform=place, color=BLACK, linewidth=1.0, marker="|", markersize=6)
    box = Rectangle((at[25], 0.905), at[75] - at[25], 0.05, transform=place, facecolor=ORANGE, edgecolor=BLACK, zorder=3)
    axes.add_patch(box)
    axes.plot([at[50], at[50]], [0.905, 0.955], transform=place, color=BLACK, linewidth=1.6, zorder=4)
    axes.text(0.5, 0.87, "1 %  |  25 %  median  75 %  |  99 %", transform=axes.transAxes, ha="center", **NOTE)


def figures_panel(axes: Axes, view: View) -> None:
    axes.set_axis_off()
    axes.set_title("Figures")
    rows = table(view.run)
    for row, (name, value) in enumerate(rows):
        height = 1.0 - (row + 0.6) / max(len(rows), 14)
        axes.text(0.0, height, name, transform=axes.transAxes, va="center")
        axes.text(1.0, height, value, transform=axes.transAxes, va="center", ha="right", fontweight="bold")


@dataclass(frozen=True)
class Panel:
    """A view over time: how it is drawn, how high it is beside the others, and whether there is anything to draw."""

    draw: Callable[[Axes, View], None]
    height: float
    has_data: Callable[[View], bool]


def _has_exchanges(view: View) -> bool:
    exchanges = view.run.exchanges
    return exchanges is not None and known(exchanges.round_trip_s, exchanges.floor_s)


def _has_claim(view: View) -> bool:
    samples = view.run.samples
    return known(samples.bound_s) and known(samples.error_s, samples.bound_s)


OVER_TIME: Final = (
    Panel(servers_panel, 1.3, lambda view: bool(view.run.servers)),
    Panel(standings_panel, 0.4, lambda view: any(server.asked_s.size for server in view.run.servers.values())),
    Panel(claim_panel, 0.95, _has_claim),
    Panel(error_panel, 1.15, lambda view: known(view.run.samples.error_s, view.run.samples.uncertainty_s)),
    Panel(exchange_panel, 1.05, _has_exchanges),
    Panel(rate_panel, 0.95, lambda view: known(_rates(view)[0])),
)


def has_histogram(view: View) -> bool:
    """Whether any reading counts as connected and has a known error."""
    return spread(where(view.run.samples.error_s, view.connected)) is not None
