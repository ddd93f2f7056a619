"""Figures 8 to 11: servers near and far, polls short and long, and a capture that delays packets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.gridspec import GridSpec

from ..marks import GREY
from ..scales import time_text
from ..style import canvas, dress, styled
from ..tables import Floats
from .findings import Figure, Finding, ratio
from .lan import OURS, png
from .marks import Row, Window, bands, bias_line, lines, robust, time_errors, with_histograms
from .worlds import Laboratory, World, iqr, largest

_HOUR: Final = 3600.0
_POLLS: Final = (16, 64, 256, 1024)
_PLACES: Final = (("lan", "LAN, floor 0.28 ms"), ("near", "near, floor 0.89 ms"), ("far", "far, floor 37.7 ms"))


@dataclass(frozen=True)
class Phase:
    """A piece of figure 8: from which hour, in which of the world's windows it is judged, and whether its poll is forced."""

    begin_h: float
    window: str
    text: str
    forced: bool


# The hours are the paper's.
_PHASES: Final = (
    Phase(0, "near", "near, 16 s", True),
    Phase(18, "near-relaxed", "near, relaxed", False),
    Phase(46, "", "16 s", True),
    Phase(52, "three-near", "3 near, 16 s", True),
    Phase(66, "three-near-relaxed", "3 near, relaxed", False),
    Phase(112, "near-again", "near, 16 s", True),
    Phase(128, "lan", "+ LAN, 16 s", True),
    Phase(146, "lan-relaxed", "+ LAN, relaxed", False),
)
_END_H: Final = 180.0
_SETTLED_H: Final = 6.0
"""From when on the statistics of the world count."""
_JOINT: Final = "joint"
_BANDS_TEXT: Final = "thin: 1 to 99 %   thick: 25 to 75 %   white: median   half the asymmetry of each path is taken out"


def figure_8(lab: Laboratory) -> Figure:
    """Servers and polls, one after the other, in one world."""
    world = lab.run("several-servers")
    window = Window(0.0, _END_H * _HOUR, 0.0)
    with styled():
        picture = canvas(14.0, 7.4)
        upper, lower = picture.subplots(
            2, 1, sharex=True, gridspec_kw={"left": 0.06, "right": 0.985, "top": 0.9, "bottom": 0.075, "hspace": 0.28}
        )
        for axes, names, reach in ((upper, ("ntpd", _JOINT), 2e-3), (lower, ("ntpd", "chrony", _JOINT), 150e-6)):
            lines(axes, world, names, window)
            _phase_marks(axes)
            time_errors(axes, (-reach, reach))
            axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.06), ncols=3, borderaxespad=0.1)
        upper.set_title("ntpd, and ours", pad=22)
        lower.set_title("Enlarged, with chrony", pad=22)
        lower.set_xlabel("time [h]")
    text = (
        "The paper's timetable in one world: servers join and leave; grey where the poll is forced to 16 s. Elsewhere the models of "
        "ntpd and chrony choose their polls between 16 s and 1024 s, as the programs do; ours stays at 16 s. Servers five hops away "
        "are asymmetric by 50 µs. The model of ntpd was compared with the program at 16 s only; at longer polls it rests on RFC 5905."
    )
    return Figure("8", "Several servers and the polling period", text, png(picture), (world.command,), _phase_findings(world))


def _phase_marks(axes: Axes) -> None:
    ends = [phase.begin_h for phase in _PHASES[1:]] + [_END_H]
    for phase, end in zip(_PHASES, ends, strict=True):
        if phase.forced:
            axes.axvspan(phase.begin_h, end, color="#777777", alpha=0.14, linewidth=0, zorder=0)
        axes.axvline(phase.begin_h, color=GREY, linewidth=0.6)
        place = (phase.begin_h + end) / 2.0
        axes.text(place, 1.01, phase.text, transform=axes.get_xaxis_transform(), ha="center", va="bottom", fontsize=7.5, color="#333333")


def in_window(result: Mapping[str, Any], clock: str, window: str, figure: str) -> float:
    """A figure of a clock in one of the windows of a run's result [s]."""
    windows = next(one["windows"] for one in result["clocks"] if one["name"] == clock)
    return float(next(one[figure] for one in windows if one["name"] == window))


def _phase_findings(world: World) -> tuple[Finding, ...]:
    def spread(clock: str, window: str) -> float:
        return in_window(world.result, clock, window, "iqr")

    def listed(clock: str, *windows: str) -> str:
        return ", ".join(time_text(spread(clock, window)) for window in windows)

    judged = [phase.window for phase in _PHASES if phase.window]
    forced, free = (_tail_between(world, "ntpd", (begin * _HOUR, end * _HOUR)) for begin, end in ((_SETTLED_H, 18.0), (18.0, 46.0)))
    worst = max(spread(_JOINT, window) / spread("ntpd", window) for window in judged)
    ours = max(judged, key=lambda window: in_window(world.result, _JOINT, window, "max"))
    return (
        Finding(
            "ntpd, a near server at 16 s: band of 1 to 99 %",
            "300 µs",
            time_text(forced),
            None,
            (300e-6, forced),
        ),
        Finding(
            "the same, relaxed",
            "2.4 ms, erratic",
            time_text(free),
            spread("ntpd", "near-relaxed") > 3 * spread("ntpd", "near"),
            (2.4e-3, free),
            "IQR more than three times that at 16 s",
        ),
        Finding(
            "ntpd, three near servers: IQR at 16 s, relaxed",
            "erratic again",
            listed("ntpd", "three-near", "three-near-relaxed"),
            spread("ntpd", "three-near-relaxed") > 3 * spread("ntpd", "three-near"),
            shape="relaxed more than three times that at 16 s",
        ),
        Finding(
            "ntpd, with the LAN's server as well: IQR at 16 s, relaxed",
            "erratic all the same",
            listed("ntpd", "lan", "lan-relaxed"),
            spread("ntpd", "lan-relaxed") > 3 * spread("ntpd", "lan"),
            shape="relaxed more than three times that at 16 s",
        ),
        Finding("ours, the three at 16 s: IQR", "", listed(_JOINT, "near", "three-near", "lan")),
        Finding("ours over ntpd: IQR, worst phase", "", f"{worst:.2f}", worst < 1.0, shape="below 1"),
        Finding("ours: largest error, worst phase", "", f"{time_text(in_window(world.result, _JOINT, ours, 'max'))} ({ours})"),
    )


def figure_9(lab: Laboratory) -> Figure:
    """Percentiles by poll and distance."""
    worlds = {(place, poll): lab.run(f"{place}-{poll}") for place, _ in _PLACES for poll in _POLLS}
    names = ("pll", "regression", "classic", OURS)
    with styled():
        picture = canvas(14.0, 6.6)
        panels = picture.subplots(1, 3, gridspec_kw={"left": 0.055, "right": 0.985, "top": 0.86, "bottom": 0.1, "wspace": 0.2})
        for axes, (place, title) in zip(panels, _PLACES, strict=True):
            for step, poll in enumerate(_POLLS):
                for index, name in enumerate(names):
                    world = worlds[place, poll]
                    bands(axes, step + (index - 1.5) * 0.19, world.errors(name) - world.bias_s, dress(name).colour)
            bias_line(axes, 0.0)
            net = [worlds[place, poll].errors(name) - worlds[place, poll].bias_s for poll in _POLLS for name in names]
            _signed_logarithmic(axes, net)
            axes.set_title(title)
            axes.set_xticks(range(len(_POLLS)), [str(poll) for poll in _POLLS])
            axes.set_xlabel("polling period [s]")
            axes.grid(visible=False, axis="x")
        panels[0].set_ylabel("error, linear near zero, logarithmic beyond")
        handles = [panels[0].plot([], [], color=dress(name).colour, linewidth=5, label=dress(name).label)[0] for name in names]
        picture.legend(handles=handles, loc="upper right", ncols=4, bbox_to_anchor=(0.985, 0.99))
        picture.text(
            0.055,
            0.955,
            _BANDS_TEXT,
            fontsize=8.5,
            color="#444444",
        )
    text = (
        "Three servers, four polls, all clocks on the same packets; each pair is a run of its own. The PLL was compared with the program "
        "at polls of 16 s only; at 1024 s it rests on RFC 5905, and regression is the better feedback clock."
    )
    commands = tuple(world.command for world in worlds.values())
    return Figure("9", "Error by polling period and distance", text, png(picture), commands, _distance_findings(worlds))


def _signed_logarithmic(axes: Axes, errors: Sequence[Floats]) -> None:
    largest_shown = max(float(np.percentile(np.abs(part), 99.5)) for part in errors)
    # Linear as far as the quietest clock reaches.
    linear = 10.0 ** np.ceil(np.log10(min(float(np.percentile(np.abs(part), 90)) for part in errors)))
    axes.set_yscale("symlog", linthresh=linear, linscale=1.0)
    axes.set_ylim(-1.3 * largest_shown, 1.3 * largest_shown)
    decades = [linear * 10.0**power for power in range(8) if linear * 10.0**power <= 1.3 * largest_shown]
    ticks = [-tick for tick in reversed(decades)] + [0.0, *decades]
    axes.set_yticks(ticks, [time_text(tick) if tick else "0" for tick in ticks])
    axes.minorticks_off()


def _distance_findings(worlds: dict[tuple[str, int], World]) -> tuple[Finding, ...]:
    better = [iqr(world.errors(OURS)) < iqr(world.errors("pll")) for world in worlds.values()]
    tails = [_tail(world, OURS) < _tail(world, "pll") for world in worlds.values()]
    classic = [iqr(world.errors("classic")) < iqr(world.errors("pll")) for world in worlds.values()]
    by_poll = [iqr(worlds["lan", poll].errors(OURS)) for poll in _POLLS]
    by_distance = [iqr(worlds[place, 16].errors(OURS)) for place, _ in _PLACES]
    return (
        Finding(
            "points at which the feed-forward clock has the smaller IQR", "12 of 12", f"{sum(better)} of 12", all(better), shape="all 12"
        ),
        Finding("the same for the 1 to 99 % range", "12 of 12", f"{sum(tails)} of 12", all(tails), shape="all 12"),
        Finding("the same for the IQR of the papers' own algorithm", "12 of 12", f"{sum(classic)} of 12", all(classic), shape="all 12"),
        Finding(
            "spread grows with the poll (LAN, ours)",
            "yes",
            ", ".join(map(time_text, by_poll)),
            by_poll == sorted(by_poll),
            shape="at each step",
        ),
        Finding(
            "spread grows with distance (16 s, ours)",
            "yes",
            ", ".join(map(time_text, by_distance)),
            by_distance == sorted(by_distance),
            shape="at each step",
        ),
    )


def _tail(world: World, name: str) -> float:
    return float(np.subtract(*np.percentile(world.errors(name), [99, 1])))


def figure_10(lab: Laboratory) -> Figure:
    """Weeks at 256 s."""
    world = lab.run("long-series")
    window = Window(5 * 86400.0, 26 * 86400.0, 5 * 86400.0, "d")
    with styled():
        picture = canvas(14.0, 9.0)
        where = GridSpec(1, 1, figure=picture, left=0.06, right=0.985, top=0.93, bottom=0.075)[0]
        near = robust(world, ("regression", "classic", OURS), window, 99.8)
        rows = (
            Row("The PLL of ntpd, and ours on the same packets", ("pll", OURS), robust(world, ("pll",), window, 99.8)),
            Row("Enlarged: regression", ("regression",), near),
            Row("Enlarged: feed-forward", ("classic", OURS), near),
        )
        with_histograms((picture, where), world, rows, window)
    ours, theirs, classic = (iqr(world.errors(name)) for name in (OURS, "pll", "classic"))
    quiet = largest(world.errors("pll"))
    findings = (
        Finding(
            "IQR of ntpd over that of the paper's own algorithm",
            "50.4 µs / 7.4 µs = 6.8",
            f"{theirs / classic:.3g}",
            theirs > classic,
            (50.4 / 7.4, theirs / classic),
            "above 1",
        ),
        Finding("IQR of ntpd", "50.4 µs", time_text(theirs), None, (50.4e-6, theirs)),
        Finding("IQR of the paper's own algorithm", "7.4 µs", time_text(classic), None, (7.4e-6, classic)),
        Finding(
            "IQR of ntpd over that of the learned clock",
            "no learned clock",
            ratio(theirs, ours),
            theirs > 50.4 / 7.4 * ours,
            shape="more than 6.8 times, as over the paper's algorithm",
        ),
        Finding(
            "ntpd has phases of instability: largest error over IQR",
            "many times",
            f"{quiet / theirs:.1f}",
            quiet > 4 * theirs,
            shape="more than four times",
        ),
    )
    text = "Three weeks with the server of the LAN at a poll of 256 s."
    return Figure("10", "Weeks at a poll of 256 s", text, png(picture), (world.command,), findings)


def figure_11(lab: Laboratory) -> Figure:
    """A capture delays packets."""
    world, kernel = lab.run("capture"), lab.run("capture-kernel")
    window = Window(12 * _HOUR, 62 * _HOUR, 12 * _HOUR)
    begin, end = 18 * _HOUR, 29 * _HOUR
    with styled():
        picture = canvas(14.0, 9.4)
        outer = GridSpec(2, 1, figure=picture, left=0.06, right=0.985, top=0.945, bottom=0.06, hspace=0.26, height_ratios=[2.1, 1])
        reach = {name: robust(world, (name,), window, 99.8) for name in ("pll", "regression")}
        delayed = (
            Row("Stamps in user space, delayed: the PLL and ours", ("pll", OURS), reach["pll"]),
            Row("The same: regression and the classic clock", ("regression", "classic"), reach["regression"]),
        )
        spared = (Row("Stamps of the kernel", ("classic", OURS), robust(kernel, ("classic", OURS), window, 99.8)),)
        panels = with_histograms((picture, outer[0]), world, delayed, window) + with_histograms((picture, outer[1]), kernel, spared, window)
        for axes in panels:
            for edges in ((6, 17), (26, 43)):
                axes.axvspan(*edges, color="#777777", alpha=0.14, linewidth=0, zorder=0)
    before = _tail_between(world, "pll", (12 * _HOUR, begin))
    disturbed = {name: _tail_between(world, name, (begin, end)) for name in (OURS, "classic", "pll", "regression")}
    largest_pll = largest(world.errors("pll", begin, end))
    findings = (
        Finding(
            "ntpd under the capture against before (1 to 99 % range)",
            "two orders of magnitude",
            f"{disturbed['pll'] / before:.0f} times: {time_text(disturbed['pll'])}, at most {time_text(largest_pll)}",
            None,
            (100.0, disturbed["pll"] / before),
        ),
        Finding("regression under the capture", "", time_text(disturbed["regression"])),
        Finding(
            "feed-forward on the same delayed stamps: ours; classic", "", f"{time_text(disturbed[OURS])}; {time_text(disturbed['classic'])}"
        ),
        Finding("ours with stamps of the kernel", "not shown", time_text(_tail_between(kernel, OURS, (begin, end)))),
        Finding(
            "1 to 99 % range of ntpd over that of the paper's own algorithm, on the same delayed stamps",
            "not shown",
            f"{disturbed['pll'] / disturbed['classic']:.3g}",
            disturbed["pll"] > disturbed["classic"],
            shape="above 1",
        ),
    )
    text = (
        "From hours 6 to 17 and 26 to 43 (shaded) a capture delays each reply on its way to user space. Above, every "
        "clock stamps there; below, in the kernel."
    )
    return Figure("11", "Packets delayed by a capture", text, png(picture), (world.command, kernel.command), findings)


def _tail_between(world: World, name: str, hours: tuple[float, float]) -> float:
    return float(np.subtract(*np.percentile(world.errors(name, *hours), [99, 1])))
