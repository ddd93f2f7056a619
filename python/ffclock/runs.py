"""A recorded run: what the clock said and how far it was off, as it stands on disk.

Two kinds of input are understood (docs/python.md describes them): the directory of a run, with ``samples.csv``, and optionally
``exchanges.csv`` and ``summary.json``; and a single CSV file, either such samples or the output of ``ffclock replay --output``.
Missing columns are ``None`` and missing cells are NaN, never zero. What cannot be understood is a :class:`RunError` that names the
file, the line and the column.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Texts = npt.NDArray[np.str_]

SYNCHRONISED = "synchronised"


class RunError(ValueError):
    """The input is not a run: the message says which file, where, and what was expected."""


@dataclass(frozen=True)
class Samples:
    """What a reader saw, one row per reading. All arrays have the same length."""

    t_s: Floats
    """Seconds since the start of the run."""
    error_s: Floats | None = None
    """Clock minus truth [s]."""
    bound_s: Floats | None = None
    """Largest possible error that the clock claimed [s]."""
    uncertainty_s: Floats | None = None
    """Likely error that the clock claimed [s]."""
    status: Texts | None = None
    """Status in words, in lower case with hyphens."""
    period_s: Floats | None = None
    """Seconds per tick of the counter."""
    rate_error_ppm: Floats | None = None
    """Clock's rate minus the true rate [ppm]."""


@dataclass(frozen=True)
class Exchanges:
    """Requests and replies, one row each. All arrays have the same length."""

    t_s: Floats
    """Seconds since the start of the run."""
    round_trip_s: Floats | None = None
    """Round trip without the server's own time [s]."""
    floor_s: Floats | None = None
    """The smallest round trip of the path, as the clock believed [s]."""
    forward_s: Floats | None = None
    """True delay to the server [s]."""
    backward_s: Floats | None = None
    """True delay from the server [s]."""
    used: Flags | None = None
    """Whether the exchange entered the estimate."""


@dataclass(frozen=True)
class Event:
    """Something that was done to the clock during the run."""

    t_s: float
    text: str
    duration_s: float | None = None

    @property
    def end_s(self) -> float:
        """When it was over; the same moment if it had no duration."""
        return self.t_s + (self.duration_s or 0.0)


@dataclass(frozen=True)
class Figure:
    """One measured figure beside its goal, as the run itself stated it."""

    name: str
    value: float | str | None
    unit: str = ""
    goal: float | str | None = None
    met: bool | None = None


@dataclass(frozen=True)
class Summary:
    """What the run says about itself."""

    title: str
    conditions: tuple[str, ...] = ()
    figures: tuple[Figure, ...] = ()
    events: tuple[Event, ...] = ()
    warm_up_s: float = 0.0
    """Until then the run does not count as connected."""


@dataclass(frozen=True)
class Run:
    """Everything that a report is made of."""

    samples: Samples
    summary: Summary
    exchanges: Exchanges | None = None
    source: Path = field(default_factory=Path)


def read_run(path: Path) -> Run:
    """Reads the run in the directory ``path``, or the CSV file ``path``; :class:`RunError` if it is neither."""
    if not path.exists():
        raise RunError(f"{path}: no such file or directory")
    if path.is_dir():
        return _read_directory(path)
    table = _Table.read(path)
    if "counter" in table.columns and "utc_ns" in table.columns:
        return _replay(table)
    return Run(_samples(table), Summary(title=path.stem), source=path)


def _read_directory(directory: Path) -> Run:
    samples, exchanges, summary = (directory / name for name in ("samples.csv", "exchanges.csv", "summary.json"))
    if not samples.is_file():
        raise RunError(f"{directory}: has no samples.csv")
    return Run(
        samples=_samples(_Table.read(samples)),
        exchanges=_exchanges(_Table.read(exchanges, may_be_empty=True)) if exchanges.is_file() else None,
        summary=read_summary(summary) if summary.is_file() else Summary(title=directory.resolve().name),
        source=directory,
    )


class _Table:
    """A CSV file as text columns; numbers are parsed on demand so that a bad cell can be named."""

    def __init__(self, path: Path, frame: pl.DataFrame) -> None:
        self.path = path
        self.columns = frame.columns
        self._frame = frame

    @classmethod
    def read(cls, path: Path, *, may_be_empty: bool = False) -> _Table:
        try:
            frame = pl.read_csv(path, infer_schema=False, comment_prefix="#")
        except pl.exceptions.NoDataError:
            raise RunError(f"{path}: empty; a header line with column names is needed") from None
        except (pl.exceptions.PolarsError, OSError, UnicodeDecodeError) as error:
            raise RunError(f"{path}: cannot be read as CSV: {str(error).splitlines()[0]}") from error
        frame = frame.rename({name: name.strip() for name in frame.columns})
        if frame.height == 0 and not may_be_empty:
            raise RunError(f"{path}: has a header but no rows")
        return cls(path, frame)

    def texts(self, name: str) -> Texts | None:
        if name not in self.columns:
            return None
        return self._frame[name].fill_null("").str.strip_chars().to_numpy().astype(np.str_)

    def _cast(self, name: str, kind: type[pl.DataType], meaning: str) -> pl.Series | None:
        if name not in self.columns:
            return None
        text = self._frame[name].str.strip_chars()
        text = text.set(text == "", None)
        values = text.cast(kind, strict=False)
        bad = (values.is_null() & text.is_not_null()).arg_true()
        if len(bad):
            row = int(bad[0])
            # Line 1 is the header. Comment lines are not counted: the data row says enough to find it.
            raise RunError(f"{self.path}: line {row + 2}, column {name}: {text[row]!r} is not {meaning}")
        return values

    def floats(self, name: str) -> Floats | None:
        values = self._cast(name, pl.Float64, "a number")
        return None if values is None else values.fill_null(float("nan")).to_numpy().astype(np.float64)

    def flags(self, name: str) -> Flags | None:
        texts = self.texts(name)
        if texts is None:
            return None
        lowered = np.char.lower(texts)
        known = np.isin(lowered, ["true", "false", "1", "0", "yes", "no", ""])
        if not known.all():
            row = int(np.argmin(known))
            raise RunError(f"{self.path}: line {row + 2}, column {name}: {str(texts[row])!r} is neither true nor false")
        return np.isin(lowered, ["true", "1", "yes"])

    def times(self, name: str) -> Floats:
        times = self.floats(name)
        if times is None:
            raise RunError(f"{self.path}: has no column {name}; its columns are {', '.join(self.columns)}")
        if not np.isfinite(times).all():
            row = int(np.argmin(np.isfinite(times)))
            raise RunError(f"{self.path}: line {row + 2}, column {name}: every row needs a time")
        return times

    def seconds_since_first(self, name: str) -> Floats:
        """From integer nanoseconds; subtracted as integers, because a float of today's date has steps of 256 ns."""
        nanos = self._cast(name, pl.Int64, "a whole number of nanoseconds")
        if nanos is None or nanos.null_count():
            raise RunError(f"{self.path}: column {name} must be given in every row")
        return np.asarray((nanos - nanos[0]).to_numpy() / 1e9, dtype=np.float64)


def status_word(text: str) -> str:
    """One spelling for a status, whichever program wrote it: ``FreeRunning``, ``free running`` and ``free_running`` are one."""
    spaced = "".join(f"-{c}" if c.isupper() and i else c for i, c in enumerate(text))
    return "-".join(spaced.lower().replace("_", " ").replace("-", " ").split())


def _statuses(table: _Table) -> Texts | None:
    texts = table.texts("status")
    if texts is None:
        return None
    words = {text: status_word(text) for text in np.unique(texts).tolist()}
    return np.array([words[text] for text in texts.tolist()], dtype=np.str_)


def _samples(table: _Table) -> Samples:
    return Samples(
        t_s=table.times("t_s"),
        error_s=table.floats("error_s"),
        bound_s=table.floats("bound_s"),
        uncertainty_s=table.floats("uncertainty_s"),
        status=_statuses(table),
        period_s=table.floats("period_s"),
        rate_error_ppm=table.floats("rate_error_ppm"),
    )


def _exchanges(table: _Table) -> Exchanges:
    return Exchanges(
        t_s=table.times("t_s"),
        round_trip_s=table.floats("round_trip_s"),
        floor_s=table.floats("floor_s"),
        forward_s=table.floats("forward_s"),
        backward_s=table.floats("backward_s"),
        used=table.flags("used"),
    )


def _replay(table: _Table) -> Run:
    t_s = table.seconds_since_first("utc_ns")
    samples = Samples(
        t_s=t_s,
        error_s=table.floats("error_s"),
        bound_s=table.floats("bound_s"),
        uncertainty_s=table.floats("uncertainty_s"),
        status=_statuses(table),
        period_s=table.floats("period_s"),
        rate_error_ppm=table.floats("rate_error_ppm"),
    )
    round_trips, floors = table.floats("round_trip_s"), table.floats("floor_s")
    seen = round_trips is not None or floors is not None
    exchanges = Exchanges(t_s=t_s, round_trip_s=round_trips, floor_s=floors) if seen else None
    return Run(samples, Summary(title=f"Replay of {table.path.name}"), exchanges, source=table.path)


def read_summary(path: Path) -> Summary:
    """Reads ``summary.json``; unknown keys are ignored, wrong types are a :class:`RunError`."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise RunError(f"{path}: {error}") from error
    if not isinstance(data, dict):
        raise RunError(f"{path}: an object is expected at the top")
    try:
        return Summary(
            title=str(data.get("title") or path.resolve().parent.name),
            conditions=_conditions(data.get("conditions")),
            figures=tuple(_figure(entry) for entry in _entries(data, "figures")),
            events=tuple(_event(entry) for entry in _entries(data, "events")),
            warm_up_s=float(data.get("warm_up_s") or 0.0),
        )
    except (TypeError, ValueError) as error:
        raise RunError(f"{path}: {error}") from error


def _entries(data: Mapping[str, Any], key: str) -> Sequence[Mapping[str, Any]]:
    entries = data.get(key) or []
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise ValueError(f"{key} must be a list of objects")
    return entries


def _conditions(value: object) -> tuple[str, ...]:
    if not value:
        return ()
    if isinstance(value, Mapping):
        return tuple(f"{name}: {text}" for name, text in value.items())
    if isinstance(value, list):
        return tuple(str(line) for line in value)
    return (str(value),)


def _figure(entry: Mapping[str, Any]) -> Figure:
    if "name" not in entry:
        raise ValueError("a figure has no name")
    met = entry.get("met")
    return Figure(
        name=str(entry["name"]),
        value=_number_or_text(entry.get("value")),
        unit=str(entry.get("unit") or ""),
        goal=_number_or_text(entry.get("goal")),
        met=met if isinstance(met, bool) else None,
    )


def _number_or_text(value: object) -> float | str | None:
    if value is None:
        return None
    if isinstance(value, bool):
        return "yes" if value else "no"
    return float(value) if isinstance(value, int | float) else str(value)


def _event(entry: Mapping[str, Any]) -> Event:
    if "t_s" not in entry:
        raise ValueError("an event has no t_s")
    duration = entry.get("duration_s")
    return Event(
        t_s=float(entry["t_s"]),
        text=str(entry.get("text") or ""),
        duration_s=None if duration is None else float(duration),
    )
