"""The figures of a run: how far the clock was off, and how often the truth lay inside what it claimed.

Spread is given in percentiles, because the errors of a network clock are anything but normal; containment is counted over every
sample that came with a bound, connected or not, because a bound must hold above all when the server is gone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from .runs import SYNCHRONISED, Run
from .scales import count_text, number_text, share_text, time_text
from .tables import Flags, Floats

PERCENTILES: Final = (1, 5, 25, 50, 75, 95, 99)


@dataclass(frozen=True)
class Spread:
    """How a set of errors is distributed [s]."""

    count: int
    percentiles: Mapping[int, float]
    rms: float
    max_abs: float

    @property
    def median(self) -> float:
        """The 50th percentile [s]."""
        return self.percentiles[50]

    @property
    def iqr(self) -> float:
        """The distance between the 25th and the 75th percentile [s]."""
        return self.percentiles[75] - self.percentiles[25]


@dataclass(frozen=True)
class Containment:
    """How often the error lay within a claimed limit."""

    count: int
    """Samples that had both an error and a limit."""
    outside: int
    """Samples whose error was larger than the limit."""
    largest_share: float
    """The largest error as a share of its own limit: above 1, the limit was broken."""

    @property
    def share(self) -> float:
        """The share of samples inside; NaN if there was none."""
        return 1.0 - self.outside / self.count if self.count else float("nan")


def connected(run: Run) -> Flags:
    """Which samples count as connected: after warm-up, outside every event with a duration but loads, and synchronised if that is known."""
    samples = run.samples
    chosen = samples.t_s >= run.summary.warm_up_s
    for event in run.summary.events:
        if event.duration_s and not event.counts:
            chosen &= (samples.t_s < event.t_s) | (samples.t_s >= event.end_s)
    if samples.status is not None:
        chosen &= samples.status == SYNCHRONISED
    return chosen


def spread(errors: Floats | None, chosen: Flags | None = None) -> Spread | None:
    """The spread of the finite and ``chosen`` ones among ``errors`` [s]; None if there is none."""
    if errors is None:
        return None
    finite = errors[np.isfinite(errors) & (True if chosen is None else chosen)]
    if not finite.size:
        return None
    values = np.percentile(finite, PERCENTILES)
    return Spread(
        count=int(finite.size),
        percentiles={percent: float(value) for percent, value in zip(PERCENTILES, values, strict=True)},
        rms=float(np.sqrt(np.mean(np.square(finite)))),
        max_abs=float(np.max(np.abs(finite))),
    )


def broken(errors: Floats, limits: Floats) -> Flags:
    """Where an error is larger than its limit. A missing error or limit claims nothing and breaks nothing."""
    with np.errstate(invalid="ignore"):
        return np.asarray(np.abs(errors) > limits)


def containment(errors: Floats | None, limits: Floats | None) -> Containment | None:
    """How often ``errors`` lay within ``limits`` [s]; None if either is missing."""
    if errors is None or limits is None:
        return None
    counted = np.isfinite(errors) & ~np.isnan(limits)
    errors, limits = errors[counted], limits[counted]
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.nan_to_num(np.abs(errors) / limits, nan=0.0, posinf=np.inf)
    largest = float(np.max(shares)) if shares.size else float("nan")
    return Containment(int(errors.size), int(np.count_nonzero(broken(errors, limits))), largest)


def table(run: Run) -> list[tuple[str, str]]:
    """The figures computed from the samples, as (name, text with unit)."""
    samples = run.samples
    rows = [("samples", count_text(samples.t_s.size))]
    found = spread(samples.error_s, connected(run))
    if found is not None:
        rows += _spread_rows(found)
    inside = containment(samples.error_s, samples.bound_s)
    if inside is not None and inside.count:
        rows.append(("inside the bound", share_text(inside.share)))
        rows.append(("largest error / bound", f"{number_text(inside.largest_share * 100.0)} %"))
    if samples.error_s is not None and found is not None:
        name, noise = samples.scatter
        likely = containment(samples.error_s - found.median, noise)
        if likely is not None and likely.count:
            rows.append((f"inside median ± {name}", f"{number_text(likely.share * 100.0)} %"))
    return rows


def clocks_table(run: Run) -> list[tuple[str, ...]]:
    """Each clock of a run that had several, ours first: name, median, interquartile range, 99 % of the sizes, largest."""
    every = {run.clock: run.samples, **run.others} if run.others else {}
    rows = []
    for name, samples in every.items():
        chosen = connected(replace(run, samples=samples))
        found = spread(samples.error_s, chosen)
        if found is None or samples.error_s is None:
            continue
        size = float(np.percentile(np.abs(samples.error_s[chosen & np.isfinite(samples.error_s)]), 99))
        rows.append((name, *(time_text(value) for value in (found.median, found.iqr, size, found.max_abs))))
    return rows


def _spread_rows(found: Spread) -> list[tuple[str, str]]:
    rows = [("connected", count_text(found.count))]
    rows += [(f"error, {percent} %", time_text(value)) for percent, value in found.percentiles.items()]
    return [
        *rows,
        ("interquartile range", time_text(found.iqr)),
        ("root mean square", time_text(found.rms)),
        ("largest", time_text(found.max_abs)),
    ]
