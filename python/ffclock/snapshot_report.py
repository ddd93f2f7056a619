"""Draws the clocks of a guest that was stopped and restored: ``python -m ffclock.snapshot_report DIR``.

DIR has ``readings.csv`` and ``events.csv`` of ``tests/vm/run snapshot DIR``. It receives ``snapshot.png``, ``snapshot.json`` and
``snapshot.html``; the page holds the picture inside itself, runs no script and loads nothing.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from . import page
from .errors import missing

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_NEEDS: Final = "the report needs matplotlib"

_FOOTER: Final = """The truth is the system clock of the host, which served the independent ffclock and chronyd their time; the dependent
ffclock has no server, it takes the time from the page that an ffclock of the host is fed into. An error is known to within half the time
that the answer took; a reading is outside its bound where its error is larger than both together. chronyd's bound is the largest error
that it states to the guest's kernel. docs/events.md, "Virtual machines"."""

_OURS: Final = ("independent", "dependent")
_CLOCKS: Final = (*_OURS, "chronyd")
# What begins an absence, what ends it, and its name.
_ABSENCES: Final = (("stopped", "continued", "stop and cont"), ("saved and ended", "restored", "save and restore"))
# Smaller errors are drawn here.
_FLOOR_S: Final = 1e-7


class RunError(ValueError):
    """The directory holds no such run."""


@dataclass(frozen=True)
class Reading:
    """What one clock answered."""

    at_s: float
    half_s: float
    """Half the time that the answer took."""
    error_s: float | None
    """Clock minus truth; none where it gave no time."""
    bound_s: float | None

    @property
    def certain_error_s(self) -> float:
        """The part of its error that does not come from the time that the answer took."""
        return max(0.0, abs(self.error_s or 0.0) - self.half_s)

    @property
    def is_outside(self) -> bool:
        """Whether it is wrong by more than it states."""
        return self.error_s is not None and self.bound_s is not None and self.certain_error_s > self.bound_s


@dataclass(frozen=True)
class Absence:
    """A time in which the guest did not run."""

    name: str
    begin_s: float
    end_s: float

    def is_over(self, reading: Reading) -> bool:
        """Whether the guest answered after it. What is asked just before it runs again is answered after it, too."""
        return reading.at_s > (self.begin_s + self.end_s) / 2.0


@dataclass(frozen=True)
class Run:
    """The clocks over the same time, which begins with 0."""

    clocks: dict[str, list[Reading]]
    absences: list[Absence]

    def part(self, reading: Reading) -> int:
        """The number of absences before it."""
        return sum(absence.is_over(reading) for absence in self.absences)


def _number(text: str) -> float | None:
    return None if text == "-" else float(text) * 1e-9


def read_run(directory: Path) -> Run:
    """The run in ``directory``; RunError if there is none."""
    try:
        with (directory / "events.csv").open(encoding="utf-8", newline="") as lines:
            events = {name: float(at) for at, name in csv.reader(lines)}
        with (directory / "readings.csv").open(encoding="utf-8", newline="") as lines:
            rows = list(csv.DictReader(lines))
        begin = float(rows[0]["at_s"])
        clocks: dict[str, list[Reading]] = {name: [] for name in _CLOCKS}
        for row in rows:
            reading = Reading(float(row["at_s"]) - begin, float(row["half_ns"]) * 1e-9, _number(row["error_ns"]), _number(row["bound_ns"]))
            clocks[row["clock"]].append(reading)
        absences = [Absence(name, events[first] - begin, events[last] - begin) for first, last, name in _ABSENCES]
        return Run(clocks, absences)
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise RunError(f"no run of tests/vm/run snapshot: {error!r}") from error


def _part_figures(readings: Sequence[Reading]) -> dict[str, Any]:
    """What is said of the readings between two absences."""
    errors = sorted(reading.error_s for reading in readings if reading.error_s is not None)
    bounds = [reading.bound_s for reading in readings if reading.error_s is not None and reading.bound_s is not None]
    quartiles = statistics.quantiles(errors, n=4) if len(errors) >= 2 else None
    return {
        "readings": len(readings),
        "with_time": len(errors),
        "error_iqr_s": quartiles[2] - quartiles[0] if quartiles else None,
        "error_median_s": statistics.median(errors) if errors else None,
        "largest_error_s": max((reading.certain_error_s for reading in readings if reading.error_s is not None), default=None),
        "bound_median_s": statistics.median(bounds) if bounds else None,
    }


def _absence_figures(absence: Absence, readings: Sequence[Reading]) -> dict[str, Any]:
    """What is said of the readings from the end of an absence on, up to the next one."""
    timed = [reading for reading in readings if reading.error_s is not None]
    right = [reading for reading in timed if abs(reading.error_s or 0.0) < 0.01]
    return {
        "first_time_after_s": max(0.0, timed[0].at_s - absence.end_s) if timed else None,
        "within_10_ms_after_s": max(0.0, right[0].at_s - absence.end_s) if right else None,
        "refused": sum(reading.error_s is None for reading in readings),
        "outside_bound": sum(reading.is_outside for reading in readings),
    }


def figures(run: Run) -> dict[str, Any]:
    """What the table says of each clock."""
    found: dict[str, Any] = {}
    for name, readings in run.clocks.items():
        parts = [[reading for reading in readings if run.part(reading) == part] for part in range(len(run.absences) + 1)]
        found[name] = {
            "readings": len(readings),
            "with_time": sum(reading.error_s is not None for reading in readings),
            "with_bound": sum(reading.error_s is not None and reading.bound_s is not None for reading in readings),
            "outside_bound": sum(reading.is_outside for reading in readings),
            "seen_to_within_median_s": statistics.median(reading.half_s for reading in readings) if readings else None,
            "parts": [_part_figures(part) for part in parts],
            "absences": {absence.name: _absence_figures(absence, part) for absence, part in zip(run.absences, parts[1:], strict=True)},
        }
    return found


def draw(run: Run) -> bytes:
    """The picture as PNG: error and bound of both ffclocks over time, and those of chronyd below."""
    from . import marks, style  # noqa: PLC0415  so that --help works without matplotlib

    colours = {"independent": marks.BLUE, "dependent": marks.ORANGE, "chronyd": style.dress("chrony").colour}
    panels = (("ffclock: independent with a server, dependent on the page of its host", _OURS), ("chronyd, system clock", ("chronyd",)))
    picture = io.BytesIO()
    end = max(reading.at_s for readings in run.clocks.values() for reading in readings)
    with style.styled():
        canvas = style.canvas(12.0, 8.0)
        for place, (title, names) in enumerate(panels):
            axes = canvas.add_subplot(2, 1, place + 1)
            for name in names:
                _draw_clock(axes, run, name, (colours[name], marks.VERMILLION))
            for absence in run.absences:
                axes.axvspan(absence.begin_s, absence.end_s, color=marks.GREY, alpha=0.25, linewidth=0)
                axes.text((absence.begin_s + absence.end_s) / 2.0, 3e-7, absence.name.replace(" and ", "\nand "), ha="center", fontsize=8.0)
            # The legend has its place above what is drawn.
            shown = (size for name in names for reading in run.clocks[name] for size in (reading.certain_error_s, reading.bound_s or 0.0))
            axes.set_ylim(_FLOOR_S, max(30.0 * max(shown, default=0.0), 1e-3))
            style.time_logarithmic(axes)
            axes.set(title=title, ylabel="error and bound", xlabel="time of the host [s]")
            axes.set_xlim(0.0, end)
            axes.legend(loc="upper left", ncols=4, frameon=False, markerscale=2.0)
        canvas.tight_layout()
        canvas.savefig(picture, format="png")
    return picture.getvalue()


def _draw_clock(axes: Axes, run: Run, name: str, colours: tuple[str, str]) -> None:
    timed = [reading for reading in run.clocks[name] if reading.error_s is not None]
    # A slow answer shows an error of its own; in the table they all count, each with its limits.
    usual = 2.0 * statistics.median(reading.half_s for reading in timed) if timed else 0.0
    inside = [reading for reading in timed if reading.half_s <= usual and not reading.is_outside]
    outside = [reading for reading in timed if reading.is_outside]
    seen = f"{name}: error, seen to within {usual * 1e6:.2g} µs"
    for shown, colour, mark, label in (
        (inside, colours[0], "o", seen),
        (outside, colours[1], "x", f"{name}: error outside the bound ({len(outside)})"),
    ):
        heights = [max(abs(reading.error_s or 0.0), _FLOOR_S) for reading in shown]
        if shown:
            axes.plot([reading.at_s for reading in shown], heights, mark, color=colour, markersize=2.5, label=label)
    # Across the time without the guest there is no line.
    for part in range(len(run.absences) + 1):
        stated = [reading for reading in timed if reading.bound_s is not None and run.part(reading) == part]
        axes.plot(
            [reading.at_s for reading in stated],
            [max(reading.bound_s or 0.0, _FLOOR_S) for reading in stated],
            color=colours[0],
            linewidth=1.6,
            label="_" if part else f"{name}: bound",
        )


def _time(seconds: float | None) -> str:
    if seconds is None:
        return "never"
    for limit, unit in ((1.0, "s"), (1e-3, "ms")):
        if abs(seconds) >= limit:
            return f"{seconds / limit:.3f} {unit}"
    return f"{seconds * 1e6:.1f} µs"


_Word = tuple[str, Callable[[dict[str, Any]], str]]

_OF_ALL: Final[tuple[_Word, ...]] = (
    ("readings, of those with a time", lambda of: f"{of['readings']}, {of['with_time']}"),
    ("outside their bound", lambda of: f"{of['outside_bound']} of {of['with_bound']}"),
)
_OF_ABSENCE: Final[tuple[_Word, ...]] = (
    ("first time", lambda of: _time(of["first_time_after_s"])),
    ("right to 10 ms", lambda of: _time(of["within_10_ms_after_s"])),
    ("without a time", lambda of: str(of["refused"])),
    ("outside their bound", lambda of: str(of["outside_bound"])),
)
_OF_PART: Final[tuple[_Word, ...]] = (
    ("interquartile range of the error", lambda of: _time(of["error_iqr_s"])),
    ("largest error, less half the time of the answer", lambda of: _time(of["largest_error_s"])),
    ("bound, median", lambda of: _time(of["bound_median_s"])),
)


def _tables(run: Run, found: dict[str, Any]) -> list[str]:
    """One table of the whole run and of each part."""
    heads = ["", *run.clocks]
    names = ["Before", *(f"After {absence.name}" for absence in run.absences)]
    made = [page.table("", heads, [(label, *(word(found[name]) for name in run.clocks)) for label, word in _OF_ALL])]
    for number, title in enumerate(names):
        cells = []
        if number:
            absence = run.absences[number - 1].name
            cells += [(label, *(word(found[name]["absences"][absence]) for name in run.clocks)) for label, word in _OF_ABSENCE]
        cells += [(label, *(word(found[name]["parts"][number]) for name in run.clocks)) for label, word in _OF_PART]
        made.append(page.table(title, heads, cells))
    return made


def page_text(run: Run, picture: bytes) -> str:
    """The HTML page around the PNG ``picture``."""
    found = figures(run)
    outside = sum(found[name]["outside_bound"] for name in _OURS)
    verdict = "No reading of ffclock left its bound." if outside == 0 else f"{outside} readings of ffclock left their bound."
    away = ", ".join(f"{absence.end_s - absence.begin_s:.1f} s ({absence.name})" for absence in run.absences)
    body = [
        f'<p class="verdict {"broken" if outside else "kept"}">{escape(verdict)} The guest was away for {escape(away)}.</p>',
        page.picture(picture, "Error and bound of two ffclocks and of chronyd over time, on logarithmic axes"),
        *_tables(run, found),
    ]
    return page.document("A guest that was stopped and restored", body, _FOOTER)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns 0, 1 if ffclock was silent or a reading left its bound, or 2 with a message if there is no run."""
    parser = argparse.ArgumentParser(prog="python -m ffclock.snapshot_report", description="Draw the clocks of a guest that was restored.")
    parser.add_argument("directory", type=Path, metavar="DIR", help="with readings.csv and events.csv of tests/vm/run snapshot")
    options = parser.parse_args(arguments)
    try:
        run = read_run(options.directory)
        picture = draw(run)
        found = figures(run)
        written = page.write(page_text(run, picture), {"snapshot.png": picture}, options.directory, "snapshot.html")
        (options.directory / "snapshot.json").write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    except ModuleNotFoundError as error:
        print(f"ffclock.snapshot_report: {missing(_NEEDS, error)}", file=sys.stderr)
        return 2
    except (RunError, OSError) as error:
        print(f"ffclock.snapshot_report: {error}", file=sys.stderr)
        return 2
    for name, of in found.items():
        print(f"{name}: " + "; ".join(f"{label} {word(of)}" for label, word in _OF_ALL))
        for absence, after in of["absences"].items():
            print(f"  after {absence}: " + "; ".join(f"{label} {word(after)}" for label, word in _OF_ABSENCE))
        for part in of["parts"]:
            print("  " + "; ".join(f"{label} {word(part)}" for label, word in _OF_PART))
    print("\n".join(map(str, written)))
    silent = [name for name in _OURS if any(part["with_time"] == 0 for part in found[name]["parts"])]
    if silent:
        print(f"ffclock.snapshot_report: a part of the run has no time of {' and '.join(silent)}", file=sys.stderr)
    return int(bool(silent) or any(found[name]["outside_bound"] for name in _OURS))


if __name__ == "__main__":
    sys.exit(main())
