"""Figure 12: what the clock says of the past, stamps by their age and intervals by their length. The paper has no such figure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from matplotlib.axes import Axes

from ..scales import time_text
from ..style import canvas, styled, time_logarithmic
from .findings import Figure, Finding
from .lan import png
from .worlds import Laboratory

_WORLDS: Final = {"lan-16": "LAN, poll 16 s", "near-64": "0.89 ms away, poll 64 s"}
_STAMPS: Final = {"newest_line": ("newest line alone", "#b2182b"), "history": ("history", "#2166ac")}
_INTERVALS: Final = {
    "difference": ("difference clock", "#b2182b"),
    "absolute": ("two conversions", "#e08214"),
    "elapsed": ("elapsed", "#2166ac"),
}


def figure_12(lab: Laboratory) -> Figure:
    """Old stamps and long intervals."""
    answers = {name: _judged(lab, name) for name in _WORLDS}
    with styled():
        picture = canvas(14.0, 9.4)
        room = {"left": 0.07, "right": 0.985, "top": 0.945, "bottom": 0.07, "hspace": 0.3, "wspace": 0.17}
        panels = picture.subplots(2, 2, gridspec_kw=room)
        for row, (name, about) in zip(panels, _WORLDS.items(), strict=True):
            _draw(row[0], answers[name]["stamps"], ("age_s", _STAMPS))
            _draw(row[1], answers[name]["intervals"], ("length_s", _INTERVALS))
            row[0].set_title(f"{about}: stamps by their age")
            row[1].set_title(f"{about}: intervals by their length")
            row[1].axvline(answers[name]["critical_s"], color="#777777", linewidth=1.0, linestyle=":")
    text = (
        "The sizes of the learned clock's errors, medians (solid) and 99th percentiles (dashed). Left: stamps of the last "
        "day, converted by the newest line alone and by the history that ffclockd keeps. Right: intervals that end at the "
        "present; the dotted line is the critical scale that the clock states."
    )
    commands = tuple(f"ffclock-lab sim past {name} --seed {lab.seed}" for name in _WORLDS)
    findings = tuple(finding for name, about in _WORLDS.items() for finding in _findings(about, answers[name]))
    return Figure("12", "Old stamps and long intervals", text, png(picture), commands, findings)


def _judged(lab: Laboratory, name: str) -> dict[str, Any]:
    answer: dict[str, Any] = lab.program.json(["sim", "past", name, "--seed", str(lab.seed)])
    return answer


def _draw(axes: Axes, rows: Sequence[dict[str, Any]], columns: tuple[str, dict[str, tuple[str, str]]]) -> None:
    place, ways = columns
    across = [row[place] for row in rows]
    for way, (label, colour) in ways.items():
        for share, line in (("p50", "-"), ("p99", "--")):
            sizes = [row[way][share] for row in rows]
            axes.plot(across, sizes, line, color=colour, linewidth=1.6, label=label if share == "p50" else None)
    axes.set_xscale("log")
    axes.set_yscale("log")
    time_logarithmic(axes, "x")
    time_logarithmic(axes, "y")
    axes.legend(loc="upper left", frameon=False)


def _findings(about: str, answer: dict[str, Any]) -> tuple[Finding, ...]:
    fresh = answer["stamps"][0]["history"]["p50"]
    oldest = max(row["history"]["p50"] for row in answer["stamps"])
    worst = max(
        row["elapsed"][share] / min(row["difference"][share], row["absolute"][share])
        for row in answer["intervals"]
        for share in ("p50", "p99")
    )
    return (
        Finding(
            f"{about}: stamp of any age over a fresh one, median error", "not shown", f"{oldest / fresh:.2f}; fresh {time_text(fresh)}"
        ),
        Finding(f"{about}: interval over the better of both ways, worst of p50 and p99", "not shown", f"{worst:.2f}"),
        Finding(f"{about}: critical scale", "not shown", time_text(answer["critical_s"])),
    )
