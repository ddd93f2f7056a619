"""What the host adds to the delays of a live run's router.

These are the stamps that an ffclockd recorded, in the host's time, less the delay that the router had to give each message. The files are
those of ``ffclock-lab live run`` (docs/live.md) and of docs/trace.md.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from ..tables import Floats, RunError

LATE_US: Final = 50.0
"""What waited longer was held back by something else than the host's usual work."""

_START_S: Final = 30.0
"""While all daemons start, messages wait for them."""

_TAI_MINUS_UTC_S: Final = 37
_EXCHANGE: Final = 1
_RECORDS_AT: Final = 32

Ticks = npt.NDArray[np.int64]


@dataclass(frozen=True)
class HostDelays:
    """Delays beside the router's, one for each message [us]."""

    there: Floats
    back: Floats

    @classmethod
    def pooled(cls, several: Sequence[HostDelays]) -> HostDelays:
        """Those of several runs together."""
        return cls(*(np.concatenate([getattr(one, way) for one in several]) for way in ("there", "back")))

    def figures(self) -> dict[str, dict[str, float]]:
        """For each way the law of what is not late, and how much is."""
        return {"there": _law(self.there), "back": _law(self.back)}


def _law(delays: Floats) -> dict[str, float]:
    prompt = delays[delays <= LATE_US]
    if prompt.size == 0:
        raise RunError("every message was late: this is no host's law")
    return {
        "messages": float(delays.size),
        "least_us": float(prompt.min()),
        "mean_us": float(prompt.mean()),
        "deviation_us": float(prompt.std()),
        "late": float(np.mean(delays > LATE_US)),
        "largest_us": float(delays.max()),
    }


def read(run: Path, contestant: str) -> HostDelays | None:
    """Of the exchanges that this contestant recorded, from half a minute after its start on; None where it recorded none."""
    recordings = sorted((run / contestant).glob("*.fftrace"))
    exchanges = [row for recording in recordings for row in _exchanges(recording)]
    if not exchanges:
        return None
    ticks_and_times = np.array(exchanges, dtype=np.int64).T
    oscillator, begin = _oscillator(run / contestant / "oscillator")
    sent, received = (oscillator(ticks) for ticks in ticks_and_times[:2])
    # As integers: a float of UTC has steps of 256 ns.
    came, left = ((times - begin).astype(np.float64) for times in ticks_and_times[2:])
    later = sent > sent[0] + _START_S * 1e9
    router = run / "router" / "path"
    given = _path(router, begin) if router.exists() else lambda times, _: np.zeros_like(times)
    there, back = came - sent - given(sent, 0), received - left - given(left, 1)
    return HostDelays(there[later] / 1e3, back[later] / 1e3)


def _exchanges(path: Path) -> list[tuple[int, int, int, int]]:
    """Ta and Tf [ticks], Tb and Te [ns of UTC]."""
    text = path.read_bytes()
    size, length = struct.unpack_from("<II", text, 16)
    rows = []
    for at in range(_RECORDS_AT + length, len(text) - size + 1, size):
        if text[at] != _EXCHANGE:
            continue
        ticks = struct.unpack_from("<QQ", text, at + 24)
        times = (int.from_bytes(text[at + place : at + place + 16], "little", signed=True) for place in (48, 64))
        came, left = ((time * 10**9 >> 64) - _TAI_MINUS_UTC_S * 10**9 for time in times)
        rows.append((*ticks, came, left))
    return rows


def _oscillator(path: Path) -> tuple[Callable[[Ticks], Floats], int]:
    """A function from the raw counter to the host's time [ns since the first knot], and the first knot [ns of UTC]."""
    _, origin, raw, interval, knots = _numbers(path, b"FFLIVEO1", 5)
    phase = np.frombuffer(path.read_bytes(), np.float64, knots, 40)
    host = np.arange(knots) * float(interval)
    counts = host + phase
    return lambda ticks: np.interp((ticks - raw).astype(np.float64), counts, host), origin


def _path(path: Path, begin: int) -> Callable[[Floats, int], Floats]:
    """What the router had to give a message of one way [ns] at times since ``begin``."""
    _, origin, slot, slots = _numbers(path, b"FFLIVEP1", 4)
    delays = np.frombuffer(path.read_bytes(), np.uint32, 2 * slots, 32).reshape(slots, 2)

    def given(times: Floats, way: int) -> Floats:
        places = np.clip((times + float(begin - origin)) // slot, 0, slots - 1).astype(np.intp)
        return np.asarray(delays[places, way], dtype=np.float64)

    return given


def _numbers(path: Path, magic: bytes, count: int) -> tuple[int, ...]:
    text = path.read_bytes()
    if text[:8] != magic or len(text) < 8 * count:
        raise RunError(f"{path}: not a file of the live laboratory")
    return struct.unpack_from(f"<{count}q", text)
