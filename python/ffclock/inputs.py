"""Reads all inputs of a report as one :class:`Run`: directories, samples, replays, traces and simulated runs.

The first bytes of a file decide its kind, as in ``ffclock-lab replay``. The command ``ffclock-lab`` replays traces: it alone knows their
formats.
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from .program import Program
from .runs import Event, Exchanges, Run, read_exchanges, read_run
from .series import RATE_INTERVAL_S, rate_over, read_clocks, run_of
from .tables import RunError

ESTIMATORS: Final = ("learned", "classic")
_SHIFTS_SHOWN: Final = 12
_HEAD_BYTES: Final = 65536
_PACKED: Final = (b"ffclock trace ", b"\x1f\x8b", b"\x28\xb5\x2f\xfd")


@dataclass(frozen=True)
class Wishes:
    """Which part of the input is wanted; empty means the default."""

    clock: str = ""
    """Which clock of a simulated run."""
    estimator: str = ""
    """With which algorithm a trace is replayed."""
    ffclock_lab: Path | None = None
    """The command that replays it."""


def read_input(path: Path, wishes: Wishes) -> Run:
    """Reads ``path``; :class:`RunError` if it is nothing that a report can be made of, ProgramError if a trace cannot be replayed."""
    if not path.exists():
        raise RunError(f"{path}: no such file or directory")
    if path.is_dir():
        return read_run(path)
    kind = _kind(path)
    if kind == "series":
        return _simulated(path, wishes)
    if kind == "trace":
        return _replayed(path, wishes)
    if kind == "result":
        return _simulated_again(path, wishes)
    return read_run(path)


def _kind(path: Path) -> str:
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    if head.startswith(_PACKED):
        return "trace"
    lines = [line.strip() for line in head.decode("utf-8", "replace").splitlines()]
    first = next((line for line in lines if line and not line.startswith(("#", "%"))), "")
    if first.startswith("{"):
        return "result"
    columns = {name.strip().strip('"').lower() for name in first.split(",")}
    if {"t_s", "clock"} <= columns:
        return "series"
    # Tables of ours have commas; the recordings of other programs have blanks.
    is_trace = {"ta", "tf"} <= columns or (bool(first) and "," not in first and len(first.split()) >= 4)
    return "trace" if is_trace else "samples"


def _replayed(path: Path, wishes: Wishes) -> Run:
    run, seen, report = _replay(path, wishes)
    return _with_trace(replace(run, source=path), seen, report)


def _replay(path: Path, wishes: Wishes) -> tuple[Run, Exchanges, dict[str, Any]]:
    program = Program.find(wishes.ffclock_lab)
    chosen = ["--estimator", wishes.estimator] if wishes.estimator else []
    with tempfile.TemporaryDirectory(prefix="ffclock-report-") as place:
        clock, exchanges = Path(place) / "clock.csv", Path(place) / "exchanges.csv"
        report = program.json(["replay", *chosen, "--output", str(clock), "--exchanges", str(exchanges), "--", str(path)])
        return read_run(clock), read_exchanges(exchanges), report


def _simulated(path: Path, wishes: Wishes) -> Run:
    """The clocks of a series, and the exchanges of its trace where that is there."""
    series = read_clocks(path)
    run = run_of(path, series, wishes.clock)
    if series.trace is None:
        return run
    _, seen, _ = _replay(series.trace, replace(wishes, estimator=run.clock if run.clock in ESTIMATORS else ""))
    return replace(run, exchanges=seen)


def _simulated_again(path: Path, wishes: Wishes) -> Run:
    """A result of ``ffclock-lab sim run --json`` holds figures only; but the same scenario and seed give the same run to the last bit."""
    try:
        result = json.loads(path.read_text(encoding="utf-8"))
        scenario, seed = str(result["scenario"]), int(result["seed"])
    except (ValueError, KeyError, TypeError) as error:
        raise RunError(f"{path}: is not the JSON of one simulated run, with its scenario and seed ({error})") from error
    with tempfile.TemporaryDirectory(prefix="ffclock-report-") as place:
        series = Path(place) / "series.csv"
        trace = Path(place) / "run.trace"
        Program.find(wishes.ffclock_lab).simulate(scenario, seed, ["--series", str(series), "--trace", str(trace)])
        return replace(_simulated(series, wishes), source=path)


def _with_trace(run: Run, seen: Exchanges, report: dict[str, Any]) -> Run:
    shifts = tuple(_shifts(seen, int(report["shifts_up"])))
    conditions: tuple[str, ...] = (
        f"{report['exchanges']} exchanges, {report['used']} used, {report['lost']} lost",
        f"floor shifts: {report['shifts_up']} up, {report['shifts_down']} down",
        f"counter {report['counter'] or 'not named'}",
    )
    samples = run.samples
    if samples.error_s is not None and np.isfinite(samples.error_s).any():
        # Where the truth is known, so is the rate; otherwise only how the period moved.
        samples = replace(samples, rate_error_ppm=rate_over(samples, RATE_INTERVAL_S))
        conditions = (*conditions, "rate over 1000 s")
    summary = replace(run.summary, title=f"Trace {run.source.name}", conditions=conditions, events=shifts)
    return replace(run, samples=samples, summary=summary, exchanges=seen)


def _shifts(seen: Exchanges, count: int) -> list[Event]:
    """When the floor rose, by the ``count`` of rises that the replay reported; the first guesses of a floor rise as well."""
    if seen.floor_s is None or not count:
        return []
    rises = np.diff(seen.floor_s)
    largest = np.sort(np.argsort(rises)[-min(count, _SHIFTS_SHOWN) :])
    return [Event(t_s=float(seen.t_s[at + 1]), text=f"floor +{rises[at] * 1e6:.0f} µs") for at in largest if rises[at] > 0.0]
