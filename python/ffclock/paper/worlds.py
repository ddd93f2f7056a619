"""Runs the worlds of the figures, and keeps what every clock showed in them."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from ..program import Program
from ..runs import Samples
from ..series import Series, read_clocks
from ..tables import Floats

BANDS: Final = (1, 25, 50, 75, 99)
"""The percentiles of the paper's distributions."""

MICRO: Final = 1e-6


@dataclass(frozen=True)
class World:
    """One simulated run: what every clock showed, and what the command reported."""

    name: str
    seed: int
    series: Series
    result: dict[str, Any]
    command: str

    @property
    def bias_s(self) -> float:
        """Half the asymmetry of the path, which no clock can see [s]."""
        return float(self.result["asymmetry_s"]) / 2.0

    def errors(self, clock: str, begin_s: float | None = None, end_s: float = np.inf) -> Floats:
        """The errors of a clock [s] from ``begin_s`` (else from where the statistics begin) until ``end_s``."""
        samples = self.series.clocks[clock]
        begin = self.series.from_s if begin_s is None else begin_s
        if samples.error_s is None:
            return np.empty(0)
        return samples.error_s[(samples.t_s >= begin) & (samples.t_s < end_s)]

    def samples(self, clock: str) -> Samples:
        """What a clock showed."""
        return self.series.clocks[clock]


@dataclass(frozen=True)
class Laboratory:
    """Where worlds are run: a command, the paper's scenarios, a seed."""

    program: Program
    scenarios: Path
    seed: int

    def run(self, name: str, later: int = 0) -> World:
        """Runs a scenario: one of the paper's where ``name`` is one of those, else a built-in one; with a seed that is ``later``."""
        seed = self.seed + later
        file = self.scenarios / f"{name}.toml"
        scenario = str(file) if file.is_file() else name
        with tempfile.TemporaryDirectory(prefix="ffclock-paper-") as place:
            path = Path(place) / "series.csv"
            result = self.program.simulate(scenario, seed, ["--series", str(path)])
            series = read_clocks(path)
        shown = f"scenarios/paper/{name}.toml" if file.is_file() else name
        return World(name, seed, series, result, f"ffclock-lab sim run {shown} --seed {seed} --series {name}.csv")


def iqr(errors: Floats) -> float:
    """Between the quartiles [s]."""
    return float(np.subtract(*np.percentile(errors, [75, 25])))


def largest(errors: Floats) -> float:
    """The largest size [s]."""
    return float(np.max(np.abs(errors)))
