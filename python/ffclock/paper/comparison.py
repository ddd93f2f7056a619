"""Every scenario of the laboratory with every clock, and what the oracles say could have been reached: the table behind the figures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import polars as pl
from matplotlib.axes import Axes

from ..scales import time_text
from ..style import canvas, dress, styled, time_logarithmic
from .lan import OURS, png

# Net of half the path's asymmetry, which no clock can see, and which an oracle knows.
FIGURES: Final = (
    ("iqr", "Interquartile range"),
    ("net_p99", "99 % of the errors are below, net of the asymmetry"),
    ("net_max", "Largest error, net of the asymmetry"),
)
FEEDBACK: Final = ("pi", "ptpd", "pll", "regression")
_ORACLES: Final = ("oracle", "smoother")


@dataclass(frozen=True)
class Comparison:
    """Medians over seeds: one row per scenario, clock and figure, with columns ``scenario, clock, figure, value`` [s]."""

    frame: pl.DataFrame
    seeds: Sequence[int]

    def value(self, scenario: str, clock: str, figure: str) -> float | None:
        """One figure [s]; None where there is none."""
        found = self.frame.filter((pl.col("scenario") == scenario) & (pl.col("clock") == clock) & (pl.col("figure") == figure))["value"]
        return float(found[0]) if len(found) and found[0] is not None else None

    @property
    def scenarios(self) -> list[str]:
        """In the order of the laboratory."""
        return self.frame["scenario"].unique(maintain_order=True).to_list()

    @property
    def clocks(self) -> list[str]:
        """Ours first, oracles last."""
        return sorted(self.frame["clock"].unique().to_list(), key=lambda name: (dress(name).order, name))


def rows_of(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The figures of one result of ``ffclock-lab sim run --json`` over the whole time of its statistics."""
    found = []
    for clock in result["clocks"]:
        whole = next(window for window in clock["windows"] if window["name"] == "")
        for figure, _ in FIGURES:
            head = {"scenario": result["scenario"], "seed": result["seed"], "clock": clock["name"]}
            found.append({**head, "figure": figure, "value": whole[figure]})
    return found


def compare(results: Iterable[Mapping[str, Any]]) -> Comparison:
    """Medians over the seeds."""
    frame = pl.DataFrame([row for result in results for row in rows_of(result)], infer_schema_length=None)
    medians = frame.group_by(["scenario", "clock", "figure"], maintain_order=True).agg(pl.col("value").median())
    return Comparison(medians, sorted(frame["seed"].unique().to_list()))


def table(comparison: Comparison, figure: str) -> tuple[list[str], list[tuple[str, ...]]]:
    """Heads and rows of one figure: a column for each clock, the best that is no oracle in bold, and ours over the best feedback clock."""
    clocks = comparison.clocks
    heads = ["scenario", *(dress(name).label for name in clocks), "ours / best feedback"]
    with_oracle = "oracle" in clocks
    if with_oracle:
        heads.append("ours / oracle")
    rows = []
    ratios: dict[str, list[float]] = {"feedback": [], "oracle": []}
    for scenario in comparison.scenarios:
        values = {name: comparison.value(scenario, name, figure) for name in clocks}
        real = [value for name, value in values.items() if value is not None and name not in _ORACLES]
        best = min(real) if real else None
        cells = [("**" if value == best and name not in _ORACLES else "") + _text(value) for name, value in values.items()]
        over = [_ratio(values.get(OURS), _least(values, FEEDBACK)), _ratio(values.get(OURS), values.get("oracle"))]
        for kind, value in zip(ratios, over, strict=True):
            ratios[kind] += [value] if value is not None else []
        shown = over if with_oracle else over[:1]
        rows.append((scenario, *cells, *("-" if value is None else f"{value:.2f}" for value in shown)))
    means = [_geometric_mean(ratios[kind]) for kind in ("feedback", "oracle")[: 2 if with_oracle else 1]]
    rows.append(("geometric mean", *("" for _ in clocks), *means))
    return heads, rows


def _text(value: float | None) -> str:
    return "-" if value is None else time_text(value)


def _least(values: Mapping[str, float | None], names: Iterable[str]) -> float | None:
    known = [value for name in names if (value := values.get(name)) is not None]
    return min(known) if known else None


def _ratio(ours: float | None, theirs: float | None) -> float | None:
    return ours / theirs if ours is not None and theirs else None


def _geometric_mean(values: Sequence[float]) -> str:
    positive = [value for value in values if value > 0.0]
    return f"{float(np.exp(np.mean(np.log(positive)))):.2f}" if positive else "-"


def picture(comparison: Comparison) -> bytes:
    """A dot for each clock in each scenario: interquartile ranges at the left, 99 % at the right."""
    scenarios = comparison.scenarios
    with styled():
        drawn = canvas(14.0, 1.6 + 0.24 * len(scenarios))
        top = 1.0 - 0.75 / drawn.get_figheight()
        grid = {"left": 0.135, "right": 0.985, "top": top, "bottom": 0.6 / drawn.get_figheight(), "wspace": 0.05}
        panels = drawn.subplots(1, 2, sharey=True, gridspec_kw=grid)
        for axes, (figure, title) in zip(panels, FIGURES, strict=False):
            _dots(axes, comparison, figure)
            axes.set_title(title)
        panels[0].set_yticks(range(len(scenarios)), scenarios)
        panels[0].invert_yaxis()
        handles, labels = panels[0].get_legend_handles_labels()
        drawn.legend(
            handles, labels, loc="upper right", ncols=len(labels), bbox_to_anchor=(0.985, 1.0), handletextpad=0.1, columnspacing=1.0
        )
    return png(drawn)


def _dots(axes: Axes, comparison: Comparison, figure: str) -> None:
    places = range(len(comparison.scenarios))
    for name in reversed(comparison.clocks):
        values = [comparison.value(scenario, name, figure) for scenario in comparison.scenarios]
        known = [(value, place) for value, place in zip(values, places, strict=True) if value]
        if not known:
            continue
        look = dress(name)
        marker = "|" if name in _ORACLES else "o"
        size = 9 if name in _ORACLES else 7 if name == OURS else 5
        x, y = zip(*known, strict=True)
        axes.plot(
            x,
            y,
            linestyle="",
            marker=marker,
            markersize=size,
            markeredgewidth=1.8,
            color=look.colour,
            label=look.label,
            zorder=5 - 0.1 * look.order,
        )
    time_logarithmic(axes, "x")
    axes.set_ylim(-0.7, len(comparison.scenarios) - 0.3)
