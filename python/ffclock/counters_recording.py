"""Recordings of ``ffclock-lab counters``: one JSON object a line, as docs/counters.md describes.

The first line says what it is, the last one how many lines stand between. A recording without its last line was cut, and is a
:class:`RecordingError`, never a shorter measurement.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

FORMAT: Final = "ffclock counters 1"


class RecordingError(ValueError):
    """The input is no recording that can be used: the message says which file, where, and what to do."""


@dataclass(frozen=True)
class Phase:
    """A part of a run under the same conditions."""

    number: int
    name: str
    """``quiet``, or the load."""
    begin_s: float
    length_s: float

    @property
    def is_quiet(self) -> bool:
        """Whether the machine was left in peace."""
        return self.name == "quiet"

    @property
    def end_s(self) -> float:
        """When it was over, seconds since the beginning."""
        return self.begin_s + self.length_s


@dataclass(frozen=True)
class Machine:
    """Where a recording was made; recordings of earlier versions do not say it."""

    host: str = ""
    cpu: str = ""
    kernel: str = ""
    cpu_hertz: float | None = field(default=None, compare=False)
    """The processor's frequency as the kernel stated it at that moment."""

    @property
    def label(self) -> str:
        """In words."""
        parts = [self.cpu, f"Linux {self.kernel}" if self.kernel else ""]
        about = ", ".join(part for part in parts if part)
        if self.host and about:
            return f"{self.host} ({about})"
        return self.host or about or "a machine without a name"


@dataclass(frozen=True)
class Recording:
    """A whole recording."""

    source: Path
    instrument: str
    about: dict[str, Any]
    records: list[dict[str, Any]]
    machine: Machine = Machine()

    def of(self, kind: str) -> list[dict[str, Any]]:
        """The records of one kind, in order."""
        return [record for record in self.records if record.get("record") == kind]

    @property
    def phases(self) -> list[Phase]:
        """The phases, in order."""
        return [Phase(int(p["number"]), str(p["load"] or "quiet"), float(p["begin_s"]), float(p["length_s"])) for p in self.of("phase")]


def read_recording(path: Path) -> Recording:
    """Reads the recording at ``path``. RecordingError if it is none or was cut; OSError if it cannot be read."""
    lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    if lines.pop():
        # The last line has no end: it was being written when the recording stopped.
        lines.append("")
    records: list[dict[str, Any]] = []
    for number, line in enumerate(lines, 1):
        if not line and number == len(lines):
            break
        records.append(_parsed(path, number, line))
    if not records or records[0].get("format") != FORMAT:
        raise RecordingError(f'{path} is no recording of ffclock-lab: its first line does not say "{FORMAT}"')
    head, rest = records[0], records[1:]
    if not rest or rest[-1].get("record") != "end":
        raise RecordingError(
            f"{path} was cut after line {len(records)}: the measurement was killed or the copy is incomplete; record again"
        )
    end = rest.pop()
    if end.get("records") != len(rest):
        raise RecordingError(f"{path} has {len(rest)} records and announces {end.get('records')}: it was changed; record again")
    return Recording(path, str(head.get("instrument")), dict(head.get("about") or {}), rest, _machine(head.get("machine") or {}))


def _machine(said: dict[str, Any]) -> Machine:
    hertz = said.get("cpu_hertz")
    host, cpu, kernel = (str(said.get(key) or "") for key in ("host", "cpu", "kernel"))
    return Machine(host, cpu, kernel, None if hertz is None else float(hertz))


def machines(recordings: Sequence[Recording]) -> dict[Machine, list[Recording]]:
    """Recordings by the machine that made them, in order."""
    found: dict[Machine, list[Recording]] = {}
    for recording in recordings:
        found.setdefault(recording.machine, []).append(recording)
    return found


def _parsed(path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except json.JSONDecodeError as error:
        if number == 1:
            raise RecordingError(f'{path} is no recording of ffclock-lab: its first line does not say "{FORMAT}"') from error
        raise RecordingError(f"{path}, line {number} is damaged ({error.msg}); record again") from error
    if not isinstance(value, dict):
        raise RecordingError(f"{path}, line {number} is no object; record again")
    return value
