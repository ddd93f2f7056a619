"""One simulated run as a piece of work that can be sent to another machine: it names or holds its scenario, and needs only the command.

Nothing here needs more than Python itself, so workers of a cluster can be lean.
"""

from __future__ import annotations

import hashlib
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .program import Program


@dataclass(frozen=True)
class Job:
    """One run to be made."""

    scenario: str
    """Its name."""
    seed: int
    parameters: tuple[tuple[str, str], ...] = ()
    """What differs from the scenario: keys of its file, with dots, and values as written there."""
    text: str = ""
    """The scenario's file, where it is none that is built in."""
    oracle: bool = False
    without: tuple[str, ...] = ()
    """The parts that the learned estimator is run without."""

    @property
    def digest(self) -> str:
        """The same for the same run, whenever it is asked for."""
        asked = (self.scenario, self.seed, self.parameters, self.text, self.oracle, self.without)
        return hashlib.sha256(repr(asked).encode()).hexdigest()[:16]

    def file(self) -> str:
        """The scenario's file for the command; empty for a built-in one as it is."""
        if self.text or not self.parameters:
            return self.text
        lines = [f"{key} = {_toml(value)}" for key, value in self.parameters]
        return "\n".join([f'extends = "{self.scenario}"', *lines]) + "\n"


def _toml(value: str) -> str:
    """A value as TOML: numbers, flags, lists and tables as they are, everything else is text."""
    text = value.strip()
    is_number = text.replace("_", "").lstrip("+-").replace(".", "", 1).replace("e-", "", 1).replace("e", "", 1).isdigit()
    if is_number or text in ("true", "false") or text.startswith(("[", "{", '"')):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def run_job(job: Job, ffclock_lab: str | None) -> dict[str, Any]:
    """The result of ``ffclock-lab sim run --json``; ProgramError if the command is missing here or refuses the scenario."""
    program = Program.find(Path(ffclock_lab) if ffclock_lab else None)
    options = ["--oracle"] if job.oracle else []
    options += [f"--without={part}" for part in job.without]
    text = job.file()
    if not text:
        return program.simulate(job.scenario, job.seed, options)
    with tempfile.TemporaryDirectory(prefix="ffclock-sweep-") as place:
        path = Path(place) / f"{job.scenario}.toml"
        path.write_text(text, encoding="utf-8")
        return program.simulate(str(path), job.seed, options)


def fingerprint(ffclock_lab: str | None) -> str:
    """Which build of the command runs here: results of two builds do not belong into one table."""
    return hashlib.sha256(Program.find(Path(ffclock_lab) if ffclock_lab else None).path.read_bytes()).hexdigest()[:12]
