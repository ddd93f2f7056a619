"""The simulated counterparts, from the worlds of ``make figures``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from ..paper.lan import settling_s
from ..paper.wan import in_window
from ..paper.worlds import Laboratory, World, iqr
from ..tables import Floats

Simulated = Mapping[tuple[str, str], float]
"""By what it is and the clock: interquartile ranges [s] by the name of the world, and the figures below."""

POLLS, RATE, TAIL, TAIL_OVER = "polls to 60 us", "drift while cut off [us/s]", "held back over before", "held back over learned"
BAND, RELAXED, RELAXED_LAN = "1 to 99 %, forced", "relaxed over forced", "relaxed over forced, with the LAN's server"
OURS_FORCED, WEEKS = "ours over forced, worst phase", "weeks"

_HOUR: Final = 3600.0
_POLL_S: Final = 16.0
_CLOCKS: Final = ("classic", "learned", "ptpd")


def simulate(lab: Laboratory) -> dict[tuple[str, str], float]:
    """Runs the worlds."""
    found: dict[tuple[str, str], float] = {}
    for name in ("ideal", "host-noise", "congestion", "congestion-host"):
        world = lab.run(name)
        found |= {(name, clock): iqr(world.errors(clock)) for clock in _CLOCKS}
    start = lab.run("start")
    found |= {(POLLS, clock): settling_s(start, clock, 60e-6) / _POLL_S for clock in _CLOCKS}
    cut = lab.run("disconnection")
    found |= {(RATE, clock): _rate(cut, clock) for clock in _CLOCKS}
    capture = lab.run("capture")
    held = {clock: _tail(capture.errors(clock, 18 * _HOUR, 29 * _HOUR)) for clock in ("pll", "learned")}
    found[TAIL, "ntpd"] = held["pll"] / _tail(capture.errors("pll", 12 * _HOUR, 18 * _HOUR))
    found[TAIL_OVER, "ntpd"] = held["pll"] / held["learned"]
    found |= _servers(lab.run("several-servers"))
    weeks = lab.run("long-series")
    return found | {(WEEKS, clock): iqr(weeks.errors(clock)) for clock in ("pll", "classic", "learned")}


def _servers(world: World) -> dict[tuple[str, str], float]:
    def spread(clock: str, window: str) -> float:
        return in_window(world.result, clock, window, "iqr")

    near = world.errors("ntpd", 6 * _HOUR, 18 * _HOUR)
    return {
        (BAND, "ntpd"): _tail(near),
        (RELAXED, "ntpd"): spread("ntpd", "near-relaxed") / spread("ntpd", "near"),
        (RELAXED_LAN, "ntpd"): spread("ntpd", "lan-relaxed") / spread("ntpd", "lan"),
        (OURS_FORCED, "ntpd"): max(spread("joint", window) / spread("ntpd", window) for window in ("near", "lan")),
    }


def _rate(world: World, clock: str) -> float:
    begin, end = 14.5 * _HOUR, 16.5 * _HOUR
    before, after = world.errors(clock, begin - 600.0, begin), world.errors(clock, end - 60.0, end)
    return abs(float(np.median(after)) - float(np.median(before))) / (end - begin) * 1e6


def _tail(errors: Floats) -> float:
    return float(np.subtract(*np.percentile(errors, [99, 1])))
