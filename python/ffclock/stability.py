"""Stability over averaging times: Allan, modified Allan and time deviation with their confidence, and MTIE, all from allantools.

The statistics want evenly spaced values, and clocks are read when it suits: values are interpolated linearly onto an even grid whose
step is the median interval. Long inputs get a wider step, so that there are at most 2^18 values; MTIE beyond 256 steps is taken from at
most 2^16 of them, because its cost is their number times the averaging time.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import allantools
import numpy as np
from allantools import mask

from .tables import Floats

POINTS_MAX: Final = 1 << 18
ONE_SIGMA: Final = math.erf(math.sqrt(0.5))
"""The probability of an interval of one standard deviation each way of a normal distribution."""
MTIE_POINTS_MAX: Final = 1 << 16
_MTIE_DIRECT_STEPS: Final = 256
_POINTS_MIN: Final = 8
# From 32 averages, the fewest that allantools takes, a quarter of all realisations of white frequency noise is taken for noise of the
# phase, whose intervals are less than half as wide; from 128 one in 70.
_AVERAGES_FOR_NOISE: Final = 128
# Exponents of the noises that the confidence is known for.
_ALPHA_OF_RANDOM_WALK: Final = -2
_ALPHA_OF_WHITE_PHASE: Final = 2


class Kind(enum.Enum):
    """Which variance the confidence is of."""

    PLAIN = enum.auto()
    MODIFIED = enum.auto()


@dataclass(frozen=True)
class Grid:
    """Time errors at even steps."""

    step_s: float
    values: Floats
    """Time errors [s]."""
    bridged: float
    """The share of the steps that lie in gaps of more than ten steps, where values are only interpolated."""


@dataclass(frozen=True)
class Deviation:
    """A deviation over averaging times; ``low`` and ``high`` are the ends of its interval (68 % where no other is asked for).

    Both are NaN where there is none.
    """

    tau_s: Floats
    value: Floats
    low: Floats
    high: Floats


@dataclass(frozen=True)
class Mask:
    """A limit of a recommendation, in seconds over seconds."""

    name: str
    tau_s: tuple[float, float]
    limit: Callable[[float], float]

    def line(self) -> tuple[Floats, Floats]:
        """Averaging times and limits to draw [s]."""
        taus = np.geomspace(*self.tau_s, 200)
        return taus, np.array([self.limit(float(tau)) for tau in taus])


def _pieces(*pieces: tuple[float, Callable[[float], float]]) -> Callable[[float], float]:
    """A limit of several pieces, each with the averaging time up to which it holds."""

    def limit(tau: float) -> float:
        return next((piece(tau) for end, piece in pieces if tau <= end), pieces[-1][1](tau))

    return limit


# G.8261 (08/2013), tables 4 and 5: network limits at interfaces of synchronous Ethernet, option 1.
_SYNC_ETHERNET_MTIE: Final = _pieces(
    (2.5, lambda _: 250e-9),
    (20.0, lambda tau: 100e-9 * tau),
    (2000.0, lambda _: 2000e-9),
    (1e6, lambda tau: (433.0 * tau**0.2 + 0.01 * tau) * 1e-9),
)
_SYNC_ETHERNET_TDEV: Final = _pieces(
    (17.14, lambda _: 12e-9),
    (100.0, lambda tau: 0.7e-9 * tau),
    (1e6, lambda tau: (58.0 + 1.2 * tau**0.5 + 0.0003 * tau) * 1e-9),
)
# The limits of G.8272 (primary reference time clocks, classes A and B) are those that allantools holds.
MTIE_MASKS: Final = (
    Mask("G.8261 sync. Ethernet network limit", (0.1, 1e6), _SYNC_ETHERNET_MTIE),
    Mask("G.8272 PRTC-A", (0.1, 1e6), mask.prtcA_mtie),
    Mask("G.8272 PRTC-B", (0.1, 1e6), mask.prtcB_mtie),
)
TDEV_MASKS: Final = (
    Mask("G.8261 sync. Ethernet network limit", (0.1, 1e6), _SYNC_ETHERNET_TDEV),
    Mask("G.8272 PRTC-A", (0.1, 1e4), mask.prtcA_tdev),
    Mask("G.8272 PRTC-B", (0.1, 1e4), mask.prtcB_tdev),
)


def even_grid(t_s: Floats, values: Floats | None) -> Grid | None:
    """``values`` [s] at even steps; None if there are too few, or time does not go on."""
    if values is None:
        return None
    known = np.isfinite(values) & np.isfinite(t_s)
    times, known_values = t_s[known], values[known]
    if times.size < _POINTS_MIN:
        return None
    order = np.argsort(times, kind="stable")
    times, known_values = times[order], known_values[order]
    intervals = np.diff(times)
    length = float(times[-1] - times[0])
    usual = float(np.median(intervals))
    if not usual > 0.0 or length / usual < _POINTS_MIN:
        return None
    # A multiple of the usual step meets the values themselves where these are even.
    step = usual * max(1.0, np.ceil(length / usual / POINTS_MAX))
    at = times[0] + step * np.arange(int(length / step) + 1)
    gaps = intervals[intervals > 10.0 * step].sum() / length
    return Grid(step, np.interp(at, times, known_values), float(gaps))


def allan(grid: Grid, confidence: float = ONE_SIGMA) -> Deviation:
    """Overlapping Allan deviation; NIST SP 1065, section 5.2.3."""
    return _with_confidence(grid, allantools.oadev, Kind.PLAIN, confidence)


def modified_allan(grid: Grid) -> Deviation:
    """Modified Allan deviation; NIST SP 1065, section 5.2.4."""
    return _with_confidence(grid, allantools.mdev, Kind.MODIFIED)


def time_deviation(grid: Grid) -> Deviation:
    """Time deviation [s]; NIST SP 1065, section 5.2.6, ITU-T G.810."""
    return _with_confidence(grid, allantools.tdev, Kind.MODIFIED)


def mtie(grid: Grid) -> Deviation:
    """Maximum time interval error [s]: the largest peak to peak in any window; ITU-T G.810, appendix II.5."""
    near = [steps for steps in _steps(grid.values.size) if steps <= _MTIE_DIRECT_STEPS]
    stride = -(-grid.values.size // MTIE_POINTS_MAX)
    thin = grid.values[::stride]
    # In steps of the thinned grid, for the averaging times that are left.
    far = [steps for steps in _steps(thin.size) if steps * stride > _MTIE_DIRECT_STEPS]
    parts = [_mtie(grid.values, near, grid.step_s), _mtie(thin, far, grid.step_s * stride)]
    taus, values = (np.concatenate(column) for column in zip(*parts, strict=True))
    nothing = np.full(taus.size, np.nan)
    return Deviation(taus, values, nothing, nothing)


def _mtie(values: Floats, steps: Sequence[int], step_s: float) -> tuple[Floats, Floats]:
    if not steps:
        return np.empty(0), np.empty(0)
    taus, found, _, _ = allantools.mtie(values, rate=1.0, data_type="phase", taus=[float(step) for step in steps])
    return np.asarray(taus) * step_s, np.asarray(found)


def _steps(size: int) -> list[int]:
    """Averaging times in steps: three an octave while they are whole, up to a quarter of the length."""
    largest = size // 4
    wanted = {round(2.0 ** (k / 2)) for k in range(2 * max(largest, 1).bit_length() + 1)}
    return sorted(step for step in wanted if 1 <= step <= largest)


def _with_confidence(grid: Grid, deviation: Callable[..., Any], kind: Kind, confidence: float = ONE_SIGMA) -> Deviation:
    steps = _steps(grid.values.size)
    rate = 1.0 / grid.step_s
    taus, values, _, _ = deviation(grid.values, rate=rate, data_type="phase", taus=[step * grid.step_s for step in steps])
    used = np.rint(np.asarray(taus) / grid.step_s).astype(int).tolist()
    size = grid.values.size
    limits = [_interval(size, value, (*at, kind), confidence) for value, at in zip(values, _with_noise(grid.values, used), strict=True)]
    low, high = (np.array(edge) for edge in zip(*limits, strict=True)) if limits else (np.empty(0), np.empty(0))
    return Deviation(np.asarray(taus), np.asarray(values), low, high)


def _with_noise(values: Floats, steps: Sequence[int]) -> list[tuple[int, int]]:
    """Each averaging time with the exponent of the noise there; where the data are too few, that of the next shorter one."""
    found, alpha = [], 0
    for step in steps:
        if values.size // step >= _AVERAGES_FOR_NOISE and float(np.ptp(values)) > 0.0:
            alpha = int(np.clip(allantools.autocorr_noise_id(values, step)[0], _ALPHA_OF_RANDOM_WALK, _ALPHA_OF_WHITE_PHASE))
        found.append((step, alpha))
    return found


def _interval(size: int, value: float, at: tuple[int, int, Kind], confidence: float) -> tuple[float, float]:
    """By chi-square with the equivalent degrees of freedom of that noise: NIST SP 1065, section 5.3.2."""
    step, alpha, kind = at
    try:
        freedom = allantools.edf_greenhall(alpha, 2, step, size, overlapping=True, modified=kind is Kind.MODIFIED)
    except NotImplementedError:
        # White phase noise and a handful of averages: a case that allantools leaves out.
        return float("nan"), float("nan")
    if not freedom > 0.0 or not value > 0.0:
        return float("nan"), float("nan")
    low, high = allantools.confidence_interval(value, freedom, ci=confidence)
    return float(low), float(high)
