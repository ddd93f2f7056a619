"""The page: the verdicts, and each run with its picture and its table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, Final

from ..evidence.verdict import FACTOR
from ..page import document, picture, table
from ..scales import time_text
from .runs import LONG, Live, incomplete
from .verdicts import Claim

NOT_HERE: Final = (
    ("Figure 9", "servers at other distances, polls of 256 and 1024 s", "a run of minutes has too few polls; simulated: make figures"),
)
"""What no short run can show, and why."""

_LONG: Final = (
    "Figure 10",
    "weeks at a poll of 256 s",
    f"made from runs of hours: ffclock-lab live run {LONG} --for '138 min' --settle '25 min' --output out/{LONG}",
)
"""The same of a figure that only long runs can show."""


_INTRODUCTION: Final = f"""Live: running daemons with clocks of their own (docs/live.md), as shipped where their names do not say
otherwise. There is a request or a Sync every second, where the paper has 16 s; in figure 10 a request every 256 s. Simulated: the worlds
of <code>make figures</code>, seed 1. A live value within a factor of {FACTOR:g} of the paper's is as in the paper; where only the claim
holds, it is the shape only."""


def page(drawn: Sequence[tuple[Live, bytes]], claims: Sequence[Claim], about: Mapping[str, Any]) -> str:
    """One page that holds everything; each run comes with its picture, a PNG."""
    faults = incomplete([run for run, _ in drawn])
    body = [
        f"<p>{escape(conditions(about))} {_INTRODUCTION}</p>",
        table("Verdicts", ("figure", "what", "paper", "simulated", "live", "verdict"), [claim.row() for claim in claims]),
        table("Not live", ("figure", "what", "why"), NOT_HERE if any(claim.figure == 10 for claim in claims) else (*NOT_HERE, _LONG)),
        table("What was left out or ended", ("",), [(fault,) for fault in faults]),
        *(_run(run, png) for run, png in drawn),
    ]
    return document("The case for feed-forward clocks, live", body, "Made by <code>make figures-live</code>. Errors are clock minus truth.")


def conditions(about: Mapping[str, Any]) -> str:
    """On which machine, in a sentence."""
    return (
        f"{about['seconds']} s for each of the runs, twice that for figure 8, on {about['processors']} processors that had a load of "
        f"{about['load']:.1f} before the first."
    )


def _run(run: Live, png: bytes) -> str:
    heads = ("daemon", "IQR", "over the best of the others", "median", "1 %", "99 %", "largest", "outside its bound")
    rows = [_row(one) for one in run.summary.get("contestants", ())]
    events = "<br>".join(escape(event) for event in run.summary.get("events", ()))
    return (
        f"<figure><h2>{escape(run.setting.name)}</h2>{picture(png, f'Errors of the daemons, {run.setting.name}')}"
        f"<figcaption><p><code>{escape(run.command)}</code></p>{table('', heads, rows)}<p>{events}</p></figcaption></figure>"
    )


def _row(one: Mapping[str, Any]) -> tuple[str, ...]:
    ratio = one["iqr_over_best"]
    outside = one["outside"]
    return (
        one["name"],
        time_text(one["iqr_s"]),
        "-" if ratio is None else f"{ratio:.2f}",
        *(time_text(one[name]) for name in ("median_s", "p1_s", "p99_s", "largest_s")),
        "-" if outside is None else str(outside),
    )
