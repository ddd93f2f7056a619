"""The figures of the papers that measurements of counters are put beside.

C is "Counter Availability and Characteristics for Feed-forward Based Synchronization", F is "The Case for Feed-forward Clock
Synchronization". Latencies are CPU cycles.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class PaperLatency:
    """A distribution of access latencies as the papers give it [cycles]."""

    median: float
    iqr: float | None
    source: str


LATENCIES: Final = {
    "TSC (FreeBSD kernel interface)": PaperLatency(420.0, 0.0, "F, section IV-C"),
    "HPET (FreeBSD kernel interface)": PaperLatency(1935.0, 135.0, "F, section IV-C"),
    "ACPI fast (FreeBSD kernel interface)": PaperLatency(3690.0, 285.0, "F, section IV-C"),
    "ACPI safe (FreeBSD kernel interface)": PaperLatency(10440.0, 390.0, "F, section IV-C"),
    "interface alone (FreeBSD)": PaperLatency(240.0, None, "F, section V-A"),
    "interface alone (Linux)": PaperLatency(208.0, None, "F, section V-A"),
    "rdtsc (user space)": PaperLatency(150.0, None, "F, section V-B"),
    "getcounter() (FreeBSD)": PaperLatency(3500.0, None, "F, section V-B"),
    "getcounter() (Linux)": PaperLatency(1770.0, None, "F, section V-B"),
}
"""Median access latencies."""

STABILITY_PPM: Final = 1.0
"""Every counter's Allan deviation stays below this at every scale above 10 s (F, section IV-A)."""

STABILITY_LARGE_PPM: Final = 0.1
"""At large scales it stays below this (F, section IV-A)."""

CLOCK_IQR_S: Final = 7e-6
"""The interquartile range of the clock error with each counter (F, section V-C)."""

CLOCK_MEDIAN_BAND_S: Final = 2e-6
"""The medians of all counters lie within this (F, section V-C)."""

STRESSED_MEDIANS_S: Final = {"cpu": 1.8e-6, "network": 1.1e-6}
"""How far apart the medians are at most under stress (F, section V-C)."""

TABLE_1: Final = (
    ("counter", "frequency", "size (bits)"),
    ("TSC", "CPU frequency", "64"),
    ("HPET", "14.3 MHz", "32 / 64"),
    ("ACPI", "3.57 MHz", "24 / 32"),
)
"""Table I of both papers."""
