"""Figures about counters in the style of the papers: boxes between the quartiles, a line at the median, whiskers to a named percentile.

Each function draws the counterpart of one figure of "The Case for Feed-forward Clock Synchronization" from a recording and returns the
canvas. Phases under stress are shaded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import allantools
import matplotlib
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Canvas

from .counters_paper import LATENCIES, STABILITY_LARGE_PPM, STABILITY_PPM
from .counters_recording import Phase, Recording, machines

Floats = npt.NDArray[np.float64]

COLOURS: Final = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#555555", "#8C564B", "#BCBD22", "#17BECF")
_STYLE: Final[Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 9.0,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#E3E3E3",
    "legend.frameon": False,
    "legend.fontsize": 8.0,
    "figure.facecolor": "white",
}


def _canvas(rows: int, size: tuple[float, float]) -> tuple[Canvas, list[Axes]]:
    canvas = Canvas(figsize=size, dpi=150, layout="constrained")
    FigureCanvasAgg(canvas)
    return canvas, [canvas.add_subplot(rows, 1, row + 1) for row in range(rows)]


def shade(axes: Axes, phases: Sequence[Phase]) -> None:
    """Marks the stressed phases of a plot over time, with their names."""
    for phase in phases:
        if phase.is_quiet:
            continue
        axes.axvspan(phase.begin_s, phase.end_s, color="#777777", alpha=0.15, linewidth=0)
        axes.text(phase.begin_s, 1.0, f" {phase.name}", transform=axes.get_xaxis_transform(), va="top", fontsize=8, color="#333333")


def box(figures: dict[str, Any], label: str, whiskers: tuple[str, str]) -> dict[str, Any]:
    """One box for ``Axes.bxp`` from the recorded percentiles ``figures``; ``whiskers`` names the lower and the upper one."""
    return {
        "label": label,
        "q1": figures["p25"],
        "med": figures["median"],
        "q3": figures["p75"],
        "whislo": figures[whiskers[0]],
        "whishi": figures[whiskers[1]],
    }


def _boxes(axes: Axes, boxes: list[dict[str, Any]]) -> None:
    if boxes:
        axes.bxp(boxes, showfliers=False, orientation="horizontal", widths=0.6, medianprops={"color": "#D55E00"})
        axes.invert_yaxis()


def time_errors(recording: Recording) -> dict[str, tuple[Floats, Floats]]:
    """The time by the base [s] and how far a counter is ahead [s], of each comparison of a stability recording.

    With a reference these are the base and every other counter against it, the others through the base; samples outside the
    reference's first and last are left out. Without one it is every counter against the base.
    """
    about, samples = recording.about, [sample for sample in recording.of("sample") if sample["points"] or sample["reference"]]
    if not samples:
        return {}
    first = samples[0]["points"][0] if samples[0]["points"] else samples[0]["reference"]

    def seconds(points: list[dict[str, Any]]) -> Floats:
        # Differences first, as whole numbers: a float does not hold a counter of 64 bits.
        return np.array([signed(p["base"] - first["base"]) for p in points]) / float(about["base_hertz"])

    def ahead(points: list[dict[str, Any]], hertz: float) -> tuple[Floats, Floats]:
        t = seconds(points)
        return t, np.array([p["value"] - points[0]["value"] for p in points]) / hertz - (t - t[0])

    found: dict[str, tuple[Floats, Floats]] = {}
    for number, counter in enumerate(about["counters"]):
        points = [sample["points"][number] for sample in samples if sample["points"]]
        if len(points) >= 3:
            found[counter["name"]] = ahead(points, counter["hertz"])
    references = [sample["reference"] for sample in samples if sample["reference"]]
    if len(references) < 3:
        return found
    t, behind = ahead(references, 1e9)
    through = {f"{name} against {about['reference']}": _through(curve, (t, -behind)) for name, curve in found.items()}
    return {f"base against {about['reference']}": (t, -behind), **{name: curve for name, curve in through.items() if len(curve[0]) >= 3}}


def _through(counter: tuple[Floats, Floats], base: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    """A counter against the reference: what it is ahead of the base, and the base of the reference at that time."""
    (t, x), (known, ahead) = counter, base
    inside = (t >= known[0]) & (t <= known[-1])
    return t[inside], x[inside] + np.interp(t[inside], known, ahead)


def is_against_reference(recording: Recording) -> bool:
    """Whether the comparisons of a stability recording are with a reference, and not with the base alone."""
    return any(name.startswith("base against ") for name in time_errors(recording))


def signed(difference: int) -> int:
    """How far one reading of 64 bits lies behind another, over a turn."""
    return (difference + 2**63) % 2**64 - 2**63


def allan(t: Floats, x: Floats) -> tuple[Floats, Floats, Floats]:
    """Averaging times [s], overlapping Allan deviation and modified Allan deviation of the time errors ``x`` at times ``t`` [s]."""
    rate = (len(t) - 1) / (t[-1] - t[0])
    taus, adev, _, _ = allantools.oadev(x, rate=rate, data_type="phase", taus="octave")
    mtaus, mdev, _, _ = allantools.mdev(x, rate=rate, data_type="phase", taus="octave")
    modified = np.full(len(taus), np.nan)
    for tau, value in zip(mtaus, mdev, strict=True):
        modified[np.isclose(taus, tau)] = value
    return np.asarray(taus), np.asarray(adev), modified


def stability_figure(recording: Recording) -> Canvas:
    """Figure 12: the stability of each counter, with the limits that the papers' counters kept."""
    with matplotlib.rc_context(rc=_STYLE):
        canvas, (axes,) = _canvas(1, (8.0, 5.0))
        for (name, (t, x)), colour in zip(time_errors(recording).items(), _cycle(), strict=False):
            taus, adev, mdev = allan(t, x)
            axes.loglog(taus, adev, "o-", color=colour, markersize=3, label=name)
            axes.loglog(taus, mdev, ":", color=colour, linewidth=0.9)
        title = "Counters against the CPU's own: the noise of reading, no oscillator's stability"
        if is_against_reference(recording):
            title = "Stability of the counters (as figure 12; grey: the papers' limits)"
            axes.axhline(STABILITY_PPM * 1e-6, color="#999999", linestyle="--", linewidth=0.8)
            axes.axhline(STABILITY_LARGE_PPM * 1e-6, color="#999999", linestyle=":", linewidth=0.8)
        axes.set(xlabel="averaging time [s]", ylabel="Allan deviation (dotted: modified)", title=title)
        _legend(axes, loc="best")
    return canvas


def rate_figure(recording: Recording) -> Canvas:
    """Figures 2 and 13: the rate of each counter from sample to sample, against the mean of the quiet phases."""
    phases = recording.phases
    with matplotlib.rc_context(rc=_STYLE):
        canvas, (axes,) = _canvas(1, (9.0, 4.5))
        drawn: list[Floats] = []
        for (name, (t, x)), colour in zip(time_errors(recording).items(), _cycle(), strict=False):
            rates = np.diff(x) / np.diff(t)
            middle = (t[1:] + t[:-1]) / 2.0
            quiet = np.zeros(len(middle), dtype=bool)
            for phase in phases:
                quiet |= phase.is_quiet & (middle >= phase.begin_s) & (middle < phase.end_s)
            reference = float(np.mean(rates[quiet])) if quiet.any() else float(np.mean(rates))
            drawn.append((rates - reference) * 1e6)
            axes.plot(middle, drawn[-1], ".", markersize=2.5, color=colour, label=name)
        shade(axes, phases)
        _limit(axes, drawn)
        axes.set(xlabel="time [s]", ylabel="rate error [ppm]", title="Rates relative to the quiet phases (as figures 2 and 13)")
        _legend(axes, loc="best", markerscale=3)
    return canvas


def _limit(axes: Axes, drawn: Sequence[Floats]) -> None:
    """Shows 99 % of the points and counts the others: a reading that was interrupted would hide everything else."""
    sizes = np.abs(np.concatenate([np.zeros(1), *drawn]))
    limit = 1.3 * float(np.percentile(sizes, 99))
    outside = int(np.count_nonzero(sizes > limit))
    if limit > 0.0 and outside:
        axes.set_ylim(-limit, limit)
        note = f"{outside} of {sizes.size - 1} points lie outside, up to {sizes.max():.3g} ppm"
        axes.text(1.0, 0.01, note, transform=axes.transAxes, ha="right", va="bottom", fontsize=8)


def latency_figure(recording: Recording) -> Canvas:
    """Access latency over time, and its distribution in each phase (whiskers: minimum and 95th percentile).

    Within the kernel, where the module measured, this is figure 14. From user space it is no counterpart of any figure, and says so.
    """
    is_kernel = any(row["arrangement"] == "kernel" for row in recording.of("figures"))
    arrangement = "kernel" if is_kernel else "first"
    title = (
        "Latency within the kernel (as figure 14)"
        if is_kernel
        else "Latency of first readings from user space (figure 14 is of the kernel)"
    )
    phases, hertz = recording.phases, float(recording.about["hertz"])
    rows = [row for row in recording.of("round") if row["arrangement"] == arrangement]
    figures = [row for row in recording.of("figures") if row["arrangement"] == arrangement]
    names = list(dict.fromkeys(f"{row['counter']} {row['access']}" for row in figures))
    with matplotlib.rc_context(rc=_STYLE):
        canvas, (series, spread) = _canvas(2, (9.0, 5.0 + 0.16 * len(names) * max(1, len(phases))))
        for number, (name, colour) in enumerate(zip(names, _cycle(), strict=False)):
            of_name = [row for row in rows if f"{row['counter']} {row['access']}" == name]
            median = [row["median"] for row in of_name]
            marker = _MARKERS[number // len(COLOURS) % len(_MARKERS)]
            series.semilogy([row["t"] for row in of_name], median, marker, markersize=2.5, color=colour, label=name)
        shade(series, phases)
        series.set(xlabel="time [s]", ylabel="cycles", title=title)
        _legend(series, loc="upper left", bbox_to_anchor=(1.0, 1.0), markerscale=3)
        _boxes(spread, [_latency_box(row, phases) for name in names for row in figures if f"{row['counter']} {row['access']}" == name])
        spread.set_xscale("symlog", linthresh=100)
        spread.set_xlim(left=0.0)
        spread.set(xlabel=f"cycles of {hertz / 1e9:.3g} GHz; whiskers: minimum and 95th percentile")
    return canvas


def _latency_box(row: dict[str, Any], phases: Sequence[Phase], whiskers: tuple[str, str] = ("min", "p95")) -> dict[str, Any]:
    name = f"{row['counter']} {row['access']}"
    phase = next((phase.name for phase in phases if phase.number == row["phase"]), "")
    return box(row["ticks"], f"{name}, {phase}" if len(phases) > 1 else name, whiskers)


def kernel_figure(recording: Recording) -> Canvas | None:
    """Figure 15: latency inside the kernel (whiskers: minimum and 99th percentile); None without the module."""
    figures = [row for row in recording.of("figures") if row["arrangement"] == "kernel"]
    if not figures:
        return None
    with matplotlib.rc_context(rc=_STYLE):
        canvas, (axes,) = _canvas(1, (8.0, 2.0 + 0.3 * len(figures)))
        _boxes(axes, [_latency_box(row, recording.phases, ("min", "p99")) for row in figures])
        for place, cost in interface_alone(figures):
            label = None if axes.get_legend_handles_labels()[1] else "interface alone: the difference of the medians"
            axes.plot([cost], [place], "D", color="#0072B2", markersize=5, label=label)
        for name in ("interface alone (FreeBSD)", "interface alone (Linux)"):
            axes.axvline(LATENCIES[name].median, color="#999999", linestyle="--", linewidth=0.8)
        axes.set(xlabel="cycles (dashed: the papers' interfaces alone)", title="Latency inside the kernel (as figure 15)")
        _legend(axes, loc="best")
    return canvas


# How recordings name the two readings that the module measures within the kernel.
_REGISTER: Final = "kernel register"
_INTERFACE: Final = "kernel interface"


def interface_alone(figures: Sequence[dict[str, Any]]) -> list[tuple[int, float]]:
    """What the interface costs beside the register [cycles], with the number of the interface's row."""
    medians = {(row["counter"], row["access"], row["phase"]): row["ticks"]["median"] for row in figures}
    found = []
    for number, row in enumerate(figures):
        register = medians.get((row["counter"], _REGISTER, row["phase"]))
        if row["access"] == _INTERFACE and register is not None:
            found.append((number + 1, row["ticks"]["median"] - register))
    return found


def user_figure(recording: Recording) -> Canvas:
    """Figure 16: histograms of the latency from user space, first and single readings of system calls and instructions."""
    rows = [row for row in recording.of("histogram") if row["arrangement"] in {"first", "single"} and row["phase"] == 0]
    wanted = [row for row in rows if row["access"] in {"system call", "ioctl", "page", "vDSO", "lfence;rdtsc", "isb;mrs"}]
    wanted = [row for row in wanted if row["counter"] in {"tsc", "cntvct", "monotonic-raw"} or row["counter"].startswith("module:")]
    edges = np.geomspace(10.0, 1e5, 120)
    with matplotlib.rc_context(rc=_STYLE):
        canvas, (axes,) = _canvas(1, (9.0, 4.5))
        for row, colour in zip(wanted, _cycle(), strict=False):
            ticks, counts = np.array(row["bins"], dtype=float).T
            label = f"{row['counter']} {row['access']}, {row['arrangement']}"
            shares = counts / counts.sum()
            axes.hist(np.clip(ticks, 10.0, 1e5), bins=edges.tolist(), weights=shares, histtype="step", color=colour, label=label)
        axes.set_xscale("log")
        axes.set(xlabel="cycles", ylabel="share", title="Latency from user space (as figure 16)")
        _legend(axes, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return canvas


def clock_figure(recording: Recording) -> Canvas:
    """Figure 17: the error of the clock with each counter and kind of stamps (whiskers: 1st and 99th percentile)."""
    phases = {phase.number: phase.name for phase in recording.phases}
    rows = recording.of("clock")
    boxes = [_clock_box(row, row["counter"], f", {phases.get(row['phase'], '')}" if len(phases) > 1 else "") for row in rows]
    with matplotlib.rc_context(rc=_STYLE):
        canvas, (axes,) = _canvas(1, (8.0, 1.8 + 0.3 * len(boxes)))
        _boxes(axes, boxes)
        axes.set(xlabel="clock error [µs]; whiskers: 1st and 99th percentile", title="Clocks of the same packets (as figure 17)")
    return canvas


def machine_figure(recordings: Sequence[Recording]) -> Canvas:
    """Figure 18: the error of the clock with the first counter of each machine, in its last quiet phase."""
    with matplotlib.rc_context(rc=_STYLE):
        by_machine = {machine: _first_clocks(mine) for machine, mine in machines(recordings).items()}
        canvas, (axes,) = _canvas(1, (9.0, 1.8 + 0.3 * sum(map(len, by_machine.values()))))
        _boxes(axes, [_clock_box(row, f"{machine.label}\n{row['counter']}", "") for machine, rows in by_machine.items() for row in rows])
        axes.set(xlabel="clock error [µs]; whiskers: 1st and 99th percentile", title="The clock by machine (as figure 18)")
    return canvas


def _first_clocks(recordings: Sequence[Recording]) -> list[dict[str, Any]]:
    """For each kind of stamps and each estimator the clock of the first counter, last quiet phase, last recording."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for recording in recordings:
        quiet = {phase.number for phase in recording.phases if phase.is_quiet} or {0}
        rows = [row for row in recording.of("clock") if row["phase"] in quiet]
        counters = [row["counter"] for row in rows[:1]]
        found |= {(row["stamps"], row.get("estimator", "classic")): row for row in rows if row["counter"] in counters}
    return list(found.values())


def _clock_box(row: dict[str, Any], name: str, suffix: str) -> dict[str, Any]:
    label = f"{name}, {row['stamps']}, {row.get('estimator', 'classic')}{suffix}"
    return {"label": label, **{to: row[of] * 1e6 for to, of in _CLOCK_BOX.items()}}


_CLOCK_BOX: Final = {"q1": "p25_s", "med": "median_s", "q3": "p75_s", "whislo": "p1_s", "whishi": "p99_s"}


def _legend(axes: Axes, **options: Any) -> None:
    """A legend where something has a label."""
    if axes.get_legend_handles_labels()[1]:
        axes.legend(**options)


# A colour that comes again has another marker.
_MARKERS: Final = (".", "x", "+", "1", "s")


def _cycle() -> list[str]:
    return list(COLOURS) * 5
