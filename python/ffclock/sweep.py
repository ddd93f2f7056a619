"""Sweeps: scenarios x seeds x parameters over the processes of this machine or over a Dask cluster, as a Parquet file.

``python -m ffclock.sweep lan-16 near-16 --seeds 1..100 --vary 'path.loss=0,0.1' -o sweep.parquet``. Rows are written while the sweep
goes on; the same command again goes on where it was stopped.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from .engines import Engine, EngineError, Outcome, Processes, cluster
from .errors import missing
from .jobs import Job
from .program import Program, ProgramError
from .progress import Progress

if TYPE_CHECKING:
    import polars as pl

_NEEDS: Final = "sweeps need polars"

_SAVE_EVERY_S: Final = 10.0
# Every run is listed before the first begins.
_SEEDS_MAX: Final = 100_000
_FAILURES_SHOWN: Final = 5


class SweepError(RuntimeError):
    """The sweep makes no sense: the message says what to do."""


@dataclass
class Table:
    """The rows that are there, and their file. A file is replaced at once, so that it is whole at any time."""

    path: Path
    program: str
    """The fingerprint of the command that made the rows."""
    frame: pl.DataFrame | None = None
    _new: list[dict[str, Any]] = field(default_factory=list)
    _next_save_s: float = 0.0

    @classmethod
    def open(cls, path: Path, program: str) -> Table:
        """Reads what an earlier sweep left; SweepError if another build of the command made it."""
        import polars as pl  # noqa: PLC0415

        table = cls(path, program)
        if not path.exists():
            return table
        try:
            table.frame = pl.read_parquet(path)
            made_by = set(table.frame["program"].unique())
        except (pl.exceptions.PolarsError, OSError) as error:
            raise SweepError(f"{path}: is not the table of a sweep ({str(error).splitlines()[0]}); --fresh replaces it") from error
        if made_by - {program}:
            raise SweepError(f"{path}: was made by another build of the command ffclock-lab; name another file, or replace it with --fresh")
        return table

    @property
    def done(self) -> set[str]:
        """The digests of the runs that are there."""
        return set() if self.frame is None else set(self.frame["run"].unique())

    def add(self, job: Job, result: dict[str, Any]) -> None:
        """Takes the rows of one run, and saves from time to time."""
        self._new += rows_of(job, result, self.program)
        if time.monotonic() >= self._next_save_s:
            self.save()

    def save(self) -> None:
        """Writes everything."""
        import polars as pl  # noqa: PLC0415

        begun = time.monotonic()
        if self._new:
            added = pl.DataFrame(self._new, infer_schema_length=None)
            self.frame = added if self.frame is None else pl.concat([self.frame, added], how="diagonal_relaxed")
            self._new = []
        if self.frame is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            partial = self.path.with_name(self.path.name + ".partial")
            self.frame.write_parquet(partial)
            partial.replace(self.path)
        took = time.monotonic() - begun
        # A large table takes long to write; that must stay a small part of the work.
        self._next_save_s = time.monotonic() + max(_SAVE_EVERY_S, 20.0 * took)


def rows_of(job: Job, result: dict[str, Any], program: str) -> list[dict[str, Any]]:
    """A row for each clock and window of one run: what it was, then the figures of docs/sim.md [s, s/s]."""
    head: dict[str, Any] = {"scenario": job.scenario, "seed": job.seed, **dict(job.parameters), "without": ",".join(job.without)}
    head |= {name: result.get(name) for name in ("exchanges", "requests", "asymmetry_s", "passed")}
    tail = {"run": job.digest, "program": program}
    rows = []
    for clock in result["clocks"]:
        for window in clock["windows"]:
            figures = {name: value for name, value in window.items() if name != "name"}
            rows.append({**head, "clock": clock["name"], "window": window["name"], **figures, **tail})
    return rows


def seeds(text: str) -> list[int]:
    """``1..100``, ``3`` or ``1,5,10..12``; ValueError of anything else."""
    found: list[int] = []
    for part in text.split(","):
        first, dots, last = part.strip().partition("..")
        begin, end = int(first), int(last if dots else first)
        if begin < 0 or end < begin:
            raise ValueError(f"{part}: must be FIRST..LAST with FIRST not above LAST")
        if len(found) + end - begin >= _SEEDS_MAX:
            raise ValueError(f"{part}: at most {_SEEDS_MAX} seeds at a time")
        found += range(begin, end + 1)
    return list(dict.fromkeys(found))


def variation(text: str) -> tuple[str, list[str]]:
    """``KEY=VALUE,VALUE``: a key of scenario files, and the values it takes; ValueError of anything else."""
    key, equals, values = text.partition("=")
    taken = [value.strip() for value in values.split(",") if value.strip()]
    if not equals or not key.strip() or not taken:
        raise ValueError(f"{text}: not KEY=VALUE,VALUE")
    return key.strip(), taken


def jobs_of(options: argparse.Namespace) -> list[Job]:
    """Every run of the sweep, each once: seeds innermost, so that an early end leaves whole scenarios."""
    varied: list[tuple[str, list[str]]] = options.vary
    # As the command calls them, and in one order, so that the same parts are the same run.
    without = tuple(sorted({part.replace("-", "_") for part in options.without}))
    twice = [key for key, count in Counter(key for key, _ in varied).items() if count > 1]
    if twice:
        raise SweepError(f"--vary {twice[0]} is there twice: give all its values at once, as in {twice[0]}=VALUE,VALUE")
    combinations = list(itertools.product(*([(key, value) for value in values] for key, values in varied)))
    jobs = []
    for named in options.scenarios:
        path = Path(named)
        text = path.read_text(encoding="utf-8") if named.endswith(".toml") else ""
        if text and varied:
            raise SweepError(f"{named}: --vary changes built-in scenarios only; write what is to differ into files of their own")
        name = path.stem if text else named
        jobs += [Job(name, seed, parameters, text, options.oracle, without) for parameters in combinations for seed in options.seeds]
    return list(dict.fromkeys(jobs))


def sweep(engine: Engine, jobs: Sequence[Job], table: Table) -> list[Outcome]:
    """Makes the runs that are not there yet; returns those that failed, which the next sweep tries again."""
    done = table.done
    # Each once: a cluster knows a run by its digest.
    missing = [job for job in dict.fromkeys(jobs) if job.digest not in done]
    failed: list[Outcome] = []
    with Progress(len(missing)) as progress:
        progress.say("")
        try:
            for job, result in engine.outcomes(missing):
                if isinstance(result, Exception):
                    failed.append((job, result))
                else:
                    table.add(job, result)
                progress.step(f"{job.scenario} with seed {job.seed}" + (f", {len(failed)} failed" if failed else ""))
        finally:
            table.save()
    return failed


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m ffclock.sweep",
        description="Run simulated scenarios with many seeds and parameters, and write the figures of every clock as Parquet.",
        epilog="example: python -m ffclock.sweep lan-16 far-64 --seeds 1..100 --vary 'path.loss=0,0.1,0.4' -o loss.parquet; "
        "the same command again goes on where it was stopped. On a cluster: --scheduler tcp://HOST:8786",
    )
    parser.add_argument("scenarios", nargs="+", metavar="SCENARIO", help="a built-in scenario, or a file that ends in .toml")
    parser.add_argument("--seeds", type=seeds, default=seeds("1..20"), metavar="SEEDS", help="such as 1..100 or 1,5,9 (default: 1..20)")
    parser.add_argument(
        "--vary",
        type=variation,
        action="append",
        default=[],
        metavar="KEY=VALUES",
        help="a key of scenario files (docs/sim.md), with dots",
    )
    parser.add_argument("-o", "--output", type=Path, default=Path("sweep.parquet"), metavar="FILE", help="default: sweep.parquet")
    parser.add_argument("--fresh", action="store_true", help="start a new table instead of continuing the existing one")
    parser.add_argument("--oracle", action="store_true", help="run the oracles as well, where the command has them")
    parser.add_argument(
        "--without",
        action="append",
        default=[],
        metavar="PART",
        help="leave out a part of the learned estimator (docs/algorithm/learned.md); may be repeated",
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="processes at a time (default: one a processor)")
    parser.add_argument("--scheduler", metavar="ADDRESS", help="run on the Dask cluster with this scheduler, such as tcp://host:8786")
    parser.add_argument("--ffclock-lab", metavar="PATH", help="the command that simulates; with --scheduler, its path on the workers")
    parser.add_argument("--json", action="store_true", help="say what was done as JSON")
    return parser.parse_args(arguments)


def _engine(options: argparse.Namespace) -> AbstractContextManager[Engine]:
    if options.scheduler:
        return cluster(options.scheduler, options.ffclock_lab)
    return nullcontext(Processes(str(Program.find(options.ffclock_lab).path), max(options.jobs, 1)))


def _report(options: argparse.Namespace, jobs: Sequence[Job], table: Table, failed: Sequence[Outcome]) -> None:
    for job, error in failed[:_FAILURES_SHOWN]:
        print(f"ffclock.sweep: {job.scenario} with seed {job.seed}: {error}", file=sys.stderr)
    rows = 0 if table.frame is None else table.frame.height
    if options.json:
        print(json.dumps({"output": str(table.path), "runs": len(jobs), "failed": len(failed), "rows": rows}))
    else:
        print(f"{table.path}: {len(jobs) - len(failed)} of {len(jobs)} runs, {rows} rows")


def _swept(options: argparse.Namespace) -> int:
    jobs = jobs_of(options)
    with _engine(options) as engine:
        program = engine.program()
        table = Table(options.output, program) if options.fresh else Table.open(options.output, program)
        failed = sweep(engine, jobs, table)
    _report(options, jobs, table, failed)
    return 1 if failed else 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns 0, 1 if a run failed, 2 if the sweep makes no sense, 130 if it was interrupted (what is done is kept)."""
    options = _arguments(arguments)
    try:
        import polars as pl  # noqa: F401, PLC0415
    except ModuleNotFoundError as error:
        print(f"ffclock.sweep: {missing(_NEEDS, error)}", file=sys.stderr)
        return 2
    try:
        return _swept(options)
    except (SweepError, EngineError, ProgramError, OSError) as error:
        print(f"ffclock.sweep: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"ffclock.sweep: interrupted; the same command goes on with {options.output}", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
