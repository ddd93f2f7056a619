"""Holds the simulator's models against running daemons: ``python -m ffclock.live_figures.models RUN... --world PREFIX``.

Each RUN is a directory of ``ffclock-lab live run``, all of one plan and poll. First comes what the host added to the router's delays, of
each ffclockd that recorded its exchanges, which a world of the models needs. Then each daemon's spread over the runs beside that of its
model over many seeds of its world: PREFIX.toml, PREFIX-interleaved.toml or PREFIX-ptp.toml (docs/sim.md).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from ..paper.worlds import iqr
from ..program import Program, ProgramError
from ..tables import Floats, RunError
from . import host
from .runs import read_samples

MODELS: Final = (
    ("ffclockd-learned", "learned", ""),
    ("ffclockd-classic", "classic", ""),
    ("ffclockd-tuned", "learned", "-interleaved"),
    ("chronyd-default", "regression", ""),
    ("chronyd-tuned", "regression", "-interleaved"),
    ("ntpd-default", "pll", ""),
    ("ntpd-tuned", "pll-tuned", ""),
    ("ptp4l-default", "ptp4l", "-ptp"),
    ("ptp4l-tuned", "linreg-raw", "-ptp"),
    ("ptpd-default", "ptpd", "-ptp"),
)
"""A daemon, the model that stands for it, and how the world of its packets ends."""

_BASIC: Final = ("ffclockd-learned", "ffclockd-classic")

_RESAMPLED: Final = 2000


@dataclass(frozen=True)
class Comparison:
    """A daemon beside its model: IQR of each run and of each seed [us]."""

    daemon: str
    model: str
    runs: Floats
    seeds: Floats

    def figures(self) -> dict[str, Any]:
        """Medians with where 90 % of the runs' medians lie (resampled) and 90 % of the seeds."""
        chance = np.random.default_rng(1)
        medians = np.median(chance.choice(self.runs, (_RESAMPLED, self.runs.size)), axis=1)
        live, model = float(np.median(self.runs)), float(np.median(self.seeds))
        return {
            "daemon": self.daemon,
            "model": self.model,
            "runs": int(self.runs.size),
            "live_us": live,
            "live_range_us": [float(self.runs.min()), float(self.runs.max())],
            "live_median_90_us": np.quantile(medians, [0.05, 0.95]).tolist(),
            "seeds": int(self.seeds.size),
            "model_us": model,
            "model_90_us": np.quantile(self.seeds, [0.05, 0.95]).tolist(),
            "model_over_live": model / live,
        }


def spreads(run: Path, settle_s: float) -> dict[str, float]:
    """The IQR of each clock of a run from this time on [us]."""
    with (run / "samples.csv").open(encoding="utf-8") as file:
        series, _ = read_samples(file)
    settled = {name: errors[times >= settle_s] for name, (times, errors) in series.items()}
    return {name: iqr(errors) * 1e6 for name, errors in settled.items() if errors.size > 1}


def compare(runs: Sequence[Path], settle_s: float, simulated: dict[str, dict[str, Floats]]) -> list[Comparison]:
    """Each daemon that all runs have beside its model; ``simulated`` has the IQRs [us] by the world's ending and the model."""
    live = [spreads(run, settle_s) for run in runs]
    return [
        Comparison(daemon, model, np.array([one[daemon] for one in live]), simulated[ending][model])
        for daemon, model, ending in MODELS
        if all(daemon in one for one in live) and model in simulated.get(ending, {})
    ]


def simulate(program: Program, world: Path, seeds: str) -> dict[str, Floats]:
    """The IQR of each model for each seed [us]."""
    answers = program.json(["sim", "sweep", str(world), "--seeds", seeds], allowed=(0, 1))
    found: dict[str, list[float]] = {}
    for answer in answers if isinstance(answers, list) else [answers]:
        for clock in answer["clocks"]:
            found.setdefault(clock["name"], []).append(clock["windows"][0]["iqr"] * 1e6)
    return {name: np.array(iqrs) for name, iqrs in found.items()}


def host_delays(runs: Sequence[Path]) -> dict[str, host.HostDelays]:
    """What the host added, for each contestant that recorded its exchanges, and for those of the basic mode of NTP together."""
    named = sorted({path.parent.name for run in runs for path in run.glob("*/*.fftrace")})
    read = {name: [one for run in runs if (one := host.read(run, name))] for name in named}
    each = {name: several for name, several in read.items() if several}
    basic = [one for name, several in each.items() if name in _BASIC for one in several]
    pooled = {name: host.HostDelays.pooled(several) for name, several in each.items()}
    return pooled | ({"basic": host.HostDelays.pooled(basic)} if basic else {})


def law(delays: dict[str, host.HostDelays]) -> dict[str, dict[str, Any]]:
    """The figures of each, and its likeliest law."""
    return {name: {**one.figures(), "likeliest": one.likeliest()} for name, one in delays.items()}


def text(law: dict[str, dict[str, Any]], comparisons: Sequence[Comparison]) -> str:
    """All tables, in Markdown."""
    lines = ["| the host, us | messages | least | mean | deviation | late | largest |", "|---|---|---|---|---|---|---|"]
    for name, found in law.items():
        for way in ("there", "back"):
            one = found[way]
            shown = " | ".join(f"{one[key]:.1f}" for key in ("least_us", "mean_us", "deviation_us"))
            lines.append(f"| {name}, {way} | {one['messages']:.0f} | {shown} | {100 * one['late']:.2f} % | {one['largest_us']:.0f} |")
    lines += ["", "| likeliest | there: gamma shape, mean | back | heavy tail: shape, mean, share |", "|---|---|---|---|"]
    for name, found in law.items():
        of = found["likeliest"]
        gammas = [f"{of[f'{way}_shape']:.2f}, {of[f'{way}_mean_us']:.1f} us" for way in ("there", "back")]
        lines.append(f"| {name} | {' | '.join(gammas)} | {of['tail_shape']:.2f}, {of['tail_mean_us']:.0f} us, {of['tail_share']:.3f} |")
    lines += ["", "| live, model; IQR in us | live | median's 90 % | model | 90 % of seeds | model / live |", "|---|---|---|---|---|---|"]
    for comparison in comparisons:
        of = comparison.figures()
        ranges = {key: " to ".join(f"{end:.3g}" for end in of[key]) for key in ("live_range_us", "live_median_90_us", "model_90_us")}
        lines.append(
            f"| `{of['daemon']}`, `{of['model']}` | {of['live_us']:.3g} ({ranges['live_range_us']}) | {ranges['live_median_90_us']} "
            f"| {of['model_us']:.3g} | {ranges['model_90_us']} | {of['model_over_live']:.2f} |"
        )
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m ffclock.live_figures.models", description=__doc__.split("\n", 1)[0])
    parser.add_argument("runs", metavar="RUN", nargs="+", type=Path)
    parser.add_argument("--world", metavar="PREFIX", help="without it only what the host added is shown")
    parser.add_argument("--settle", metavar="SECONDS", type=float, help="in place of that of the first run")
    parser.add_argument("--seeds", metavar="FIRST..LAST", default="1..300", help="of the models (1..300)")
    parser.add_argument("--ffclock-lab", metavar="PATH", type=Path)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(arguments)
    try:
        about = json.loads((given.runs[0] / "run.json").read_text(encoding="utf-8"))
        settle_s = about["settle_s"] if given.settle is None else given.settle
        found, comparisons = law(host_delays(given.runs)), []
        if given.world:
            program = Program.find(given.ffclock_lab)
            worlds = {ending: Path(f"{given.world}{ending}.toml") for ending in ("", "-interleaved", "-ptp")}
            simulated = {ending: simulate(program, world, given.seeds) for ending, world in worlds.items()}
            comparisons = compare(given.runs, settle_s, simulated)
    except (OSError, ValueError, KeyError, ProgramError, RunError) as error:
        print(f"models: {error}", file=sys.stderr)
        return 1
    if given.json:
        print(json.dumps({"host": found, "comparisons": [one.figures() for one in comparisons]}))
    else:
        print(text(found, comparisons))
    return 0


if __name__ == "__main__":
    sys.exit(main())
