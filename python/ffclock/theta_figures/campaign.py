"""Makes the runs: live ones one after the other, since they share this machine; simulated ones on all processors."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from ..program import Program, ProgramError
from ..progress import Progress
from .cells import Cell, Measured, Run, Source, grid, others, with_histograms
from .coverage import compare, is_calm, is_compared, is_usual

_TRIM: Final = "50 ms"
"""Cut off both ends of a run, as the paper does ..."""
_TRIM_OF_SHORT: Final = "2 ms"
"""... and off one with a smaller D than the usual one, whose rounds take a fraction of the time."""
_MORE_ROUNDS: Final = 3
"""The factor by which such runs have more rounds."""
_USUAL_DELAY_US: Final = 1000


_REDRAWS: Final = 39
"""Runs with the delays of each link drawn again, to which the correlation of a run is compared."""


@dataclass(frozen=True)
class Extent:
    """How much is measured."""

    sizes: tuple[int, ...] = (4, 7)
    levels: tuple[int, ...] = (0, 10, 30, 50, 70, 90)
    live_runs: int = 3
    live_rounds: int = 800
    live_rounds_tested: int = 3000
    """Of the cells that the test of correlation judges: it does not find in 800 rounds what 3000 show."""
    simulated_runs: int = 5
    simulated_rounds: int = 8000
    source: Source = "timer"


SHORT: Final = Extent(
    sizes=(4,), levels=(0, 30, 70), live_runs=1, live_rounds=150, live_rounds_tested=1000, simulated_runs=1, simulated_rounds=1000
)
"""To see that everything works; too short for its verdicts to mean much."""


LONG: Final = Extent(live_runs=5, live_rounds=25_000, live_rounds_tested=25_000)
"""The paper's five runs of about 30 s (D = 1 ms); some hours."""


class Kept:
    """The cells that are measured already, in a directory of their own until all are there: what an interruption does not lose."""

    def __init__(self, directory: Path, extent: Extent, *, resume: bool) -> None:
        """Begins from nothing, or goes on with what is there; :class:`ProgramError` if that is nothing, or has another extent."""
        self._directory = directory
        self.calm = directory / "calm"
        begun, wanted = directory / "extent.json", json.dumps(asdict(extent))
        if not resume:
            shutil.rmtree(directory, ignore_errors=True)
            directory.mkdir(parents=True)
            begun.write_text(wanted, encoding="utf-8")
        elif not begun.exists():
            raise ProgramError(f"{directory}: nothing was begun there that could be resumed")
        elif begun.read_text(encoding="utf-8") != wanted:
            raise ProgramError(f"{directory}: begun with other options")

    def _path(self, cell: Cell) -> Path:
        return self._directory / f"{cell.where}-{cell.slug}-{cell.scheduling}.json"

    def find(self, cell: Cell) -> Measured | None:
        """The cell, if it is measured."""
        path = self._path(cell)
        return Measured.from_json(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else None

    def add(self, measured: Measured) -> None:
        """Keeps a cell, unless a run failed; a file is there whole or not at all."""
        if measured.failed:
            return
        path = self._path(measured.cell)
        partial = path.with_suffix(".partial")
        partial.write_text(json.dumps(measured.json()), encoding="utf-8")
        partial.replace(path)

    def remove(self) -> None:
        """All of them: the results are written."""
        shutil.rmtree(self._directory)


def softirqs_missing(program: Program) -> str | None:
    """Why the processors cannot be loaded by soft interrupts; None if they can."""
    try:
        program.json(["theta", "load", "softirq", "--level", "1", "--for", "1 ms"])
    except ProgramError as error:
        return str(error)
    return None


def namespaces_missing() -> str | None:
    """Why nothing can be run live; None if it can."""
    if shutil.which("unshare") is None:
        return "there is no unshare (util-linux)"
    tried = subprocess.run(["unshare", "--net", "true"], capture_output=True, text=True, check=False)
    return None if tried.returncode == 0 else f"no network namespaces: {' '.join(tried.stderr.split())}"


@dataclass(frozen=True)
class _Wanted:
    """What is asked about a run beside its figures."""

    histograms: bool
    correlation: bool


def _analysed(program: Program, cell: Cell, log: Path, wanted: _Wanted) -> Run:
    trim = ["--trim", _TRIM if cell.delay_us >= _USUAL_DELAY_US else _TRIM_OF_SHORT]
    analysis = program.json(["theta", "analyse", str(log), *trim, *(["--histograms"] if wanted.histograms else [])], allowed=(0, 1))
    correlation = None
    if wanted.correlation:
        correlation = program.json(["theta", "correlate", str(log), *trim, "--redraws", str(_REDRAWS)], allowed=(0, 1))
    before = None
    if wanted.histograms:
        before = program.json(["theta", "analyse", str(log), *trim, "--histograms", "--stamp", "before"], allowed=(0, 1))
    run = Run.of(analysis, correlation, before)
    if run is None:
        raise ProgramError("no switch of a round is left to judge")
    return run


def _rounds(rounds: int, cell: Cell) -> int:
    return rounds if cell.delay_us >= _USUAL_DELAY_US else _MORE_ROUNDS * rounds


def _live_rounds(extent: Extent, cell: Cell) -> int:
    return extent.live_rounds_tested if is_usual(cell) else _rounds(extent.live_rounds, cell)


@dataclass
class _Place:
    """Where the runs of one cell go, and where logs are kept that others are compared with."""

    own: Path
    calm: Path

    def compared(self, program: Program, cell: Cell, log: Path, most: int) -> dict[str, Any] | None:
        """What the bounds of the calm run of its n are worth in a first run; the log of the calm one is kept."""
        kept = self.calm / f"{cell.where}-{cell.n}"
        if is_calm(cell):
            shutil.copytree(log, kept, dirs_exist_ok=True)
        return compare(program, kept, log, _TRIM) if is_compared(cell, most) and kept.exists() else None


def _live(program: Program, cell: Cell, extent: Extent, place: _Place) -> Measured:
    runs, failed = [], []
    covered = None
    priorities: tuple[str, ...] = ()
    histograms = with_histograms(cell, extent.levels)
    processors = os.cpu_count() or 1
    for number in range(extent.live_runs):
        log = place.own / f"live-{number}"
        rounds = _live_rounds(extent, cell)
        try:
            answer = program.json(cell.live(rounds, str(log), processors, extent.source), allowed=(0, 1))
            priorities = tuple(answer["priorities"])
            runs.append(_analysed(program, cell, log, _Wanted(histograms and number == 0, correlation=True)))
            covered = covered or place.compared(program, cell, log, max(extent.levels))
        except ProgramError as error:
            failed.append(str(error))
        shutil.rmtree(log, ignore_errors=True)
    command = "ffclock-lab " + " ".join(_quoted(cell.live(_live_rounds(extent, cell), "LOG", processors, extent.source)))
    return Measured(cell, tuple(runs), tuple(failed), priorities, command, coverage=covered)


def _simulated(program: Program, cell: Cell, extent: Extent, place: _Place) -> Measured:
    scenario = place.own / "scenario.toml"
    scenario.write_text(cell.scenario(_rounds(extent.simulated_rounds, cell)), encoding="utf-8")
    runs, failed = [], []
    covered = None
    histograms = with_histograms(cell, extent.levels)
    for seed in range(1, extent.simulated_runs + 1):
        log = place.own / f"simulated-{seed}"
        try:
            program.json(["theta", "simulate", "--scenario", str(scenario), "--seed", str(seed), "--log", str(log)])
            runs.append(_analysed(program, cell, log, _Wanted(histograms and seed == 1, correlation=seed == 1 or is_usual(cell))))
            covered = covered or place.compared(program, cell, log, max(extent.levels))
        except ProgramError as error:
            failed.append(str(error))
        shutil.rmtree(log, ignore_errors=True)
    file = f"scenarios/{cell.slug}.toml"
    command = f"ffclock-lab theta simulate --scenario {file} --seed 1 ... {extent.simulated_runs} --log LOG"
    return Measured(cell, tuple(runs), tuple(failed), (), command, scenario.read_text(encoding="utf-8"), covered)


def _quoted(words: Sequence[str]) -> list[str]:
    return [f"'{word}'" if " " in word else word for word in words]


def measure(program: Program, extent: Extent, live: bool, kept: Kept) -> list[Measured]:
    """All cells, live ones if that is wanted, with progress on a terminal; but for those that are kept."""
    simulated = [*grid("simulated", extent.sizes, extent.levels), *others("simulated", extent.sizes, extent.levels)]
    alive = [*grid("live", extent.sizes, extent.levels), *others("live", extent.sizes, extent.levels)] if live else []
    found: list[Measured] = []
    with tempfile.TemporaryDirectory(prefix="ffclock-theta-") as scratch, Progress(len(simulated) + len(alive)) as progress:

        def one(make: Callable[[Program, Cell, Extent, _Place], Measured], cell: Cell) -> Measured:
            made = kept.find(cell)
            if made is None:
                place = _Place(Path(tempfile.mkdtemp(dir=scratch)), kept.calm)
                made = make(program, cell, extent, place)
                kept.add(made)
                shutil.rmtree(place.own, ignore_errors=True)
            progress.step(f"{cell.where}: {cell.name}")
            return made

        for cell in alive:
            progress.say(f"live: {cell.name}")
            found.append(one(_live, cell))
        # The threads only wait for the program. What others are compared with comes before them.
        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            for cells in ([cell for cell in simulated if is_calm(cell)], [cell for cell in simulated if not is_calm(cell)]):
                found += pool.map(lambda cell: one(_simulated, cell), cells)
    return found
