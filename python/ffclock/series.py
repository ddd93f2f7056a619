"""What every clock of a simulated run showed over time: the file of ``ffclock-lab sim run --series``, described in docs/sim.md."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
import polars as pl

from .runs import Event, Run, Samples, Summary, counter_against
from .tables import Flags, Floats, RunError

RATE_INTERVAL_S: Final = 1000.0
PREFERRED: Final = ("learned", "classic")

_TYPES: Final[dict[str, type[pl.DataType]]] = {
    "t_s": pl.Float64,
    "clock": pl.String,
    "error_s": pl.Float64,
    "bound_s": pl.Float64,
    "uncertainty_s": pl.Float64,
    "noise_s": pl.Float64,
    "counter": pl.UInt64,
    "difference_period_s": pl.Float64,
}


@dataclass(frozen=True)
class Series:
    """All clocks of one simulated run."""

    scenario: str
    about: str
    seed: int
    from_s: float
    """When the statistics begin [s]."""
    events: tuple[Event, ...]
    clocks: dict[str, Samples]
    trace: Path | None = None
    """The trace that was written beside it, if it is still there."""


def read_clocks(path: Path) -> Series:
    """Reads the whole file; :class:`RunError` says what is wrong with it."""
    remarks = _remarks(path)
    try:
        frame = pl.read_csv(path, schema_overrides=_TYPES, comment_prefix="#")
    except (pl.exceptions.PolarsError, OSError) as error:
        raise RunError(f"{path}: cannot be read as a series: {str(error).splitlines()[0]}") from error
    missing = [name for name in ("t_s", "clock", "error_s") if name not in frame.columns]
    if missing or frame.height == 0:
        raise RunError(f"{path}: has no {'rows' if not missing else 'column ' + ', '.join(missing)}")
    texts = dict(remarks)
    try:
        return Series(
            scenario=texts.get("scenario", path.stem),
            about=texts.get("about", ""),
            seed=int(texts.get("seed", "0")),
            from_s=float(texts.get("from_s", "0")),
            events=tuple(_event(key, text) for key, text in remarks if key in ("event", "load")),
            trace=_beside(path, texts.get("trace", "")),
            clocks={str(name): _samples(part) for (name,), part in frame.group_by(["clock"], maintain_order=True)},
        )
    except ValueError as error:
        raise RunError(f"{path}: {error}") from error


def run_of(path: Path, series: Series, clock: str = "") -> Run:
    """One clock of the run for a report, the others beside it; the feed-forward clock if none is named."""
    usual = next((name for name in PREFERRED if name in series.clocks), next(iter(series.clocks)))
    chosen = clock or usual
    if chosen not in series.clocks:
        raise RunError(f"{path}: has no clock {chosen}; it has {', '.join(series.clocks)}")
    summary = Summary(
        title=f"{series.scenario}: {series.about}",
        conditions=(f"simulated, seed {series.seed}", f"clock: {chosen}", "rate over 1000 s"),
        events=series.events,
        warm_up_s=series.from_s,
    )
    samples = series.clocks[chosen]
    with_rate = replace(samples, rate_error_ppm=rate_over(samples, RATE_INTERVAL_S))
    others = {name: samples for name, samples in series.clocks.items() if name != chosen}
    return Run(with_rate, summary, source=path, clock=chosen, others=others)


def rate_over(samples: Samples, interval_s: float) -> Floats | None:
    """The rate error of the absolute clock over the ``interval_s`` before each reading [ppm]; NaN before there is such an interval."""
    if samples.error_s is None:
        return None
    before = np.searchsorted(samples.t_s, samples.t_s - interval_s, side="right") - 1
    known = before >= 0
    past = np.where(known, before, 0)
    elapsed = np.where(known, samples.t_s - samples.t_s[past], np.nan)
    return np.asarray((samples.error_s - samples.error_s[past]) / elapsed * 1e6, dtype=np.float64)


def settled(samples: Samples, from_s: float) -> Flags:
    """The readings that count, from ``from_s`` on."""
    return np.asarray(samples.t_s >= from_s)


def _remarks(path: Path) -> list[tuple[str, str]]:
    found = []
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in file:
            if not line.startswith("#"):
                break
            key, equals, text = line[1:].strip().partition("=")
            if equals:
                found.append((key, text))
    return found


def _beside(path: Path, named: str) -> Path | None:
    """The trace as it was named, from here or from beside the series."""
    candidates = (Path(named), path.parent / Path(named).name) if named else ()
    return next((candidate for candidate in candidates if candidate.is_file()), None)


def _event(key: str, text: str) -> Event:
    begin, end, what = (*text.split(",", 2), "", "")[:3]
    length = float(end) - float(begin)
    return Event(t_s=float(begin), duration_s=length or None, text=what, counts=key == "load")


def _samples(frame: pl.DataFrame) -> Samples:
    def floats(name: str) -> Floats | None:
        if name not in frame.columns or frame[name].null_count() == frame.height:
            return None
        return frame[name].fill_null(float("nan")).to_numpy().astype(np.float64)

    times = frame["t_s"].to_numpy().astype(np.float64)
    has_counter = "counter" in frame.columns and not frame["counter"].null_count()
    counts = frame["counter"].to_numpy().astype(np.uint64) if has_counter else None
    return Samples(
        t_s=times,
        error_s=floats("error_s"),
        bound_s=floats("bound_s"),
        uncertainty_s=floats("uncertainty_s"),
        noise_s=floats("noise_s"),
        period_s=floats("difference_period_s"),
        counter_s=counter_against(times, counts),
    )
