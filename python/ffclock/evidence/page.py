"""The page of evidence: every figure with its verdicts, as Markdown for the documents and as HTML."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape
from typing import Final

from ..page import document, table
from .catalogue import FIGURES, Shown
from .verdict import FACTOR, Outcome, Status, Verdict

STATUSES: Final[tuple[Status, ...]] = ("live", "guest", "simulated")
_STATUS_WORDS: Final[Mapping[Status, str]] = {"live": "live", "guest": "in a guest", "simulated": "simulated"}
NOT_RUN: Final = "not run here"
_ORDER: Final[tuple[Outcome, ...]] = ("differs", "shape only", "as in the paper")
_MARKS: Final[Mapping[str, str]] = {"as in the paper": "✓ ", "shape only": "≈ ", "differs": "✗ "}

_INTRODUCTION: Final = f"""Every figure and table of the papers, with what is measured or simulated here beside it. "As in the paper":
a value within a factor of {FACTOR:g} of the paper's, of the right shape. "Shape only": the paper gives no value, or ours is
further off, but the claim holds by the test that the row names. "Differs": neither. A figure is worth what its worst row is.
What was not run here has no verdict and passes nowhere. Live: real packets or reads of this host; in a guest: an emulated
machine; simulated: the worlds of the laboratory. Live values depend on what else the machine does meanwhile, most of all those of
message delays."""

_WRITTEN: Final = (
    "Written by `tools/evidence --collect` from what the tools of the figures left below target/ and out/; `make evidence` runs them first."
)
DIGITS: Final = 3


def grouped(verdicts: Sequence[Verdict]) -> dict[str, list[Verdict]]:
    """By figure, in the order of the papers; what no paper has is refused."""
    found: dict[str, list[Verdict]] = {figure.key: [] for figure in FIGURES}
    for verdict in verdicts:
        if verdict.figure not in found:
            raise ValueError(f"no paper has a figure {verdict.figure!r}")
        found[verdict.figure].append(verdict)
    return found


def worst(verdicts: Sequence[Verdict]) -> str:
    """The verdict on a figure: that of its worst row; what was not measured counts for nothing."""
    outcomes = {verdict.outcome for verdict in verdicts}
    return next((word for word in _ORDER if word in outcomes), NOT_RUN)


def judged(verdicts: Sequence[Verdict], status: Status) -> str:
    """The verdict on a figure by one status, with how many rows say so; empty where nothing was run so."""
    mine = [verdict for verdict in verdicts if verdict.status == status and verdict.outcome != "not measured"]
    if not mine:
        return ""
    counts = Counter(verdict.outcome for verdict in mine)
    parts = [f"{counts[word]} {word}" for word in reversed(_ORDER) if counts[word]]
    word = worst(mine)
    return f"{_MARKS[word]}{word}" if len(parts) == 1 else f"{_MARKS[word]}{', '.join(parts)}"


def summary(verdicts: Sequence[Verdict]) -> str:
    """How many figures have a verdict, and how many of them by more than a simulation."""
    by_figure = grouped(verdicts)
    run = {key: [one for one in rows if one.outcome != "not measured"] for key, rows in by_figure.items()}
    having = sum(bool(rows) for rows in run.values())
    real = sum(any(one.status != "simulated" for one in rows) for rows in run.values())
    best = Counter(worst(_best(rows)) for rows in run.values() if rows)
    words = ", ".join(f"{best[word]} {word}" for word in reversed(_ORDER) if best[word])
    return (
        f"{having} of {len(FIGURES)} figures and tables have a verdict here, {real} of them live or in a guest. By the strongest status of "
        f"each, and its worst row: {words or 'none'}."
    )


def _best(rows: Sequence[Verdict]) -> list[Verdict]:
    """The rows of the strongest status that there is."""
    return next(([one for one in rows if one.status == status] for status in STATUSES if any(one.status == status for one in rows)), [])


def _overview(verdicts: Sequence[Verdict]) -> list[tuple[str, ...]]:
    by_figure = grouped(verdicts)
    rows = []
    for figure in FIGURES:
        cells = [judged(by_figure[figure.key], status) for status in STATUSES]
        rows.append((figure.name, figure.about, *cells, "" if any(cells) else f"{NOT_RUN}: {figure.tools}"))
    return rows


def _rows(verdicts: Sequence[Verdict]) -> list[tuple[str, ...]]:
    return [
        (
            one.what,
            _STATUS_WORDS[one.status],
            one.paper,
            one.ours,
            "" if one.ratio is None else f"{one.ratio:.{DIGITS}g}",
            one.test,
            _MARKS.get(one.outcome, "") + one.outcome,
            one.command,
            one.date,
        )
        for one in verdicts
    ]


_HEADS: Final = ("what", "status", "paper", "here", "here / paper", "fails unless", "verdict", "command", "date (UTC)")
_OVERVIEW_HEADS: Final = ("figure", "of", *_STATUS_WORDS.values(), "")


def _papers() -> dict[str, list[Shown]]:
    found: dict[str, list[Shown]] = {}
    for figure in FIGURES:
        found.setdefault(figure.paper, []).append(figure)
    return found


def _markdown_rows(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [heads, ["---"] * len(heads), *rows]
    return ["| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines] + [""]


def markdown(verdicts: Sequence[Verdict]) -> str:
    """The page for docs/."""
    by_figure = grouped(verdicts)
    overview = iter(_overview(verdicts))
    parts = ["# Evidence", "", *_INTRODUCTION.split("\n"), "", summary(verdicts), "", _WRITTEN, ""]
    details = ["## Row by row", ""]
    for paper, figures in _papers().items():
        parts += [f"## {paper}", "", *_markdown_rows(_OVERVIEW_HEADS, [next(overview) for _ in figures])]
        for figure in figures:
            if by_figure[figure.key]:
                rows = [(*row[:-2], f"`{row[-2]}`", row[-1]) for row in _rows(by_figure[figure.key])]
                details += [f"### {_title(figure)}", "", *_markdown_rows(_HEADS, rows)]
    return "\n".join([*parts, *details]).rstrip() + "\n"


def _title(figure: Shown) -> str:
    short = {"latencies": "latencies, ", "delays": "delays, "}.get(figure.key.split()[0], "")
    title = f"{short}{figure.name}: {figure.about}"
    return title[:1].upper() + title[1:]


def html(verdicts: Sequence[Verdict]) -> str:
    """The same as a page that loads nothing."""
    by_figure = grouped(verdicts)
    body = [f"<p>{escape(_INTRODUCTION)}</p><p>{escape(summary(verdicts))}</p>"]
    body.append(table("Every figure", _OVERVIEW_HEADS, _overview(verdicts)))
    body += [table(_title(figure), _HEADS, _rows(by_figure[figure.key])) for figure in FIGURES]
    return document("Evidence", body, escape(_WRITTEN))
