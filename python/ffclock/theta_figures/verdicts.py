"""Whether the findings of the paper are reproduced: a verdict with its evidence for each shape, of live runs and of simulated ones.

Absolute values depend on the machine; the shapes are what the paper claims. Each function looks at what was measured and at nothing else.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np

from ..evidence.verdict import Outcome as Word
from ..evidence.verdict import Verdict as Evidence
from ..evidence.verdict import is_near
from ..scales import number_text, time_text
from .cells import KINDS, Cell, Measured, Where, find
from .coverage import ratio_holds, words
from .values import LEVELS, OMEGA, OMEGA_REAL_TIME, RAMP_G_R

Outcome = Literal["confirmed", "not here", "not measurable"]

TENFOLD: Final = 10.0
"""How much less Omega is with real-time priorities (paper, section 6.2: below 12 against above 1800)."""
LOADED: Final = 5.0
"""The factor by which the most load on the network must raise tau+ over that without load (in the paper's figure 3 more than ten-fold)."""
VERY_HIGH: Final = 90
"""The processor load [per cent] that the paper excepts from its limit of Omega."""
RISE: Final = 1.1
"""tau_r- must grow by this much from the least to the most load to count as rising."""
RANK_CORRELATION: Final = 0.5
"""And its rank correlation with the load must exceed this."""
APART: Final = 0.8
"""h1 and h2 may share at most this part of what h2 and h3 share."""

ABOUT_A_THIRD: Final = (0.2, 0.5)
"""From a fifth to a half is about a third."""


@dataclass(frozen=True)
class Verdict:
    """The verdict on one shape."""

    shape: str
    where: Where
    outcome: Outcome
    evidence: str

    def words(self) -> str:
        """The outcome in words."""
        place = "on this machine" if self.where == "live" else "in the simulation"
        return {"confirmed": "✓ confirmed", "not here": f"✗ not {place}", "not measurable": "not measurable"}[self.outcome]


def _verdict(shape: str, where: Where, holds: bool | None, evidence: str) -> Verdict:
    outcome: Outcome = "not measurable" if holds is None else "confirmed" if holds else "not here"
    return Verdict(shape, where, outcome, evidence)


def _here(measured: Sequence[Measured], where: Where) -> list[Measured]:
    return [found for found in measured if found.cell.where == where and found.runs]


def _constant(measured: Sequence[Measured], where: Where) -> list[Measured]:
    """The cells of figures 3 to 6."""
    cells = ((found, found.cell) for found in _here(measured, where))
    return [found for found, cell in cells if cell.pattern == "constant" and cell.delay_us == 1000 and cell.scheduling == "real-time"]


def correlated(measured: Sequence[Measured], where: Where) -> Verdict:
    """Long delays and those that let processes go on belong together in every cell of constant load (section 6.3, figure 6).

    The paper shows it by g_r > 1, which independent delays give as well. Here most runs of a cell must show a rank correlation beyond that
    of chance and of the algorithm itself.
    """
    shape = "delays are correlated in every cell"
    cells = [(found, _tested(found)) for found in _constant(measured, where)]
    judged = [(found, tests) for found, tests in cells if tests]
    if not judged:
        return _verdict(shape, where, None, "no cell was tested")
    shown = {found.cell.name for found, tests in judged if 2 * sum(test["verdict"] == "shown" for test in tests) > len(tests)}
    excess = statistics.median(test["g_r"] / test["g_r_redrawn"]["median"] for _, tests in judged for test in tests if test["g_r_redrawn"])
    missing = [found.cell.name for found, _ in judged if found.cell.name not in shown]
    least = min(found.g_r for found, _ in judged)
    evidence = f"shown in {len(shown)} of {len(judged)} cells; g_r is {excess:.2f} times that of redrawn delays in the median"
    evidence += f", and {least:.3f} at least"
    evidence += f"; not shown: {', '.join(missing)}" if missing else ""
    return _verdict(shape, where, not missing, evidence)


def _tested(found: Measured) -> list[Mapping[str, Any]]:
    return [run.correlation for run in found.runs if run.correlation and run.correlation["verdict"] != "not-tested"]


def rank_correlation(x: Sequence[float], y: Sequence[float]) -> float:
    """Spearman's rank correlation; equal values share their mean rank; nan if either does not vary."""

    def ranks(values: Sequence[float]) -> list[float]:
        return [sum(other < value for other in values) + (sum(other == value for other in values) - 1) / 2 for value in values]

    first, second = ranks(x), ranks(y)
    if len(set(first)) < 2 or len(set(second)) < 2:
        return math.nan
    return float(np.corrcoef(first, second)[0, 1])


def relevant_rises(measured: Sequence[Measured], where: Where) -> Verdict:
    """tau_r- rises with the load (figure 4), for most kinds of load and sizes."""
    shape = "tau_r- rises with load"
    cells, found = _constant(measured, where), []
    for n in sorted({cell.cell.n for cell in cells}):
        for kind in KINDS:
            curve = {cell.cell.level: cell.relevant_min_s for cell in cells if cell.cell.n == n and cell.cell.kind in {kind, "idle"}}
            if len(curve) < 3:
                continue
            levels = sorted(curve)
            rise = curve[levels[-1]] / curve[levels[0]]
            rank = rank_correlation(levels, [curve[level] for level in levels])
            found.append((rise >= RISE and rank > RANK_CORRELATION, f"{kind} n = {n}: x{rise:.2f}, rank {rank:.2f}"))
    if not found:
        return _verdict(shape, where, None, "fewer than three levels of load were measured")
    rising = sum(rises for rises, _ in found)
    evidence = f"{rising} of {len(found)} curves rise; from least to most load " + "; ".join(text for _, text in found)
    return _verdict(shape, where, 2 * rising > len(found), evidence)


def longest_rises(measured: Sequence[Measured], where: Where) -> Verdict:
    """The most load on the network raises tau+ several times over that without load (figure 3), at every n."""
    shape = "load on the network raises tau+"
    found = []
    for n in sorted({found.cell.n for found in _here(measured, where)}):
        loaded = [cell for cell in _constant(measured, where) if cell.cell.n == n and cell.cell.kind == "network"]
        calm = find(measured, Cell(where, n))
        if calm is None or not loaded:
            continue
        most = max(loaded, key=lambda cell: cell.cell.level)
        factor = most.tau_max_s / calm.tau_max_s
        found.append(
            (factor >= LOADED, f"n = {n}: x{factor:.2f}, {time_text(calm.tau_max_s)} to {time_text(most.tau_max_s)} at {most.cell.level} %")
        )
    if not found:
        return _verdict(shape, where, None, "nothing was run with load on the network and without load")
    return _verdict(shape, where, all(rises for rises, _ in found), "; ".join(text for _, text in found))


def stays_low(measured: Sequence[Measured], where: Where) -> Verdict:
    """With real-time priorities and D of at least 100 us Omega stays below 12, but at very high processor load (section 6.2)."""
    shape = f"Omega stays below {OMEGA_REAL_TIME:g} for D = 100 µs and more"
    cells = [
        found
        for found in _here(measured, where)
        if found.cell.delay_us >= 100
        and found.cell.pattern == "constant"
        and found.cell.scheduling == "real-time"
        and (found.cell.kind in {"idle", "network"} or found.cell.level < VERY_HIGH)
    ]
    if not any(found.cell.delay_us == 100 for found in cells):
        return _verdict(shape, where, None, "nothing was run with D = 100 µs")
    most = max(cells, key=lambda found: found.omega)
    above = sum(found.omega >= OMEGA_REAL_TIME for found in cells)
    evidence = f"in {len(cells) - above} of {len(cells)} cells; the largest is {number_text(most.omega)}, {most.cell.name}"
    return _verdict(shape, where, above == 0, evidence)


def ramps_correlate(measured: Sequence[Measured], where: Where) -> Verdict:
    """While the load rises and falls, g_r exceeds what the paper found (section 6.3)."""
    shape = "g_r is large while the load rises and falls"
    ramps = [found for found in _here(measured, where) if found.cell.pattern == "ramp"]
    if not ramps:
        return _verdict(shape, where, None, "no load rose and fell")
    text = "; ".join(f"{found.cell.kind}: {found.g_r:.3g}, paper more than {RAMP_G_R[found.cell.kind]:g}" for found in ramps)
    return _verdict(shape, where, all(found.g_r > RAMP_G_R[found.cell.kind] for found in ramps), text)


def real_time_helps(measured: Sequence[Measured], where: Where) -> Verdict:
    """Real-time priorities cut Omega ten-fold (section 6.2)."""
    shape = "real-time priorities cut Omega ten-fold"
    if where == "simulated":
        return _verdict(shape, where, None, "the simulation has no scheduler")
    pairs = []
    for normal in _here(measured, where):
        cell = normal.cell
        if cell.scheduling != "normal":
            continue
        urgent = find(measured, Cell(where, cell.n, cell.kind, cell.level, cell.pattern, cell.delay_us))
        if urgent is None or not all(word.startswith("fifo") for word in urgent.priorities) or not urgent.priorities:
            continue
        pairs.append((normal.omega / urgent.omega, f"{cell.kind} {cell.level} %: {normal.omega:.4g} without, {urgent.omega:.4g} with"))
    if not pairs:
        return _verdict(shape, where, None, "real-time priorities are not permitted here, or nothing was run without them")
    factor = statistics.geometric_mean(factor for factor, _ in pairs)
    return _verdict(shape, where, factor >= TENFOLD, f"x{factor:.3g} on the mean; " + "; ".join(text for _, text in pairs))


def delay_calms(measured: Sequence[Measured], where: Where) -> Verdict:
    """Without load Omega is larger for D = 0 than for D = 1 ms (section 6.2)."""
    shape = "Omega is larger for D = 0 than for D = 1 ms"
    pairs = []
    for busy in _here(measured, where):
        cell = busy.cell
        calm = find(measured, Cell(where, cell.n))
        if cell.delay_us == 0 and calm is not None:
            pairs.append((busy.omega > calm.omega, f"n = {cell.n}: {busy.omega:.4g} against {calm.omega:.4g}"))
    if not pairs:
        return _verdict(shape, where, None, "nothing was run with D = 0")
    return _verdict(shape, where, all(larger for larger, _ in pairs), "; ".join(text for _, text in pairs))


def overlap(first: Sequence[float], second: Sequence[float]) -> float:
    """The common area of two histograms with the same bins, each of area 1: 0 if they are apart, 1 if they are equal."""
    length = max(len(first), len(second))
    shares = [np.pad(np.asarray(bins, dtype=float), (0, length - len(bins))) for bins in (first, second)]
    if not all(share.sum() > 0.0 for share in shares):
        return math.nan
    return float(np.minimum(shares[0] / shares[0].sum(), shares[1] / shares[1].sum()).sum())


def median_of(bins: Sequence[float], width_s: float) -> float:
    """The middle of the bin in which the median lies [s]; nan of no values."""
    counts = np.asarray(bins, dtype=float)
    if counts.sum() <= 0.0:
        return math.nan
    return (float(np.searchsorted(np.cumsum(counts), counts.sum() / 2.0)) + 0.5) * width_s


def fastest_apart(measured: Sequence[Measured], where: Where) -> Verdict:
    """The histogram h1, mostly of self-receptions, stands apart from h2 and h3, which resemble each other (figure 7)."""
    shape = "h1 stands apart from h2 and h3"
    found = []
    for cell in _constant(measured, where):
        for run in cell.runs:
            delays = (run.histograms or {}).get("delays", [])
            if len(delays) < 4:
                continue
            h1, h2, h3 = (histogram["bins"] for histogram in delays[1:4])
            apart, alike = overlap(h1, h2), overlap(h2, h3)
            medians = ", ".join(time_text(median_of(bins, delays[1]["width"] * 1e-12)) for bins in (h1, h2, h3))
            text = f"{cell.cell.kind}: h1 and h2 share {apart:.0%}, h2 and h3 {alike:.0%}; medians {medians}"
            found.append((apart < APART * alike, text))
    if not found:
        return _verdict(shape, where, None, "no histograms were made")
    return _verdict(shape, where, all(apart for apart, _ in found), "; ".join(text for _, text in found))


def jumps_raise(measured: Sequence[Measured], where: Where) -> Verdict:
    """Load jumps raise Omega on the average of runs, cells and the two loads of a jump (section 6.4)."""
    shape = "load jumps raise Omega"
    factors, texts = [], []
    for jump in _here(measured, where):
        cell = jump.cell
        if cell.pattern != "jumps":
            continue
        ends = [find(measured, Cell(where, cell.n, cell.kind, level)) for level in (10, cell.level)]
        steady = [end.omega_mean for end in ends if end is not None]
        if steady:
            factors.append(jump.omega_mean / statistics.geometric_mean(steady))
            text = f"{jump.omega_mean:.4g} against {' and '.join(f'{omega:.4g}' for omega in steady)} at its ends"
            texts.append(f"{cell.kind} 10 <-> {cell.level} %: {text}")
    if not factors:
        return _verdict(shape, where, None, "no load jumped")
    factor = statistics.geometric_mean(factors)
    return _verdict(shape, where, factor > 1.0, f"x{number_text(factor)} on the mean; " + "; ".join(texts))


def third_at_one(measured: Sequence[Measured], where: Where) -> Verdict:
    """At about a third of the switches the ratio is 1 (section 6.5, figure 8), where switches lie before their broadcasts."""
    shape = "the ratio is 1 at about a third of the switches"
    runs = [(cell.cell, run) for cell in _constant(measured, where) for run in cell.runs if run.at_most_one is not None]
    shares = [(f"{cell.kind} {cell.level} %" if cell.level else "no load", run.at_most_one or 0.0) for cell, run in runs]
    if not shares:
        return _verdict(shape, where, None, "no histograms were made")
    holds = all(ABOUT_A_THIRD[0] <= share <= ABOUT_A_THIRD[1] for _, share in shares)
    return _verdict(shape, where, holds, "; ".join(f"{name}: {share:.0%}" for name, share in shares))


def ratio_covers(measured: Sequence[Measured], where: Where) -> Verdict:
    """A ratio that was chosen without load is broken less often under the most load than a timeout that was (section 8).

    The paper concludes it from the figures and measures it nowhere.
    """
    shape = "a ratio without D, chosen without load, breaks less often under load than a timeout"
    compared = [(found.cell, found.coverage) for found in _here(measured, where) if found.coverage and found.cell.kind != "idle"]
    if not compared:
        return _verdict(shape, where, None, "no run under load was compared with one without")
    lost = [cell for cell, coverage in compared if not ratio_holds(coverage)]
    kept = compared[0][1]["share"]
    evidence = f"in {len(compared) - len(lost)} of {len(compared)} cells; rounds that break what {kept:.1%} of the calm rounds keep: "
    return _verdict(shape, where, not lost, evidence + "; ".join(f"{cell.name}: {words(coverage)}" for cell, coverage in compared))


SHAPES: Final[tuple[Callable[[Sequence[Measured], Where], Verdict], ...]] = (
    correlated,
    longest_rises,
    relevant_rises,
    ramps_correlate,
    real_time_helps,
    stays_low,
    delay_calms,
    fastest_apart,
    jumps_raise,
    third_at_one,
    ratio_covers,
)
"""The shapes that must come back, in the order of docs/theta.md."""


def judge(measured: Sequence[Measured]) -> list[Verdict]:
    """The verdict on every shape, live and simulated."""
    places: tuple[Where, ...] = ("live", "simulated")
    return [shape(measured, where) for shape in SHAPES for where in places]


_FIGURES: Final[Mapping[Callable[[Sequence[Measured], Where], Verdict], str]] = {
    correlated: "6",
    longest_rises: "3",
    relevant_rises: "4",
    ramps_correlate: "6",
    real_time_helps: "5",
    stays_low: "5",
    delay_calms: "5",
    fastest_apart: "7",
    jumps_raise: "5",
    third_at_one: "8",
    ratio_covers: "5",
}
"""The figure that each shape is about, or that the text around it is about."""
_WORDS: Final[Mapping[Outcome, Word]] = {"confirmed": "shape only", "not here": "differs", "not measurable": "not measured"}
CELL_FACTOR: Final = 3.0
"""Runs of seconds meet single delays that are this rare: a cell of the table may be this far from the paper's."""


def table_of_omega(measured: Sequence[Measured], where: Where, command: str) -> Evidence | None:
    """The table of figure 5, cell by cell; None where no cell was run. The value is the geometric mean of ours over the paper's."""
    cells = {
        (kind, n, level): find(measured, Cell(where, n, kind, level) if level else Cell(where, n)) for kind, n in OMEGA for level in LEVELS
    }
    pairs = {key: cell.omega / OMEGA[key[:2]][LEVELS.index(key[2])] for key, cell in cells.items() if cell is not None}
    if not pairs:
        return None
    near = sum(is_near(ratio, CELL_FACTOR) for ratio in pairs.values())
    mean = statistics.geometric_mean(pairs.values())
    most = 2 * near > len(pairs)
    word: Word = "as in the paper" if most and is_near(mean) else "differs"
    return Evidence(
        "delays table 5",
        where,
        "Omega of each cell over the paper's, geometric mean",
        f"{min(map(min, OMEGA.values()))} to {max(map(max, OMEGA.values()))}",
        f"{number_text(mean)} times; {near} of {len(pairs)} cells within a factor of {CELL_FACTOR:g}",
        mean,
        f"mean within a factor of 2, and most cells within {CELL_FACTOR:g}",
        word,
        command,
    )


def evidence(measured: Sequence[Measured], command: str) -> list[Evidence]:
    """The verdicts for the page of evidence; without those about what was not measured."""
    places: tuple[Where, ...] = ("live", "simulated")
    found = []
    for where in places:
        for shape in SHAPES:
            one = shape(measured, where)
            words = (one.shape, "it is so", one.evidence, None, "shape: as docs/theta.md states")
            found.append(Evidence(f"delays {_FIGURES[shape]}", where, *words, _WORDS[one.outcome], command))
        table = table_of_omega(measured, where, command)
        found += [table] if table else []
    return [one for one in found if one.outcome != "not measured"]
