"""The page of evidence: no figure of the papers is left out, and there is no verdict that a wrong value does not fail."""

from __future__ import annotations

import json
import math
import re
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ffclock.counters_recording import Machine, Recording
from ffclock.counters_verdicts import KnownPulse
from ffclock.counters_verdicts import judge as judge_counters
from ffclock.evidence.__main__ import PLACES, collect, main
from ffclock.evidence.catalogue import FIGURES, KEYS
from ffclock.evidence.page import NOT_RUN, grouped, html, judged, markdown, summary, worst
from ffclock.evidence.verdict import Verdict, VerdictError, is_near, outcome, read, update, write
from ffclock.live_figures.runs import CONTESTANTS, SETTINGS, Live
from ffclock.live_figures.verdicts import judge as judge_live
from ffclock.paper import lan, wan
from ffclock.paper.findings import Finding
from ffclock.paper.worlds import World
from ffclock.probe_recording import Phase, Record
from ffclock.probe_verdicts import judge as judge_probe
from ffclock.runs import Samples
from ffclock.series import Series
from ffclock.theta_figures.cells import Cell, Measured, Run
from ffclock.theta_figures.values import LEVELS, OMEGA
from ffclock.theta_figures.verdicts import evidence as theta_evidence

CHECKOUT = Path(__file__).resolve().parents[2]
CLOCKS = ("classic", "learned", "ptpd", "pi", "pll", "regression", "ntpd", "chrony", "joint")


def verdict(figure: str = "2", **other: Any) -> Verdict:
    values = {
        "status": "live",
        "what": "a",
        "paper": "1",
        "ours": "2",
        "ratio": 2.0,
        "test": "t",
        "outcome": "as in the paper",
        "command": "c",
    }
    return Verdict(figure, **(values | other))


def test_every_figure_and_table_of_the_papers_is_listed_once() -> None:
    assert len(KEYS) == len(set(KEYS)) == 30
    assert [str(number) for number in range(2, 19)] == [key for key in KEYS if key.isdigit()]
    assert sum(key.startswith("latencies ") for key in KEYS) == 5
    assert sum(key.startswith("delays ") for key in KEYS) == 7


@pytest.mark.parametrize(
    ("ratio", "holds", "word"),
    [
        (1.9, None, "as in the paper"),
        (0.5, True, "as in the paper"),
        (2.1, True, "shape only"),
        (None, True, "shape only"),
        (2.1, None, "differs"),
        (1.0, False, "differs"),
        (None, False, "differs"),
        (-1.0, None, "differs"),
        (math.nan, None, "differs"),
        (None, None, "not measured"),
    ],
)
def test_a_value_beyond_the_factor_is_not_the_papers(ratio: float | None, holds: bool | None, word: str) -> None:
    assert outcome(ratio, holds) == word


def test_nothing_at_all_is_not_near() -> None:
    assert not is_near(0.0)
    assert not is_near(math.inf)
    assert is_near(2.9, factor=3.0)


class _Made:
    """A laboratory whose clocks err by what a function of world and clock says, times an even sawtooth."""

    seed = 1

    def __init__(self, size: Any, changes: float = 1.0) -> None:
        self.size, self.changes = size, changes

    def run(self, name: str, later: int = 0) -> World:
        t_s = np.arange(30.0, 26 * 86400.0, 30.0)
        saw = (np.arange(t_s.size) % 101 - 50.0) / 50.0
        grown = np.where((t_s > 18 * 3600.0) & (t_s < 46 * 3600.0), self.changes, 1.0)
        clocks = {clock: Samples(t_s, error_s=saw * grown * self.size(name, clock)) for clock in CLOCKS}
        windows = [
            {"name": phase.window, "iqr": self.size(phase.window, clock), "max": 1.0} for phase in wan._PHASES for clock in ("ntpd",)
        ]
        result = {"asymmetry_s": 0.0, "clocks": [{"name": clock, "windows": windows} for clock in CLOCKS]}
        return World(name, 1, Series(name, "", 1, 43200.0, (), clocks), result, f"run {name}")


def _alike(name: str, clock: str) -> float:
    return 1e-6


def _upside_down(name: str, clock: str) -> float:
    """The feed-forward clocks are the bad ones, and the worse the more is done to the world; sizes that no paper has."""
    disturbed = not (name in {"ideal", "calibrated"} or name.endswith("-relaxed"))
    if clock in {"classic", "learned", "joint"} and name.startswith(("lan-", "near-", "far-")):
        return {"lan-16": 0.4, "lan-64": 0.3, "lan-256": 0.2, "lan-1024": 0.1, "far-16": 1e-3}.get(name, 0.05)
    if clock in {"classic", "learned", "joint"}:
        return 0.05 * (400.0 if name == "congestion-host" else 40.0 if disturbed else 1.0)
    return 1e-9 * (100.0 if name == "host-noise" else 1.0)


DRAWERS = (
    lan.figure_2,
    lan.figure_3,
    lan.figure_4,
    lan.figure_5,
    lan.figure_6,
    lan.figure_7,
    wan.figure_8,
    wan.figure_9,
    wan.figure_10,
    wan.figure_11,
)


@pytest.mark.parametrize("drawer", DRAWERS, ids=lambda drawer: drawer.__name__)
def test_every_verdict_on_a_simulated_figure_can_fail(drawer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for place in (lan, wan):
        monkeypatch.setattr(place, "png", lambda _: b"")
    bad = [drawer(_Made(size)).findings for size in (_alike, _upside_down)]
    for each in zip(*bad, strict=True):
        if any(finding.agrees is not None or finding.values for finding in each):
            assert any(finding.outcome == "differs" for finding in each), each[0].what
            assert all(finding.test for finding in each), each[0].what


def test_a_finding_far_from_the_papers_value_has_only_its_shape() -> None:
    assert Finding("a", "61.5 µs", "382 µs", True, (61.5, 382.0), "more").outcome == "shape only"
    assert Finding("a", "61.5 µs", "100 µs", True, (61.5, 100.0), "more").outcome == "as in the paper"
    assert Finding("a", "61.5 µs", "100 µs", False, (61.5, 100.0), "more").outcome == "differs"
    assert Finding("a", "", "").outcome == "not measured"


def _live(sizes: dict[str, dict[str, float]], otherwise: float) -> list[Live]:
    t_s = np.arange(0.0, 120.0, 0.25)
    shape = np.where(np.arange(t_s.size) % 4 < 2, -1.0, 1.0) * np.where(np.arange(t_s.size) % 2 == 0, 1.0, 0.5)
    runs = []
    for setting in SETTINGS:
        of = sizes.get(setting.name, {})
        # What grows over the run drifts.
        series = {name: (t_s, shape * of.get(name, otherwise) * (1.0 + of.get("growth", 0.0) * (t_s > 55.0))) for name in CONTESTANTS}
        runs.append(Live(setting, 120.0, 30.0, series, {}))
    return runs


def test_every_verdict_on_a_live_figure_can_fail() -> None:
    quiet = {"ffclockd-classic": 1e-2, "ffclockd-learned": 1e-2, "ffclockd-ptp": 1e-2, "ptpd-default": 1e-6}
    noisy = {name: 10 * size for name, size in quiet.items()}
    noisier = {name: 100 * size for name, size in noisy.items()}
    upside_down = {
        "quiet": quiet,
        "noise": {"ffclockd-classic": 1e-3, "ffclockd-ptp": 1e-3, "ptpd-default": 1e-6},
        "congestion": noisy,
        "congestion-host": noisier,
        "cut": noisy | {"growth": 3.0},
        "capture": quiet,
    }
    bad = (judge_live(_live({}, 1e-6), {}), judge_live(_live(upside_down, 1e-9), {}), judge_live(_live({}, 1e-2), {}))
    for each in zip(*bad, strict=True):
        assert any(claim.verdict("c").outcome == "differs" for claim in each), each[0].what
        assert each[0].shape, each[0].what


def _recording(instrument: str, records: list[dict[str, Any]], **about: Any) -> Recording:
    phases = [
        {"record": "phase", "number": number, "load": load, "begin_s": 20.0 * number, "length_s": 20.0}
        for number, load in enumerate((None, "cpu"))
    ]
    return Recording(Path("x"), instrument, about, [*records, *phases])


def _clocks(iqr_s: float, apart_s: float, worse: float = 1.0) -> Recording:
    rows = [
        {
            "record": "clock",
            "counter": name,
            "stamps": "socket",
            "estimator": estimator,
            "phase": phase,
            "count": 9,
            "iqr_s": iqr_s * times,
            "median_s": apart_s * place,
        }
        for estimator in ("learned", "classic")
        for phase in (0, 1)
        for place, (name, times) in enumerate((("tsc", 1.0), ("hpet", worse)))
    ]
    return _recording("clock", rows)


def test_clocks_with_the_papers_values_pass_and_others_fail() -> None:
    good = judge_counters([_clocks(6e-6, 1e-6)], ("live", "c"))
    each = ["as in the paper", "shape only", "shape only", "shape only"]
    for estimator in ("classic", "learned"):
        assert [one.outcome for one in good if one.figure == "17" and estimator in one.what] == each
    bad = judge_counters([_clocks(20e-6, 5e-6, worse=2.0)], ("live", "c"))
    assert len(bad) == len(good) == 10
    assert {one.outcome for one in bad} == {"differs"}


def _latencies(median: float, call: float, hot: float) -> Recording:
    def row(counter: str, access: str, arrangement: str, ticks: float, phase: int = 0) -> dict[str, Any]:
        return {
            "record": "figures",
            "phase": phase,
            "counter": counter,
            "access": access,
            "arrangement": arrangement,
            "ticks": {"median": ticks},
        }

    rows = [row("tsc", "rdtsc", "single", median), row("tsc", "system call", "single", call)]
    # Readings from user space are no latencies in the kernel, however much they rise.
    rows += [row("tsc", "rdtsc", "first", median, 0), row("tsc", "rdtsc", "first", 99.0 * median, 1)]
    kernel = (("tsc", 1.0), ("hpet", 4.6), ("acpi_pm", 8.8), ("acpi_pm_safe", 24.9 * (call / 1770.0) ** 2))
    for name, times in kernel:
        rows.append(row(f"module:{name}", "kernel interface", "kernel", 420.0 * times * median / 150.0))
        rows.append(row(f"module:{name}", "kernel register", "kernel", 420.0 * times * median / 150.0 - 208.0 * call / 1770.0))
        rows.append(row(f"module:{name}", "kernel interface", "kernel", 420.0 * times * hot / 150.0, 1))
    return _recording("latency", rows)


def test_latencies_with_the_papers_values_pass_and_others_fail() -> None:
    good = judge_counters([_latencies(150.0, 1770.0, 140.0)], ("guest", "c"))
    assert {one.figure for one in good} == {"14", "15", "16"}
    assert "differs" not in {one.outcome for one in good}
    bad = judge_counters([_latencies(1500.0, 150.0, 2000.0)], ("guest", "c"))
    assert len(bad) == len(good)
    call = "a system call, cycles"
    assert {one.outcome for one in bad if one.what != call} == {"differs"}
    # Less than the paper's is its shape, more is not.
    for cycles, word in ((150.0, "shape only"), (1770.0, "as in the paper"), (17700.0, "differs")):
        found = judge_counters([_latencies(150.0, cycles, 140.0)], ("guest", "c"))
        assert [one.outcome for one in found if one.what == call] == [word]


def test_a_median_that_stays_the_same_under_load_has_not_dropped() -> None:
    found = {
        hot: [one for one in judge_counters([_latencies(150.0, 1770.0, hot)], ("guest", "c")) if "under load" in one.what]
        for hot in (149.0, 150.0)
    }
    assert [(one.ours[:6], one.outcome) for one in found[149.0]] == [("4 of 4", "shape only")]
    assert [(one.ours[:6], one.outcome) for one in found[150.0]] == [("0 of 4", "differs")]


def test_a_counter_against_itself_has_no_stability() -> None:
    base = {"base_hertz": 1e9, "counters": [{"name": "slow", "hertz": 1e9}], "reference": None}
    rows: list[dict[str, Any]] = []
    for second in range(40):
        point = {"base": second * 10**9, "width": 1, "value": second * 10**9}
        rows.append({"record": "sample", "t": float(second), "phase": second // 20, "points": [point], "reference": None})
    assert judge_counters([_recording("stability", rows, **base)], ("live", "c")) == []
    for wander, word in ((10, "shape only"), (10**5, "differs")):
        seen = [
            {**row, "reference": {**row["points"][0], "value": row["points"][0]["value"] + wander * int(row["t"]) ** 2}} for row in rows
        ]
        found = judge_counters([_recording("stability", seen, **{**base, "reference": "truth"})], ("live", "c"))
        assert {one.figure for one in found} == {"12", "13"}
        assert {one.outcome for one in found} == {word}
        # In a guest the counter and its reference are of one virtual time, which every row says.
        purpose = "(tests the instrument, not an oscillator)"
        assert not any(purpose in one.what for one in found)
        in_guest = judge_counters([_recording("stability", seen, **{**base, "reference": "truth"})], ("guest", "c"))
        assert [purpose in one.what for one in in_guest] == [True] * len(found)


def test_of_two_recordings_that_show_the_same_the_worse_counts() -> None:
    for recordings in ([_clocks(6e-6, 1e-6), _clocks(20e-6, 1e-6)], [_clocks(20e-6, 1e-6), _clocks(6e-6, 1e-6)]):
        found = judge_counters(recordings, ("live", "c"))
        spread = [one for one in found if one.what == "socket, classic: largest IQR of the clocks"]
        assert [one.outcome for one in spread] == ["differs"]


def test_a_known_pulse_is_recovered_by_its_own_deviation_alone() -> None:
    # The integers of tests/vm/testclocks: seeded, each as often, and an Allan deviation that follows from their range.
    state, phase, rows, size = 88172645463325252, 0, [], 17320
    for second in range(1201):
        for shift in (13, -7, 17):
            state ^= (state << shift if shift > 0 else state >> -shift) & (2**64 - 1)
        phase += (state * (2 * size + 1) >> 64) - size
        seen = {"base": second * 10**9 + phase, "width": 0, "value": second * 10**9}
        rows.append({"record": "sample", "t": float(second), "phase": 0, "points": [], "reference": seen})
    recording = _recording("stability", rows, base_hertz=1e9, counters=[], reference="/dev/pps1")
    known = math.sqrt(size * (size + 1) / 3.0) * 1e-9
    for times, word in ((1.0, "shape only"), (1.5, "differs"), (0.6, "differs")):
        found = judge_counters([recording], ("guest", "c"), KnownPulse("/dev/pps1", known * times))
        assert [one.what.split(" at ")[1] for one in found] == ["1 s", "4 s", "16 s", "64 s", "256 s"]
        # The longest averages are too few to separate deviations that are 1.5 times apart.
        assert {one.outcome for one in found[:3]} == {word}
    assert {one.outcome for one in judge_counters([recording], ("guest", "c"), KnownPulse("/dev/pps1", known))} == {"shape only"}


def test_latencies_of_user_space_have_no_verdict_on_the_kernel() -> None:
    whole = _latencies(150.0, 1770.0, 140.0)
    user = replace(whole, records=[row for row in whole.records if row.get("arrangement") != "kernel"])
    assert {one.figure for one in judge_counters([user], ("live", "c"))} == {"16"}


def _rates(tsc_hertz: float, timer_times: float, register_hertz: float = 14.3e6) -> Recording:
    """Ten seconds of the raw clock and two timers by a base of this frequency; the CPU is said to have 2 GHz.

    HPET runs at what its register states, and the ACPI timer at 3.57 MHz, times ``timer_times``.
    """
    hertz = {"monotonic-raw vDSO": 1e9, "module:hpet ioctl": register_hertz * timer_times, "module:acpi_pm ioctl": 3.57e6 * timer_times}
    stated = {"monotonic-raw vDSO": 1e9, "module:hpet ioctl": register_hertz, "module:acpi_pm ioctl": 3.579545e6}
    about = {"base_hertz": 2e9, "counters": [{"name": name, "hertz": one} for name, one in stated.items()]}

    def points(second: int) -> list[dict[str, Any]]:
        base = (2**64 - 10**9 + round(second * tsc_hertz)) % 2**64
        return [{"base": base, "width": 1, "value": round(second * one)} for one in hertz.values()]

    rows = [{"record": "sample", "t": float(second), "phase": 0, "points": points(second), "reference": None} for second in range(11)]
    return replace(_recording("stability", rows, reference=None, **about), machine=Machine("a", "A CPU", "6.1", 2e9))


def test_the_frequencies_of_table_1_are_measured() -> None:
    for times, tsc, timers in (
        (1.0, "as in the paper", "as in the paper"),
        (1.0009, "as in the paper", "as in the paper"),
        (1.002, "differs", "as in the paper"),
        (1.02, "differs", "differs"),
        (0.98, "differs", "differs"),
    ):
        found = judge_counters([_rates(2e9 * times, times)], ("guest", "c"))
        assert [(one.figure, one.what, one.outcome) for one in found] == [
            ("table I", "hpet: frequency", timers),
            ("table I", "acpi_pm: frequency", timers),
            ("table I", "TSC: frequency", tsc),
        ]
        assert [one.ratio for one in found] == pytest.approx([times] * 3, rel=1e-6)
        assert [one.test for one in found][1:] == ["value within 1.0%", "value within 0.1%"]


def test_an_hpet_may_have_the_frequency_that_its_register_states() -> None:
    for times, word in ((1.0, "shape only"), (1.02, "differs")):
        found = judge_counters([_rates(2e9, times, 100e6)], ("guest", "c"))
        assert [one.outcome for one in found if one.what.startswith("hpet")] == [word]


def _delays(omega_over_paper: float) -> list[Measured]:
    run = Run(5.0, 500e-6, 20e-6, 50e-6, 2.0, 0.3, 1000, 0, True, None, None)
    made = []
    for kind, n in OMEGA:
        for level, omega in zip(LEVELS, OMEGA[kind, n], strict=True):
            cell = Cell("live", n, kind, level) if level else Cell("live", n)
            made.append(Measured(cell, (replace(run, omega=omega * omega_over_paper),)))
    return made


def test_the_table_of_omega_is_held_to_its_values() -> None:
    for times, word in ((1.0, "as in the paper"), (1.8, "as in the paper"), (2.5, "differs"), (0.2, "differs")):
        found = {one.figure: one for one in theta_evidence(_delays(times), "c")}
        assert found["delays table 5"].outcome == word
        assert found["delays table 5"].ratio == pytest.approx(times)
    assert [one.status for one in theta_evidence(_delays(1.0), "c")] == ["live"] * len(theta_evidence(_delays(1.0), "c"))


def _probed(verdict: str, violations: int, medians: list[float]) -> Record:
    claims = [
        {"claim": text, "source": "", "verdict": verdict, "evidence": "e"}
        for text in (
            "the tap has the smallest and least variable delay on the way out",
            "every stress keeps the order: tap before user space going out",
            "the tap's asymmetry hardly depends on stress (about 1 us)",
        )
    ]
    effect = [{"added": None, "out_ns": {"median": median}, "in_ns": {"median": median}} for median in medians]
    findings = {"causality": [{"count": 10, "violations": violations}]}
    phase = Phase("quiet", 0.0, 1.0, {}, [], findings, {})
    return Record(Path("x"), {}, [phase], claims, effect)


def test_findings_about_latencies_pass_only_where_they_are_confirmed() -> None:
    good = judge_probe(_probed("confirmed", 0, [1.0, 2.0, 3.0]), "c")
    assert {one.figure for one in good} == {f"latencies {number}" for number in range(1, 6)}
    assert {one.outcome for one in good} == {"shape only"}
    for word in ("not-on-this-kernel", "undecided"):
        bad = judge_probe(_probed(word, 1, [1.0, 3.0, 2.0]), "c")
        assert {one.outcome for one in bad} == {"differs"}
    assert {one.figure for one in judge_probe(_probed("not-measured", 0, []), "c")} == {"latencies 1"}


def test_a_figure_is_worth_its_worst_row() -> None:
    rows = [verdict(), verdict(outcome="shape only"), verdict(status="simulated", outcome="differs")]
    assert worst(rows) == "differs"
    assert judged(rows, "live") == "≈ 1 as in the paper, 1 shape only"
    assert judged(rows, "simulated") == "✗ differs"
    assert judged(rows, "guest") == ""
    assert worst([verdict(outcome="not measured")]) == NOT_RUN
    assert summary(rows).startswith("1 of 30 figures and tables have a verdict here, 1 of them live or in a guest.")
    assert "1 shape only" in summary(rows)


def test_headings_keep_the_names_of_the_papers() -> None:
    text = markdown([verdict("table I"), verdict("latencies 3"), verdict("delays table 5")])
    headings = [line.split(":")[0] for line in text.splitlines() if line.startswith("### ")]
    assert headings == ["### Table I", "### Latencies, figure 3", "### Delays, table 5"]
    assert "the values of Omega" in text.split("### Delays, table 5: ")[1].splitlines()[0]


def test_what_was_not_run_is_never_a_pass() -> None:
    text = markdown([verdict("latencies 3", what="a | b")])
    overview = [line for line in text.split("## Row by row")[0].splitlines() if line.startswith(("| figure ", "| table "))]
    shown = [line for line in overview if not line.startswith("| figure | of")]
    assert len(shown) == len(FIGURES)
    assert sum(NOT_RUN in line for line in shown) == 29
    assert sum("✓" in line for line in shown) == 1
    assert "a \\| b" in text
    assert "<script" not in html([verdict()])
    with pytest.raises(ValueError, match="no paper"):
        grouped([verdict("99")])


def test_verdicts_are_collected_from_where_the_tools_leave_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / PLACES[0]
    place.mkdir(parents=True)
    write(place, [verdict(ratio=math.nan), verdict("3", date="2020-01-01 00:00")])
    found, missing = collect(tmp_path)
    assert [one.figure for one in found] == ["2", "3"]
    assert found[0].ratio is None
    assert found[0].date > found[1].date == "2020-01-01 00:00"
    assert missing == list(PLACES[1:])
    assert main(["--checkout", str(tmp_path)]) == 0
    assert f"{PLACES[1]}: {NOT_RUN}" in capsys.readouterr().out
    assert (tmp_path / "docs" / "evidence.md").read_text(encoding="utf-8").startswith("# Evidence\n")
    assert (tmp_path / "target" / "evidence" / "index.html").is_file()


def test_the_commands_of_the_page_are_those_that_make_it() -> None:
    """Every row names the command by which it can be had again: one that tools/evidence runs, all of one of its forms, or a campaign."""
    listed = subprocess.run([CHECKOUT / "tools" / "evidence", "--list"], capture_output=True, text=True, check=True).stdout
    *forms, campaigns = [set(form.splitlines()) for form in listed.split("\n\n")]
    assert len(forms) == 2
    rows = [line for line in (CHECKOUT / "docs" / "evidence.md").read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    # The last cell but one of a row of eight and the date.
    cells = [line.replace("\\|", "").split(" | ") for line in rows]
    named = {row[-2].strip("`") for row in cells if len(row) == 9 and row[-2].startswith("`")}
    # One of the simulated figures by itself.
    commands = {re.sub(r" --only \d+", "", name) for name in named}
    assert len(commands) >= 4
    # A campaign with the length it had.
    of_forms = {name for name in commands if not any(name.startswith(f"{campaign} ") for campaign in campaigns)}
    assert any(of_forms <= form for form in forms), of_forms


def test_drawing_one_figure_again_keeps_the_verdicts_on_the_others(tmp_path: Path) -> None:
    update(tmp_path, [verdict("2"), verdict("3", outcome="differs")])
    found = read(update(tmp_path, [verdict("3", outcome="shape only"), verdict("3")]))
    assert [(one.figure, one.outcome) for one in found] == [("2", "as in the paper"), ("3", "shape only"), ("3", "as in the paper")]


@pytest.mark.parametrize("spoil", ["format", "outcome", "status", "field", "text"])
def test_other_files_are_refused(spoil: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / PLACES[0]
    place.mkdir(parents=True)
    path = write(place, [verdict()])
    held = json.loads(path.read_text(encoding="utf-8"))
    if spoil == "format":
        held["format"] = "another"
    elif spoil == "field":
        del held["verdicts"][0]["test"]
    elif spoil != "text":
        held["verdicts"][0][spoil] = "splendid"
    path.write_text("{" if spoil == "text" else json.dumps(held), encoding="utf-8")
    with pytest.raises(VerdictError):
        read(path)
    assert main(["--checkout", str(tmp_path)]) == 2
    assert "verdicts.json" in capsys.readouterr().err
