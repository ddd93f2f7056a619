"""What a figure found beside what the paper reports, and the verdict on it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from ..evidence.verdict import WITHIN, Outcome, Verdict, outcome
from ..scales import time_text

MARKS: Final[dict[Outcome, str]] = {
    "as in the paper": "✓ as in the paper",
    "shape only": "✓ shape only",
    "differs": "✗ differs",
    "not measured": "",
}
"""The verdicts as they are shown; nothing where there is nothing to compare with."""


@dataclass(frozen=True)
class Finding:
    """One figure of the paper and ours."""

    what: str
    paper: str
    ours: str
    agrees: bool | None = None
    """Whether the shape agrees; None where no shape is asked for."""
    values: tuple[float, float] | None = None
    """The paper's value and ours in the same unit; None where the paper gives none."""
    shape: str = ""
    """What the shape asks for."""

    @property
    def ratio(self) -> float | None:
        """Our value over the paper's."""
        return None if self.values is None else self.values[1] / self.values[0]

    @property
    def outcome(self) -> Outcome:
        """The verdict; "not measured" where there is nothing to compare with."""
        return outcome(self.ratio, self.agrees)

    @property
    def test(self) -> str:
        """What makes it fail."""
        return "; ".join(part for part in (WITHIN if self.values else "", f"shape: {self.shape}" if self.shape else "") if part)

    def row(self) -> tuple[str, str, str, str, str, str]:
        """For a table."""
        ratio = "" if self.ratio is None else f"{self.ratio:.2g}"
        return self.what, self.paper, self.ours, ratio, self.test, MARKS[self.outcome]


@dataclass(frozen=True)
class Figure:
    """A drawn figure with everything its caption says."""

    number: str
    """As in the paper, such as ``2`` or ``8``."""
    title: str
    caption: str
    png: bytes
    commands: tuple[str, ...]
    findings: tuple[Finding, ...] = field(default=())

    @property
    def name(self) -> str:
        """The file's name without its extension."""
        return f"figure-{int(self.number):02d}"

    @property
    def agrees(self) -> bool:
        """Whether everything that can be compared has at least the paper's shape."""
        return all(finding.outcome != "differs" for finding in self.findings)

    def verdicts(self) -> list[Verdict]:
        """What can be compared, for the page of evidence."""
        command = f"tools/figures --only {self.number} --no-table"
        return [
            Verdict(self.number, "simulated", one.what, one.paper, one.ours, one.ratio, one.test, one.outcome, command)
            for one in self.findings
            if one.outcome != "not measured"
        ]


def ratio(large: float, small: float) -> str:
    """Two spreads and how many times one is the other: ``0.63 µs, 17 times less than 10.5 µs``."""
    return f"{time_text(small)}; {large / small:.3g} times as much: {time_text(large)}"
