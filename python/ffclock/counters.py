"""Draws what ``ffclock-lab counters`` recorded, beside the figures of the papers: ``python -m ffclock.counters RECORDING... -o DIR``.

DIR receives a picture for each figure and ``counters.md``, a page with the tables. Recordings of several hosts are merged: figure 18
shows their clocks side by side, and what else there is several times is drawn for each. What a recording does not have (a module,
HPET, ACPI) is named there as missing.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from .errors import missing

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.figure import Figure as Canvas

    from .counters_recording import Recording

_NEEDS: Final = "the figures need numpy, matplotlib and allantools"


def pictures(recordings: Sequence[Recording], beside: Sequence[Recording] = ()) -> dict[str, Canvas]:
    """The pictures of recordings by file name. Where there are several of one instrument, each has its own, with its number.

    Those of other machines, ``beside``, are in figure 18 alone.
    """
    from . import counters_figures as figures  # noqa: PLC0415  so that --help works without matplotlib

    makers: dict[str, dict[str, Callable[[Recording], Canvas | None]]] = {
        "latency": {
            "figure-14-latency": figures.latency_figure,
            "figure-15-kernel": figures.kernel_figure,
            "figure-16-user": figures.user_figure,
        },
        "stability": {"figure-12-stability": figures.stability_figure, "figure-13-rates": figures.rate_figure},
        "clock": {"figure-17-clocks": figures.clock_figure},
    }
    drawn: dict[str, Canvas | None] = {}
    for instrument, makes in makers.items():
        mine = [recording for recording in recordings if recording.instrument == instrument]
        for number, recording in enumerate(mine, 1):
            suffix = f"-{number}" if len(mine) > 1 else ""
            for name, make in makes.items():
                canvas = make(recording)
                if canvas is not None and len(mine) > 1:
                    canvas.suptitle(recording.machine.label, fontsize=8, x=0.99, ha="right")
                drawn[f"{name}{suffix}.png"] = canvas
    clocks = [recording for recording in (*beside, *recordings) if recording.instrument == "clock"]
    if clocks:
        drawn["figure-18-machines.png"] = figures.machine_figure(clocks)
    return {name: canvas for name, canvas in drawn.items() if canvas is not None}


def page(recordings: Sequence[Recording], inventory: dict[str, Any] | None, images: Sequence[str]) -> str:
    """The page ``counters.md``."""
    parts = ["# Counters of this machine, beside the papers' figures", ""]
    parts += _table_1(inventory)
    several = len({recording.machine for recording in recordings}) > 1
    for recording in recordings:
        if several:
            parts += [f"# {recording.machine.label}", ""]
        parts += {"latency": _latency, "stability": _stability, "clock": _clock}.get(recording.instrument, lambda _: [])(recording)
    parts += [f"![{Path(image).stem}]({image})\n" for image in images]
    parts += ["## Missing here", "", *[f"- {line}" for line in _missing(recordings, inventory)], ""]
    return "\n".join(parts)


def _rows(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return ["| " + " | ".join(cells) + " |" for cells in (heading, ["---"] * len(heading), *rows)] + [""]


def _table_1(inventory: dict[str, Any] | None) -> list[str]:
    from .counters_paper import TABLE_1  # noqa: PLC0415

    parts = ["## Table I", "", "In the papers:", "", *_rows(TABLE_1[0], TABLE_1[1:])]
    if inventory is None:
        return parts
    rows = [
        (item["name"], _hertz(item["hertz"]), "" if item["width"] is None else str(item["width"]), item["kernel"], item["access"])
        for item in inventory["counters"]
    ]
    heading = ("counter", "frequency", "size (bits)", "kernel", "read by")
    return [*parts, "Here:", "", *_rows(heading, rows), f"ffclock would use {inventory['choice']}: {inventory['reason']}.", ""]


def _hertz(hertz: float | None) -> str:
    if hertz is None:
        return "not known"
    return f"{hertz / 1e6:.6g} MHz"


def _latency(recording: Recording) -> list[str]:
    from .counters_paper import LATENCIES  # noqa: PLC0415

    paper = [
        (name, f"{value.median:.0f}", "" if value.iqr is None else f"{value.iqr:.0f}", value.source) for name, value in LATENCIES.items()
    ]
    parts = ["## Access latency", "", "In the papers, cycles:", "", *_rows(("what", "median", "IQR", "source"), paper)]
    phases = {phase.number: phase.name for phase in recording.phases}
    rows = [
        (
            f"{row['counter']} {row['access']}",
            row["arrangement"],
            phases.get(row["phase"], ""),
            str(row["count"]),
            *(f"{row['ticks'][key]:.0f}" for key in ("min", "median")),
            f"{row['ticks']['p75'] - row['ticks']['p25']:.0f}",
            *(f"{row['ticks'][key]:.0f}" for key in ("p95", "p99", "max")),
            f"{row['ns']['median']:.1f}",
        )
        for row in recording.of("figures")
    ]
    heading = ("what", "arrangement", "phase", "count", "min", "median", "IQR", "95 %", "99 %", "max", "median [ns]")
    parts += [f"Here, cycles of {recording.about['hertz'] / 1e9:.4g} GHz:", "", *_rows(heading, rows)]
    own = [
        (row["arrangement"], phases.get(row["phase"], ""), *(f"{row[key]:.1f}" for key in ("subtracted_ns", "left_ns", "left_iqr_ns")))
        for row in recording.of("overhead")
    ]
    own_heading = ("arrangement", "phase", "subtracted [ns]", "left [ns]", "IQR of what is left [ns]")
    return [*parts, "The instrument's own overhead:", "", *_rows(own_heading, own)]


def _stability(recording: Recording) -> list[str]:
    from .counters_figures import allan, is_against_reference, time_errors  # noqa: PLC0415

    rows = []
    for name, (t, x) in time_errors(recording).items():
        taus, adev, mdev = allan(t, x)
        rows += [(name, f"{tau:.3g}", f"{a:.2e}", f"{m:.2e}") for tau, a, m in zip(taus, adev, mdev, strict=True)]
    intro = (
        "In the papers: below 1e-6 at every scale above 10 s, below 1e-7 at large ones."
        if is_against_reference(recording)
        else "Against the CPU's own counter: the noise of reading, no oscillator's stability. `--against` names a reference."
    )
    return ["## Stability", "", intro, "", *_rows(("counter", "tau [s]", "Allan deviation", "modified"), rows)]


def _clock(recording: Recording) -> list[str]:
    phases = {phase.number: phase.name for phase in recording.phases}
    rows = [
        (
            row["counter"],
            row["stamps"],
            row.get("estimator", "classic"),
            phases.get(row["phase"], ""),
            str(row["count"]),
            *(f"{row[key] * 1e6:.3f}" for key in ("median_s", "iqr_s", "p1_s", "p99_s")),
            f"{row['count'] - row['outside']} of {row['count']}",
        )
        for row in recording.of("clock")
    ]
    intro = "In the papers: IQR about 7 µs with each counter, medians within 2 µs; medians at most 1.8 µs (CPU) and 1.1 µs (network) apart."
    heading = ("counter", "stamps", "estimator", "phase", "count", "median [µs]", "IQR [µs]", "1 % [µs]", "99 % [µs]", "bound held")
    return ["## Clocks of the same packets", "", intro, "", *_rows(heading, rows)]


def _missing(recordings: Sequence[Recording], inventory: dict[str, Any] | None) -> list[str]:
    missing = [f"{item['what']}: {item['remedy']}" for item in (inventory or {}).get("missing", [])]
    have = {recording.instrument for recording in recordings}
    missing += [f"a recording of `ffclock-lab counters {name}`" for name in ("latency", "stability", "clock") if name not in have]
    return missing or ["nothing"]


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m ffclock.counters",
        description="Draw recordings of `ffclock-lab counters` beside the papers' figures.",
        epilog="example: ffclock-lab counters latency --record latency.jsonl && python -m ffclock.counters latency.jsonl -o out",
    )
    parser.add_argument("recordings", type=Path, metavar="RECORDING", nargs="+", help="what `ffclock-lab counters ... --record` wrote")
    parser.add_argument("--inventory", type=Path, metavar="FILE", help="what `ffclock-lab counters --json` printed")
    parser.add_argument(
        "--beside", type=Path, metavar="RECORDING", nargs="+", default=[], help="the clocks of other machines, for figure 18 alone"
    )
    parser.add_argument("--guest", action="store_true", help="they were made in an emulated guest")
    parser.add_argument(
        "--pulse",
        nargs=2,
        metavar=("REFERENCE", "DEVIATION"),
        help="the reference that has white frequency noise of this Allan deviation at 1 s, to test the instrument by",
    )
    parser.add_argument("--command", default="ffclock-lab counters", metavar="TEXT", help="what made them, for the verdicts")
    parser.add_argument("-o", "--output", type=Path, default=Path(), metavar="DIR", help="where to put the figures (default: here)")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns 0, or 2 with one message on standard error if the input or the output directory is unusable."""
    options = _arguments(arguments)
    try:
        from . import counters_figures  # noqa: F401, PLC0415
        from .counters_recording import RecordingError, read_recording  # noqa: PLC0415
        from .counters_verdicts import KnownPulse, judge  # noqa: PLC0415
        from .evidence.verdict import write as write_verdicts  # noqa: PLC0415
    except ModuleNotFoundError as error:
        print(f"ffclock.counters: {missing(_NEEDS, error)}", file=sys.stderr)
        return 2
    try:
        recordings = [read_recording(path) for path in options.recordings]
        inventory = _inventory(options.inventory) if options.inventory else None
        options.output.mkdir(parents=True, exist_ok=True)
        beside = [read_recording(path) for path in options.beside]
        images = _draw(pictures(recordings, beside), options.output)
        pulse = KnownPulse(options.pulse[0], float(options.pulse[1])) if options.pulse else None
        verdicts = judge(recordings, ("guest" if options.guest else "live", options.command), pulse, beside)
        write_verdicts(options.output, verdicts)
        text = page(recordings, inventory, images)
        (options.output / "counters.md").write_text(text, encoding="utf-8")
    except (RecordingError, OSError) as error:
        print(f"ffclock.counters: {error}", file=sys.stderr)
        return 2
    except (KeyError, IndexError, TypeError, ValueError) as error:
        print(f"ffclock.counters: a record has not the fields of its kind ({error!r}); record again", file=sys.stderr)
        return 2
    print(options.output / "counters.md")
    return 0


def _inventory(path: Path) -> dict[str, Any]:
    import json  # noqa: PLC0415

    from .counters_recording import RecordingError  # noqa: PLC0415

    try:
        inventory = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise RecordingError(f"{path} is not what `ffclock-lab counters --json` prints: {error}") from error
    if not isinstance(inventory, dict) or "counters" not in inventory:
        raise RecordingError(f"{path} is not what `ffclock-lab counters --json` prints")
    return inventory


def _draw(drawn: dict[str, Canvas], directory: Path) -> list[str]:
    for name, canvas in drawn.items():
        canvas.savefig(directory / name, format="png")
    return list(drawn)


if __name__ == "__main__":
    sys.exit(main())
