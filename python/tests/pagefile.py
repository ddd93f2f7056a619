"""Writes clock pages byte by byte, from docs/page.md alone: a second implementation of the document, in exact fractions.

It shares no code with the writer in Rust, so that a reader which agrees with both has understood the document.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, floor
from pathlib import Path
from typing import Final

SECOND: Final = 10**9
_WORD: Final = 1 << 64
_PAGE_WORDS: Final = 512
_MISSING: Final = _WORD - 1
_CHECK_SEED: Final = 0x6666636C6F636B31
_SLOTS: Final = 32
_STRIDE: Final = 32
_TAG: Final = 6
_LATEST: Final = 7

UNSYNCHRONISED, WARMING_UP, HOLDOVER, SYNCHRONISED = 1, 2, 3, 4
MONOTONIC_RAW: Final = 2

# The last leap second: TAI - UTC became 37 s at the end of 2016.
_LEAP_AT: Final = 1_483_228_800 + 36


def counter_now() -> int:
    """The counter ``monotonic-raw``, whose ticks are ns."""
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)


@dataclass(frozen=True)
class Estimate:
    """What a page says. Times in ns, rates as fractions; the defaults are a good clock that reads the system's present time."""

    counter: int
    tai_ns: int
    period: Fraction = Fraction(1, SECOND)
    bound_ns: int = 20_000
    bound_growth: Fraction = Fraction(1, 10**6)
    bound_strict_ns: int | None = None
    uncertainty_ns: int = 1_000
    noise_ns: int = 400
    """Stated with the vote of the servers."""
    uncertainty_growth: Fraction = Fraction(1, 10**7)
    difference_period: Fraction = Fraction(1, SECOND)
    difference_bound: Fraction = Fraction(1, 10**7)
    difference_uncertainty: Fraction | None = None
    short: int = 0
    """Ticks; stated with the uncertainty of the difference clock. Of a longer interval no way is known to be the better one."""
    status: int = SYNCHRONISED
    counter_id: int = MONOTONIC_RAW
    epoch: int = 7
    epoch_begin: int = 0
    valid_ticks: int = 3600 * SECOND
    window: int | None = None

    @classmethod
    def present(cls, **changes: object) -> Estimate:
        """An estimate made now, at the system's time."""
        now = cls(counter=counter_now(), tai_ns=time.time_ns() + 37 * SECOND)
        return replace(now, **changes)  # type: ignore[arg-type]


def _period_parts(period: Fraction) -> tuple[int, int]:
    """``period = mantissa * 2^-(64 + shift)`` with the top bit of the mantissa set."""
    for shift in range(60):
        mantissa = floor(period * _WORD * 2**shift)
        if mantissa >> 63:
            return mantissa, shift
    raise ValueError(period)


def _sum(words: list[int]) -> int:
    return (_CHECK_SEED + sum(words)) % _WORD


def _header(boot: int | None) -> dict[int, int]:
    bits = 2**128 - 1 if boot is None else boot
    words = [int.from_bytes(b"ffclock\0", "little"), 1, 8 * _PAGE_WORDS, bits >> 64, bits % _WORD]
    return dict(enumerate([*words, _sum(words)]))


def _per_tick(growth: Fraction, period: Fraction) -> int:
    return ceil(growth * period * 2**96)


def _tag(estimate: Estimate) -> int:
    """The counter and its epoch, as a slot and the header name them."""
    return estimate.counter_id | estimate.epoch << 8


def _error(nanoseconds: int) -> int:
    """An error figure, and the unit that a reader's rounding may take away."""
    return ceil(Fraction(nanoseconds, SECOND) * 2**32) + 1


def _window(estimate: Estimate) -> int:
    """For how many ticks nothing special happens."""
    if estimate.window is not None:
        return estimate.window
    if estimate.status == UNSYNCHRONISED or (estimate.counter - estimate.epoch_begin) % _WORD >> 63:
        return 0
    ticks = estimate.valid_ticks + 1
    to_leap = _LEAP_AT - Fraction(estimate.tai_ns, SECOND)
    return min(ticks, floor(to_leap / estimate.period)) if to_leap > 0 else ticks


def _slot(sequence: int, estimate: Estimate) -> list[int]:
    mantissa, shift = _period_parts(estimate.period)
    difference_mantissa, difference_shift = _period_parts(estimate.difference_period)
    tai_s, fraction_ns = divmod(estimate.tai_ns, SECOND)
    offset = 36 if tai_s < _LEAP_AT else 37
    slot = [0] * 24
    slot[0] = sequence
    slot[1] = shift | difference_shift << 8 | estimate.status << 16 | offset << 32
    slot[2] = estimate.counter
    slot[3] = _window(estimate)
    slot[4] = (tai_s - offset) % _WORD
    slot[5] = floor(Fraction(fraction_ns, SECOND) * _WORD)
    slot[6] = mantissa
    slot[7] = _error(estimate.bound_ns)
    slot[8] = _per_tick(estimate.bound_growth, estimate.period)
    slot[9] = _error(estimate.uncertainty_ns)
    slot[10] = _per_tick(estimate.uncertainty_growth, estimate.period)
    slot[11] = _tag(estimate)
    slot[12] = _sum(slot[0:12])
    slot[13] = estimate.epoch_begin
    slot[14] = (estimate.counter + estimate.valid_ticks) % _WORD
    slot[15] = difference_mantissa
    slot[16] = ceil(estimate.difference_bound * _WORD)
    slot[17] = _sum([slot[0], slot[1], slot[11], *slot[13:17]])
    slot[18] = _LEAP_AT
    slot[19] = 36 | 37 << 32
    slot[20] = ceil(estimate.bound_growth * _WORD)
    slot[21] = ceil(estimate.uncertainty_growth * _WORD)
    slot[22] = _MISSING
    slot[23] = _sum(slot[0:23])
    return slot + _vote(sequence, estimate) + _more(sequence, estimate)


def _vote(sequence: int, estimate: Estimate) -> list[int]:
    """The words about the vote of the servers, which earlier writers leave at 0; of three servers, one may be false."""
    if estimate.bound_strict_ns is None:
        return [0] * 5
    growth = estimate.bound_growth
    words = [
        _error(estimate.bound_strict_ns),
        _per_tick(growth, estimate.period),
        ceil(growth * _WORD),
        3 | 1 << 8 | 3 << 16 | _error(estimate.noise_ns) << 24,
    ]
    return [*words, _sum([sequence, *words])]


def _more(sequence: int, estimate: Estimate) -> list[int]:
    """The words that were added for intervals, which earlier writers leave at 0."""
    if estimate.difference_uncertainty is None:
        return [0] * 3
    words = [ceil(estimate.difference_uncertainty * _WORD), estimate.short]
    return [*words, _sum([sequence, *words])]


def page_words(estimate: Estimate | None, sequence: int = 2, boot: int | None = None) -> dict[int, int]:
    """The words of a page that are not zero; an empty page without an estimate."""
    words = _header(boot)
    if estimate is not None:
        begin = _SLOTS + ((sequence >> 1) & 1) * _STRIDE
        words |= {begin + place: word for place, word in enumerate(_slot(sequence, estimate))}
        words |= {_TAG: _tag(estimate), _LATEST: sequence}
    return words


def page_bytes(words: Mapping[int, int]) -> bytes:
    """A page of 4096 bytes from its words."""
    return struct.pack(f"={_PAGE_WORDS}Q", *(words.get(place, 0) for place in range(_PAGE_WORDS)))


def write_page(path: Path, estimate: Estimate | None, sequence: int = 2, boot: int | None = None) -> Path:
    """Replaces the content of ``path`` in place, so that a reader that has it mapped sees the change."""
    return overwrite(path, page_words(estimate, sequence, boot))


def overwrite(path: Path, words: Mapping[int, int]) -> Path:
    """Puts a page into ``path`` without ever cutting the file off: readers may have it mapped."""
    with path.open("r+b" if path.exists() else "xb") as file:
        file.write(page_bytes(words))
    return path
