"""The page of all figures: captions, findings and tables around the pictures."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from ..page import document, picture, table
from .comparison import FIGURES
from .comparison import table as comparison_table

if TYPE_CHECKING:
    from .comparison import Comparison
    from .findings import Figure


def page(introduction: str, figures: Sequence[Figure], compared: tuple[Comparison | None, bytes]) -> str:
    """One page that holds everything."""
    comparison, overview = compared
    body = [introduction, _summary(figures), *(_figure(figure) for figure in figures)]
    if comparison is not None:
        body += _tables(comparison, overview)
    footer = "Made by <code>make figures</code> (<code>python -m ffclock.paper</code>). Errors are clock minus true time."
    return document("The case for feed-forward clocks, simulated", body, footer)


def _summary(figures: Sequence[Figure]) -> str:
    rows = [
        (f"Figure {figure.number}", figure.title, "✓ nothing differs" if figure.agrees else "✗ differs, see there") for figure in figures
    ]
    return table("Shape", ("figure", "", "shape"), rows)


def _figure(figure: Figure) -> str:
    commands = "<br>".join(f"<code>{escape(command)}</code>" for command in figure.commands)
    findings = table("", ("what", "paper", "here", "here / paper", "fails unless", ""), [finding.row() for finding in figure.findings])
    return (
        f'<figure id="{figure.name}"><h2>Figure {escape(figure.number)}: {escape(figure.title)}</h2>'
        f"{picture(figure.png, figure.title)}\n<figcaption><p>Counterpart of figure {escape(figure.number)} of the paper. "
        f"{escape(figure.caption)}</p>\n{findings}\n<p>{commands}</p></figcaption></figure>"
    )


def _tables(comparison: Comparison, overview: bytes) -> list[str]:
    seeds = ", ".join(map(str, comparison.seeds))
    parts = [
        f"<h2>All clocks in all scenarios</h2><p>Medians over the seeds {escape(seeds)}; the best clock of each row is bold. "
        f"<code>ffclock-lab sim run NAME --seed N --json</code>{_about_oracles(comparison)}</p>",
        f"<figure>{picture(overview, 'Interquartile ranges and 99 % of the errors of all clocks in all scenarios')}</figure>",
    ]
    for figure, title in FIGURES:
        heads, rows = comparison_table(comparison, figure)
        parts.append(table(title, heads, rows))
    return parts


def _about_oracles(comparison: Comparison) -> str:
    if "oracle" not in comparison.clocks:
        return ""
    return " with <code>--oracle</code>: the oracles know the laws of the world, and show how well any clock could have done."
