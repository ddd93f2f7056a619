"""How far clocks are off that had no server for a while: ``python -m ffclock.live_figures.cut RUN...``.

Each RUN is a directory of ``ffclock-lab live run`` of the plan ``cut-16`` or ``outage-16``. Errors are sizes, less the median of the five
minutes before the cut: the median of the last minute of it, and the largest in the minute that begins one poll after it.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

from ..program import ProgramError
from ..tables import Floats
from .runs import read_samples

SHARES: Final = {"cut-16": (0.5, 0.8), "outage-16": (0.1, 0.95)}
"""Between which shares of a run its server is away (docs/live.md)."""

_POLL_LOG2: Final = 4
_BEFORE_S: Final = 300.0
_LOOKED_AT_S: Final = 60.0


def errors(run: Path) -> dict[str, tuple[float, float]]:
    """For each clock of a run the error at the end of the cut and the largest one poll after it [us]; NaN without a reading there."""
    about = json.loads((run / "run.json").read_text(encoding="utf-8"))
    if about["plan"] not in SHARES:
        raise ValueError(f"{run}: the server is never away in {about['plan']}")
    begin, end = (share * about["duration_s"] for share in SHARES[about["plan"]])
    poll_s = 2.0 ** (_POLL_LOG2 if about.get("poll_log2") is None else about["poll_log2"])
    with (run / "samples.csv").open(encoding="utf-8") as file:
        series, _ = read_samples(file)

    def within(times: Floats, errors: Floats, since: float, until: float) -> Floats:
        return errors[(times >= since) & (times < until)] * 1e6

    found = {}
    for name, (times, shown) in series.items():
        base = np.median(within(times, shown, begin - _BEFORE_S, begin))
        last = within(times, shown, end - _LOOKED_AT_S, end) - base
        after = within(times, shown, end + poll_s, end + poll_s + _LOOKED_AT_S) - base
        found[name] = (abs(float(np.median(last))), float(np.abs(after).max()) if after.size else float("nan"))
    return found


def text(runs: Sequence[dict[str, tuple[float, float]]]) -> str:
    """A table of the clocks that all runs have, in Markdown."""
    lines = ["| clock; us | at the end of the cut | one poll after it |", "|---|---|---|"]
    for name in runs[0]:
        if all(name in run for run in runs):
            end, after = (", ".join(f"{run[name][which]:.3g}" for run in runs) for which in (0, 1))
            lines.append(f"| {name} | {end} | {after} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m ffclock.live_figures.cut", description=__doc__.split("\n", 1)[0])
    parser.add_argument("runs", metavar="RUN", nargs="+", type=Path)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(arguments)
    try:
        found = [errors(run) for run in given.runs]
    except (OSError, ValueError, KeyError, ProgramError) as error:
        print(f"cut: {error}", file=sys.stderr)
        return 1
    print(json.dumps(found) if given.json else text(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
