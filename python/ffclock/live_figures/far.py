"""Figures 8 and 10: a server that is not near, one that joins, polls that a daemon chooses, and hours at 256 s."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from .runs import Live
from .simulated import BAND, OURS_FORCED, RELAXED, RELAXED_LAN, WEEKS, Simulated
from .verdicts import CLASSIC, LEARNED, Claim, over, spread, tail

FORCED, CHOSEN = "ntpd-tuned", "ntpd-relaxed"
NEAR, LAN = (0.25, 0.5), (0.75, 1.0)
"""The shares of the run in which the far server is alone, and those in which the one of the LAN is there for a while."""

_ERRATIC: Final = 3.0
"""Relaxed over forced: the paper's "erratic"."""


def several_servers(run: Live, simulated: Simulated) -> list[Claim]:
    """Figure 8. The paper relaxed one daemon in turn; here the forced and the relaxed one run side by side."""

    def iqr(name: str, when: tuple[float, float]) -> float:
        return spread(run.errors(name, *when))

    def sim(what: str) -> float:
        return simulated.get((what, "ntpd"), math.nan)

    def relaxed(when: tuple[float, float]) -> float:
        return over(iqr(CHOSEN, when), iqr(FORCED, when))

    def erratic(what: str, paper: float, name: str, value: float) -> Claim:
        return Claim(8, what, paper, sim(name), value, value > _ERRATIC, shape=f"more than {_ERRATIC:g}")

    band, ours = tail(run.errors(FORCED, *NEAR)), float(np.max([over(iqr(LEARNED, when), iqr(FORCED, when)) for when in (NEAR, LAN)]))
    return [
        Claim(
            8,
            "ntpd (tuned), a server five hops away, forced poll: 1 to 99 % range",
            300e-6,
            sim(BAND),
            band,
            band < 1e-3,
            "s",
            "below 1 ms",
        ),
        erratic("the same server: IQR of ntpd that chooses its polls over that at the forced poll (erratic)", 8.0, RELAXED, relaxed(NEAR)),
        erratic("the same, with a server of the LAN beside it (erratic all the same)", math.nan, RELAXED_LAN, relaxed(LAN)),
        Claim(
            8,
            "IQR of the learned clock over that of ntpd at the forced poll, the worse of both lists",
            math.nan,
            sim(OURS_FORCED),
            ours,
            ours < 1.0,
            shape="below 1",
        ),
    ]


def weeks(runs: Sequence[Live], simulated: Simulated) -> list[Claim]:
    """Figure 10, from runs of hours, each judged by itself; the median of them. None where there is no run."""
    if not runs:
        return []

    def iqr(name: str) -> float:
        return float(np.median([spread(run.errors(name, run.settle_s / run.seconds)) for run in runs]))

    def sim(clock: str) -> float:
        return simulated.get((WEEKS, clock), math.nan)

    ntpd, classic, learned = iqr("ntpd-default"), iqr(CLASSIC), iqr(LEARNED)
    hours = f"{runs[0].seconds / 3600.0:.1f} h at 256 s"

    def claim(what: str, values: tuple[float, float, float], shape: tuple[bool, str], unit: str = "") -> Claim:
        return Claim(10, f"{hours}: {what}", *values, shape[0], unit, shape[1], runs[0].command, ntpd)

    return [
        claim(
            "IQR of ntpd over that of the paper's own algorithm",
            (50.4 / 7.4, over(sim("pll"), sim("classic")), over(ntpd, classic)),
            (ntpd > classic, "above 1"),
        ),
        claim("IQR of the paper's own algorithm", (7.4e-6, sim("classic"), classic), (classic < ntpd, "below ntpd's"), "s"),
        claim(
            "IQR of ntpd over that of the learned clock",
            (math.nan, over(sim("pll"), sim("learned")), over(ntpd, learned)),
            (ntpd > 50.4 / 7.4 * learned, "more than 6.8, as over the paper's algorithm"),
        ),
    ]
