"""Pictures of the runs: the error of each daemon over time, all of them above, and the better ones enlarged below."""

from __future__ import annotations

import io
from collections.abc import Iterable
from itertools import cycle
from typing import Final

import numpy as np

from ..marks import BLACK, BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILLION, thinned
from ..scales import time_scale
from ..style import canvas, styled
from .runs import Live

COLOURS: Final = {
    "ptpd-default": VERMILLION,
    "ntpd-default": PURPLE,
    "ntpd-tuned": BLACK,
    "ptp4l-default": ORANGE,
    "ptpd-tuned": "#994455",
    "ptp4l-tuned": "#997700",
    "ffclock-then-ptp4l": PURPLE,
    "ffclock-then-ffclockd": SKY,
    "ntpd-relaxed": "#bb5566",
    "chronyd-relaxed": "#aaaa00",
    "chronyd-tuned": "#117733",
    "chronyd-default": GREEN,
    "ffclockd-ptp": "#555555",
    "ffclockd-classic": SKY,
    "ffclockd-learned": BLUE,
}
"""As in the simulated figures; what is drawn later lies on top."""
_OTHERS: Final = ("#332288", "#88ccee", "#ddcc77", "#cc6677", "#aa4499", "#44aa99", "#882255", "#666633")
"""For daemons that those figures do not have, by their order in the run; below the others."""


def colours(names: Iterable[str]) -> dict[str, str]:
    """Each of these daemons with its colour, in the order in which they are drawn."""
    known = list(names)
    others = dict(zip((name for name in known if name not in COLOURS), cycle(_OTHERS), strict=False))
    return others | {name: colour for name, colour in COLOURS.items() if name in known}


def drawing(run: Live) -> bytes:
    """A run as a PNG."""
    with styled():
        picture = canvas(14.0, 7.0)
        room = {"left": 0.06, "right": 0.985, "top": 0.93, "bottom": 0.075, "hspace": 0.2}
        upper, lower = picture.subplots(2, 1, sharex=True, gridspec_kw=room)
        shown = colours(run.series)
        for axes, share in ((upper, 100.0), (lower, 99.0)):
            reach = _reach(run, list(shown) if share == 100.0 else [name for name in shown if name.startswith("ffclockd")], share)
            scale = time_scale(reach)
            for name in shown:
                times, errors = thinned(*run.series[name])
                axes.plot(times, errors * scale.factor, color=shown[name], linewidth=0.9, label=name)
            axes.set_ylim(-reach * scale.factor, reach * scale.factor)
            axes.set_ylabel(f"error [{scale.name}]")
            axes.axvspan(0.0, run.settle_s, color="#777777", alpha=0.14, linewidth=0)
        upper.set_title(f"{run.setting.name}: all daemons, from the start (grey: not counted)")
        lower.set_title("Enlarged")
        lower.set_xlabel("time since the start [s]")
        upper.legend(loc="upper right", ncols=4, reverse=True)
        file = io.BytesIO()
        picture.savefig(file, format="png")
        return file.getvalue()


def _reach(run: Live, names: list[str], percent: float) -> float:
    """A range that holds what was counted of these, with a margin [s]."""
    sizes = [
        float(np.percentile(np.abs(errors), percent)) for name in names if (errors := run.errors(name, run.settle_s / run.seconds)).size
    ]
    return 1.2 * max(sizes, default=1e-6) or 1e-6
