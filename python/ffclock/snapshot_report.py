"""Draws the clocks of a guest that was restored from a snapshot: ``python -m ffclock.snapshot_report DIR``.

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
from typing import Final

from . import page
from .errors import missing

_NEEDS: Final = "the report needs matplotlib"

_FOOTER: Final = """The truth is the system clock of the host, which served the guest's clocks their time. An error is known to within
half the time that the answer took; a reading is outside its bound where its error is larger than both together. chronyd's bound is the
largest error that it states to the guest's kernel. docs/operations.md, "Virtual machines"."""

_RESTORED: Final = "restored"
_SAVED: Final = "saved and ended"


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
    def is_outside(self) -> bool:
        """Whether it is wrong by more than it states."""
        return self.error_s is not None and self.bound_s is not None and abs(self.error_s) > self.bound_s + self.half_s


@dataclass(frozen=True)
class Run:
    """Both clocks over the same time, which begins with 0."""

    clocks: dict[str, list[Reading]]
    saved_s: float
    restored_s: float

    def is_later(self, reading: Reading) -> bool:
        """Whether the restored guest answered. What is asked just before it runs is answered by it, too."""
        return reading.at_s > (self.saved_s + self.restored_s) / 2.0


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
        clocks = {
            name: [
                Reading(
                    float(row["at_s"]) - begin,
                    float(row["half_ns"]) * 1e-9,
                    _number(row[f"{kind}error_ns"]),
                    _number(row[f"{kind}bound_ns"]),
                )
                for row in rows
            ]
            for name, kind in (("ffclock", ""), ("chronyd", "system_"))
        }
        return Run(clocks, events[_SAVED] - begin, events[_RESTORED] - begin)
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise RunError(f"no run of tests/vm/run snapshot: {error!r}") from error


def figures(run: Run) -> dict[str, dict[str, float | int | None]]:
    """What the table says of each clock."""
    found: dict[str, dict[str, float | int | None]] = {}
    for name, readings in run.clocks.items():
        timed = [reading for reading in readings if reading.error_s is not None]
        later = [reading for reading in timed if run.is_later(reading)]
        claimed = [reading for reading in timed if reading.bound_s is not None]
        right = [reading for reading in later if abs(reading.error_s or 0.0) < 0.01]
        found[name] = {
            "readings": len(readings),
            "with_time": len(timed),
            "with_bound": len(claimed),
            "outside_bound": sum(reading.is_outside for reading in claimed),
            "outside_bound_since_restore": sum(reading.is_outside for reading in claimed if run.is_later(reading)),
            "refused_since_restore": sum(reading.error_s is None for reading in readings if run.is_later(reading)),
            "first_time_after_restore_s": max(0.0, later[0].at_s - run.restored_s) if later else None,
            "within_10_ms_after_restore_s": max(0.0, right[0].at_s - run.restored_s) if right else None,
            "largest_error_before_s": max((abs(reading.error_s or 0.0) for reading in claimed if not run.is_later(reading)), default=None),
            "largest_error_since_restore_s": max((abs(reading.error_s or 0.0) for reading in later), default=None),
        }
    return found


def draw(run: Run) -> bytes:
    """The picture as PNG: error and bound of each clock over time."""
    from . import marks, style  # noqa: PLC0415  so that --help works without matplotlib

    picture = io.BytesIO()
    with style.styled():
        canvas = style.canvas(12.0, 7.2)
        for place, (name, readings) in enumerate(run.clocks.items()):
            axes = canvas.add_subplot(2, 1, place + 1)
            timed = [reading for reading in readings if reading.error_s is not None]
            # A slow answer shows an error of its own; in the table they all count, each with its limits.
            usual = statistics.median(reading.half_s for reading in timed) if timed else 0.0
            seen = [reading for reading in timed if reading.half_s <= usual or reading.is_outside]
            dress = style.dress("learned" if name == "ffclock" else "chrony")
            inside = [reading for reading in seen if not reading.is_outside]
            outside = [reading for reading in seen if reading.is_outside]
            for shown, colour, mark in ((inside, dress.colour, "o"), (outside, marks.VERMILLION, "x")):
                label = f"error, seen to within {usual * 1e3:.2g} ms" if mark == "o" else f"error outside the bound: {len(shown)}"
                heights = [max(abs(reading.error_s or 0.0), 1e-6) for reading in shown]
                axes.plot([reading.at_s for reading in shown], heights, mark, color=colour, markersize=2.5, label=label)
            # Across the time without the guest there is no line.
            for is_later, line in ((False, "bound"), (True, "_")):
                part = [reading for reading in timed if run.is_later(reading) == is_later]
                stated = [reading for reading in part if reading.bound_s is not None]
                axes.plot(
                    [r.at_s for r in stated], [max(r.bound_s or 0.0, 1e-6) for r in stated], color=marks.BLACK, linewidth=1.0, label=line
                )
            axes.axvspan(run.saved_s, run.restored_s, color=marks.GREY, alpha=0.25, linewidth=0, label="saved")
            axes.set_ylim(1e-6, 1e2)
            style.time_logarithmic(axes)
            axes.set(title=name, ylabel="error and bound", xlabel="time of the host [s]")
            axes.set_xlim(0.0, max(reading.at_s for reading in readings))
            axes.legend(loc="upper left", ncols=4, frameon=False)
        canvas.tight_layout()
        canvas.savefig(picture, format="png")
    return picture.getvalue()


def _time(seconds: float | int | None) -> str:
    if seconds is None:
        return "never"
    return f"{seconds:.3f} s" if seconds >= 1.0 else f"{seconds * 1e3:.3f} ms"


def page_text(run: Run, picture: bytes) -> str:
    """The HTML page around the PNG ``picture``."""
    found = figures(run)
    words: tuple[tuple[str, Callable[[dict[str, float | int | None]], str]], ...] = (
        ("readings, of those with a time", lambda of: f"{of['readings']}, {of['with_time']}"),
        ("outside their bound", lambda of: f"{of['outside_bound']} of {of['with_bound']}"),
        ("of those, since the restore", lambda of: str(of["outside_bound_since_restore"])),
        ("without a time since the restore", lambda of: str(of["refused_since_restore"])),
        ("first time after the restore", lambda of: _time(of["first_time_after_restore_s"])),
        ("right to 10 ms after the restore", lambda of: _time(of["within_10_ms_after_restore_s"])),
        ("largest error before", lambda of: _time(of["largest_error_before_s"])),
        ("largest error since the restore", lambda of: _time(of["largest_error_since_restore_s"])),
    )
    cells = [(label, *(word(found[name]) for name in run.clocks)) for label, word in words]
    outside = found["ffclock"]["outside_bound"]
    verdict = "No reading of ffclock left its bound." if outside == 0 else f"{outside} readings of ffclock left their bound."
    away = run.restored_s - run.saved_s
    body = [
        f'<p class="verdict {"broken" if outside else "kept"}">{escape(verdict)} The guest was away for {away:.1f} s.</p>',
        page.table("", ["", *run.clocks], cells),
        page.picture(picture, "Error and bound of ffclock and of chronyd over time, on logarithmic axes"),
    ]
    return page.document("A guest restored from a snapshot", body, _FOOTER)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns 0, 1 if a reading of ffclock left its bound, or 2 with a message if there is no run to draw."""
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
        print(f"{name}: " + ", ".join(f"{key} {value:.6g}" if value is not None else f"{key} none" for key, value in of.items()))
    print("\n".join(map(str, written)))
    return int(found["ffclock"]["outside_bound"] != 0)


if __name__ == "__main__":
    sys.exit(main())
