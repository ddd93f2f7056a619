"""Every figure and table of the papers that has to be shown, and which tool shows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

FEED_FORWARD: Final = "The Case for Feed-Forward Clock Synchronization"
COUNTERS: Final = "Its sections III to V, and Counter Availability and Characteristics for Feed-forward Based Synchronization"
LATENCIES: Final = "Probing the Latencies of Software Timestamping"
DELAYS: Final = "Evaluation of Message Delay Correlation in Distributed Systems"


@dataclass(frozen=True)
class Shown:
    """A figure or table of a paper."""

    key: str
    paper: str
    name: str
    about: str
    tools: str
    """What measures it."""


def _of(paper: str, prefix: str, tools: str, about: dict[str, str]) -> tuple[Shown, ...]:
    return tuple(
        Shown(f"{prefix}{key}", paper, key if key.startswith("table") else f"figure {key}", text, tools) for key, text in about.items()
    )


_LIVE_TOO: Final = "make figures, make figures-live"
FIGURES: Final = (
    *_of(
        FEED_FORWARD,
        "",
        _LIVE_TOO,
        {
            "2": "ideal environment",
            "3": "a noisier host",
            "4": "start-up, and one stall of the host",
            "5": "a congested path",
            "6": "congestion and a busy host",
            "7": "two hours without the server",
        },
    ),
    *_of(
        FEED_FORWARD,
        "",
        "make figures",
        {"8": "several servers and adaptive polls", "9": "poll and distance", "10": "weeks at a poll of 256 s"},
    ),
    *_of(FEED_FORWARD, "", _LIVE_TOO, {"11": "packets held back by a capture"}),
    *_of(
        COUNTERS,
        "",
        "make figures-counters, in the guest or against a reference (AGAINST=/dev/ppsN)",
        {"12": "stability of the counters", "13": "rates under stress"},
    ),
    *_of(
        COUNTERS,
        "",
        "make figures-counters, 14 and 15 in the guest",
        {
            "14": "access latency in the kernel",
            "15": "the interface alone (guest)",
            "16": "latency from user space",
            "17": "the clock by counter",
            "18": "the clock by machine",
            "table I": "the counters",
        },
    ),
    *_of(
        LATENCIES,
        "latencies ",
        "make figures-probe",
        {
            "1": "one packet on its way",
            "2": "the probe effect",
            "3": "delays under stress",
            "4": "delays by location and direction",
            "5": "asymmetry by location",
        },
    ),
    *_of(
        DELAYS,
        "delays ",
        "make figures-theta",
        {
            "3": "largest delay by load",
            "4": "relevant smallest delay by load",
            "5": "Omega by load",
            "table 5": "the values of Omega",
            "6": "correlation by load",
            "7": "delays by their place",
            "8": "ratios above 1",
        },
    ),
)
"""In the order of the papers."""

KEYS: Final = tuple(figure.key for figure in FIGURES)
