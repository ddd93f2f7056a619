"""A recorded run: what the clock said and how far it was off, as stored on disk.

Two kinds of input are understood (docs/python.md describes them): the directory of a run, with ``samples.csv``, and optionally
``exchanges.csv`` and ``summary.json``; and a single CSV file, either such samples or the output of ``ffclock-lab replay --output``.
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

from .tables import Counts, Flags, Floats, RunError, Table, Texts

SYNCHRONISED = "synchronised"


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
    """Combined standard uncertainty (k = 1) that the clock claimed [s]."""
    noise_s: Floats | None = None
    """The part of it that exchanges show [s]; where it is not known, that is all of the uncertainty."""
    status: Texts | None = None
    """Status in words, in lower case with hyphens."""
    period_s: Floats | None = None
    """Seconds per tick of the counter."""
    rate_error_ppm: Floats | None = None
    """Clock's rate minus the true rate [ppm]."""
    counter_s: Floats | None = None
    """The raw counter at its mean rate over the run, minus the true time, or minus the clock where no truth is known [s]."""

    @property
    def scatter(self) -> tuple[str, Floats | None]:
        """What the clock claimed of errors around their median, with its name: the noise [s]."""
        return ("uncertainty", self.uncertainty_s) if self.noise_s is None else ("noise", self.noise_s)


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
    offset_s: Floats | None = None
    """Clock minus server in the middle of the exchange, as if both ways took equally long [s]."""


@dataclass(frozen=True)
class Server:
    """One of several servers of a run: what it answered, and what the clock made of it."""

    t_s: Floats
    """Of its answers, seconds since the start of the run."""
    error_s: Floats
    """Its time minus the true time in the middle of each exchange, as if both ways took equally long [s]."""
    reach_s: Floats
    """The largest size that ``error_s`` has if the server's claim is true [s]."""
    asked_s: Floats
    """When the clock was asked what it says of the server, seconds since the start of the run."""
    standings: Texts
    """What it said then, in words."""


@dataclass(frozen=True)
class Event:
    """Something that was done to the clock during the run."""

    t_s: float
    text: str
    duration_s: float | None = None
    counts: bool = False
    """Whether the clock is judged by what it shows meanwhile: under more load, but connected."""

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
    clock: str = ""
    """The name of the clock that the run is of."""


@dataclass(frozen=True)
class Run:
    """Everything that a report is made of."""

    samples: Samples
    summary: Summary
    exchanges: Exchanges | None = None
    source: Path = field(default_factory=Path)
    clock: str = ""
    """Which clock the samples are of, where the run had several."""
    others: Mapping[str, Samples] = field(default_factory=dict)
    """The other clocks of the same run by name."""
    servers: Mapping[str, Server] = field(default_factory=dict)
    """Where the clock has several servers, each by its name, in the order of their names."""


def read_run(path: Path) -> Run:
    """Reads the run in the directory ``path``, or the CSV file ``path``; :class:`RunError` if it is neither."""
    if not path.exists():
        raise RunError(f"{path}: no such file or directory")
    if path.is_dir():
        return _read_directory(path)
    table = Table.read(path)
    if "counter" in table.columns and "utc_ns" in table.columns:
        return _replay(table)
    return Run(_samples(table), Summary(title=path.stem), source=path)


def _read_directory(directory: Path) -> Run:
    samples, exchanges, summary = (directory / name for name in ("samples.csv", "exchanges.csv", "summary.json"))
    if not samples.is_file():
        raise RunError(f"{directory}: has no samples.csv")
    table = Table.read(exchanges, may_be_empty=True) if exchanges.is_file() else None
    stated = read_summary(summary) if summary.is_file() else Summary(title=directory.resolve().name)
    others = sorted(directory.glob("samples-*.csv"))
    return Run(
        samples=_samples(Table.read(samples)),
        exchanges=_exchanges(table, table.times("t_s")) if table is not None else None,
        summary=stated,
        source=directory,
        clock=stated.clock,
        others={path.stem.removeprefix("samples-"): _samples(Table.read(path)) for path in others},
        servers=_servers(directory),
    )


def _servers(directory: Path) -> dict[str, Server]:
    """The servers of ``servers.csv``, with what ``votes.csv`` says of each, where these files are there."""
    path, votes = directory / "servers.csv", directory / "votes.csv"
    if not path.is_file():
        return {}
    answers = Table.read(path)
    t_s, names, errors, reaches = answers.times("t_s"), answers.texts("server"), answers.floats("error_s"), answers.floats("reach_s")
    if names is None or errors is None or reaches is None:
        raise RunError(f"{path}: needs the columns server, error_s and reach_s")
    asked, voters, standings = np.empty(0), np.empty(0, dtype=np.str_), np.empty(0, dtype=np.str_)
    if votes.is_file():
        table = Table.read(votes, may_be_empty=True)
        asked, said, whose = table.times("t_s"), table.texts("standing"), table.texts("server")
        if said is None or whose is None:
            raise RunError(f"{votes}: needs the columns server and standing")
        voters, standings = whose, said
    found = {}
    for name in np.unique(names).tolist():
        of, about = names == name, voters == name
        found[name] = Server(t_s[of], errors[of], reaches[of], asked[about], standings[about])
    return found


def status_word(text: str) -> str:
    """One spelling for a status: ``WarmingUp``, ``warming up`` and ``warming_up`` are one; ``free-running`` is the old word of holdover."""
    spaced = "".join(f"-{c}" if c.isupper() and i else c for i, c in enumerate(text))
    word = "-".join(spaced.lower().replace("_", " ").replace("-", " ").split())
    return "holdover" if word == "free-running" else word


def _statuses(table: Table) -> Texts | None:
    texts = table.texts("status")
    if texts is None:
        return None
    words = {text: status_word(text) for text in np.unique(texts).tolist()}
    return np.array([words[text] for text in texts.tolist()], dtype=np.str_)


def _samples(table: Table) -> Samples:
    return Samples(
        t_s=table.times("t_s"),
        error_s=table.floats("error_s"),
        bound_s=table.floats("bound_s"),
        uncertainty_s=table.floats("uncertainty_s"),
        noise_s=table.floats("noise_s"),
        status=_statuses(table),
        period_s=table.floats("period_s"),
        rate_error_ppm=table.floats("rate_error_ppm"),
    )


def _exchanges(table: Table, t_s: Floats) -> Exchanges:
    return Exchanges(
        t_s=t_s,
        round_trip_s=table.floats("round_trip_s"),
        floor_s=table.floats("floor_s"),
        forward_s=table.floats("forward_s"),
        backward_s=table.floats("backward_s"),
        used=table.flags("used"),
        offset_s=table.floats("offset_s"),
    )


def _replay(table: Table) -> Run:
    t_s = table.seconds_since_first("utc_ns")
    errors = table.floats("error_s")
    samples = Samples(
        t_s=t_s,
        error_s=errors,
        bound_s=table.floats("bound_s"),
        uncertainty_s=table.floats("uncertainty_s"),
        noise_s=table.floats("noise_s"),
        status=_statuses(table),
        period_s=table.floats("period_s"),
        rate_error_ppm=table.floats("rate_error_ppm"),
        counter_s=counter_against(t_s - np.nan_to_num(errors) if errors is not None else t_s, table.counts("counter")),
    )
    round_trips, floors = table.floats("round_trip_s"), table.floats("floor_s")
    seen = round_trips is not None or floors is not None
    exchanges = Exchanges(t_s=t_s, round_trip_s=round_trips, floor_s=floors) if seen else None
    return Run(samples, Summary(title=f"Replay of {table.path.name}"), exchanges, source=table.path)


def read_exchanges(path: Path) -> Exchanges:
    """Reads what ``ffclock-lab replay --exchanges`` wrote; times are seconds since the first of its rows."""
    table = Table.read(path, may_be_empty=True)
    return _exchanges(table, table.seconds_since_first("utc_ns"))


def counter_against(t_s: Floats, counts: Counts | None) -> Floats | None:
    """The counter at its mean rate minus the time ``t_s`` [s]; None without a counter that went on."""
    if counts is None or t_s.size < 3 or not np.isfinite(t_s).all():
        return None
    if not (counts[1:] > counts[:-1]).all():
        # A new epoch begins a new count, and nothing joins the two.
        return None
    ticks = (counts - counts[0]).astype(np.float64)
    # The mean rate between the ends: what is left is what the oscillator did in between.
    return np.asarray(ticks * ((t_s[-1] - t_s[0]) / ticks[-1]) - (t_s - t_s[0]), dtype=np.float64)


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
            clock=str(data.get("clock") or ""),
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
