"""Units that fit the size of a number: a plot in microseconds, not in 0.000001.

Times enter in seconds and rates in parts per million, as everywhere in ffclock's files; only what a person reads is scaled.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Scale:
    """A unit for display: ``shown = value * factor``."""

    name: str
    factor: float


_TIMES: Final = (Scale("s", 1.0), Scale("ms", 1e3), Scale("µs", 1e6), Scale("ns", 1e9))
_LENGTHS: Final = (Scale("d", 1.0 / 86400.0), Scale("h", 1.0 / 3600.0), Scale("min", 1.0 / 60.0))
# A run is labelled in a unit of which it has at least this many: 600 s are still seconds, 10 min are minutes.
_LENGTHS_FROM: Final = (4.0, 4.0, 10.0)
_RATES: Final = (Scale("ppm", 1.0), Scale("ppb", 1e3), Scale("ppt", 1e6))


def _fitting(size: float, scales: tuple[Scale, ...], default: Scale) -> Scale:
    if not math.isfinite(size) or size == 0.0:
        return default
    return next((scale for scale in scales if abs(size) * scale.factor >= 0.9995), scales[-1])


def time_scale(seconds: float) -> Scale:
    """The largest unit in which ``seconds`` is at least one; microseconds for zero and for what is not finite."""
    return _fitting(seconds, _TIMES, _TIMES[2])


def length_scale(seconds: float) -> Scale:
    """The unit for the time axis of a run that takes ``seconds``: days, hours, minutes, seconds, or a part of one."""
    long = (scale for scale, least in zip(_LENGTHS, _LENGTHS_FROM, strict=True) if seconds * scale.factor >= least)
    return next(long, None) or (time_scale(seconds) if 0.0 < seconds < 1.0 else _TIMES[0])


def rate_scale(ppm: float) -> Scale:
    """The largest unit in which ``ppm`` is at least one; ppm for zero and for what is not finite."""
    return _fitting(ppm, _RATES, _RATES[0])


def number_text(value: float) -> str:
    """Three significant digits, without an exponent for the numbers that people meet: ``1234``, ``12.3``, ``0.0123``."""
    if not math.isfinite(value):
        return "none" if math.isnan(value) else str(value)
    if value == 0.0:
        return "0"
    decimals = max(0, 2 - math.floor(math.log10(abs(value))))
    if decimals > 6 or abs(value) >= 1e9:
        return f"{value:.3g}"
    text = f"{value:.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def count_text(count: int) -> str:
    """A count with its thousands set apart: ``37 800``."""
    return f"{count:,}".replace(",", "\u202f")


def time_text(seconds: float) -> str:
    """A time with its unit: ``1.23 µs``."""
    if math.isnan(seconds):
        return "none"
    scale = time_scale(seconds)
    return f"{number_text(seconds * scale.factor)} {scale.name}"


def share_text(share: float) -> str:
    """A share as percent that says 100 % only when it is all."""
    if math.isnan(share):
        return "none"
    if share == 1.0:
        return "100 %"
    # Rounding up to 100 would hide the very samples that matter.
    return f"{min(share * 100.0, 99.9999):.6g} %"
