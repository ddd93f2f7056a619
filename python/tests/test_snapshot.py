"""The report of a guest that was stopped and restored: what counts as outside a bound, and what the page says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ffclock import snapshot_report

_HEAD = "clock,at_s,half_ns,status,error_ns,bound_ns"


def _run(directory: Path, *, independent: str = "0", dependent: str = "0") -> Path:
    """Thirty seconds with a guest that is stopped from 8 s to 12 s and away from 20 s to 22 s.

    Each time both ffclocks find the time again after half a second, wrong by as many nanoseconds as is said; chronyd is wrong by all
    the time that the guest did not run.
    """
    rows = []
    for at, before in ((at, 0 if at < 80 else 4 if at < 200 else 6) for at in range(300)):
        if 80 <= at <= 120 or 200 <= at <= 220:
            continue
        is_new = 120 < at < 125 or 220 < at < 225
        for name, error in (("independent", independent), ("dependent", dependent)):
            said = "refused,-,-" if is_new else f"synchronised,{error if before else 50000},200000"
            rows.append(f"{name},{1000 + at / 10},1000000,{said}")
        rows.append(f"chronyd,{1000 + at / 10},1000000,system,{-before * 10**9 - 300000},900000")
    (directory / "readings.csv").write_text("\n".join([_HEAD, *rows]) + "\n", encoding="utf-8")
    events = "1000,the guest runs\n1008,stopped\n1012,continued\n1020,saved and ended\n1022,restored\n"
    (directory / "events.csv").write_text(events, encoding="utf-8")
    return directory


def test_clocks_that_give_no_time_until_they_know_it_keep_their_bounds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = _run(tmp_path, independent="1100000", dependent="-1100000")
    assert snapshot_report.main([str(directory)]) == 0
    found = json.loads((directory / "snapshot.json").read_text(encoding="utf-8"))
    for name in ("independent", "dependent"):
        ours = found[name]
        assert (ours["readings"], ours["with_time"], ours["outside_bound"]) == (238, 230, 0), "wrong by less than bound and answer"
        for after in ours["absences"].values():
            assert after["first_time_after_s"] == pytest.approx(0.5)
            assert (after["refused"], after["outside_bound"]) == (4, 0)
        assert [part["largest_error_s"] for part in ours["parts"]] == pytest.approx([0.0, 1e-4, 1e-4]), "the answer took 2 ms"
        assert [part["error_iqr_s"] for part in ours["parts"]] == [0.0, 0.0, 0.0]
    theirs = found["chronyd"]
    assert [after["outside_bound"] for after in theirs["absences"].values()] == [79, 79]
    assert theirs["outside_bound"] == 158
    assert theirs["absences"]["save and restore"]["within_10_ms_after_s"] is None
    text = (directory / "snapshot.html").read_text(encoding="utf-8")
    assert "No reading of ffclock left its bound. The guest was away for 4.0 s (stop and cont), 2.0 s (save and restore)." in text
    assert (directory / "snapshot.png").read_bytes().startswith(b"\x89PNG")
    said = capsys.readouterr().out
    assert "dependent: readings, of those with a time 238, 230; outside their bound 0 of 230" in said


@pytest.mark.parametrize("name", ["independent", "dependent"])
def test_a_reading_of_either_outside_its_bound_is_an_error(tmp_path: Path, name: str) -> None:
    directory = _run(tmp_path, **{name: "1300000"})
    assert snapshot_report.main([str(directory)]) == 1
    assert "150 readings of ffclock left their bound" in (directory / "snapshot.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["independent", "dependent"])
def test_one_that_gives_no_time_in_a_part_of_the_run_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    directory = _run(tmp_path)
    readings = directory / "readings.csv"
    kept = [line for line in readings.read_text(encoding="utf-8").splitlines() if not line.startswith(f"{name},")]
    first = [line for line in readings.read_text(encoding="utf-8").splitlines() if line.startswith(f"{name},")][:20]
    readings.write_text("\n".join(kept + first) + "\n", encoding="utf-8")
    assert snapshot_report.main([str(directory)]) == 1
    assert f"no time of {name}" in capsys.readouterr().err


@pytest.mark.parametrize(
    "readings", ["", _HEAD + "\n", _HEAD + "\ndependent,1000,x,a,1,1\n", _HEAD + "\n1000\n", _HEAD + "\nother,1000,1,a,1,1\n"]
)
def test_what_is_no_run_is_refused_with_one_message(tmp_path: Path, capsys: pytest.CaptureFixture[str], readings: str) -> None:
    directory = _run(tmp_path)
    (directory / "readings.csv").write_text(readings, encoding="utf-8")
    assert snapshot_report.main([str(directory)]) == 2
    assert capsys.readouterr().err.startswith("ffclock.snapshot_report: no run of tests/vm/run snapshot")
    assert snapshot_report.main([str(tmp_path / "none")]) == 2
