"""What is wrong with a picture, as far as a program can see it: axes without labels, and colours that mean two things."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure


def faults(made: Figure) -> list[str]:
    """A sentence for each fault. The inner axes of a grid may leave their labels to those at its left and below."""
    shown = [axes for axes in made.axes if axes.axison]
    found = []
    for axes in shown:
        name = axes.get_title(loc="left") or axes.get_title() or "axes without a title"
        if not any(other.get_xlabel() for other in shown if _is_beyond(axes, other, below=True)):
            found.append(f"{name}: no label of x")
        if not any(other.get_ylabel() for other in shown if _is_beyond(axes, other, below=False)):
            found.append(f"{name}: no label of y")
        looks: dict[tuple[Any, ...], str] = {}
        for artist, label in zip(*axes.get_legend_handles_labels(), strict=True):
            look = _look(artist)
            if looks.setdefault(look, label) != label:
                found.append(f"{name}: {looks[look]} and {label} look the same")
    return found


def _is_beyond(axes: Axes, other: Axes, *, below: bool) -> bool:
    """Whether ``other`` is ``axes``, or in its column below it, or in its row at its left."""
    here, there = axes.get_subplotspec(), other.get_subplotspec()
    if axes is other or here is None or there is None:
        return axes is other
    if below:
        return here.colspan == there.colspan and there.rowspan.start >= here.rowspan.start
    return here.rowspan == there.rowspan and there.colspan.start <= here.colspan.start


def _look(artist: Any) -> tuple[Any, ...]:
    if hasattr(artist, "get_linestyle") and hasattr(artist, "get_marker"):
        return to_hex(artist.get_color()), str(artist.get_linestyle()), str(artist.get_marker())
    if hasattr(artist, "lines"):
        return _look(artist.lines[0])
    return (to_hex(artist.get_facecolor()),)
