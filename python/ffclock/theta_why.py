"""Draws what was in transit when a ratio was large: ``python -m ffclock.theta_why STORY.json -o why.png``.

STORY.json is what ``ffclock-lab theta why --json`` prints, or ``-`` for standard input.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from .errors import missing

_NEEDS: Final = "the picture needs matplotlib"

_SLOW: Final = "#D55E00"
_OTHER: Final = "#9A9A9A"
_ONWARD: Final = "#0072B2"
_KINDS: Final = {
    _SLOW: "the longest in transit (tau+)",
    _OTHER: "others in transit",
    _ONWARD: "let the process go on (the slowest: tau_r-)",
}
_SHOWN: Final = 12
"""No more messages in transit are drawn; the longest come first."""


class StoryError(ValueError):
    """The input is no story of a ratio."""


def read_story(text: str) -> dict[str, Any]:
    """The story in ``text``; StoryError if it is none."""
    try:
        story = json.loads(text)
    except json.JSONDecodeError as error:
        raise StoryError(f"no JSON: {error}") from error
    if not isinstance(story, dict) or "contributors" not in story or "in_transit" not in story:
        raise StoryError("no story: ffclock-lab theta why --json prints one")
    return story


def figure_of(story: dict[str, Any], title: str) -> Any:
    """The figure of a story: a bar for each message from its broadcast to its perception, and the switch as a line."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415
    from matplotlib.patches import Patch  # noqa: PLC0415

    transit = [(message, _OTHER) for message in story["in_transit"][:_SHOWN]]
    if transit:
        transit[0] = (transit[0][0], _SLOW)
    bars = transit + [(message, _ONWARD) for message in reversed(story["contributors"])]
    figure = Figure(figsize=(9.0, 1.8 + 0.32 * len(bars)), dpi=130, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    at = story["at_ps"]
    for place, (message, colour) in enumerate(bars):
        begin, end = (1e-6 * (message[when] - at) for when in ("sent_ps", "perceived_ps"))
        axes.barh(place, end - begin, left=begin, color=colour, height=0.7)
    # Bars that touch the edge look cut off.
    axes.margins(x=0.05)
    axes.use_sticky_edges = False
    names = [f"{message['sender']} to {message['receiver']}, round {message['round']}" for message, _ in bars]
    axes.set_yticks(range(len(bars)), names)
    axes.invert_yaxis()
    axes.axvline(0.0, color="#000000", linewidth=1.0)
    axes.set(title=title, xlabel=f"time from the switch of process {story['process']} [µs]", ylabel="message")
    used = {colour for _, colour in bars}
    patches = [Patch(color=colour, label=label) for colour, label in _KINDS.items() if colour in used]
    figure.legend(handles=patches, loc="outside lower center", ncols=3, fontsize=8)
    axes.grid(axis="x", color="#E3E3E3")
    axes.set_axisbelow(True)
    return figure


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns 0, or 2 with one message on standard error if the input or the file is unusable."""
    parser = argparse.ArgumentParser(
        prog="python -m ffclock.theta_why",
        description="Draw what was in transit when a ratio was large, as a PNG file.",
        epilog="example: ffclock-lab theta why run-1 --json | python -m ffclock.theta_why - -o why.png",
    )
    parser.add_argument("story", metavar="STORY", help="the JSON of ffclock-lab theta why, or - for standard input")
    parser.add_argument("-o", "--output", type=Path, default=Path("why.png"), metavar="FILE", help="the picture (default: why.png)")
    parser.add_argument("--title", default="Messages at a switch", help="heading")
    options = parser.parse_args(arguments)
    try:
        text = sys.stdin.read() if options.story == "-" else Path(options.story).read_text(encoding="utf-8")
        figure_of(read_story(text), options.title).savefig(options.output, format="png")
    except ModuleNotFoundError as error:
        print(f"ffclock.theta_why: {missing(_NEEDS, error)}", file=sys.stderr)
        return 2
    except (StoryError, OSError, UnicodeDecodeError) as error:
        print(f"ffclock.theta_why: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
