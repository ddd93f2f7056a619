"""The short runs behind the figures: which plans, which daemons, and what their clocks showed."""

from __future__ import annotations

import csv
import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from ..program import Program, ProgramError
from ..tables import Floats

CONTESTANTS: Final = (
    "ffclockd-learned",
    "ffclockd-classic",
    "ffclockd-ptp",
    "chronyd-default",
    "ntpd-default",
    "ntpd-tuned",
    "ptp4l-default",
    "ptpd-default",
)
"""Each daemon as shipped, as in the paper. ptpd is the paper's other clock; ffclockd-classic is its own algorithm. As shipped, ntpd works
off its first error for longer than a short run; the tuned one steps."""

FAR: Final = ("ffclockd-learned", "chronyd-default", "chronyd-relaxed", "ntpd-tuned", "ntpd-relaxed")
"""Those of figure 8: forced to the poll of the run, and relaxed, with polls of up to 64 times as long that they choose."""

POLL_S: Final = 1
"""A request each second: the clocks of the paper needed an hour and a half at 16 s."""


_LAST_LOOK_S: Final = 2.0
"""How long before its end a whole run may have been looked at for the last time [s]."""

LONG: Final = "quiet-256"
"""The plan of figure 10."""


@dataclass(frozen=True)
class Setting:
    """One run: what ``ffclock-lab live run`` is called with."""

    name: str
    plan: str
    load: str = ""
    contestants: tuple[str, ...] = CONTESTANTS
    times: int = 1
    """How often the length of the others."""
    poll_s: int = POLL_S

    def arguments(self, seconds: int) -> list[str]:
        """Its words, but for the directory, where the others last so long."""
        length = self.times * seconds
        # What happens comes at half of the run: until then the clocks settle, and are measured undisturbed.
        return self.words(length, length // 4, self.contestants)

    def words(self, length: int, settle: int, contestants: Iterable[str]) -> list[str]:
        """The same for a run of this length [s]."""
        times = ["--poll", str(self.poll_s), "--for", f"{length} s", "--settle", f"{settle} s"]
        load = ["--load", self.load] if self.load else []
        return ["live", "run", self.plan, *times, "--only", ",".join(contestants), *load]


SETTINGS: Final = (
    Setting("quiet", "quiet-16"),
    Setting("noise", "quiet-16", "cpu"),
    Setting("congestion", "congested-16"),
    Setting("congestion-host", "congested-16", "cpu,disk"),
    Setting("cut", "cut-16"),
    Setting("capture", "capture-16"),
    Setting("servers", "servers-16", contestants=FAR, times=2),
)
"""The plan stress-16 is the noise of figure 3 with the disk as well; figure 3 has a noisy host only."""


@dataclass(frozen=True)
class Live:
    """What a run left."""

    setting: Setting
    seconds: float
    settle_s: float
    series: Mapping[str, tuple[Floats, Floats]]
    """Times [s] and errors [s] of each daemon."""
    summary: Mapping[str, Any]
    resumed_s: tuple[float, ...] = ()
    """When the daemons were started again after an interruption [s]."""
    ended_s: float = 0.0
    """When its last sample was written [s since 1970]."""

    def errors(self, name: str, begin: float = 0.25, end: float = 1.0) -> Floats:
        """The errors between two shares of the run [s], but for those while clocks settled again; empty where the daemon did not run."""
        if name not in self.series:
            return np.empty(0)
        t_s, error_s = self.series[name]
        counted = (t_s >= begin * self.seconds) & (t_s < end * self.seconds)
        for start_s in self.resumed_s:
            counted &= (t_s < start_s) | (t_s >= start_s + self.settle_s)
        return error_s[counted]

    @property
    def is_long(self) -> bool:
        """Whether it is one of hours, made by a command of its own."""
        return self.setting.plan == LONG

    @property
    def is_broken_off(self) -> bool:
        """Whether it was not watched to its end."""
        return max((t_s[-1] for t_s, _ in self.series.values()), default=0.0) + _LAST_LOOK_S < self.seconds

    @property
    def command(self) -> str:
        """What was run."""
        return shlex.join(["ffclock-lab", *self.setting.words(round(self.seconds), round(self.settle_s), self.series)])


def read_samples(lines: Iterable[str]) -> tuple[dict[str, tuple[Floats, Floats]], tuple[float, ...]]:
    """The samples of a run (docs/live.md), and when its later sessions began [s]; :class:`ProgramError` if they are something else."""
    found: dict[str, tuple[list[float], list[float]]] = {}
    begun: dict[int, float] = {}
    try:
        for row in csv.DictReader(lines):
            times, errors = found.setdefault(row["contestant"], ([], []))
            times.append(float(row["t_s"]))
            errors.append(float(row["error_ns"]) * 1e-9)
            begun.setdefault(int(row["session"]), times[-1])
    except (KeyError, TypeError, ValueError) as error:
        raise ProgramError(f"samples.csv: not the samples of a run: {error}") from error
    series = {name: (np.array(times), np.array(errors)) for name, (times, errors) in found.items()}
    return series, tuple(begin for session, begin in sorted(begun.items()) if session > 0)


def read(setting: Setting, directory: Path) -> Live:
    """A run that is there."""
    try:
        about = json.loads((directory / "run.json").read_text(encoding="utf-8"))
        seconds, settle_s = float(about["duration_s"]), float(about["settle_s"])
    except (KeyError, TypeError, ValueError) as error:
        raise ProgramError(f"{directory}: not a run of ffclock-lab live: {error}") from error
    samples = directory / "samples.csv"
    with samples.open(encoding="utf-8") as file:
        series, resumed_s = read_samples(file)
    return Live(setting, seconds, settle_s, series, {}, resumed_s, samples.stat().st_mtime)


def measure(program: Program, output: Path, options: tuple[int, Path | None]) -> list[Live]:
    """Runs all settings one after the other, each for this number of seconds; those that ``output`` holds already are read.

    :class:`ProgramError` if one of those is of another length, or was broken off.
    """
    seconds, peers = options
    runs = []
    for setting in SETTINGS:
        directory = output / "runs" / setting.name
        if (directory / "run.json").exists():
            there = read(setting, directory)
            if there.seconds != setting.times * seconds:
                raise ProgramError(
                    f"{directory}: a run of {there.seconds:.0f} s, and not of {setting.times * seconds} s; give another --output"
                )
            if there.is_broken_off:
                raise ProgramError(f"{directory}: broken off; ffclock-lab live run --resume {directory} goes on")
            summary = program.json(["live", "report", str(directory)])
        else:
            where = ["--peers", str(peers)] if peers else []
            summary = program.json([*setting.arguments(seconds), *where, "--output", str(directory)])
        live = read(setting, directory)
        runs.append(replace(live, summary=summary))
    return runs


def long_runs(program: Program, directories: Iterable[Path]) -> list[Live]:
    """Runs of hours at a poll of 256 s, which are there already."""
    runs = []
    for directory in directories:
        live = read(Setting(directory.name, LONG, poll_s=256), directory)
        if json.loads((directory / "run.json").read_text(encoding="utf-8")).get("plan") != LONG:
            raise ProgramError(f"{directory}: figure 10 is made from runs of {LONG}")
        summary = program.json(["live", "report", str(directory)])
        if not summary["is_complete"]:
            raise ProgramError(f"{directory}: the run is not complete (ffclock-lab live run --resume {directory})")
        runs.append(replace(live, summary=summary))
    return runs


def incomplete(runs: Sequence[Live]) -> list[str]:
    """What was left out or ended, as the runs say."""
    return [f"{run.setting.name}: {fault}" for run in runs for fault in run.summary.get("faults", ())]
