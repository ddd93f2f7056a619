"""The verdict on one value or shape of a paper, and the file in which a tool of figures leaves its verdicts."""

from __future__ import annotations

import datetime
import json
import math
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Final, Literal

Status = Literal["live", "guest", "simulated"]
Outcome = Literal["as in the paper", "shape only", "differs", "not measured"]

FACTOR: Final = 2.0
"""Within it a value is the paper's."""
WITHIN: Final = f"value within a factor of {FACTOR:g}"
"""The test of a value, in words."""
FILE: Final = "verdicts.json"
"""The name of the file below the directory of each tool."""
_FORMAT: Final = "ffclock-verdicts-1"
_STATUSES: Final = ("live", "guest", "simulated")
_OUTCOMES: Final = ("as in the paper", "shape only", "differs", "not measured")


class VerdictError(ValueError):
    """A file holds no verdicts: the message says which."""


def is_near(ours_over_paper: float, factor: float = FACTOR) -> bool:
    """Whether a value is within the factor of the paper's; a value of the other sign, zero or none at all is not."""
    return math.isfinite(ours_over_paper) and 1.0 / factor <= ours_over_paper <= factor


def outcome(ratio: float | None, holds: bool | None, factor: float = FACTOR) -> Outcome:
    """The verdict from our value over the paper's, which may be apart by the factor, and from whether the shape holds.

    Either is None where nothing is asked for.

    A value that does not have the paper's shape differs, however near it is.
    """
    if ratio is None and holds is None:
        return "not measured"
    if holds is False:
        return "differs"
    if ratio is not None and is_near(ratio, factor):
        return "as in the paper"
    return "shape only" if holds else "differs"


@dataclass(frozen=True)
class Verdict:
    """One line of evidence."""

    figure: str
    """Its key in :data:`ffclock.evidence.catalogue.FIGURES`."""
    status: Status
    what: str
    paper: str
    ours: str
    ratio: float | None
    """Our value over the paper's; None where the paper gives no value."""
    test: str
    """What makes it fail."""
    outcome: Outcome
    command: str
    date: str = ""
    """When it was measured, UTC; empty until it is written, for what was measured just then."""


def update(directory: Path, verdicts: Iterable[Verdict]) -> Path:
    """As :func:`write`, but what the file holds of other figures is kept: a tool that drew some of its figures did not judge the rest."""
    new = list(verdicts)
    fresh = {verdict.figure for verdict in new}
    path = directory / FILE
    old = [verdict for verdict in read(path) if verdict.figure not in fresh] if path.is_file() else []
    return write(directory, [*old, *new])


def write(directory: Path, verdicts: Iterable[Verdict]) -> Path:
    """Writes the verdicts below a directory, which is there; returns the file."""
    now = date_text(time.time())
    rows = [{**asdict(verdict), "ratio": _plain(verdict.ratio), "date": verdict.date or now} for verdict in verdicts]
    path = directory / FILE
    path.write_text(json.dumps({"format": _FORMAT, "verdicts": rows}, indent=1) + "\n", encoding="utf-8")
    return path


def date_text(unix_s: float) -> str:
    """A time [s since 1970] as verdicts have it, UTC."""
    return datetime.datetime.fromtimestamp(unix_s, datetime.timezone.utc).strftime("%Y-%m-%d %H:%M")


def _plain(ratio: float | None) -> float | None:
    return ratio if ratio is not None and math.isfinite(ratio) else None


def read(path: Path) -> list[Verdict]:
    """The verdicts of a file; :class:`VerdictError` if it holds anything else."""
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
        if held["format"] != _FORMAT:
            raise VerdictError(f"{path}: not written by this version")
        found = [Verdict(**{field.name: row[field.name] for field in fields(Verdict)}) for row in held["verdicts"]]
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise VerdictError(f"{path}: no verdicts of a tool of figures") from error
    for verdict in found:
        if verdict.status not in _STATUSES or verdict.outcome not in _OUTCOMES:
            raise VerdictError(f"{path}: {verdict.status!r} or {verdict.outcome!r} is no word of a verdict")
    return found
