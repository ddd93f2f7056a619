"""The verdicts on made-up measurements, and the whole of it on simulated runs."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pictures import faults

from ffclock.program import Program, ProgramError
from ffclock.theta_figures import campaign, drawing
from ffclock.theta_figures.__main__ import main
from ffclock.theta_figures.campaign import SHORT, Extent, Kept, _live_rounds
from ffclock.theta_figures.cells import Cell, Measured, Run, Where, grid, others, with_histograms
from ffclock.theta_figures.page import omega_table
from ffclock.theta_figures.verdicts import (
    correlated,
    delay_calms,
    fastest_apart,
    judge,
    jumps_raise,
    longest_rises,
    median_of,
    overlap,
    ramps_correlate,
    rank_correlation,
    ratio_covers,
    real_time_helps,
    relevant_rises,
    stays_low,
    third_at_one,
)

FIFO = ("fifo 50",) * 4


def run(omega: float = 5.0, **other: Any) -> Run:
    values: dict[str, Any] = {
        "tau_max_s": 500e-6,
        "tau_min_s": 20e-6,
        "relevant_min_s": 50e-6,
        "g_r": 2.0,
        "at_most_one": 0.3,
        "messages": 1000,
        "lost": 0,
        "is_whole": True,
    }
    return Run(omega=omega, **(values | other))


def cell(kind: str = "idle", level: int = 0, **other: Any) -> Cell:
    return Cell(**({"where": "live", "n": 4, "kind": kind, "level": level} | other))


def measured(of: Cell, *runs: Run) -> Measured:
    return Measured(of, runs, (), FIFO if of.scheduling == "real-time" else ("normal",) * 4)


def finding(verdict: str = "shown") -> dict[str, Any]:
    return {"verdict": verdict, "g_r": 3.0, "g_r_redrawn": {"median": 1.5, "p": 0.025}}


def test_most_runs_of_every_cell_must_show_the_correlation() -> None:
    good = [
        measured(cell(), run(correlation=finding())),
        measured(cell("network", 30), run(correlation=finding()), run(correlation=finding("not-shown")), run(correlation=finding())),
    ]
    verdict = correlated(good, "live")
    assert verdict.outcome == "confirmed"
    assert "2 of 2 cells" in verdict.evidence
    assert "2.00 times" in verdict.evidence
    assert correlated([*good, measured(cell("both", 90), run(correlation=finding("not-shown")))], "live").outcome == "not here"
    assert (
        correlated([*good, measured(cell("both", 90, pattern="jumps"), run(correlation=finding("not-shown")))], "live").outcome
        == "confirmed"
    )
    untested = [measured(cell(), run(g_r=2.0), run(correlation=finding("not-tested")))]
    assert correlated(untested, "live").outcome == "not measurable"


@pytest.mark.parametrize(
    ("values", "outcome"),
    [((50, 55, 60, 90), "confirmed"), ((50, 50, 50, 50), "not here"), ((90, 60, 55, 50), "not here"), ((50, 51, 52, 53), "not here")],
)
def test_tau_r_must_rise_with_the_load(values: tuple[float, ...], outcome: str) -> None:
    cells = [
        measured(cell(kind if level else "idle", level), run(relevant_min_s=value * 1e-6), run(relevant_min_s=1.0))
        for kind in ("network", "processor", "both")
        for level, value in zip((0, 10, 50, 90), values, strict=True)
    ]
    assert relevant_rises(cells, "live").outcome == outcome
    assert relevant_rises(cells[:2], "live").outcome == "not measurable"


@pytest.mark.parametrize(("loaded_us", "outcome"), [(2500, "confirmed"), (2000, "not here")])
def test_load_on_the_network_must_raise_the_longest_delay(loaded_us: int, outcome: str) -> None:
    calm = measured(cell(), run(tau_max_s=500e-6))
    loaded = measured(cell("network", 90), run(tau_max_s=loaded_us * 1e-6))
    others = [measured(cell("network", 50), run(tau_max_s=1.0)), measured(cell("network", 90, delay_us=100), run(tau_max_s=1.0))]
    assert longest_rises([calm, *others, loaded], "live").outcome == outcome
    assert longest_rises([calm], "live").outcome == "not measurable"


def test_omega_must_stay_low_but_at_very_high_processor_load() -> None:
    good = [measured(cell(), run(3.0)), measured(cell("network", 90, delay_us=100), run(11.0)), measured(cell("both", 90), run(40.0))]
    assert stays_low([*good, measured(cell("network", 90, pattern="jumps"), run(20.0))], "live").outcome == "confirmed"
    verdict = stays_low([*good, measured(cell("network", 90), run(12.5))], "live")
    assert verdict.outcome == "not here"
    assert "in 2 of 3 cells; the largest is 12.5, n = 4, network 90 %" in verdict.evidence
    assert stays_low(good[:1], "live").outcome == "not measurable"


def test_ramps_must_keep_what_the_paper_found() -> None:
    ramps = [measured(cell("network", 90, pattern="ramp"), run(g_r=1.5)), measured(cell("processor", 90, pattern="ramp"), run(g_r=3.7))]
    assert ramps_correlate(ramps, "live").outcome == "confirmed"
    assert ramps_correlate([ramps[0], measured(ramps[1].cell, run(g_r=3.0))], "live").outcome == "not here"
    assert ramps_correlate([measured(cell("network", 90), run())], "live").outcome == "not measurable"


def test_real_time_priorities_must_be_worth_a_factor_of_ten() -> None:
    def with_factor(factor: float) -> list[Measured]:
        normal = cell("processor", 90, scheduling="normal")
        return [measured(cell("processor", 90), run(10.0), run(4.0)), measured(normal, run(10.0 * factor))]

    assert real_time_helps(with_factor(180.0), "live").outcome == "confirmed"
    verdict = real_time_helps(with_factor(3.0), "live")
    assert (verdict.outcome, verdict.words()) == ("not here", "✗ not on this machine")
    assert "x3 " in verdict.evidence
    # Where they were asked for and not granted nothing can be said.
    refused = [replace(found, priorities=("normal",) * 4) for found in with_factor(180.0)]
    assert real_time_helps(refused, "live").outcome == "not measurable"
    assert real_time_helps([], "simulated").outcome == "not measurable"


def test_omega_must_be_larger_without_delay_at_every_n() -> None:
    cells = [measured(cell(n=n), run(3.0)) for n in (4, 7)]
    busy = [measured(cell(n=n, delay_us=0), run(omega)) for n, omega in ((4, 16.0), (7, 21.0))]
    assert delay_calms([*cells, *busy], "live").outcome == "confirmed"
    assert delay_calms([*cells, busy[0], measured(cell(n=7, delay_us=0), run(2.0))], "live").outcome == "not here"
    assert delay_calms(cells, "live").outcome == "not measurable"


def delays(*places: int) -> dict[str, Any]:
    """Histograms h0 and on, each with two bins at its place."""
    bins = [[0] * place + [10, 10] for place in places]
    return {"delays": [{"width": 1_000_000, "bins": each} for each in bins], "all": {}, "longest": {}}


@pytest.mark.parametrize(("places", "outcome"), [((9, 2, 20, 21), "confirmed"), ((9, 19, 20, 30), "not here"), ((9, 5, 5, 5), "not here")])
def test_h1_must_stand_apart(places: tuple[int, ...], outcome: str) -> None:
    cells = [measured(cell(), run(histograms=delays(*places)), run())]
    assert fastest_apart(cells, "live").outcome == outcome
    assert fastest_apart([measured(cell(), run())], "live").outcome == "not measurable"


@pytest.mark.parametrize(("omega", "outcome"), [(9.0, "confirmed"), (5.0, "not here")])
def test_jumps_must_raise_omega(omega: float, outcome: str) -> None:
    ends = [measured(cell("network", 10), run(4.0)), measured(cell("network", 90), run(8.0))]
    # The mean of 4 and 8 by their logarithms is 5.66.
    jump = measured(cell("network", 90, pattern="jumps"), run(omega), run(omega))
    assert jumps_raise([*ends, jump], "live").outcome == outcome
    assert jumps_raise(ends, "live").outcome == "not measurable"


def test_measures_of_histograms_and_ranks() -> None:
    assert overlap([1, 1], [0, 0, 1]) == 0.0
    assert overlap([2, 2], [1, 1]) == pytest.approx(1.0)
    assert overlap([1, 1], [0, 1, 1]) == pytest.approx(0.5)
    assert math.isnan(overlap([], [1]))
    assert median_of([0, 0, 5, 0, 4], 1e-6) == pytest.approx(2.5e-6)
    assert rank_correlation([0, 1, 2, 3], [5, 6, 8, 7]) == pytest.approx(0.8)
    assert rank_correlation([0, 1, 2], [3, 2, 1]) == pytest.approx(-1.0)
    assert math.isnan(rank_correlation([0, 1], [3, 3]))


def test_every_shape_is_judged_in_both_places() -> None:
    verdicts = judge([])
    assert len(verdicts) == 22
    assert {verdict.outcome for verdict in verdicts} == {"not measurable"}


def test_loads_share_the_processors() -> None:
    words = " ".join(cell("both", 90).live(100, "LOG", 2))
    assert "--load network=90 --load timer=45 --priority 50" in words
    jumps = " ".join(cell("processor", 90, pattern="jumps", n=7, scheduling="normal").live(100, "LOG", 2))
    assert jumps.endswith("--load timer=jumps:3..26")
    assert "--priority" not in jumps
    ramp = " ".join(cell("network", 90, pattern="ramp").live(100, "LOG", 2))
    assert "--link-rate 100" in ramp
    assert "--load network=ramp:0..90" in ramp
    assert "--limit 250 s" in " ".join(cell().live(25_000, "LOG", 2))
    of_processors = " ".join(cell("both", 90, pattern="jumps").live(100, "LOG", 2, "softirq"))
    assert "--load network=jumps:10..90 --load softirq=jumps:10..90 --priority" in of_processors


def test_no_other_load_is_measured_than_was_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "ffclock-lab"
    program.write_text("#!/bin/sh\necho softirq: built without it >&2\nexit 1\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setattr(campaign, "namespaces_missing", lambda: None)
    output = tmp_path / "figures"
    assert main(["--softirq", "--short", "--ffclock-lab", str(program), "-o", str(output)]) == 2
    assert "--softirq: " in (said := capsys.readouterr().err)
    assert "built without it" in said
    assert not output.exists()


def test_an_interrupted_measuring_goes_on_where_it_was(tmp_path: Path) -> None:
    """The program fails for any cell that is not kept, so what was measured shows by itself."""
    program = tmp_path / "ffclock-lab"
    program.write_text(f"#!/bin/sh\necho run >>{tmp_path}/ran\necho no >&2\nexit 2\n", encoding="utf-8")
    program.chmod(0o755)
    extent = Extent(sizes=(4,), levels=(0, 30), simulated_runs=1)
    with pytest.raises(ProgramError, match="nothing was begun"):
        Kept(tmp_path / "cells", extent, resume=True)
    kept = Kept(tmp_path / "cells", extent, resume=False)
    done = measured(cell("network", 30), run(3.0))
    done = replace(done, cell=replace(done.cell, where="simulated"))
    kept.add(done)
    assert kept.find(done.cell) == done
    with pytest.raises(ProgramError, match="other options"):
        Kept(tmp_path / "cells", replace(extent, simulated_runs=2), resume=True)
    again = Kept(tmp_path / "cells", extent, resume=True)
    found = campaign.measure(Program(program), extent, False, again)
    assert [one for one in found if one.runs] == [done]
    assert len((tmp_path / "ran").read_text(encoding="utf-8").splitlines()) == len(found) - 1
    # What failed is tried again; begun from nothing, everything is gone.
    assert [one for one in found if again.find(one.cell)] == [done]
    assert Kept(tmp_path / "cells", extent, resume=False).find(done.cell) is None
    again.remove()
    assert not (tmp_path / "cells").exists()


def test_about_a_third_of_the_ratios_must_be_one() -> None:
    def judged(*shares: float | None) -> str:
        return third_at_one([measured(cell("both", 70), *(run(at_most_one=share) for share in shares))], "live").outcome

    assert judged(0.33, 0.25) == "confirmed"
    assert judged(0.33, 0.08) == "not here"
    assert judged(None) == "not measurable"


def test_the_cells_are_those_of_the_paper() -> None:
    for where in ("live", "simulated"):
        place: Where = where
        assert len(grid(place, (4, 7))) == 2 * (1 + 3 * 5)
        assert len(set(grid(place, (4, 7)) + others(place, (4, 7)))) == len(grid(place, (4, 7)) + others(place, (4, 7)))


def test_a_run_is_read_from_an_analysis() -> None:
    omega = {"ratio": {"value": 8.0, "over_ps": 400, "under_ps": 50}}
    seen = {"omega": omega, "relevant_min_ps": 40, "g_r": 0.5, "at_most_one": 1, "switches": 4}
    analysis = {
        "first": seen,
        "all": seen,
        # The longest message was sent in the part that was cut off: g_r is at least 1 all the same.
        "delay_max_ps": 200,
        "delay_min_ps": 10,
        "counts": {"messages": 7, "unperceived": 1},
        "whole": True,
        "conformance": {"kept": True},
    }
    found = Run.of(analysis)
    assert found is not None
    assert (found.omega, found.lost, found.is_whole) == (8.0, 1, True)
    assert found.g_r == pytest.approx(400 / 40 / 8)
    assert found.at_most_one is None
    # Figure 8 is that of switches before their broadcasts.
    drawn = analysis | {"histograms": {"longest": {}, "all": {"bins": [1]}}}
    before = {"all": seen | {"at_most_one": 2}, "histograms": {"all": {"bins": [7]}}}
    both = Run.of(drawn, None, before)
    assert both is not None
    assert both.at_most_one == pytest.approx(0.5)
    assert both.histograms == {"longest": {}, "all": {"bins": [7]}}
    assert Run.of(analysis | {"first": seen | {"omega": None}}) is None


def test_the_table_has_the_papers_values_beside_ours() -> None:
    _, rows = omega_table([Measured(cell(), (run(3.0),)), Measured(cell("network", 10), (run(4.0, is_whole=False),))])
    assert rows[0] == ["network, n = 4", "paper", "2.72", "7.05", "8.60", "8.78", "4.81", "8.22"]
    assert rows[1] == ["network, n = 4", "live", "3.00", "4.00 †", "-", "-", "-", "-"]


def test_simulated_runs_become_a_page(program: Program, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert main(["--short", "--no-live", "-o", str(out), "--ffclock-lab", str(program.path)]) == 0
    printed = capsys.readouterr().out
    assert "delays are correlated in every cell: shown in " in printed
    page = (out / "index.html").read_text(encoding="utf-8")
    assert page.count("data:image/png;base64,") == 7
    assert "<script" not in page
    assert "with processors loaded by programs" in page
    results = json.loads((out / "results.json").read_text(encoding="utf-8"))
    cells = [*grid("simulated", SHORT.sizes, SHORT.levels), *others("simulated", SHORT.sizes, SHORT.levels)]
    assert len(results["measured"]) == len(cells)
    # What the page says to run can be run from beside it.
    scenarios = set(re.findall(r"--scenario (\S+\.toml)", page))
    assert len(scenarios) == len(cells)
    for scenario in scenarios:
        log = tmp_path / f"log-{Path(scenario).stem}"
        program.json(["theta", "simulate", "--scenario", str(out / scenario), "--rounds", "5", "--log", str(log)])
    again = tmp_path / "again"
    assert main(["--results", str(out / "results.json"), "-o", str(again)]) == 0
    assert (again / "index.html").read_text(encoding="utf-8") == page


@pytest.mark.parametrize(("text", "words"), [("{", "no results"), ("[]", "no results"), ('{"format": "x"}', "not written by this")])
def test_what_is_no_result_is_named(text: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "results.json"
    file.write_text(text, encoding="utf-8")
    assert main(["--results", str(file), "-o", str(tmp_path / "out")]) == 2
    assert words in capsys.readouterr().err


def coverage_of(verdict: str) -> dict[str, Any]:
    def bound(model: str, share: float) -> dict[str, Any]:
        rounds = {"share": share, "low": share / 2, "high": share * 1.5}
        return {"model": model, "bound": 1.0, "loaded": {"rounds": rounds}}

    chosen = [bound("timeout", 0.4), bound("ratio", 0.02), bound("ratio-with-delay", 0.3)]
    verdicts = [{"model": "ratio", "verdict": verdict}, {"model": "ratio-with-delay", "verdict": "ratio-holds"}]
    return {"share": 0.999, "chosen": chosen, "verdicts": verdicts}


def test_a_ratio_must_break_less_often_than_a_timeout_in_every_loaded_cell() -> None:
    def judged(*verdicts: str) -> tuple[str, str]:
        cells = [replace(measured(cell("network", 90, n=n), run()), coverage=coverage_of(each)) for n, each in enumerate(verdicts, 4)]
        found = ratio_covers([replace(measured(cell(), run()), coverage=coverage_of("no-difference")), *cells], "live")
        return found.outcome, found.evidence

    assert judged("ratio-holds", "ratio-holds")[0] == "confirmed"
    assert judged("ratio-holds", "no-difference")[0] == "not here"
    outcome, words = judged("timeout-holds")
    assert outcome == "not here"
    assert "in 0 of 1 cells" in words
    assert "timeout 40.0% (20.0% to 60.0%), ratio 2.0% (1.0% to 3.0%), ratio with D 30.0%" in words
    assert judged()[0] == "not measurable"


def test_cells_that_are_tested_for_correlation_get_more_rounds() -> None:
    extent = Extent()
    assert _live_rounds(extent, cell("network", 90)) == 3000
    assert _live_rounds(extent, cell("network", 90, pattern="jumps")) == 800
    assert _live_rounds(extent, cell(delay_us=0)) == 2400


def everything(where: Where) -> list[Measured]:
    """Made-up runs of all cells, with histograms where figures 7 and 8 have them."""
    bins = {"width": 1_000_000, "bins": [0, 5, 9, 4, 1]}
    drawn = {"delays": [bins] * 4, "longest": bins, "all": bins}
    cells = [*grid(where, (4, 7)), *others(where, (4, 7))]
    return [measured(each, run(3.0 + each.level / 10, histograms=drawn if with_histograms(each) else None)) for each in cells]


def test_every_axis_is_named_and_no_colour_means_two_things() -> None:
    every = [*everything("live"), *everything("simulated")]
    made = [
        drawing.delays(every, "tau+", "tau_max_s"),
        drawing.delays(every, "tau_r-", "relevant_min_s", is_least=True),
        drawing.omega(every),
        drawing.correlation(every),
        drawing.histograms(every),
        drawing.ratios(every),
        drawing.comparisons(every),
    ]
    assert [faults(picture) for picture in made if picture is not None] == [[]] * 7
    # The walk sees what it is there for.
    assert made[0] is not None
    axes = made[0].axes[0]
    axes.set_ylabel("")
    for line in axes.lines:
        line.set_color("black")
    said = faults(made[0])
    assert any("no label of y" in fault for fault in said)
    assert any("look the same" in fault for fault in said)
