"""Live beside simulated beside the paper: a verdict for each value that the paper gives.

"As in the paper" is a value within a factor of 2 of the paper's. Where the machine decides the value and the paper's claim is that one
clock does better than another, or that something changes little or much, the claim alone can still hold: "shape only".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from ..evidence.verdict import WITHIN, Verdict, is_near
from ..evidence.verdict import Outcome as Word
from ..scales import number_text, time_text
from ..tables import Floats
from .runs import POLL_S, Live
from .simulated import POLLS, RATE, TAIL, TAIL_OVER, Simulated

Outcome = Literal["as in the paper", "shape only", "not here", "not measured"]

CLASSIC, LEARNED, PTPD, NTPD = "ffclockd-classic", "ffclockd-learned", "ptpd-default", "ntpd-tuned"
OURS_BY_PTP, PTP4L = "ffclockd-ptp", "ptp4l-default"

CONVERGED_S = 60e-6
"""An error that figure 4 calls converged [s]."""


@dataclass(frozen=True)
class Claim:
    """One value of the paper, with its two counterparts; nan where there is none."""

    figure: int
    what: str
    paper: float
    simulated: float
    live: float
    holds: bool
    """Whether the live value has the shape that the paper claims."""
    unit: str = ""
    shape: str = ""
    """What the shape asks for."""
    command: str = ""
    """What made it, where that is not the tool that judges."""
    against: float = 0.0
    """What another daemon had, where the shape compares with it; nan where that one did not run."""

    @property
    def outcome(self) -> Outcome:
        """The verdict on the live value."""
        if math.isnan(self.live) or math.isnan(self.against):
            return "not measured"
        return "as in the paper" if self.holds and is_near(self.live / self.paper) else "shape only" if self.holds else "not here"

    def row(self) -> tuple[str, str, str, str, str, str]:
        """For a table."""
        mark = {"as in the paper": "✓ as in the paper", "shape only": "✓ shape only", "not here": "✗ not here"}
        paper, simulated, live = (self._text(value) for value in (self.paper, self.simulated, self.live))
        return (f"Figure {self.figure}", self.what, paper, simulated, live, mark.get(self.outcome, self.outcome))

    def verdict(self, command: str) -> Verdict:
        """The live value, for the page of evidence; ``command`` made it, unless it names another."""
        ratio = None if math.isnan(self.paper) or math.isnan(self.live) else self.live / self.paper
        tests = (WITHIN if ratio is not None else "", f"shape: {self.shape}")
        word: Word = "differs" if self.outcome == "not here" else self.outcome
        paper, live = self._text(self.paper), self._text(self.live)
        return Verdict(
            str(self.figure), "live", self.what, paper, live, ratio, "; ".join(filter(None, tests)), word, self.command or command
        )

    def _text(self, value: float) -> str:
        if math.isnan(value):
            return "-"
        return time_text(value) if self.unit == "s" else number_text(value) + (f" {self.unit}" if self.unit else "")


def spread(errors: Floats) -> float:
    """Between the quartiles [s]."""
    return float(np.subtract(*np.percentile(errors, [75, 25]))) if errors.size else math.nan


def tail(errors: Floats) -> float:
    """From 1 to 99 % [s]."""
    return float(np.subtract(*np.percentile(errors, [99, 1]))) if errors.size else math.nan


def over(above: float, below: float) -> float:
    """A ratio; nan where there is none."""
    return above / below if below > 0.0 else math.nan


def settled_s(run: Live, name: str, limit_s: float) -> float:
    """From when on the error stayed within the limit [s]; the run's length where it was beyond it at the end.

    A clock is not within anything before its first sample: a page that is not published yet has none.
    """
    if name not in run.series:
        return math.nan
    t_s, error_s = run.series[name]
    beyond = np.flatnonzero(np.abs(error_s) > limit_s)
    first = int(beyond[-1]) + 1 if beyond.size else 0
    return float(t_s[first]) if first < t_s.size else run.seconds


def judge(runs: Sequence[Live], simulated: Simulated) -> list[Claim]:
    """All claims, by figure."""
    live = {run.setting.name: run for run in runs}

    def sim(what: str, clock: str) -> float:
        return simulated.get((what, clock), math.nan)

    def iqr(setting: str, name: str) -> float:
        return spread(live[setting].errors(name))

    def compare(figure: int, what: str, values: tuple[float, float, float], most: tuple[float, float] = (0.0, math.inf)) -> Claim:
        return Claim(figure, what, *values, most[0] <= values[2] <= most[1], shape=_range(most))

    def times(setting: str, name: str, before: str = "quiet") -> float:
        return over(iqr(setting, name), iqr(before, name))

    return [
        compare(
            2,
            "IQR of ptpd over that of the paper's algorithm (classic)",
            (31.6 / 8.1, over(sim("ideal", "ptpd"), sim("ideal", "classic")), over(iqr("quiet", PTPD), iqr("quiet", CLASSIC))),
            (1.0, math.inf),
        ),
        compare(
            2,
            "IQR of ptpd over that of the learned estimator",
            (math.nan, over(sim("ideal", "ptpd"), sim("ideal", "learned")), over(iqr("quiet", PTPD), iqr("quiet", LEARNED))),
            (1.0, math.inf),
        ),
        compare(
            3,
            "noisy host: IQR of the classic clock, times that on the quiet one",
            (17.7 / 8.1, over(sim("host-noise", "classic"), sim("ideal", "classic")), times("noise", CLASSIC)),
            (1.0, math.inf),
        ),
        compare(
            3,
            "noisy host: IQR of ptpd over that of the classic clock",
            (math.nan, over(sim("host-noise", "ptpd"), sim("host-noise", "classic")), over(iqr("noise", PTPD), iqr("noise", CLASSIC))),
            (1.0, math.inf),
        ),
        Claim(
            4,
            "start: polls until ptpd stays within 60 us",
            5400.0 / 16.0,
            sim(POLLS, "ptpd"),
            settled_s(live["quiet"], PTPD, CONVERGED_S) / POLL_S,
            settled_s(live["quiet"], PTPD, CONVERGED_S) > settled_s(live["quiet"], LEARNED, CONVERGED_S),
            shape="later than the learned clock",
            against=settled_s(live["quiet"], LEARNED, CONVERGED_S),
        ),
        compare(
            4,
            "start: polls until the learned clock stays within 60 us (almost immediately: at most 4)",
            (math.nan, sim(POLLS, "learned"), settled_s(live["quiet"], LEARNED, CONVERGED_S) / POLL_S),
            (0.0, 4.0),
        ),
        compare(
            5,
            "congestion: IQR of the classic clock, times that on the quiet path (basically unaffected)",
            (1.0, over(sim("congestion", "classic"), sim("ideal", "classic")), times("congestion", CLASSIC)),
            (0.0, 2.0),
        ),
        compare(
            5,
            "congestion: IQR of the learned clock, times that on the quiet path",
            (1.0, over(sim("congestion", "learned"), sim("ideal", "learned")), times("congestion", LEARNED)),
            (0.0, 2.0),
        ),
        compare(
            5,
            "congestion: IQR of ptpd, times that on the quiet path (strongly affected: at least 3)",
            (math.nan, over(sim("congestion", "ptpd"), sim("ideal", "ptpd")), times("congestion", PTPD)),
            (3.0, math.inf),
        ),
        compare(
            6,
            "congestion and a busy host: IQR of ptpd over that of the classic clock",
            (
                math.nan,
                over(sim("congestion-host", "ptpd"), sim("congestion-host", "classic")),
                over(iqr("congestion-host", PTPD), iqr("congestion-host", CLASSIC)),
            ),
            (1.0, math.inf),
        ),
        compare(
            6,
            "the busy host: IQR of the classic clock, times that under congestion alone (hardly changes)",
            (
                1.0,
                over(sim("congestion-host", "classic"), sim("congestion", "classic")),
                times("congestion-host", CLASSIC, "congestion"),
            ),
            (0.0, 2.0),
        ),
        *_cut(live["cut"], sim),
        compare(
            11,
            "replies held back: 1 to 99 % range of ntpd (tuned), times that before (two orders of magnitude)",
            (100.0, sim(TAIL, "ntpd"), over(tail(live["capture"].errors(NTPD, 0.6)), tail(live["capture"].errors(NTPD, 0.3, 0.5)))),
            (10.0, math.inf),
        ),
        compare(
            11,
            "replies held back: 1 to 99 % range of ntpd (tuned) over that of the learned clock",
            (math.nan, sim(TAIL_OVER, "ntpd"), over(tail(live["capture"].errors(NTPD, 0.6)), tail(live["capture"].errors(LEARNED, 0.6)))),
            (1.0, math.inf),
        ),
        *_by_ptp(live),
    ]


def _by_ptp(live: Mapping[str, Live]) -> list[Claim]:
    """Figures 2 to 7 with both clocks on the same messages of IEEE 1588.

    The paper's feed-forward clock had NTP alone, so it gives no values.
    """
    about = {2: "quiet", 3: "noise", 5: "congestion", 6: "congestion-host"}

    def ratio(setting: str) -> float:
        return over(spread(live[setting].errors(PTP4L)), spread(live[setting].errors(OURS_BY_PTP)))

    def row(figure: int, what: str, value: float, shape: tuple[bool, str, float], unit: str = "") -> Claim:
        """``shape``: whether it holds, in words, and what the other daemon had (0 where none is compared with)."""
        return Claim(figure, f"by PTP, {what}", math.nan, math.nan, value, shape[0], unit, shape[1], against=shape[2])

    cut, starts = live["cut"], [settled_s(live["quiet"], name, CONVERGED_S) / POLL_S for name in (OURS_BY_PTP, PTP4L)]
    drifts = [_drift(cut, name) for name in (OURS_BY_PTP, PTP4L)]
    back = _largest_after(cut, OURS_BY_PTP)
    return [
        *(
            row(figure, f"{setting}: IQR of ptp4l over that of ffclockd", ratio(setting), (ratio(setting) >= 1.0, "at least 1", 0.0))
            for figure, setting in about.items()
        ),
        row(
            4,
            "start: Syncs until ffclockd stays within 60 us",
            starts[0],
            (starts[0] <= starts[1], "no later than ptp4l", starts[1]),
        ),
        row(7, "cut off: rate of ffclockd's drift", drifts[0], (drifts[0] <= drifts[1], "at most that of ptp4l", drifts[1]), "us/s"),
        row(7, "connected again: largest error of ffclockd", back, (back < CONVERGED_S, _recovery(cut), 0.0), "s"),
    ]


def _range(most: tuple[float, float]) -> str:
    """What a value must be to have the shape, in words."""
    least, limit = most
    return f"at most {limit:g}" if least <= 0.0 else f"at least {least:g}" if math.isinf(limit) else f"from {least:g} to {limit:g}"


def _cut(cut: Live, sim: Callable[[str, str], float]) -> list[Claim]:
    """Figure 7. The paper's two hours are a fraction of that here, so that rates are compared."""
    recovered = _largest_after(cut, LEARNED)
    return [
        Claim(
            7,
            "cut off: rate of ptpd's drift",
            0.3 / 7200.0 * 1e6,
            sim(RATE, "ptpd"),
            _drift(cut, PTPD),
            _drift(cut, PTPD) > _drift(cut, LEARNED),
            "us/s",
            "more than that of the learned clock",
            against=_drift(cut, LEARNED),
        ),
        Claim(
            7,
            "cut off: rate of the learned clock's drift (gradual)",
            math.nan,
            sim(RATE, "learned"),
            _drift(cut, LEARNED),
            _drift(cut, LEARNED) < 0.1,
            "us/s",
            "below 0.1 us/s",
        ),
        Claim(
            7,
            "connected again: largest error of the learned clock (immediate recovery)",
            math.nan,
            math.nan,
            recovered,
            recovered < CONVERGED_S,
            "s",
            _recovery(cut),
        ),
    ]


_AWAY: Final = 0.3
"""The share of a run in which the plan cut-16 has no server."""


def _recovery(cut: Live) -> str:
    """What figure 7 asks for when the server is back, and how fast a clock has to drift to miss it in so short a time."""
    away_s = _AWAY * cut.seconds
    return f"below 60 µs, which a cut of {away_s:.0f} s reaches only at {CONVERGED_S * 1e6 / away_s:.2g} us/s"


def _drift(cut: Live, name: str) -> float:
    """How fast the error grew while the server was away [us/s]."""
    at_end, before = cut.errors(name, 0.78, 0.8), cut.errors(name, 0.45, 0.5)
    if not at_end.size or not before.size:
        return math.nan
    return abs(float(np.median(at_end)) - float(np.median(before))) / (_AWAY * cut.seconds) * 1e6


def _largest_after(cut: Live, name: str) -> float:
    """The largest error from soon after the server is back [s]."""
    errors = np.abs(cut.errors(name, 0.9))
    return float(np.max(errors)) if errors.size else math.nan
