"""The page: verdicts first, then every figure beside what the paper says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, Final

from ..page import document, picture, table
from ..scales import number_text, time_text
from .cells import KINDS, Cell, Measured, Where, find
from .values import AT_MOST_ONE, DELAY_MIN_S, LEVELS, OMEGA, OMEGA_NORMAL, OMEGA_REAL_TIME, OMEGA_WITHOUT_DELAY
from .verdicts import Verdict

CAPTIONS: Final = {
    "figure-3": ("Figure 3: largest delay tau+ by load", "The largest of all runs of a cell; small points are the runs."),
    "figure-4": ("Figure 4: tau_r- by load", f"The smallest of all runs of a cell. The paper's tau- is about {time_text(DELAY_MIN_S)}."),
    "figure-5": ("Figure 5: Omega by load", "The largest of all runs of a cell, at the first switch to each round; the paper's dotted."),
    "figure-6": (
        "Figure 6: g_r by load",
        "The smallest of all runs of a cell. Independent delays give values above 1 as well; the first verdict tests the correlation.",
    ),
    "figure-7": (
        "Figure 7: delays by their place among those that made a process switch",
        "Bins of 1 µs. h1 are mostly self-receptions.",
    ),
    "figure-8": (
        "Figure 8: ratios above 1",
        "Bins of 0.01, all switches, placed before their broadcasts (--stamp before). Figures 3 to 6 place them after: then something "
        f"longer is nearly always in transit. The share at 1 is in the titles; the paper's is {AT_MOST_ONE[0]:.0%} without load, "
        f"{AT_MOST_ONE[70]:.0%} at 70 %.",
    ),
    "comparisons": (
        "Sections 6.2 to 6.4: D = 0 and 100 µs, load jumps and ramps, scheduling",
        f"The paper: D = 0 gives {OMEGA_WITHOUT_DELAY[4]} (n = 4) and {OMEGA_WITHOUT_DELAY[7]} (n = 7) without load; below "
        f"{OMEGA_REAL_TIME:g} with real-time priorities but at very high processor load, above {OMEGA_NORMAL:g} without.",
    ),
}
"""Title and caption of each picture, by the name of its file."""


def omega_table(measured: Sequence[Measured]) -> tuple[list[str], list[list[str]]]:
    """Heads and rows of the table of figure 5: the paper's row, ours live and ours simulated. A dagger: not every log was whole."""
    rows = []
    for n in sorted({found.cell.n for found in measured}):
        for kind in KINDS:
            rows.append([f"{kind}, n = {n}", "paper", *(f"{value:.2f}" for value in OMEGA[kind, n])] if (kind, n) in OMEGA else [])
            places: tuple[Where, ...] = ("live", "simulated")
            rows += [[f"{kind}, n = {n}", where, *_omegas(measured, where, n, kind)] for where in places]
    return ["load", "", *(f"{level} %" for level in LEVELS)], [row for row in rows if any(text not in {"", "-"} for text in row[2:])]


def _omegas(measured: Sequence[Measured], where: Where, n: int, kind: str) -> list[str]:
    cells = [find(measured, Cell(where, n, kind, level) if level else Cell(where, n)) for level in LEVELS]
    return [f"{cell.omega:.2f}" + ("" if cell.is_whole else " †") if cell else "-" for cell in cells]


def page(measured: Sequence[Measured], verdicts: Sequence[Verdict], pictures: Mapping[str, bytes], about: Mapping[str, Any]) -> str:
    """One page that holds everything."""
    body = [
        "<p>Counterparts of figures 3 to 8 of D. Albeseder, <em>Evaluation of Message Delay Correlation in Distributed Systems</em>, "
        "live on this machine and simulated. Other hardware gives other numbers; what can be compared is the shape. The terms are "
        "defined in docs/theta.md.</p>",
        f'<p class="conditions">{escape(conditions(about))}</p>',
        table("Verdicts", ("shape", "where", "verdict", "evidence"), [(v.shape, v.where, v.words(), v.evidence) for v in verdicts]),
    ]
    for name, (title, caption) in CAPTIONS.items():
        if name not in pictures:
            continue
        body.append(f'<figure id="{name}"><h2>{escape(title)}</h2>{picture(pictures[name], title)}')
        body.append(f"<figcaption>{escape(caption)}</figcaption></figure>")
        if name == "figure-5":
            body.append(table("Largest Omega, D = 1 ms", *omega_table(measured)))
            body.append("<p>†: a log was cut, lost messages beyond what the rules allow, or a run failed; see below.</p>")
    body.append(_runs(measured))
    footer = "Made by <code>make figures-theta</code> (<code>python -m ffclock.theta_figures</code>)."
    return document("Message delay correlation, measured again", body, footer)


def conditions(about: Mapping[str, Any]) -> str:
    """The conditions of the measurement."""
    busy = about["load"] > 0.2 * about["processors"]
    sentence = f"{about['processors']} processors, load of the last minute before: {about['load']:.2f}"
    return sentence + (": the machine was busy with other work." if busy else ".") + f" {about['extent']} {about['live'] or ''}".rstrip()


def _runs(measured: Sequence[Measured]) -> str:
    rows = []
    for found in measured:
        lost = sum(run.lost for run in found.runs)
        messages = sum(run.messages for run in found.runs)
        least = min((run.tau_min_s for run in found.runs), default=float("nan"))
        figures = (number_text(found.omega), number_text(found.g_r), time_text(found.tau_max_s), time_text(found.relevant_min_s))
        note = "" if found.is_whole else "; ".join((*found.failed, *(["not whole"] if found.runs else [])))[:200]
        rows.append((found.cell.where, found.cell.name, *figures, time_text(least), f"{messages}", f"{lost}", note, found.command))
    heads = ("", "cell", "Omega", "g_r", "tau+", "tau_r-", "tau-", "messages", "lost", "note", "command")
    return table("All cells", heads, rows)
