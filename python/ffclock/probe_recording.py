"""Records of ``ffclock-lab probe``: every stamp of every packet, and what the command ``ffclock-lab`` says about them.

Delays, asymmetries and the paper's findings are computed by ``ffclock-lab probe show`` alone; here are the stamps themselves, for what is
drawn packet by packet. Every form of a record is read, for the command turns it into Parquet first.
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import polars as pl

from .program import Program

Floats = npt.NDArray[np.float64]

KEY: Final = "ffclock"
FORMAT: Final = "ffclock probe 1"
_PARQUET: Final = b"PAR1"
_LINES: Final = b'"instrument":"probe"'
_DTRACE: Final = b'{"format":"ffclock dtrace 1"'

LOCATIONS: Final = ("tap", "socket", "user")
"""The locations that programs stamp at, in the order of the paper's figures, from the bottom."""

SITES: Final = {
    "tap": ("tap-out", "tap-in"),
    "socket": ("socket-out", "socket-in"),
    "user": ("user-send", "user-receive"),
}
"""Where each of them stamps: requests, replies."""


class ProbeError(ValueError):
    """The input is no record of ``ffclock-lab probe`` that can be used: the message says which file and why."""


@dataclass(frozen=True)
class Phase:
    """What was measured under the same conditions."""

    name: str
    """``quiet``, or the load."""
    begin_s: float
    length_s: float
    counts: dict[str, int]
    unavailable: list[str]
    findings: dict[str, Any]
    """What ``ffclock-lab probe show --json`` says about it."""
    stamps: dict[str, Floats]
    """By site: when each packet passed [s since the beginning of the phase], NaN where it has no stamp."""

    def delay(self, site: str) -> Floats:
        """The delays of a site against the reference [s], positive in the order of causes, NaN where a stamp is missing."""
        out, back = self.findings["reference"]
        stamps = self.stamps
        missing = np.full(next(iter(stamps.values())).shape if stamps else 0, np.nan)
        reference = stamps.get(out if is_outgoing(site) else back, missing)
        own = stamps.get(site, missing)
        return reference - own if is_outgoing(site) else own - reference

    def time_s(self) -> Floats:
        """When each packet left user space, seconds since the beginning of the run."""
        return self.begin_s + self.stamps["user-send"]


@dataclass(frozen=True)
class Load:
    """All phases under the same load."""

    name: str
    phases: list[Phase]

    def delay(self, site: str) -> Floats:
        """The delays of a site in all of them [s], without packets that lack a stamp."""
        delays: Floats = np.concatenate([phase.delay(site) for phase in self.phases])
        stamped: Floats = delays[np.isfinite(delays)]
        return stamped


@dataclass(frozen=True)
class Record:
    """A whole record."""

    source: Path
    about: dict[str, Any]
    phases: list[Phase]
    paper: list[dict[str, Any]]
    """The paper's findings, each with a verdict and its evidence."""
    effect: list[dict[str, Any]]
    """What ``--probe-effect`` measured, by the number of probes; empty where it was not."""

    def loads(self) -> list[Load]:
        """The phases by load, quiet first."""
        found: dict[str, list[Phase]] = {}
        for phase in self.phases:
            found.setdefault(phase.name, []).append(phase)
        return sorted((Load(name, phases) for name, phases in found.items()), key=lambda load: load.name != "quiet")


def is_outgoing(site: str) -> bool:
    """Whether packets pass the site on their way out."""
    return site.endswith(("-out", "-send"))


def is_probe_record(path: Path) -> bool:
    """Whether the file begins as a record of ``ffclock-lab probe`` does."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        head = file.readline(4096)
    is_lines = head.startswith(b"{") and b'"ffclock counters 1"' in head and _LINES in head
    return head.startswith((_PARQUET, _DTRACE)) or is_lines


def read_record(path: Path, program: Program) -> Record:
    """Reads a record of any form; :class:`ProbeError` or ProgramError where it cannot be used."""
    if not path.exists():
        raise ProbeError(f"{path}: no such file")
    with path.open("rb") as file:
        is_table = file.read(4) == _PARQUET
    with tempfile.TemporaryDirectory(prefix="ffclock-probe-") as place:
        table = path if is_table else Path(place) / "record.parquet"
        again = [] if is_table else ["--record", str(table)]
        shown = program.json(["probe", "show", *again, "--", str(path)])
        return assemble(path, shown, stamps_of(table))


def stamps_of(table: Path) -> dict[int, pl.DataFrame]:
    """The rows of each phase of a Parquet record."""
    try:
        metadata = pl.read_parquet_metadata(table)
        if json.loads(metadata.get(KEY, "{}")).get("format") != FORMAT:
            raise ProbeError(f'{table}: is no record of ffclock-lab probe: its metadata does not say "{FORMAT}"')
        frame = pl.read_parquet(table)
    except (pl.exceptions.PolarsError, OSError, ValueError) as error:
        if isinstance(error, ProbeError):
            raise
        raise ProbeError(f"{table}: cannot be read as Parquet: {str(error).splitlines()[0]}") from error
    return {int(rows["phase"][0]): rows for rows in frame.partition_by("phase", maintain_order=True)}


def assemble(path: Path, shown: dict[str, Any], rows: dict[int, pl.DataFrame]) -> Record:
    """The record made from ``shown``, the answer of the command, and from the ``rows`` of each phase."""
    hertz, sites = float(shown["about"]["counter_hz"]), [str(site) for site in shown["about"]["sites"]]
    phases = []
    for number, phase in enumerate(shown["phases"]):
        frame = rows.get(number)
        stamps = {} if frame is None else {site: frame[site].cast(pl.Float64).fill_null(np.nan).to_numpy() / hertz for site in sites}
        phases.append(
            Phase(
                name=str(phase["phase"]["load"] or "quiet"),
                begin_s=float(phase["phase"]["begin_s"]),
                length_s=float(phase["length_s"]),
                counts=phase["counts"],
                unavailable=phase["unavailable"],
                findings=phase["findings"],
                stamps=stamps,
            )
        )
    effect = (shown.get("probe_effect") or {}).get("levels", [])
    return Record(path, shown["about"], phases, shown["paper"], effect)
