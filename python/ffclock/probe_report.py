"""Turns a record of ``ffclock-lab probe run`` into a page: ``python -m ffclock.probe_report RECORD -o report.html``.

The page holds counterparts of figures 1 to 5 of "Probing the Latencies of Software Timestamping", the tail of every delay, the tables and
the paper's findings beside what was found. It runs no script and loads nothing. Where the output is a directory, it receives
``probe.html`` and the pictures beside it.
"""

from __future__ import annotations

import argparse
import io
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from . import page
from .errors import missing
from .progress import Progress

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

    from .probe_recording import Phase, Record

_NEEDS: Final = "the report needs numpy, matplotlib and polars"

_FOOTER: Final = """Delays are against the boundary to the driver ({reference}), positive in the order of causes. Boxes lie between the
quartiles with a line at the median, whiskers reach from the minimum to the 90th percentile, as in the paper. The asymmetry is the smallest
delay out minus the smallest delay in, with its 95 % interval by the bootstrap; grey bars are what round trips alone allow. docs/probe.md
defines everything. Made from {source}."""

_WORDS: Final = {
    "figure-1-timeline.png": "Figure 1: one packet on its way through the host",
    "figure-2-probe-effect.png": "Figure 2: delays between user space and driver with more and more probes active",
    "figure-3-series.png": "Figure 3: delays over time by load and direction",
    "figure-4-boxes.png": "Figure 4: box plots of delays by location, direction and load",
    "figure-5-asymmetry.png": "Figure 5: asymmetry of each location by load, with bootstrap interval and bounds",
    "tails.png": "Share of packets whose delay is larger, by location, direction and load",
}


def pictures(record: Record) -> dict[str, Canvas]:
    """The pictures of a record by file name."""
    from . import probe_figures as figures  # noqa: PLC0415  so that --help works without matplotlib

    jobs: tuple[Callable[[], Canvas | None], ...] = (
        lambda: figures.timeline_figure(record),
        lambda: figures.effect_figure(record),
        lambda: figures.series_figure(record),
        lambda: figures.box_figure(record),
        lambda: figures.asymmetry_figure(record),
        lambda: figures.tail_figure(record),
    )
    drawn: dict[str, Canvas] = {}
    with Progress(len(jobs)) as progress:
        progress.say("drawing")
        for name, job in zip(_WORDS, jobs, strict=True):
            made = job()
            if made is not None:
                drawn[name] = made
            progress.step("drawing")
    return drawn


def page_text(record: Record, drawn: dict[str, bytes], title: str = "") -> str:
    """The HTML page of a record around its pictures (PNG by file name)."""
    from .page import document, picture, table  # noqa: PLC0415

    about = record.about
    conditions = [f"{about[key]}" for key in ("way", "device", "driver", "counter", "host", "kernel") if about.get(key)]
    claims = [(_mark(claim["verdict"]) + claim["claim"], claim["evidence"], claim["source"]) for claim in record.paper]
    body = [
        f'<p class="conditions">{escape(" · ".join(conditions))}</p>',
        _verdict(record),
        table("The paper's findings", ("finding", "evidence here", "in the paper"), claims),
        *(f"<figure>{picture(png, _WORDS[name])}<figcaption>{escape(_WORDS[name])}</figcaption></figure>" for name, png in drawn.items()),
        table("What happened to packets and stamps", _COUNTS, [_counts(phase) for phase in record.phases]),
        *(table(f"{phase.name}, from {phase.begin_s:.0f} s: delays [µs]", _DELAYS, _delays(phase)) for phase in record.phases),
        table("Asymmetry [µs]", _ASYMMETRIES, [row for phase in record.phases for row in _asymmetries(phase)]),
        table("Order of events", _ORDERS, [row for phase in record.phases for row in _orders(phase)]),
    ]
    reference = " and ".join(record.phases[0].findings["reference"]) if record.phases else "none"
    return document(title or "Where packets wait", body, _FOOTER.format(reference=escape(reference), source=escape(record.source.name)))


def _mark(verdict: str) -> str:
    return {"confirmed": "✓ ", "not-on-this-kernel": "✗ ", "undecided": "≈ "}.get(verdict, "(not measured) ")


def _verdict(record: Record) -> str:
    broken = sum(order["violations"] for phase in record.phases for order in phase.findings["causality"])
    lost = sum(phase.counts["events_lost"] + phase.counts["tap_dropped"] + phase.counts.get("ebpf_lost", 0) for phase in record.phases)
    tail = f" {lost} events, copies of packets or stamps by eBPF were lost by buffers; they are counted, not filled in." if lost else ""
    if broken:
        return f'<p class="verdict broken">{broken} pairs of stamps contradict the order of events.{tail}</p>'
    return f'<p class="verdict kept">No stamp contradicts the order of events.{tail}</p>'


_COUNTS: Final = ("phase", "length", "sent", "received", "lost", "everything else that is not zero", "not available")
_DELAYS: Final = ("location", "packets", "min", "25 %", "median", "75 %", "90 %", "99 %", "99.9 %", "max")
_ASYMMETRIES: Final = ("location", "phase", "min out", "min in", "asymmetry", "95 % interval", "bounds", "")
_ORDERS: Final = ("phase", "order broken", "packets", "violations", "worst [µs]", "examples (packet, µs)")


def _counts(phase: Phase) -> tuple[str, ...]:
    counts = phase.counts
    shown = ("sent", "received", "lost")
    rest = ", ".join(f"{value} {name.replace('_', ' ')}" for name, value in counts.items() if value and name not in shown)
    missing = "; ".join(phase.unavailable)
    return (phase.name, f"{phase.length_s:.1f} s", *(str(counts[name]) for name in shown), rest, missing)


def _us(ns: float) -> str:
    return f"{ns * 1e-3:.2f}"


def _delays(phase: Phase) -> list[tuple[str, ...]]:
    rows = []
    for delay in phase.findings["delays"]:
        spread = {**delay["delay_ns"], "p90": delay["p90_ns"]}
        keys = ("min", "p25", "median", "p75", "p90", "p99", "p999", "max")
        rows.append((delay["site"], str(delay["count"]), *(_us(spread[key]) for key in keys)))
    return rows


def _asymmetries(phase: Phase) -> list[tuple[str, ...]]:
    return [
        (
            one["location"],
            phase.name,
            _us(one["out_ns"]),
            _us(one["in_ns"]),
            _us(one["asymmetry_ns"]),
            " to ".join(_us(end) for end in one["interval_ns"]),
            f"±{_us(one['limit_ns'])}" if one["limit_ns"] >= 0.0 else "none",
            "" if one["verdict"] == "possible" else one["verdict"].replace("-", " "),
        )
        for one in phase.findings["asymmetries"]
    ]


def _orders(phase: Phase) -> list[tuple[str, ...]]:
    return [
        (
            phase.name,
            f"{order['first']} before {order['second']}",
            str(order["count"]),
            str(order["violations"]),
            _us(order["worst_ns"]),
            ", ".join(f"{packet}: {_us(ns)}" for packet, ns in order["examples"]),
        )
        for order in phase.findings["causality"]
        if order["violations"]
    ]


def with_findings_of(record: Record, other: Record) -> Record:
    """The record with the findings of another one in place of those that it has not measured."""
    measured = {claim["claim"]: claim for claim in other.paper if claim["verdict"] != "not-measured"}
    paper = [measured.get(claim["claim"], claim) if claim["verdict"] == "not-measured" else claim for claim in record.paper]
    return replace(record, paper=paper)


def write_report(record: Record, output: Path, title: str = "") -> list[Path]:
    """Writes the page, and its pictures beside it if ``output`` is a directory; returns what was written. OSError if that fails."""
    images: dict[str, bytes] = {}
    for name, made in pictures(record).items():
        png = io.BytesIO()
        made.savefig(png, format="png")
        images[name] = png.getvalue()
    return page.write(page_text(record, images, title), images, output, "probe.html")


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m ffclock.probe_report",
        description="Draw a record of `ffclock-lab probe run` as a page with pictures that loads nothing.",
        epilog="example: ffclock-lab probe run --netns --record p.parquet && python -m ffclock.probe_report p.parquet -o probe.html",
    )
    parser.add_argument("record", type=Path, metavar="RECORD", help="what `ffclock-lab probe run --record` or probe.d wrote")
    parser.add_argument(
        "-o", "--output", type=Path, default=Path("probe.html"), metavar="FILE", help="the page, or a directory for page and pictures"
    )
    parser.add_argument("--title", default="", help="heading")
    parser.add_argument("--ffclock-lab", type=Path, metavar="PATH", help="the command that reads records (default: $FFCLOCK_LAB, the PATH)")
    parser.add_argument("--command", default="ffclock-lab probe run", metavar="TEXT", help="what made the record, for the verdicts")
    parser.add_argument(
        "--multicast",
        type=Path,
        metavar="RECORD",
        help="a record of `probe run --multicast`: the findings that it alone shows are taken from it",
    )
    parser.add_argument("--json", action="store_true", help="name what was written as JSON")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns 0, or 2 with one message on standard error if the input or the output is unusable."""
    return run(_arguments(arguments))


def run(options: Any) -> int:
    """The same with options that were parsed already."""
    try:
        from .evidence.verdict import write as write_verdicts  # noqa: PLC0415
        from .probe_recording import ProbeError, read_record  # noqa: PLC0415
        from .probe_verdicts import judge  # noqa: PLC0415
        from .program import Program, ProgramError  # noqa: PLC0415
    except ModuleNotFoundError as error:
        print(f"ffclock.probe_report: {missing(_NEEDS, error)}", file=sys.stderr)
        return 2
    try:
        program = Program.find(options.ffclock_lab)
        record = read_record(options.record, program)
        if multicast := getattr(options, "multicast", None):
            record = with_findings_of(record, read_record(multicast, program))
        written = [str(path) for path in write_report(record, options.output, options.title)]
        if options.output.is_dir():
            command = getattr(options, "command", "ffclock-lab probe run")
            written.append(str(write_verdicts(options.output, judge(record, command))))
    except (ProbeError, ProgramError, OSError) as error:
        print(f"ffclock.probe_report: {error}", file=sys.stderr)
        return 2
    except (KeyError, IndexError, TypeError) as error:
        print(f"ffclock.probe_report: the record has not the fields of its kind ({error!r}); record again", file=sys.stderr)
        return 2
    print(json.dumps({"written": written}) if options.json else "\n".join(written))
    return 0


if __name__ == "__main__":
    sys.exit(main())
