"""``python -m ffclock.paper``: the figures as PNG, the table as CSV, and one page that holds everything."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ..errors import missing

if TYPE_CHECKING:
    from .comparison import Comparison
    from .findings import Figure
    from .making import Plan

_CHECKOUT: Final = Path(__file__).resolve().parents[3]
_FIRST, _LAST = 2, 12
_OURS: Final = 12
"""The figure that the paper does not have."""

_NEEDS: Final = "the figures need allantools, numpy, matplotlib and polars"

_INTRODUCTION: Final = """<p>Simulated counterparts of figures 2 to 11 of J. Ridoux, D. Veitch, T. Broomhead, <em>The Case for
Feed-Forward Clock Synchronization</em>. The worlds are those of the laboratory (docs/sim.md): all clocks see the same packets, and errors
are clock minus true time, read between exchanges. The paper measured real hosts and networks; what can be compared is the shape, and a
value of the paper stands beside ours wherever it gives one. Figure 12, of old stamps and long intervals, has no counterpart.
ffclock is this project's own estimator; the classic one is the algorithm that the paper measured.</p>"""


def write(output: Path, figures: Sequence[Figure], comparison: Comparison | None) -> Path:
    """Writes PNG files, the table as CSV, the verdicts and the page; returns the page."""
    from ..evidence.verdict import update  # noqa: PLC0415
    from .comparison import picture  # noqa: PLC0415
    from .page import page  # noqa: PLC0415

    output.mkdir(parents=True, exist_ok=True)
    for figure in figures:
        (output / f"{figure.name}.png").write_bytes(figure.png)
    overview = b""
    if comparison is not None:
        overview = picture(comparison)
        (output / "table.png").write_bytes(overview)
        comparison.frame.write_csv(output / "table.csv")
    update(output, (verdict for figure in figures if int(figure.number) < _OURS for verdict in figure.verdicts()))
    path = output / "index.html"
    path.write_text(page(_INTRODUCTION, figures, (comparison, overview)), encoding="utf-8")
    return path


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m ffclock.paper",
        description="Regenerate the counterparts of figures 2 to 11 of the paper, figure 12 of old stamps and intervals, and a table.",
        epilog="example: python -m ffclock.paper -o target/figures --only 2 7 --no-table",
    )
    parser.add_argument("-o", "--output", type=Path, default=Path("target/figures"), metavar="DIR", help="where everything goes")
    parser.add_argument("--seed", type=int, default=1, help="the seed of the figures (default: 1)")
    parser.add_argument("--only", type=int, nargs="+", choices=range(_FIRST, _LAST + 1), metavar="N", help="these figures instead of all")
    parser.add_argument("--table-seeds", type=int, default=3, metavar="N", help="the table has medians over the seeds 1 to N (default: 3)")
    parser.add_argument("--table-scenarios", nargs="+", metavar="NAME", help="the table has these scenarios instead of all")
    parser.add_argument("--no-table", action="store_true", help="figures only")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="processes (default: one a processor)")
    parser.add_argument("--ffclock-lab", type=Path, metavar="PATH", help="the command that simulates (default: as ffclock.report)")
    parser.add_argument(
        "--scenarios",
        type=Path,
        default=_CHECKOUT / "scenarios" / "paper",
        metavar="DIR",
        help="the paper's worlds (default: this checkout's)",
    )
    return parser.parse_args(arguments)


def of_one_server(listed: Sequence[Mapping[str, Any]]) -> list[str]:
    """The scenarios of the table: those without a list of servers, in which other clocks run and no oracle."""
    return [line["name"] for line in listed if line["servers"] == 0]


def _plan(options: argparse.Namespace) -> Plan:
    from ..program import Program, ProgramError  # noqa: PLC0415
    from .making import Plan  # noqa: PLC0415
    from .worlds import Laboratory  # noqa: PLC0415

    program = Program.find(options.ffclock_lab)
    if not options.scenarios.is_dir():
        raise ProgramError(f"{options.scenarios}: no such directory; name the one that has the paper's scenarios with --scenarios DIR")
    listed = [] if options.no_table else options.table_scenarios or of_one_server(program.json(["sim", "list"]))
    figures = options.only or range(_FIRST, _LAST + 1)
    lab = Laboratory(program, options.scenarios, options.seed)
    return Plan(lab, figures, listed, range(1, options.table_seeds + 1), max(options.jobs, 1))


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns 0, or 2 with one message on standard error if something is missing or fails."""
    options = _arguments(arguments)
    begun = time.monotonic()
    try:
        from ..evidence.verdict import VerdictError  # noqa: PLC0415
        from ..program import ProgramError  # noqa: PLC0415
        from ..tables import RunError  # noqa: PLC0415
        from .making import make  # noqa: PLC0415

        figures, comparison = make(_plan(options))
        path = write(options.output, figures, comparison)
    except ModuleNotFoundError as error:
        print(f"ffclock.paper: {missing(_NEEDS, error)}", file=sys.stderr)
        return 2
    except (ProgramError, RunError, VerdictError, OSError) as error:
        print(f"ffclock.paper: {error}", file=sys.stderr)
        return 2
    for figure in figures:
        for finding in figure.findings:
            mark = "-" if finding.outcome == "not measured" else finding.outcome
            print(f"figure {figure.number:>2}  {mark:<15}  {finding.what}: {finding.ours}")
    print(f"{path} ({time.monotonic() - begun:.0f} s)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
