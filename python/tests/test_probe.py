"""What is drawn of records of ``ffclock-lab probe``, and what is said about input that is none."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from pictures import faults

from ffclock import probe_figures, probe_repeat, report
from ffclock.probe_figures import _box_of, _box_of_level
from ffclock.probe_recording import FORMAT, KEY, ProbeError, Record, assemble, is_probe_record, read_record, stamps_of
from ffclock.probe_report import main, page_text, pictures, with_findings_of
from ffclock.program import Program, ProgramError

SITES = ("user-send", "tap-out", "driver-out", "socket-out", "driver-in", "socket-in", "tap-in", "user-receive")
LOADS = (None, "io", None, "cpu")
PACKETS = 300
ABOUT = {"way": "synthetic", "device": "veth0", "counter": "tsc", "counter_hz": 1e9, "sites": list(SITES), "size": 64}


def counts(lost: int) -> dict[str, int]:
    names = ("duplicated", "reordered", "foreign", "unreachable", "refused", "socket_stamps_discarded", "tap_dropped")
    rest = dict.fromkeys((*names, "tap_stamps_discarded", "events_lost", "events_unplaced"), 0)
    return {"sent": PACKETS, "received": PACKETS - lost, "lost": lost, **rest}


def rows(phase: int) -> pl.DataFrame:
    """A host like the paper's: tap 5 us, socket 9 us, user space 20 us before the driver; the tenth packet is lost."""
    drawn = np.random.default_rng(phase).exponential(1000.0 * (1 + phase), (PACKETS, len(SITES))).astype(np.int64)
    middle = dict(zip(SITES, (-20_000, -5_000, 0, -9_000, 200_000, 205_000, 201_000, 215_000), strict=True))
    columns: dict[str, Any] = {}
    for place, site in enumerate(SITES):
        away = 0 if site.startswith("driver") else drawn[:, place]
        sign = -1 if middle[site] < 0 else 1
        columns[site] = np.arange(PACKETS) * 1_000_000 + 50_000 + middle[site] + sign * away
    frame = pl.DataFrame({"phase": np.full(PACKETS, phase, np.int32), "sequence": np.arange(PACKETS), **columns})
    back = [site for site in SITES if site.endswith(("-in", "-receive"))]
    return frame.with_columns(pl.when(pl.col("sequence") == 10).then(None).otherwise(pl.col(site)).alias(site) for site in back)


def table(path: Path, content: Any = None) -> Path:
    """A Parquet record, written by another program than ``ffclock-lab``."""
    phases = [
        {"number": n, "load": load, "begin_s": 2.0 * n, "length_s": 2.0, "counts": counts(1), "unavailable": [], "took_s": 2.0}
        for n, load in enumerate(LOADS)
    ]
    content = content or {"format": FORMAT, "about": ABOUT, "phases": phases}
    pl.concat([rows(n) for n in range(len(LOADS))]).write_parquet(path, compression="snappy", metadata={KEY: json.dumps(content)})
    return path


def findings(phase: int, *, is_broken: bool) -> dict[str, Any]:
    spread = {"min": 4e3, "p25": 5e3, "median": 6e3, "p75": 7e3, "p95": 9e3, "p99": 12e3, "p999": 20e3, "max": 30e3 + phase}
    sites = [site for site in SITES if not site.startswith("driver")]
    asymmetry = {"out_ns": 4e3, "in_ns": 1e3, "asymmetry_ns": 3e3, "interval_ns": [2.8e3, 3.2e3], "limit_ns": 5e3, "verdict": "possible"}
    broken = {**asymmetry, "limit_ns": -1e3, "verdict": "causality-fault"}
    order = {"first": "socket-out", "second": "driver-in", "count": 300, "violations": 2, "worst_ns": -356e3, "examples": [[7, -356e3]]}
    steps = [{"direction": "outgoing", "site": site, "packet_ns": 1e3 * n, "median_ns": 1.1e3 * n} for n, site in enumerate(SITES)]
    return {
        "reference": ["driver-out", "driver-in"],
        "delays": [{"direction": "", "site": site, "count": 300, "delay_ns": spread, "p90_ns": 8e3} for site in sites],
        "asymmetries": [
            {"location": "user", **asymmetry},
            {"location": "socket", **(broken if is_broken else asymmetry)},
            {"location": "tap", **asymmetry},
        ],
        "causality": [order] if is_broken else [{**order, "violations": 0, "examples": []}],
        "timeline": {"packet": 42, "steps": steps},
    }


SPREAD = {"min": 1e3, "p25": 2e3, "median": 3e3, "p75": 4e3, "p99": 9e3, "max": 10e3}
EFFECT = [
    {"probes": n, "added": added, "out_ns": SPREAD, "out_p90_ns": 5e3, "in_ns": SPREAD, "in_p90_ns": 6e3}
    for n, added in enumerate((None, "tracing", "tap"))
]


def printed(*, is_broken: bool = False) -> dict[str, Any]:
    phases = [
        {
            "phase": {"number": n, "load": load, "begin_s": 2.0 * n, "length_s": 2.0},
            "counts": {**counts(1), "events_lost": 3 if is_broken else 0},
            "unavailable": ["the tap: no right"] if n == 0 else [],
            "length_s": 2.0,
            "findings": findings(n, is_broken=is_broken),
        }
        for n, load in enumerate(LOADS)
    ]
    paper = [
        {"claim": "the tap is best", "source": "IV", "verdict": "confirmed", "evidence": "tap 5.00"},
        {"claim": "late <stamps>", "source": "V", "verdict": "not-on-this-kernel", "evidence": "0 violations"},
        {"claim": "hot caches", "source": "IV", "verdict": "not-measured", "evidence": "needs --stress ip"},
    ]
    return {"about": ABOUT, "phases": phases, "paper": paper}


def record(path: Path, *, is_broken: bool = False) -> Record:
    return assemble(path, printed(is_broken=is_broken), stamps_of(table(path)))


def test_delays_have_the_signs_of_the_paper(tmp_path: Path) -> None:
    quiet = record(tmp_path / "a.parquet").phases[0]
    assert quiet.delay("user-send").min() * 1e6 == pytest.approx(20.0, abs=0.2)
    assert np.nanmin(quiet.delay("tap-in")) * 1e6 == pytest.approx(1.0, abs=0.2)
    assert np.isnan(quiet.delay("tap-in")).sum() == 1
    assert np.isnan(quiet.delay("queue-out")).all()
    assert quiet.time_s()[5] == pytest.approx(0.00503, abs=1e-4)


def test_all_phases_of_a_load_are_drawn(tmp_path: Path) -> None:
    loads = record(tmp_path / "a.parquet").loads()
    begins = {load.name: [phase.begin_s for phase in load.phases] for load in loads}
    assert list(begins.items()) == [("quiet", [0.0, 4.0]), ("io", [2.0]), ("cpu", [6.0])]
    assert loads[0].delay("tap-in").size == 2 * (PACKETS - 1)
    assert loads[0].delay("queue-out").size == 0


def test_whiskers_end_at_the_packet_that_waited_least() -> None:
    waited = np.concatenate((np.linspace(1.0, 2.0, 99), [38.0]))
    before, behind = _box_of("tap", waited), _box_of("socket", -waited)
    assert (before["whislo"], behind["whishi"]) == (1.0, -1.0)
    assert before["whishi"] == pytest.approx(-behind["whislo"])
    assert before["whishi"] < 2.0


def test_every_figure_of_the_paper_has_its_counterpart(tmp_path: Path) -> None:
    whole = record(tmp_path / "a.parquet")
    names = set(pictures(replace(whole, effect=EFFECT)))
    assert names == {
        "figure-1-timeline.png",
        "figure-2-probe-effect.png",
        "figure-3-series.png",
        "figure-4-boxes.png",
        "figure-5-asymmetry.png",
        "tails.png",
    }
    assert "figure-2-probe-effect.png" not in pictures(whole)


def test_a_box_of_figure_2_is_a_number_of_probes() -> None:
    box = _box_of_level("+ tap", EFFECT[2], "in")
    assert (box["label"], box["whislo"], box["q1"], box["med"], box["q3"], box["whishi"]) == ("+ tap", 1.0, 2.0, 3.0, 4.0, 6.0)


def test_the_probe_effect_is_read_from_the_record(tmp_path: Path) -> None:
    shown = printed() | {"probe_effect": {"levels": EFFECT, "rounds": 16}}
    rows = stamps_of(table(tmp_path / "a.parquet"))
    assert assemble(tmp_path, shown, rows).effect == EFFECT
    assert assemble(tmp_path, printed() | {"probe_effect": None}, rows).effect == []


def test_a_finding_that_needs_multicast_is_taken_from_the_record_that_has_it(tmp_path: Path) -> None:
    whole = record(tmp_path / "a.parquet")
    late = {"claim": "late <stamps>", "source": "V", "verdict": "confirmed", "evidence": "of the copy"}
    caches = {"claim": "hot caches", "source": "IV", "verdict": "undecided", "evidence": "of the copy"}
    unmeasured = {**whole.paper[0], "verdict": "not-measured"}
    joined = with_findings_of(whole, replace(whole, paper=[unmeasured, late, caches]))
    assert joined.paper == [whole.paper[0], whole.paper[1], caches]
    assert with_findings_of(whole, replace(whole, paper=[])).paper == whole.paper


def test_the_page_says_what_was_found_and_loads_nothing(tmp_path: Path) -> None:
    text = page_text(record(tmp_path / "a.parquet"), {"tails.png": b"png"}, "A <title>")
    for words in ("A &lt;title&gt;", "✓ the tap is best", "✗ late &lt;stamps&gt;", "(not measured) hot caches", "No stamp contradicts"):
        assert words in text, words
    for words in ("the tap: no right", "20.00", "2.80 to 3.20", "±5.00", "base64,"):
        assert words in text, words
    assert "http" not in text
    assert "<script" not in text


def test_broken_causality_and_lost_events_are_reported_first(tmp_path: Path) -> None:
    text = page_text(record(tmp_path / "a.parquet", is_broken=True), {})
    for words in ("8 pairs of stamps contradict", "12 events, copies", "causality fault", "7: -356.00", "socket-out before driver-in"):
        assert words in text, words
    whole = record(tmp_path / "b.parquet", is_broken=True)
    whole.phases[0].counts["ebpf_lost"] = 3
    assert "15 events, copies" in page_text(whole, {})


def test_the_command_reads_what_polars_wrote(tmp_path: Path, program: Program) -> None:
    whole = read_record(table(tmp_path / "a.parquet"), program)
    assert [phase.name for phase in whole.phases] == ["quiet", "io", "quiet", "cpu"]
    tap = next(delay["delay_ns"] for delay in whole.phases[0].findings["delays"] if delay["site"] == "tap-out")
    assert tap["min"] == pytest.approx(np.nanmin(whole.phases[0].delay("tap-out")) * 1e9, abs=1.0)
    out = tmp_path / "out"
    assert report.main([str(tmp_path / "a.parquet"), "--ffclock-lab", str(program.path), "-o", str(out)]) == 0
    assert {"probe.html", "figure-3-series.png"} <= {path.name for path in out.iterdir()}


def test_every_form_of_a_record_is_read(tmp_path: Path, program: Program) -> None:
    lines = tmp_path / "a.jsonl"
    program.json(["probe", "show", str(table(tmp_path / "a.parquet")), "--record", str(lines)])
    assert is_probe_record(lines)
    assert main([str(lines), "--ffclock-lab", str(program.path), "-o", str(tmp_path / "page.html")]) == 0
    assert "synthetic" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_other_input_is_refused_in_words(tmp_path: Path, program: Program, capsys: pytest.CaptureFixture[str]) -> None:
    cut = tmp_path / "cut.parquet"
    cut.write_bytes(table(tmp_path / "a.parquet").read_bytes()[:-20])
    assert main([str(cut), "--ffclock-lab", str(program.path)]) == 2
    assert "without its end" in capsys.readouterr().err
    assert report.main([str(tmp_path / "a.parquet"), "--estimator", "classic"]) == 2
    assert "has no estimator" in capsys.readouterr().err
    with pytest.raises(ProbeError, match="no such file"):
        read_record(tmp_path / "none", program)
    with pytest.raises(ProgramError, match="contradicts itself"):
        read_record(table(tmp_path / "b.parquet", {"format": FORMAT, "about": {**ABOUT, "sites": None}, "phases": []}), program)
    with pytest.raises(ProbeError, match="its metadata does not say"):
        stamps_of(table(tmp_path / "c.parquet", {"format": "another"}))


def test_other_files_are_no_records(tmp_path: Path) -> None:
    file = tmp_path / "x"
    for text in ("", "Ta,Tb\n", '{"format":"ffclock counters 1","instrument":"latency"}\n'):
        file.write_text(text, encoding="utf-8")
        assert not is_probe_record(file), text
    assert not is_probe_record(tmp_path)


def answer_of(location: str | None, reach: float, interval: list[float], asymmetry: float) -> dict[str, Any]:
    candidates = [
        {
            "location": "socket",
            "reach_ns": reach,
            "worst_interval_ns": interval,
            "under_loads": [],
            "asymmetry": {"asymmetry_ns": asymmetry},
        },
        {"location": "tap", "reach_ns": 9e3, "worst_interval_ns": [8e3, 10e3], "under_loads": [], "asymmetry": None},
    ]
    return {"about": {}, "advice": {"location": location, "candidates": candidates}}


def test_runs_that_advise_alike_and_runs_that_do_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def said(answers: list[dict[str, Any]]) -> tuple[int, list[str]]:
        paths = [tmp_path / f"{number}.json" for number in range(len(answers))]
        for path, answer in zip(paths, answers, strict=True):
            path.write_text(json.dumps(answer), encoding="utf-8")
        code = probe_repeat.main([str(path) for path in paths])
        return code, [line[:3] for line in capsys.readouterr().out.splitlines()[-3:]]

    good = [answer_of("socket", 2e3 + n, [1.8e3, 2.2e3], -500.0 + 300 * n) for n in range(3)]
    assert said(good) == (0, ["yes", "yes", "yes"])
    assert said([*good, answer_of("tap", 2e3, [1.8e3, 2.2e3], 0.0)]) == (1, ["NO ", "yes", "yes"])
    assert said([*good, answer_of(None, 2e3, [1.8e3, 2.2e3], 0.0)])[1] == ["NO ", "yes", "yes"]
    assert said([answer_of(None, 2e3, [1.8e3, 2.2e3], 0.0)] * 2)[1] == ["NO ", "yes", "yes"], "a tie each time advises nothing"
    assert said([*good, answer_of("socket", 5e3, [4e3, 6e3], 0.0)])[1] == ["yes", "NO ", "yes"]
    assert said([*good, answer_of("socket", 2e3, [1.8e3, 2.2e3], -36e3)])[1] == ["yes", "yes", "NO "]
    (tmp_path / "0.json").write_text("{}", encoding="utf-8")
    assert probe_repeat.main([str(tmp_path / "0.json")]) == 2


def test_every_axis_is_named_and_no_colour_means_two_things(tmp_path: Path) -> None:
    made = pictures(replace(record(tmp_path / "a.parquet", is_broken=True), effect=EFFECT))
    assert [fault for picture in made.values() for fault in faults(picture)] == []
    legend = made["figure-5-asymmetry.png"].legends[0]
    assert [text.get_text() for text in legend.get_texts()][-1] == "bounds ±r of round trips"
    colours = [*probe_figures.LOADS.values(), *probe_figures.COLOURS.values()]
    assert len(set(colours)) == len(colours), "a load or a location has the colour of another"
    # The probe's loads are those of the counters, but for the one that takes half an hour.
    campaign = (Path(__file__).parents[2] / "lab/counters/src/campaign.rs").read_text(encoding="utf-8")
    named = re.findall(r'= "([a-z-]+)",', campaign.split("pub enum Load", 1)[1].split("}", 1)[0])
    assert set(named) - {"temperature-cycle"} <= set(probe_figures.LOADS), "a load has no colour of its own"
