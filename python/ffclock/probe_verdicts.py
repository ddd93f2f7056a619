"""Verdicts on a record of ``ffclock-lab probe``: the findings of the paper, by the figure that shows them."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Final

from .evidence.verdict import Outcome, Verdict, outcome
from .probe_recording import Record

_FIGURES: Final = (
    ("keeps the order", "3"),
    ("disrupt more", "3"),
    ("smallest delays shrink", "3"),
    ("IP traffic leaves", "3"),
    ("asymmetry hardly", "5"),
    ("", "4"),
)
"""What a finding says, and the figure that it is read from; the rest is about the boxes of figure 4."""
_OUTCOMES: Final[dict[str, Outcome]] = {"confirmed": "shape only", "not-on-this-kernel": "differs", "undecided": "differs"}
"""An undecided finding was not shown, so that it does not pass."""


def judge(record: Record, command: str) -> list[Verdict]:
    """The verdicts on what was measured; nothing on what was not."""
    found = [_order(record, command), *_effect(record, command)]
    for claim in record.paper:
        if claim["verdict"] in _OUTCOMES:
            figure = next(figure for words, figure in _FIGURES if words in claim["claim"])
            test = "shape: as docs/probe.md states; an undecided one fails"
            word = _OUTCOMES[claim["verdict"]]
            found.append(Verdict(f"latencies {figure}", "live", claim["claim"], "it is so", claim["evidence"], None, test, word, command))
    return found


def _order(record: Record, command: str) -> Verdict:
    """Figure 1: every packet passes its locations in the order of causes."""
    orders = [order for phase in record.phases for order in phase.findings["causality"]]
    broken, packets = sum(order["violations"] for order in orders), sum(order["count"] for order in orders)
    texts = ("in their order", f"{broken} of {packets} pairs of stamps are not")
    word = outcome(None, packets > 0 and broken == 0)
    return Verdict(
        "latencies 1", "live", "locations are passed in the order of causes", *texts, None, "shape: no pair broken", word, command
    )


def _effect(record: Record, command: str) -> list[Verdict]:
    """Figure 2: each further probe adds to the median delay."""
    found = []
    for way in ("out", "in"):
        medians = [_median(level, way) for level in record.effect]
        if len(medians) > 1:
            texts = ("grows with each probe", ", ".join(f"{median / 1e3:.2f}" for median in medians) + " µs")
            word = outcome(None, all(before < after for before, after in pairwise(medians)))
            what = f"median delay {way} with more and more probes"
            found.append(Verdict("latencies 2", "live", what, *texts, None, "shape: grows at each step", word, command))
    return found


def _median(level: dict[str, Any], way: str) -> float:
    return float(level[f"{way}_ns"]["median"])
