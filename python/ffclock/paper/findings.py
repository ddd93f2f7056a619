"""What a figure found beside what the paper reports, and whether the two have the same shape."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..scales import time_text


@dataclass(frozen=True)
class Finding:
    """One figure of the paper and ours."""

    what: str
    paper: str
    ours: str
    agrees: bool | None = None
    """Whether the shape agrees; None where the paper gives nothing to compare with."""

    def row(self) -> tuple[str, str, str, str]:
        """For a table."""
        return self.what, self.paper, self.ours, {True: "✓ same shape", False: "✗ differs", None: ""}[self.agrees]


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
        """Whether everything that can be compared has the paper's shape."""
        return all(finding.agrees is not False for finding in self.findings)


def ratio(large: float, small: float) -> str:
    """Two spreads and how many times one is the other: ``0.63 µs, 17 times less than 10.5 µs``."""
    return f"{time_text(small)}; {large / small:.3g} times as much: {time_text(large)}"
