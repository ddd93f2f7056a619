"""``python -m ffclock.theta_figures``: measures, judges, draws, and writes one page with PNG files beside it."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ..errors import missing

if TYPE_CHECKING:
    from .cells import Measured
    from .verdicts import Verdict

_NEEDS: Final = "the figures need numpy and matplotlib"
_FORMAT: Final = "ffclock-theta-figures-1"


class ResultsError(ValueError):
    """The file holds no results of an earlier run."""


def write(output: Path, measured: Sequence[Measured], about: Mapping[str, Any]) -> tuple[Path, list[Verdict]]:
    """Writes PNG files, the results as JSON and the page; returns the page and the verdicts."""
    from ..evidence.verdict import write as write_verdicts  # noqa: PLC0415
    from . import drawing  # noqa: PLC0415
    from .page import page  # noqa: PLC0415
    from .verdicts import evidence, judge  # noqa: PLC0415

    output.mkdir(parents=True, exist_ok=True)
    pictures = {
        "figure-3": drawing.delays(measured, "tau+", "tau_max_s"),
        "figure-4": drawing.delays(measured, "tau_r-", "relevant_min_s", is_least=True),
        "figure-5": drawing.omega(measured),
        "figure-6": drawing.correlation(measured),
        "figure-7": drawing.histograms(measured),
        "figure-8": drawing.ratios(measured),
        "comparisons": drawing.comparisons(measured),
    }
    drawn = {name: drawing.png(picture) for name, picture in pictures.items() if picture is not None}
    for name, picture in drawn.items():
        (output / f"{name}.png").write_bytes(picture)
    for found in measured:
        if found.scenario:
            (output / "scenarios").mkdir(exist_ok=True)
            (output / "scenarios" / f"{found.cell.slug}.toml").write_text(found.scenario, encoding="utf-8")
    verdicts = judge(measured)
    results = {"format": _FORMAT, "about": dict(about), "measured": [found.json() for found in measured]}
    (output / "results.json").write_text(json.dumps(results), encoding="utf-8")
    write_verdicts(output, evidence(measured, about.get("command", "tools/figures-theta")))
    path = output / "index.html"
    path.write_text(page(measured, verdicts, drawn, about), encoding="utf-8")
    return path, verdicts


def read_results(path: Path) -> tuple[list[Measured], dict[str, Any]]:
    """What an earlier run measured, and under which conditions; :class:`ResultsError` if the file is something else."""
    from .cells import Measured  # noqa: PLC0415

    try:
        results = json.loads(path.read_text(encoding="utf-8"))
        if results["format"] != _FORMAT:
            raise ResultsError(f"{path}: not written by this version")
        return [Measured.from_json(found) for found in results["measured"]], results["about"]
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise ResultsError(f"{path}: no results of ffclock.theta_figures") from error


def _measure(options: argparse.Namespace) -> tuple[Path, list[Verdict], dict[str, Any]]:
    """Measures and writes. What is measured is kept until all is written, so that an interruption loses one cell."""
    from ..program import Program, ProgramError  # noqa: PLC0415
    from .campaign import LONG, SHORT, Extent, Kept, measure, namespaces_missing, softirqs_missing  # noqa: PLC0415
    from .cells import LOADED_BY  # noqa: PLC0415

    program = Program.find(options.ffclock_lab)
    extent = SHORT if options.short else LONG if options.long else Extent()
    missing = "left out by --no-live" if options.no_live else namespaces_missing()
    if missing:
        print(f"SKIP: no live runs: {missing}", file=sys.stderr)
        if options.softirq:
            raise ProgramError("--softirq loads live runs, and there are none")
    elif options.softirq:
        # Figures of another load than was asked for would be mistaken for it.
        if reason := softirqs_missing(program):
            raise ProgramError(f"--softirq: {reason}")
        extent = replace(extent, source="softirq")
    about = {
        "command": "tools/figures-theta"
        + (" --short" if options.short else " --long" if options.long else "")
        + (" --softirq" if options.softirq else ""),
        "processors": os.cpu_count() or 1,
        "load": os.getloadavg()[0],
        "extent": f"Live: {extent.live_runs} runs of {extent.live_rounds_tested} rounds a cell of constant load and {extent.live_rounds} "
        f"of any other, in network namespaces, with processors loaded by {LOADED_BY[extent.source]}; simulated: "
        f"{extent.simulated_runs} runs of {extent.simulated_rounds} rounds.",
        "live": f"No live runs: {missing}." if missing else "",
    }
    kept = Kept(options.output / "cells", extent, resume=options.resume)
    path, verdicts = write(options.output, measure(program, extent, missing is None, kept), about)
    kept.remove()
    return path, verdicts, about


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m ffclock.theta_figures",
        description="Regenerate figures 3 to 8 and the Omega table of the paper on message delay correlation, live here and simulated, "
        "with a verdict for each shape.",
        epilog="example: python -m ffclock.theta_figures -o target/figures-theta",
    )
    parser.add_argument("-o", "--output", type=Path, default=Path("target/figures-theta"), metavar="DIR", help="where everything goes")
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--short", action="store_true", help="few and short runs, to see that everything works")
    length.add_argument("--long", action="store_true", help="as long as the paper's: five live runs of 30 s a cell, some hours")
    parser.add_argument(
        "--resume", action="store_true", help="go on with a measuring that was interrupted; its other options must be the same"
    )
    parser.add_argument("--no-live", action="store_true", help="simulated runs only; live ones need root")
    parser.add_argument(
        "--softirq", action="store_true", help="load processors by soft interrupts, as the paper did by interrupts (built with eBPF; root)"
    )
    parser.add_argument("--results", type=Path, metavar="FILE", help="draw and judge the results.json of an earlier run again")
    parser.add_argument("--ffclock-lab", type=Path, metavar="PATH", help="the command to be run (default: as ffclock.report)")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns 0, or 2 with one message on standard error if something is missing or fails."""
    options = _arguments(arguments)
    begun = time.monotonic()
    try:
        from ..program import ProgramError  # noqa: PLC0415

        if options.results:
            measured, about = read_results(options.results)
            path, verdicts = write(options.output, measured, about)
        else:
            path, verdicts, about = _measure(options)
    except ModuleNotFoundError as error:
        print(f"ffclock.theta_figures: {missing(_NEEDS, error)}", file=sys.stderr)
        return 2
    except (ProgramError, ResultsError, OSError) as error:
        print(f"ffclock.theta_figures: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("ffclock.theta_figures: interrupted; --resume goes on with the cells that are measured", file=sys.stderr)
        return 130
    from .page import conditions  # noqa: PLC0415

    print(conditions(about))
    for verdict in verdicts:
        print(f"{verdict.where:<9}  {verdict.words():<24}  {verdict.shape}: {verdict.evidence}")
    print(f"{path} ({time.monotonic() - begun:.0f} s)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
