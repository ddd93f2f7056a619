"""What is measured: a cell is n, a load, the delay D and the scheduling, live or simulated; and what its runs gave."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Final, Literal

from .values import LEVELS

Where = Literal["live", "simulated"]
Source = Literal["timer", "softirq"]
"""What loads the processors of live runs, by the names of ``ffclock-lab theta run --load``."""
LOADED_BY: Final[Mapping[Source, str]] = {"timer": "programs", "softirq": "soft interrupts"}
"""The same for people."""
KINDS: Final = ("network", "processor", "both")
TOLERATED: Final = {4: 1, 7: 2}
_JUMPS_FROM: Final = 10
_PRIORITY: Final = ("--priority", "50")
_LINK_MBITS: Final = 100
"""The rate of the paper's switch, of which the load on the network is a share."""
_LIMIT_S: Final = 10
_ROUNDS_A_SECOND: Final = 100
"""A live run that has fewer is given up."""


@dataclass(frozen=True)
class Cell:
    """Conditions under which runs are made."""

    where: Where
    n: int
    kind: str = "idle"
    """``idle``, ``network``, ``processor`` or ``both``; live, ``processor`` is a program that takes time of the processor by a timer,
    or soft interrupts.
    """
    level: int = 0
    """Load [per cent]; with jumps the higher one, the lower being 10."""
    pattern: str = "constant"
    """``constant``, ``jumps`` (every 10 ms) or ``ramp`` (from 0 up, and live down again, a second each)."""
    delay_us: int = 1000
    """D [us]."""
    scheduling: str = "real-time"
    """``real-time`` or ``normal``; a simulation has no scheduler."""

    @property
    def name(self) -> str:
        """The conditions in words."""
        load = "no load" if self.kind == "idle" else f"{self.kind} {self._levels} %"
        return f"n = {self.n}, {load}, D = {self.delay_us} µs" + (", normal scheduling" if self.scheduling == "normal" else "")

    @property
    def slug(self) -> str:
        """The conditions as the name of a file."""
        return f"n{self.n}-{self.kind}-{self.pattern}-{self.level}-D{self.delay_us}"

    @property
    def _levels(self) -> str:
        return {"jumps": f"{_JUMPS_FROM} <-> {self.level}", "ramp": f"0 to {self.level}"}.get(self.pattern, str(self.level))

    def live(self, rounds: int, log: str, processors: int, source: Source = "timer") -> list[str]:
        """The arguments of ``ffclock-lab`` for a live run.

        The processors are shared by all hosts, so each gets its part of the load of programs; soft interrupts load the processors
        themselves, once for all.
        """
        command = ["theta", "run", "--netns", str(self.n), "--f", str(TOLERATED[self.n]), "--rounds", str(rounds)]
        limit = max(_LIMIT_S, rounds // _ROUNDS_A_SECOND)
        command += ["--delay", f"{self.delay_us} us", "--limit", f"{limit} s", "--link-rate", str(_LINK_MBITS), "--log", log]
        loads = {"network": 1.0, "timer": min(1.0, processors / self.n), "softirq": 1.0}
        wanted = {"network": ("network",), "processor": (source,), "both": ("network", source)}.get(self.kind, ())
        for kind in wanted:
            low, high = (max(1, round(level * loads[kind])) for level in (_JUMPS_FROM, self.level))
            levels = {"jumps": f"jumps:{low}..{high}", "ramp": f"ramp:0..{high}"}.get(self.pattern, str(high))
            command += ["--load", f"{kind}={levels}"]
        if self.scheduling == "real-time":
            # The loads keep their normal priority: above it they would keep the kernel's own thread from handing over packets, which
            # the paper put above everything. It is the whole machine's, so that figures for users leave it alone.
            command += _PRIORITY
        return command

    def scenario(self, rounds: int) -> str:
        """The scenario of a simulated run, as docs/theta-run.md describes it."""
        kind = self.kind if self.kind != "idle" else "both"
        return "\n".join(
            (
                f'n = {self.n}\nf = {TOLERATED[self.n]}\nrounds = {rounds}\ndelay = "{self.delay_us} us"',
                'self_reception = { kind = "exponential", min = "8 us", mean = "2 us" }',
                "[link]",
                'law = { kind = "lognormal", min = "23 us", median = "10 us", sigma = 0.6 }',
                "[receiver]",
                'polling_from = 0.7\npolling_period = "100 us"',
                "[load]",
                f'kind = "{kind}"\npattern = "{self.pattern}"',
                f"low = {_JUMPS_FROM / 100 if self.pattern == 'jumps' else 0.0}\nhigh = {self.level / 100}",
                f'period = "{"1 s" if self.pattern == "ramp" else "10 ms"}"\ncorrelation = 0.5\npacket = "12 us"\ninterrupt = "20 us"\n',
            )
        )


@dataclass(frozen=True)
class Run:
    """What one run gave; delays in seconds, ratios at the first switches of a round."""

    omega: float
    tau_max_s: float
    tau_min_s: float
    relevant_min_s: float
    g_r: float
    messages: int
    lost: int
    is_whole: bool
    """Whether the log is whole and keeps the rules; figures of others are of what there was."""
    at_most_one: float | None = None
    """Share of all switches at which the ratio is 1, with switches before their broadcasts, as figure 8 has them; where it is drawn."""
    histograms: Mapping[str, Any] | None = None
    """h_x, tau+ and the ratios, where they are drawn; the ratios with switches before their broadcasts."""
    correlation: Mapping[str, Any] | None = None
    """What ``ffclock-lab theta correlate --json`` says, where it was asked."""

    @classmethod
    def of(
        cls, analysis: Mapping[str, Any], correlation: Mapping[str, Any] | None = None, before: Mapping[str, Any] | None = None
    ) -> Run | None:
        """From what ``ffclock-lab theta analyse --json`` and ``theta correlate --json`` print; None if there was no switch to judge.

        ``before`` is the analysis with ``--stamp before``, where figures 7 and 8 are drawn: its ratios are those of figure 8.
        """
        first = analysis["first"]
        if not first["omega"] or analysis["delay_max_ps"] is None or not first["relevant_min_ps"]:
            return None
        omega, relevant_ps = first["omega"]["ratio"], first["relevant_min_ps"]
        # A message that was sent in the part that was cut off may be the longest in transit after it.
        tau_max_ps = max(analysis["delay_max_ps"], omega["over_ps"])
        return cls(
            omega=omega["value"],
            tau_max_s=tau_max_ps * 1e-12,
            tau_min_s=analysis["delay_min_ps"] * 1e-12,
            relevant_min_s=relevant_ps * 1e-12,
            g_r=tau_max_ps / relevant_ps / omega["value"],
            at_most_one=before["all"]["at_most_one"] / max(before["all"]["switches"], 1) if before else None,
            messages=analysis["counts"]["messages"],
            lost=analysis["counts"]["unperceived"],
            is_whole=analysis["whole"] and analysis["conformance"]["kept"],
            histograms={**analysis["histograms"], "all": before["histograms"]["all"]} if before else None,
            correlation=correlation,
        )


@dataclass(frozen=True)
class Measured:
    """A cell with its runs."""

    cell: Cell
    runs: tuple[Run, ...]
    failed: tuple[str, ...] = ()
    """The messages of runs that failed."""
    priorities: tuple[str, ...] = ()
    """The scheduling that the processes of live runs really had."""
    command: str = ""
    scenario: str = ""
    """The scenario of simulated runs."""
    coverage: Mapping[str, Any] | None = None
    """Bounds chosen of the calm cell, in its first run; where that is asked (:mod:`.coverage`)."""

    @property
    def omega(self) -> float:
        """The largest Omega of the runs, as in the paper's figure 5; nan without runs."""
        return max((run.omega for run in self.runs), default=float("nan"))

    @property
    def omega_mean(self) -> float:
        """The geometric mean of the runs' Omega: what a run gives on the average, though one may have met a rare delay."""
        return statistics.geometric_mean(run.omega for run in self.runs) if self.runs else float("nan")

    @property
    def g_r(self) -> float:
        """The smallest g_r of the runs, as in the paper's figure 6."""
        return min((run.g_r for run in self.runs), default=float("nan"))

    @property
    def tau_max_s(self) -> float:
        """tau+ as in the paper's figure 3."""
        return max((run.tau_max_s for run in self.runs), default=float("nan"))

    @property
    def relevant_min_s(self) -> float:
        """tau_r- as in the paper's figure 4."""
        return min((run.relevant_min_s for run in self.runs), default=float("nan"))

    @property
    def is_whole(self) -> bool:
        """Whether all runs are whole."""
        return bool(self.runs) and not self.failed and all(run.is_whole for run in self.runs)

    def json(self) -> dict[str, Any]:
        """The form in which it is stored in a file."""
        return asdict(self)

    @classmethod
    def from_json(cls, written: Mapping[str, Any]) -> Measured:
        """Reads the form of a file."""
        names = {field.name for field in fields(Run)}
        runs = tuple(Run(**{name: run[name] for name in names if name in run}) for run in written["runs"])
        failed, priorities = tuple(written["failed"]), tuple(written["priorities"])
        return cls(
            Cell(**written["cell"]), runs, failed, priorities, written["command"], written.get("scenario", ""), written.get("coverage")
        )


def grid(where: Where, sizes: Sequence[int], levels: Sequence[int] = LEVELS) -> list[Cell]:
    """The cells of figures 3 to 6."""
    cells = [Cell(where, n) for n in sizes]
    return cells + [Cell(where, n, kind, level) for n in sizes for kind in KINDS for level in levels if level > 0]


def others(where: Where, sizes: Sequence[int], levels: Sequence[int] = LEVELS) -> list[Cell]:
    """The cells of the further comparisons in the text: D = 0 and 100 us, load jumps and ramps, and normal scheduling."""
    high = [level for level in levels if level >= 50] or [max(levels)]
    cells = [Cell(where, n, delay_us=0) for n in sizes]
    cells += [Cell(where, sizes[0], kind, level, delay_us=100) for kind in KINDS for level in sorted({high[0], high[-1]})]
    cells += [Cell(where, sizes[0], kind, high[-1], "ramp") for kind in ("network", "processor")]
    cells += [Cell(where, sizes[0], kind, level, "jumps") for kind in KINDS for level in sorted({high[0], high[-1]})]
    if where == "live":
        cells += [Cell(where, sizes[0], kind, high[-1], scheduling="normal") for kind in ("processor", "both")]
    return cells


def with_histograms(cell: Cell, levels: Sequence[int] = LEVELS) -> bool:
    """Whether figures 7 and 8 are drawn of it: no load, and 70 % of both (or what comes next to it), at n = 4."""
    near = min(levels, key=lambda level: abs(level - 70))
    plain = cell.n == 4 and cell.pattern == "constant" and cell.delay_us == 1000 and cell.scheduling == "real-time"
    return plain and (cell.kind == "idle" or (cell.kind == "both" and cell.level == near))


def find(measured: Iterable[Measured], cell: Cell) -> Measured | None:
    """The runs of a cell, if any gave something."""
    return next((found for found in measured if found.cell == cell and found.runs), None)
