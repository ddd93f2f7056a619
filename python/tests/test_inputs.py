"""Everything that a report can be made of, read from what the command itself writes."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from ffclock import details, wander
from ffclock.figures import clocks_table, connected, containment
from ffclock.inputs import Wishes, read_input
from ffclock.program import Program, ProgramError
from ffclock.report import main
from ffclock.series import read_clocks
from ffclock.tables import RunError

CLOCKS = {"classic", "learned", "pi", "ptpd", "pll", "regression"}


@pytest.fixture(name="simulated")
def _simulated(program: Program, short_world: Path, tmp_path: Path) -> Path:
    """A directory with the series, the trace and the result of one simulated run."""
    series, trace = tmp_path / "short.csv", tmp_path / "short.trace"
    result = program.simulate(str(short_world), 7, ["--series", str(series), "--trace", str(trace)])
    (tmp_path / "short.json").write_text(json.dumps(result), encoding="utf-8")
    return tmp_path


def test_a_series_holds_every_clock_and_what_happened(simulated: Path) -> None:
    series = read_clocks(simulated / "short.csv")
    assert (series.scenario, series.about, series.seed, series.from_s) == ("short", "a short one", 7, 1800.0)
    assert set(series.clocks) >= CLOCKS
    assert [(event.t_s, event.duration_s) for event in series.events] == [(3600.0, 1200.0)]
    result = json.loads((simulated / "short.json").read_text(encoding="utf-8"))
    for clock in result["clocks"]:
        samples = series.clocks[clock["name"]]
        assert samples.error_s is not None
        counted = samples.error_s[samples.t_s >= 1800.0]
        assert np.median(counted) == pytest.approx(clock["windows"][0]["median"], abs=1e-11)
        assert np.abs(counted).max() == pytest.approx(clock["windows"][0]["max"], abs=1e-11)


def test_readings_under_load_still_count(tmp_path: Path) -> None:
    path = tmp_path / "loaded.csv"
    rows = "".join(f"{second},learned,1e-6,1e-3,1e-6,{second},1e-9\n" for second in range(0, 100, 10))
    remarks = "# scenario=x\n# event=20,40,server cut off\n# load=60,80,congestion\n"
    path.write_text(remarks + "t_s,clock,error_s,bound_s,uncertainty_s,counter,difference_period_s\n" + rows, encoding="utf-8")
    run = read_input(path, Wishes())
    assert [(event.text, event.t_s, event.duration_s) for event in run.summary.events] == [
        ("server cut off", 20, 20),
        ("congestion", 60, 20),
    ]
    assert run.samples.t_s[~connected(run)].tolist() == [20.0, 30.0]


def test_a_simulated_run_is_reported_with_its_exchanges_and_the_other_clocks(simulated: Path) -> None:
    run = read_input(simulated / "short.csv", Wishes())
    assert run.clock == "learned"
    assert set(run.others) >= CLOCKS - {"learned"}
    inside = containment(run.samples.error_s, run.samples.bound_s)
    assert inside is not None
    assert inside.outside == 0
    chosen = connected(run)
    assert not chosen[(run.samples.t_s >= 3600.0) & (run.samples.t_s < 4800.0)].any()
    assert run.exchanges is not None
    assert run.exchanges.forward_s is not None
    assert np.nanmin(run.exchanges.forward_s) == pytest.approx(140e-6, abs=1e-6)
    assert {row[0] for row in clocks_table(run)} >= CLOCKS
    named = read_input(simulated / "short.csv", Wishes(clock="pll"))
    assert named.clock == "pll"
    assert named.samples.bound_s is None


def test_a_trace_is_replayed_packed_or_not(simulated: Path) -> None:
    packed = simulated / "packed.gz"
    packed.write_bytes(gzip.compress((simulated / "short.trace").read_bytes()))
    for path in (simulated / "short.trace", packed):
        run = read_input(path, Wishes(estimator="learned"))
        assert run.samples.error_s is not None
        assert run.exchanges is not None
        assert run.exchanges.offset_s is not None
        assert run.samples.t_s.size <= run.exchanges.t_s.size
        assert run.summary.title == f"Trace {path.name}"
        assert run.samples.rate_error_ppm is not None
        assert np.nanmedian(np.abs(run.samples.rate_error_ppm)) < 0.05


def test_without_truth_the_server_is_what_is_left_to_compare_with(simulated: Path, tmp_path: Path) -> None:
    rows = [
        f"{3_000_000_000 * k * 16},{1.8e9 + k * 16:.1f},{1.8e9 + k * 16:.1f},{3_000_000_000 * k * 16 + 600_000 + k % 7}" for k in range(300)
    ]
    blind = tmp_path / "blind.csv"
    blind.write_text("Ta,Tb,Te,Tf\n" + "\n".join(rows) + "\n", encoding="utf-8")
    run = read_input(blind, Wishes())
    assert run.samples.error_s is None or not np.isfinite(run.samples.error_s).any()
    assert [line.label for line in wander.lines_of(run)] == ["clock against its server, with the path's noise", "counter, uncorrected"]
    assert run.exchanges is not None
    ways = details.one_way(run.exchanges)
    assert ways is not None
    assert ways[2] == "delays by our own clock"
    assert ways[0] + ways[1] == pytest.approx(run.exchanges.round_trip_s, abs=1e-11)
    assert main([str(blind), "-o", str(tmp_path / "blind.html")]) == 0


def test_a_result_is_simulated_again(program: Program, tmp_path: Path) -> None:
    result = tmp_path / "start.json"
    result.write_text(json.dumps(program.simulate("start-0ppm", 3)), encoding="utf-8")
    run = read_input(result, Wishes())
    assert run.summary.title.startswith("start-0ppm")
    assert run.exchanges is not None


def test_one_file_is_written_where_a_page_is_asked_for(simulated: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = simulated / "new" / "page.html"
    assert main([str(simulated / "short.csv"), "-o", str(page), "--title", "Two <hours>", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"written": [str(page)]}
    text = page.read_text(encoding="utf-8")
    assert text.count("data:image/png;base64,") == 3
    assert "<h1>Two &lt;hours&gt;</h1>" in text
    assert "regression" in text
    assert list(page.parent.iterdir()) == [page]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("t_s,clock\n1,a\n", "has no column error_s"),
        ("t_s,clock,error_s\n", "has no rows"),
        ("t_s,clock,error_s\n1,a,fast\n", "cannot be read as a series"),
        ("# seed=many\nt_s,clock,error_s\n1,a,2\n", "invalid literal"),
        ("t_s,clock,error_s\n1,a,2\n", "has no clock b; it has a"),
        ('{"scenario": 3}', "is not the JSON of one simulated run"),
    ],
)
def test_what_is_no_simulated_run_is_named(tmp_path: Path, content: str, complaint: str) -> None:
    path = tmp_path / "file"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(RunError, match=complaint):
        read_input(path, Wishes(clock="b"))


def test_a_missing_or_failing_command_is_named(tmp_path: Path, program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ProgramError, match="make build"):
        Program.find(tmp_path / "nothing")
    monkeypatch.setenv("FFCLOCK_LAB", str(tmp_path / "nothing"))
    with pytest.raises(ProgramError, match="FFCLOCK_LAB"):
        Program.find()
    with pytest.raises(ProgramError, match="fish"):
        program.simulate("fish", 1)


@pytest.mark.parametrize("on_terminal", [False, True])
def test_a_failing_command_shows_none_of_our_own_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on_terminal: bool) -> None:
    command = tmp_path / "ffclock-lab"
    command.write_text("#!/bin/sh\necho 'ffclock-lab: no exchange of the trace could be used' >&2\nexit 1\n", encoding="utf-8")
    command.chmod(0o755)
    monkeypatch.setattr("sys.stderr.isatty", lambda: on_terminal)
    with pytest.raises(ProgramError) as raised:
        Program(command).json(["replay", "--output", str(tmp_path / "clock.csv"), "--", "site.trace"])
    # On a terminal the command itself has written there.
    said = "ffclock-lab replay failed, for the reason above" if on_terminal else "ffclock-lab: no exchange of the trace could be used"
    assert str(raised.value) == said


def test_a_new_route_is_an_event(program: Program, tmp_path: Path) -> None:
    world, trace = tmp_path / "route.toml", tmp_path / "route.trace"
    route = '[[path.route]]\nat = "1 h"\nforward = "450 us"\nbackward = "450 us"\n'
    world.write_text(f'extends = "lan-16"\nabout = "x"\nduration = "4 h"\nfrom = "10 min"\n{route}', encoding="utf-8")
    program.simulate(str(world), 1, ["--trace", str(trace)])
    events = read_input(trace, Wishes(estimator="classic")).summary.events
    assert len(events) == 1
    assert 3600 < events[0].t_s < 2.5 * 3600
    assert 700 < float(events[0].text.removeprefix("floor +").removesuffix(" µs")) < 1000
