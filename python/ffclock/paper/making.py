"""Makes the figures and the runs of the table, in several processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any, Final

from ..progress import Progress
from . import lan, past, wan
from .comparison import Comparison, compare
from .findings import Figure
from .worlds import Laboratory


@dataclass(frozen=True)
class Plan:
    """What is to be made."""

    lab: Laboratory
    figures: Sequence[int]
    scenarios: Sequence[str]
    seeds: Sequence[int]
    jobs: int


DRAWERS: Final[dict[int, Callable[[Laboratory], Figure]]] = {
    2: lan.figure_2,
    3: lan.figure_3,
    4: lan.figure_4,
    5: lan.figure_5,
    6: lan.figure_6,
    7: lan.figure_7,
    8: wan.figure_8,
    9: wan.figure_9,
    10: wan.figure_10,
    11: wan.figure_11,
    12: past.figure_12,
}
"""The figures by their number in the paper, and one more."""


def judge(lab: Laboratory, scenario: str, seed: int) -> dict[str, Any]:
    """One run for the table, with the oracles where the command has them."""
    return lab.program.simulate(scenario, seed, ["--oracle"] if lab.program.has_oracle else [])


def make(plan: Plan) -> tuple[list[Figure], Comparison | None]:
    """Everything, in as many processes as were asked for."""
    runs = [(scenario, seed) for scenario in plan.scenarios for seed in plan.seeds]
    figures: dict[int, Figure] = {}
    results: dict[tuple[str, int], dict[str, Any]] = {}
    # Forked processes would inherit the locks, but not the threads, of polars.
    with ProcessPoolExecutor(plan.jobs, get_context("spawn")) as pool, Progress(len(plan.figures) + len(runs)) as progress:
        # The long ones first, so that no process is left alone with one at the end.
        drawn = {pool.submit(DRAWERS[number], plan.lab): number for number in plan.figures}
        judged = {pool.submit(judge, plan.lab, *run): run for run in runs}
        try:
            for figure in as_completed(drawn):
                figures[drawn[figure]] = figure.result()
                progress.step(f"figure {drawn[figure]}")
            for run in as_completed(judged):
                results[judged[run]] = run.result()
                progress.step(" with seed ".join(map(str, judged[run])))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [figures[number] for number in plan.figures], compare(results[key] for key in runs) if runs else None
