"""``python -m ffclock.live_figures``: runs, judges, draws, and writes one page with the results beside it."""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ..errors import missing

if TYPE_CHECKING:
    from ..evidence.verdict import Verdict
    from .runs import Live
    from .verdicts import Claim

_CHECKOUT: Final = Path(__file__).resolve().parents[3]
_NEEDS: Final = "the figures need numpy and matplotlib"
_FORMAT: Final = "ffclock-live-figures-1"
_SHORTEST_S: Final = 60


def write(output: Path, runs: Sequence[Live], found: tuple[Sequence[Claim], Mapping[str, Any]]) -> Path:
    """Writes the pictures, the results as JSON and the page; returns the page."""
    from ..evidence.verdict import update  # noqa: PLC0415
    from .drawing import drawing  # noqa: PLC0415
    from .page import page  # noqa: PLC0415

    claims, about = found
    output.mkdir(parents=True, exist_ok=True)
    drawn = [(run, drawing(run)) for run in runs]
    for run, png in drawn:
        (output / f"{run.setting.name}.png").write_bytes(png)
    results = {
        "format": _FORMAT,
        "about": dict(about),
        "claims": [{**vars(claim), "outcome": claim.outcome} for claim in claims],
        "runs": {run.setting.name: {"command": run.command, **run.summary} for run in runs},
    }
    update(output, _verdicts(claims, runs, f"tools/figures-live --seconds {about['seconds']}"))
    (output / "results.json").write_text(json.dumps(_plain(results), indent=1), encoding="utf-8")
    path = output / "index.html"
    path.write_text(page(drawn, claims, about), encoding="utf-8")
    return path


def _verdicts(claims: Sequence[Claim], runs: Sequence[Live], command: str) -> Iterator[Verdict]:
    """Those for the page of evidence: what was there already has the date of its runs, and not that of this command."""
    from ..evidence.verdict import date_text  # noqa: PLC0415

    for claim in claims:
        ended_s = max(run.ended_s for run in runs if run.is_long == bool(claim.command))
        yield replace(claim.verdict(command), date=date_text(ended_s))


def _plain(value: Any) -> Any:
    """The same with null in place of what is no number, which JSON does not have."""
    if isinstance(value, Mapping):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m ffclock.live_figures",
        description="Run daemons live for the counterparts of figures 2 to 8, 10 and 11 of the paper, with a verdict for each value.",
        epilog="example: python -m ffclock.live_figures -o target/figures-live",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        default=Path("target/figures-live"),
        metavar="DIR",
        help="where everything goes; runs that are there already are kept",
    )
    parser.add_argument(
        "--seconds",
        type=int,
        default=200,
        metavar="N",
        help="the length of each run but that of figure 8, which is twice as long (default: 200)",
    )
    parser.add_argument(
        "--long",
        type=Path,
        nargs="*",
        metavar="RUN",
        help="runs of quiet-256, from which figure 10 is made (default: out/quiet-256*, where there are some)",
    )
    parser.add_argument("--peers", type=Path, metavar="DIR", help="where the other daemons are (default: tools/peers)")
    parser.add_argument("--ffclock-lab", type=Path, metavar="PATH", help="the command to be run (default: as ffclock.report)")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns 0, or 2 with one message on standard error if something is missing or fails."""
    options = _arguments(arguments)
    begun = time.monotonic()
    if options.seconds < _SHORTEST_S:
        print(f"ffclock.live_figures: --seconds {options.seconds}: clocks need {_SHORTEST_S} s at the least", file=sys.stderr)
        return 2
    try:
        from ..paper.worlds import Laboratory  # noqa: PLC0415
        from ..program import Program, ProgramError  # noqa: PLC0415
        from .far import several_servers, weeks  # noqa: PLC0415
        from .page import conditions  # noqa: PLC0415
        from .runs import LONG, long_runs, measure  # noqa: PLC0415
        from .simulated import simulate  # noqa: PLC0415
        from .verdicts import judge  # noqa: PLC0415

        program = Program.find(options.ffclock_lab)
        about = {"processors": os.cpu_count() or 1, "load": os.getloadavg()[0], "seconds": options.seconds}
        there = (path for path in sorted(Path("out").glob(f"{LONG}*")) if path.is_dir())
        hours = long_runs(program, there if options.long is None else options.long)
        runs = measure(program, options.output, (options.seconds, options.peers))
        simulated = simulate(Laboratory(program, _CHECKOUT / "scenarios" / "paper", 1))
        claims = [*judge(runs, simulated), *several_servers(runs[-1], simulated), *weeks(hours, simulated)]
        claims.sort(key=lambda claim: claim.figure)
        path = write(options.output, [*runs, *hours], (claims, about))
    except ModuleNotFoundError as error:
        print(f"ffclock.live_figures: {missing(_NEEDS, error)}", file=sys.stderr)
        return 2
    except (ProgramError, OSError) as error:
        print(f"ffclock.live_figures: {error}", file=sys.stderr)
        return 2
    print(conditions(about))
    for claim in claims:
        print("  ".join((f"{claim.row()[0]:<9}", f"{claim.row()[5]:<17}", claim.what, *claim.row()[2:5])))
    print(f"{path} ({time.monotonic() - begun:.0f} s)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
