"""The report of a guest that was restored: what counts as outside a bound, and what the page says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ffclock import snapshot_report

_HEAD = "at_s,half_ns,status,error_ns,bound_ns,system_error_ns,system_bound_ns"


def _run(directory: Path, *, ffclock_after: str) -> Path:
    """Twenty seconds with a guest that is away from 8 s to 12 s and finds the time again, or not, after half a second."""
    rows = [f"{1000 + at / 10},1000000,synchronised,50000,200000,-300000,900000" for at in range(80)]
    rows += [f"{1000 + at / 10},1000000,DISRUPTED,-,-,-4000000000,1000000" for at in range(121, 125)]
    rows += [f"{1000 + at / 10},1000000,synchronised,{ffclock_after},200000,-4000000000,1000000" for at in range(125, 200)]
    (directory / "readings.csv").write_text("\n".join([_HEAD, *rows]) + "\n", encoding="utf-8")
    (directory / "events.csv").write_text("1000,the guest runs\n1008,saved and ended\n1012,restored\n", encoding="utf-8")
    return directory


def test_a_clock_that_gives_no_time_until_it_knows_it_keeps_its_bound(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = _run(tmp_path, ffclock_after="1100000")
    assert snapshot_report.main([str(directory)]) == 0
    found = json.loads((directory / "snapshot.json").read_text(encoding="utf-8"))
    ours, theirs = found["ffclock"], found["chronyd"]
    assert (ours["outside_bound"], ours["refused_since_restore"]) == (0, 4), "wrong by less than its bound and what the answer took"
    assert ours["first_time_after_restore_s"] == pytest.approx(0.5)
    assert (theirs["outside_bound"], theirs["outside_bound_since_restore"]) == (79, 79)
    assert theirs["within_10_ms_after_restore_s"] is None
    text = (directory / "snapshot.html").read_text(encoding="utf-8")
    assert "No reading of ffclock left its bound. The guest was away for 4.0 s." in text
    assert (directory / "snapshot.png").read_bytes().startswith(b"\x89PNG")
    assert "ffclock: readings 159, with_time 155" in capsys.readouterr().out


def test_a_reading_outside_its_bound_is_an_error(tmp_path: Path) -> None:
    directory = _run(tmp_path, ffclock_after="1300000")
    assert snapshot_report.main([str(directory)]) == 1
    assert "75 readings of ffclock left their bound" in (directory / "snapshot.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("readings", ["", _HEAD + "\n", _HEAD + "\n1000,x,a,1,1,1,1\n", _HEAD + "\n1000\n"])
def test_what_is_no_run_is_refused_with_one_message(tmp_path: Path, capsys: pytest.CaptureFixture[str], readings: str) -> None:
    directory = _run(tmp_path, ffclock_after="0")
    (directory / "readings.csv").write_text(readings, encoding="utf-8")
    assert snapshot_report.main([str(directory)]) == 2
    assert capsys.readouterr().err.startswith("ffclock.snapshot_report: no run of tests/vm/run snapshot")
    assert snapshot_report.main([str(tmp_path / "none")]) == 2
