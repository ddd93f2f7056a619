"""Whether short runs advise alike: ``python -m ffclock.probe_repeat ANSWER.json ...``, each by ``ffclock-lab probe advise --json``.

Prints a table with a line for each run, and three verdicts: the same location each time, the reach of all runs within the interval that
each of them states, and the asymmetry of the socket's stamps. Exit code 1 if one of them fails.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

SPREAD_NS: Final = 1000.0
"""From the smallest to the largest asymmetry of the socket's stamps at most."""


@dataclass(frozen=True)
class Answer:
    """What a run says."""

    location: str | None
    """``None``: it advises none."""
    best: str
    """Whose reach is the smallest."""
    reach_ns: float
    interval_ns: tuple[float, float]
    """Of the best, in the worst phase."""
    asymmetry_ns: float | None
    """Of the socket's stamps."""

    @classmethod
    def of(cls, answer: dict[str, Any]) -> Answer:
        """From what the command prints."""
        candidates = answer["advice"]["candidates"]
        best = candidates[0]
        socket = next((one["asymmetry"] for one in candidates if one["location"] == "socket"), None)
        low, high = best["worst_interval_ns"]
        reach = max([best["reach_ns"], *(ns for _, ns in best["under_loads"])])
        return cls(answer["advice"]["location"], best["location"], reach, (low, high), socket and socket["asymmetry_ns"])


@dataclass(frozen=True)
class Finding:
    """Whether something holds, and the figures that show it."""

    claim: str
    holds: bool
    evidence: str

    def words(self) -> str:
        """A line."""
        return f"{'yes' if self.holds else 'NO '}  {self.claim}: {self.evidence}"


def judge(answers: Sequence[Answer]) -> list[Finding]:
    """The three verdicts; of no answer, all of them fail."""
    advised = [answer.location for answer in answers]
    counts = ", ".join(f"{name or 'none (a tie)'} {advised.count(name)}" for name in sorted(set(advised), key=str))
    middle = statistics.median(answer.reach_ns for answer in answers) if answers else float("nan")
    within = [answer.interval_ns[0] <= middle <= answer.interval_ns[1] for answer in answers]
    sides = [answer.asymmetry_ns for answer in answers if answer.asymmetry_ns is not None]
    spread = max(sides) - min(sides) if sides else float("nan")
    same = len(set(advised)) == 1 and advised[0] is not None
    return [
        Finding("the same location each time", same, f"{counts} of {len(answers)}"),
        Finding(
            "the median of all reaches within the interval of each",
            bool(within) and all(within),
            f"{middle / 1e3:.2f} us is in {sum(within)} of {len(within)}",
        ),
        Finding(
            "asymmetry of the socket's stamps",
            len(sides) == len(answers) and spread <= SPREAD_NS,
            f"{spread / 1e3:.2f} us from smallest to largest of {len(sides)} (at most {SPREAD_NS / 1e3:g})",
        ),
    ]


def table(answers: Sequence[Answer]) -> str:
    """A line for each run."""
    lines = [f"{'run':>3}  {'advised':<8}  {'best':<8}  {'reach [us] (95 %)':<24}  socket's asymmetry [us]"]
    for number, answer in enumerate(answers, 1):
        low, high = (f"{ns / 1e3:.2f}" for ns in answer.interval_ns)
        side = "-" if answer.asymmetry_ns is None else f"{answer.asymmetry_ns / 1e3:.2f}"
        reach = f"{answer.reach_ns / 1e3:.2f} ({low} to {high})"
        lines.append(f"{number:>3}  {answer.location or '-':<8}  {answer.best:<8}  {reach:<24}  {side}")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; 2 with one message if a file is no answer."""
    parser = argparse.ArgumentParser(prog="python -m ffclock.probe_repeat", description="Judge whether short runs advise alike.")
    parser.add_argument("answers", nargs="+", type=Path, metavar="ANSWER.json", help="what `ffclock-lab probe advise --json` printed")
    options = parser.parse_args(arguments)
    answers = []
    for path in options.answers:
        try:
            answers.append(Answer.of(json.loads(path.read_text(encoding="utf-8"))))
        except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
            print(f"ffclock.probe_repeat: {path}: no answer of `ffclock-lab probe advise --json` ({error})", file=sys.stderr)
            return 2
    findings = judge(answers)
    print(table(answers))
    for finding in findings:
        print(finding.words())
    return 0 if all(finding.holds for finding in findings) else 1


if __name__ == "__main__":
    sys.exit(main())
