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
from scipy.optimize import minimize
from scipy.stats import gamma, lomax

from ..tables import Floats, RunError

LATE_US: Final = 50.0
"""What waited longer was held back by something else than the host's usual work."""

_STEP_US: Final = 0.3
"""No delay is known better: a density at its least would have no end."""

_SIMPLEXES: Final = 6

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
        """For each way what is not late, and how much is."""
        return {"there": _moments(self.there), "back": _moments(self.back)}

    def likeliest(self) -> dict[str, float]:
        """A gamma law for each way and, for a share of both, a heavy tail in its place. A world adds the two (docs/sim.md)."""
        delays = [way - way.min() + _STEP_US for way in (self.there, self.back)]

        def unlikelihood(logarithms: Floats) -> float:
            gammas, (tail, scale, share) = np.exp(logarithms[:4]).reshape(2, 2), np.exp(logarithms[4:])
            if share > 0.6 or not 1.05 <= tail <= 4.0:
                return 1e12
            densities = [
                (1 - share) * gamma.pdf(way, shape, scale=mean / shape) + share * lomax.pdf(way, tail, scale=scale)
                for way, (shape, mean) in zip(delays, gammas, strict=True)
            ]
            return -float(sum(np.log(density + 1e-12).sum() for density in densities))

        found = np.log([1.0, 4.0, 2.0, 8.0, 1.5, 30.0, 0.1])
        # Each begins with a new simplex: one that has shrunk in a valley stays there.
        for _ in range(_SIMPLEXES):
            found = minimize(unlikelihood, found, method="Nelder-Mead", options={"maxfev": 1000}).x
        shape_there, there, shape_back, back, tail, scale, share = np.exp(found).tolist()
        return {
            "there_shape": shape_there,
            "there_mean_us": there - _STEP_US,
            "back_shape": shape_back,
            "back_mean_us": back - _STEP_US,
            "tail_shape": tail,
            "tail_mean_us": scale / (tail - 1.0),
            "tail_share": share,
        }


def _moments(delays: Floats) -> dict[str, float]:
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
