"""What a bound chosen in calm is worth under load, of the logs of the campaign: the paper's conclusion, which it does not measure."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from ..program import Program
from .cells import Cell

SHARE: Final = 0.999
"""The share of the calm rounds that keep the bounds: as many as a calm run of some thousand rounds has more than."""
_RESAMPLES: Final = 199
_MODELS: Final = {"timeout": "timeout", "ratio": "ratio", "ratio-with-delay": "ratio with D"}


def is_compared(cell: Cell, most: int) -> bool:
    """Whether it is compared with the calm cell of its n: constant load at its most."""
    return is_calm(cell) or (cell.kind != "idle" and cell.level == most and is_usual(cell))


def is_calm(cell: Cell) -> bool:
    """Whether bounds are chosen of it."""
    return cell.kind == "idle" and is_usual(cell)


def is_usual(cell: Cell) -> bool:
    """Whether it is one of figures 3 to 6."""
    return (cell.pattern, cell.delay_us, cell.scheduling) == ("constant", 1000, "real-time")


def compare(program: Program, calm: Path, loaded: Path, trim: str) -> dict[str, Any]:
    """What of the answer of ``ffclock-lab theta coverage`` is kept: the chosen bounds, and the verdicts on them."""
    command = ["theta", "coverage", str(calm), "--under", str(loaded), "--share", str(SHARE)]
    answer = program.json([*command, "--trim", trim, "--resamples", str(_RESAMPLES)], allowed=(0, 1))
    return {key: answer[key] for key in ("share", "chosen", "verdicts")}


def words(coverage: Mapping[str, Any]) -> str:
    """The shares of loaded rounds that break each bound, with their intervals."""
    parts = []
    for bound in coverage["chosen"]:
        broken = bound["loaded"]["rounds"]
        shares = " to ".join(f"{broken[end]:.1%}" for end in ("low", "high"))
        parts.append(f"{_MODELS[bound['model']]} {broken['share']:.1%} ({shares})")
    return ", ".join(parts)


def ratio_holds(coverage: Mapping[str, Any]) -> bool:
    """Whether the ratio, without D, breaks in fewer rounds than the timeout, beyond chance."""
    return any(one["model"] == "ratio" and one["verdict"] == "ratio-holds" for one in coverage["verdicts"])
