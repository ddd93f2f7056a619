"""The verdicts on made-up runs of the live laboratory, and the page that shows them."""

from __future__ import annotations

import calendar
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ffclock.evidence.verdict import read as read_verdicts
from ffclock.live_figures import picture
from ffclock.live_figures.__main__ import main, write
from ffclock.live_figures.drawing import colours
from ffclock.live_figures.far import several_servers, weeks
from ffclock.live_figures.runs import CONTESTANTS, FAR, SETTINGS, Live, Setting, incomplete, measure, read, read_samples
from ffclock.live_figures.simulated import POLLS
from ffclock.live_figures.verdicts import Claim, judge, settled_s
from ffclock.program import Program, ProgramError
from ffclock.tables import Floats

SECONDS = 120.0


def summary() -> dict[str, Any]:
    figures = dict.fromkeys(("iqr_s", "median_s", "p1_s", "p99_s", "largest_s"), 1e-6)
    rows = [{"name": name, "iqr_over_best": None, "outside": None, **figures} for name in CONTESTANTS]
    return {"contestants": rows, "events": ["0.0 s  session 0 begins"]}


def run(number: int, sizes: dict[str, float] | None = None) -> Live:
    """Errors that are even between plus and minus a size, 1 us where none is given."""
    t_s = np.arange(0.0, SECONDS, 0.25)
    shape = np.where(np.arange(t_s.size) % 4 < 2, -1.0, 1.0) * np.where(np.arange(t_s.size) % 2 == 0, 1.0, 0.5)
    series = {name: (t_s, shape * (sizes or {}).get(name, 1e-6)) for name in SETTINGS[number].contestants}
    return Live(SETTINGS[number], SECONDS, SECONDS / 4, series, summary())


def runs(**sizes: dict[str, float]) -> list[Live]:
    return [run(number, sizes.get(setting.name.replace("-", "_"))) for number, setting in enumerate(SETTINGS)]


def of(claims: list[Claim], text: str) -> Claim:
    found = [claim for claim in claims if text in claim.what]
    assert len(found) == 1
    return found[0]


def test_a_value_within_the_factor_is_the_papers_and_one_beyond_it_only_has_the_shape() -> None:
    text = "IQR of ptpd over that of the paper's algorithm"
    for size, outcome in ((4e-6, "as in the paper"), (40e-6, "shape only"), (0.5e-6, "not here")):
        claims = judge(runs(quiet={"ptpd-default": size}), {("ideal", "ptpd"): 3e-6, ("ideal", "classic"): 1e-6})
        claim = of(claims, text)
        assert claim.outcome == outcome
        assert claim.simulated == pytest.approx(3.0)


def test_a_clock_that_suffers_from_congestion_is_not_called_unaffected() -> None:
    text = "congestion: IQR of the learned clock"
    assert of(judge(runs(), {}), text).outcome == "as in the paper"
    assert of(judge(runs(congestion={"ffclockd-learned": 9e-6}), {}), text).outcome == "not here"


def test_clocks_on_the_same_messages_of_ptp_are_compared_for_figures_2_to_7() -> None:
    def outcomes(**sizes: dict[str, float]) -> list[tuple[int, str]]:
        return [(claim.figure, claim.outcome) for claim in judge(runs(**sizes), {}) if claim.what.startswith("by PTP")]

    figures = sorted(figure for figure, _ in outcomes())
    assert figures == [2, 3, 4, 5, 6, 7, 7]
    assert all(outcome == "shape only" for _, outcome in outcomes())
    for figure, setting in ((2, "quiet"), (3, "noise"), (5, "congestion"), (6, "congestion_host")):
        judged = outcomes(**{setting: {"ffclockd-ptp": 3e-6}})
        assert [one for one, outcome in judged if outcome == "not here"] == [figure]
    judged = outcomes(quiet={"ffclockd-ptp": 100e-6, "ptp4l-default": 200e-6})
    assert judged.count((4, "shape only")) == 1
    late = runs()
    t_s, error_s = late[4].series["ffclockd-ptp"]
    drifting = {**late[4].series, "ffclockd-ptp": (t_s, error_s + np.where(t_s > 60.0, 100e-6, 0.0))}
    late[4] = Live(late[4].setting, SECONDS, SECONDS / 4, drifting, summary())
    ours = [claim for claim in judge(late, {}) if claim.what.startswith("by PTP") and claim.figure == 7]
    assert [claim.outcome for claim in ours] == ["not here", "not here"]
    # What lasts for 36 of 120 s has little time to go wrong in, which the row says.
    assert ours[1].shape == "below 60 µs, which a cut of 36 s reaches only at 1.7 us/s"


def test_polls_that_ntpd_chooses_must_scatter_it_more_in_either_list_of_servers() -> None:
    def outcomes(**sizes: float) -> list[str]:
        named = {name.replace("_", "-"): size for name, size in sizes.items()}
        return [claim.outcome for claim in several_servers(run(len(SETTINGS) - 1, named), {})]

    assert outcomes(ntpd_tuned=150e-6, ntpd_relaxed=1200e-6) == ["as in the paper", "as in the paper", "shape only", "shape only"]
    assert outcomes(ntpd_tuned=150e-6, ntpd_relaxed=300e-6)[1:3] == ["not here", "not here"]
    assert outcomes(ntpd_tuned=2e-3)[0] == "not here"
    assert outcomes(ffclockd_learned=2e-6)[3] == "not here"


def test_hours_at_256_s_are_judged_run_by_run_and_none_gives_no_verdict() -> None:
    def hours(*ntpd: float) -> list[Live]:
        setting = Setting("quiet-256-1", "quiet-256", poll_s=256)
        sizes = [{"ntpd-default": size, "ffclockd-classic": 7e-6} for size in ntpd]
        return [Live(setting, SECONDS, 20.0, run(0, one).series, summary()) for one in sizes]

    assert weeks([], {}) == []
    claims = weeks(hours(1.0, 50e-6, 1e-9), {("weeks", "pll"): 50e-6, ("weeks", "classic"): 5e-6})
    assert [claim.outcome for claim in claims] == ["as in the paper", "as in the paper", "shape only"]
    assert claims[0].live == pytest.approx(50.0 / 7.0)
    assert claims[0].simulated == pytest.approx(10.0)
    assert (
        claims[0].verdict("the tool").command.startswith("ffclock-lab live run quiet-256 --poll 256 --for '120 s' --settle '20 s' --only ")
    )
    assert [claim.outcome for claim in weeks(hours(1e-6), {})] == ["not here"] * 3


def test_a_daemon_that_did_not_run_has_no_verdict() -> None:
    left_out = runs()
    quiet = left_out[0]
    series = {name: one for name, one in quiet.series.items() if name != "ptpd-default"}
    left_out[0] = Live(
        quiet.setting, quiet.seconds, quiet.settle_s, series, {**summary(), "faults": ["0.0 s  ptpd-default is left out: gone"]}
    )
    claims = judge(left_out, {(POLLS, "ptpd"): 300.0})
    assert of(claims, "polls until ptpd").outcome == "not measured"
    assert incomplete(left_out) == ["quiet: 0.0 s  ptpd-default is left out: gone"]


def test_an_opponent_that_did_not_run_loses_to_none() -> None:
    """Without ptp4l or the learned clock, what is compared with them has no verdict, in place of "not here"."""
    left_out = runs()
    for number, name in ((0, "ptp4l-default"), (0, "ffclockd-learned"), (4, "ptp4l-default"), (4, "ffclockd-learned")):
        one = left_out[number]
        left_out[number] = replace(one, series={key: value for key, value in one.series.items() if key != name})
    assert left_out[4].setting.name == "cut"
    claims = judge(left_out, {(POLLS, "ptpd"): 300.0})
    for text in ("polls until ptpd", "Syncs until ffclockd", "rate of ptpd's drift", "rate of ffclockd's drift"):
        assert of(claims, text).outcome == "not measured", text
    lan = run(6)
    alone = {name: (t_s[t_s < SECONDS / 2], error_s[t_s < SECONDS / 2]) for name, (t_s, error_s) in lan.series.items()}
    assert of(several_servers(replace(lan, series=alone), {}), "the worse of both lists").outcome == "not measured"


def test_what_settles_after_a_resumption_is_not_counted(tmp_path: Path) -> None:
    rows = [f"{int(t >= 60)},{t},ntpd-default,{5000 if 60 <= t < 90 else 1000}," for t in range(120)]
    (tmp_path / "samples.csv").write_text("\n".join(["session,t_s,contestant,error_ns,bound_ns", *rows]), encoding="utf-8")
    (tmp_path / "run.json").write_text('{"duration_s": 120, "settle_s": 30}', encoding="utf-8")
    whole = read(SETTINGS[0], tmp_path)
    assert whole.resumed_s == (60.0,)
    assert whole.errors("ntpd-default").size == 60
    assert np.ptp(whole.errors("ntpd-default")) == 0.0
    assert not whole.is_broken_off
    assert replace(whole, seconds=130.0).is_broken_off


def test_runs_of_another_length_or_broken_off_are_refused(tmp_path: Path) -> None:
    place = tmp_path / "runs" / SETTINGS[0].name
    place.mkdir(parents=True)
    (place / "run.json").write_text('{"duration_s": 120, "settle_s": 30}', encoding="utf-8")
    (place / "samples.csv").write_text("session,t_s,contestant,error_ns,bound_ns\n0,60.0,ntpd-default,1,", encoding="utf-8")
    nothing = Program(Path("/bin/false"))
    with pytest.raises(ProgramError, match="a run of 120 s, and not of 200 s"):
        measure(nothing, tmp_path, (200, None))
    with pytest.raises(ProgramError, match="broken off"):
        measure(nothing, tmp_path, (120, None))


def test_every_daemon_has_a_colour_of_its_own() -> None:
    given = colours([*FAR, "chronyd-sock", "ffclockd-tuned"])
    assert len(set(given.values())) == len(FAR) + 2
    assert list(given)[-1] == "ffclockd-learned"


def settled_with(t_s: Floats, error_s: Floats) -> float:
    return settled_s(Live(SETTINGS[0], SECONDS, 30.0, {"one": (t_s, error_s)}, {}), "one", 60e-6)


def test_settling_lasts_until_the_first_sample_after_the_last_one_beyond_the_limit() -> None:
    t_s, error_s = run(0).series["ptpd-default"]
    assert settled_with(t_s, error_s) == 0.0
    assert settled_with(t_s, np.where(t_s < 30.0, 1e-3, error_s)) == pytest.approx(30.0)
    assert settled_with(t_s, np.where(t_s > 60.0, 1e-3, error_s)) == SECONDS


def test_a_clock_that_shows_no_time_at_first_has_not_settled() -> None:
    t_s, error_s = run(0).series["ffclockd-learned"]
    late = t_s >= 10.0
    assert settled_with(t_s[late], error_s[late]) == 10.0
    for name, text in (("ffclockd-learned", "polls until the learned clock"), ("ffclockd-ptp", "Syncs until ffclockd")):
        begun_late = runs()
        begun_late[0] = Live(SETTINGS[0], SECONDS, 30.0, {**begun_late[0].series, name: (t_s[late], error_s[late])}, begun_late[0].summary)
        claim = of(judge(begun_late, {}), text)
        assert (claim.live, claim.outcome) == (10.0, "not here")


def test_samples_of_another_kind_are_refused() -> None:
    found, resumed_s = read_samples(["session,t_s,contestant,error_ns,bound_ns", "0,0.25,ptpd-default,-1500,", "0,0.50,ptpd-default,500,"])
    assert found["ptpd-default"][1] == pytest.approx([-1.5e-6, 0.5e-6])
    assert resumed_s == ()
    for lines in (["a,b", "1,2"], ["session,t_s,contestant,error_ns,bound_ns", "0,x,a,1,"], ["t_s,contestant,error_ns", "1,a"]):
        with pytest.raises(ProgramError):
            read_samples(lines)


def test_the_page_holds_every_run_and_the_results_are_json(tmp_path: Path) -> None:
    every = runs()
    claims = judge(every, {})
    page = write(tmp_path, every, (claims, {"processors": 2, "load": 0.5, "seconds": 120})).read_text(encoding="utf-8")
    assert page.count("data:image/png;base64,") == len(SETTINGS)
    assert all(claim.what in page.replace("&#x27;", "'") for claim in claims)
    results = (tmp_path / "results.json").read_text(encoding="utf-8")
    assert "NaN" not in results
    assert any(math.isnan(claim.paper) for claim in claims)


def test_a_run_that_was_there_keeps_its_date_and_hours_that_are_gone_keep_their_verdicts(tmp_path: Path) -> None:
    earlier, later, long_ago = (calendar.timegm((2026, 11, day, 12, 30, 0)) for day in (27, 28, 1))
    short = [replace(one, ended_s=later if one.setting.name == "quiet" else earlier) for one in runs()]
    hours = replace(run(0), setting=Setting("quiet-256-1", "quiet-256", poll_s=256), ended_s=long_ago)
    for long in ([hours], []):
        claims = [*judge(short, {}), *weeks(long, {})]
        write(tmp_path, [*short, *long], (claims, {"processors": 2, "load": 0.5, "seconds": 120}))
        dates = {verdict.figure: verdict.date for verdict in read_verdicts(tmp_path / "verdicts.json")}
        assert dates.pop("10") == "2026-11-01 12:30"
        assert set(dates.values()) == {"2026-11-28 12:30"}


def test_runs_that_are_too_short_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seconds", "10"]) == 2
    assert "60 s at the least" in capsys.readouterr().err


def test_one_run_is_drawn_and_what_is_no_run_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "run.json").write_text('{"plan": "ptp-1", "duration_s": 8, "settle_s": 2}', encoding="utf-8")
    rows = "".join(f"0,{second},ffclockd-ptp,{second % 3},\n" for second in range(8))
    (tmp_path / "samples.csv").write_text(f"session,t_s,contestant,error_ns,bound_ns\n{rows}", encoding="utf-8")
    file = tmp_path / "run.png"
    assert picture.main([str(tmp_path), str(file)]) == 0
    assert file.read_bytes().startswith(b"\x89PNG")
    assert picture.main([str(tmp_path / "none"), str(file)]) == 1
    assert "none" in capsys.readouterr().err
