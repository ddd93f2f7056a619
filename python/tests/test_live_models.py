"""Models beside live runs, on made-up runs whose delays and errors are known."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np
import pytest

from ffclock.live_figures import cut, host
from ffclock.live_figures.models import Comparison, compare, main, spreads

BEGIN = 1_790_000_000_000_000_000
RAW = 1_000_000_000_000
FAST = 50e-6
GIVEN_NS = (154_000, 126_000)
SLOT_NS = 50_000_000


def numbers(magic: bytes, *values: int) -> bytes:
    return struct.pack(f"<8s{len(values)}q", magic, *values)


def tai(ns: int) -> bytes:
    return (-(-((ns + 37 * 10**9) << 64) // 10**9)).to_bytes(16, "little", signed=True)


def record(kind: int, begin_ns: int, host_us: tuple[float, float]) -> bytes:
    """An exchange that began so long after the first knot, with these delays beside the router's."""
    came = begin_ns + GIVEN_NS[0] + round(1e3 * host_us[0])
    left = came + 60_000
    received = left + GIVEN_NS[1] + round(1e3 * host_us[1])
    ticks = [RAW + round(time * (1 + FAST)) for time in (begin_ns, received)]
    head = struct.pack("<BBBBIQQQQII", kind, 0, 0, 0, 0, 0, 0, *ticks, 0, 0)
    return head + tai(BEGIN + came) + tai(BEGIN + left) + bytes(112 - len(head) - 32)


def write_run(directory: Path, host_us: list[tuple[float, float]], scale_us: float = 1.0) -> Path:
    """A run with an exchange each second, and a clock whose IQR is ``scale_us`` from 100 s on."""
    own = directory / "ffclockd-learned"
    own.mkdir(parents=True)
    (directory / "router").mkdir()
    knots = 4 * (len(host_us) + 4)
    phases = np.arange(knots) * 250e6 * FAST
    (own / "oscillator").write_bytes(numbers(b"FFLIVEO1", BEGIN, RAW, 250_000_000, knots) + phases.tobytes())
    slots = 20 * (len(host_us) + 2)
    path = numbers(b"FFLIVEP1", BEGIN, SLOT_NS, slots) + np.tile(np.array(GIVEN_NS, np.uint32), slots).tobytes()
    (directory / "router" / "path").write_bytes(path)
    rows = [record(1, number * 10**9, delays) for number, delays in enumerate(host_us)]
    rows.append(record(2, 0, (0, 0)))
    header = b"ffclock trace 1\n" + struct.pack("<IIQ", 112, 8, 0) + b"a=b\n\n\n\n\n"
    # The last record is broken off.
    (own / "one.fftrace").write_bytes(header + b"".join(rows) + rows[0][:50])
    lines = [
        f"0,{t},ffclockd-learned,{(5000.0 if t < 100 else 0.0) + 1000 * scale_us * (-1, -0.5, 0.5, 1)[t % 4]:.3f}," for t in range(200)
    ]
    (directory / "samples.csv").write_text("\n".join(["session,t_s,contestant,error_ns,bound_ns", *lines]) + "\n")
    (directory / "run.json").write_text(json.dumps({"settle_s": 100.0, "contestants": ["ffclockd-learned"]}))
    return directory


def test_what_the_host_added_is_found_to_a_nanosecond_without_the_start(tmp_path: Path) -> None:
    start = [(900.0, 900.0)] * 31
    run = write_run(tmp_path / "run", [*start, (4.0, 7.0), (6.0, 9.0), (8.0, 300.0), (10.0, 11.0)])
    found = host.read(run, "ffclockd-learned")
    assert found is not None
    assert found.there == pytest.approx([4.0, 6.0, 8.0, 10.0], abs=2e-3)
    law = found.figures()
    assert law["there"]["mean_us"] == pytest.approx(7.0, abs=2e-3)
    assert law["there"]["late"] == 0.0
    assert law["back"]["late"] == 0.25
    assert law["back"]["mean_us"] == pytest.approx(9.0, abs=2e-3)
    assert law["back"]["largest_us"] == pytest.approx(300.0, abs=2e-3)
    assert host.read(run, "chronyd-default") is None


def test_the_likeliest_law_is_the_one_that_delays_were_drawn_from() -> None:
    chance = np.random.default_rng(5)
    late = chance.random((2, 4000)) < 0.1
    tail = 50.0 * chance.pareto(1.5, (2, 4000))
    gammas = [chance.gamma(shape, mean / shape, 4000) for shape, mean in ((3.0, 4.0), (2.0, 9.0))]
    there, back = (least + np.where(late[way], tail[way], gammas[way]) for way, least in enumerate((2.7, 5.0)))
    found = host.HostDelays(there, back).likeliest()
    assert found["there_shape"] == pytest.approx(3.0, rel=0.25)
    assert found["there_mean_us"] == pytest.approx(4.0, rel=0.1)
    assert found["back_mean_us"] == pytest.approx(9.0, rel=0.1)
    assert found["tail_share"] == pytest.approx(0.1, rel=0.2)
    assert found["tail_shape"] == pytest.approx(1.5, rel=0.2)


def test_a_run_without_a_router_has_nothing_taken_away(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [(4.0, 7.0)] * 33)
    (run / "router" / "path").unlink()
    found = host.read(run, "ffclockd-learned")
    assert found is not None
    assert found.back == pytest.approx([126 + 7.0] * 2, abs=2e-3)


def test_a_daemon_is_compared_with_the_model_of_its_world(tmp_path: Path) -> None:
    runs = [write_run(tmp_path / str(scale), [(4.0, 7.0)] * 33, scale) for scale in (1.0, 2.0, 4.0)]
    iqr = spreads(runs[0], 100.0)["ffclockd-learned"]
    assert iqr == pytest.approx(1.25)
    assert spreads(runs[0], 0.0)["ffclockd-learned"] > 4.0
    (found,) = compare(runs, 100.0, {"": {"learned": np.array([1.0, 5.0, 9.0])}, "-ptp": {}})
    of = found.figures()
    assert (of["model"], of["runs"], of["seeds"]) == ("learned", 3, 3)
    assert of["live_us"] == pytest.approx(2 * iqr)
    assert of["model_over_live"] == pytest.approx(5.0 / (2 * iqr))
    low, high = of["live_median_90_us"]
    assert iqr <= low < 2 * iqr < high <= 4 * iqr


def test_more_runs_know_their_median_better() -> None:
    values = np.exp(np.random.default_rng(3).normal(size=60))
    widths = [np.diff(Comparison("a", "b", values[:count], values).figures()["live_median_90_us"])[0] for count in (5, 60)]
    assert widths[1] < 0.5 * widths[0]


def test_the_command_shows_the_host_and_refuses_what_is_no_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = write_run(tmp_path / "run", [(4.0, 7.0)] * 40)
    assert main([str(run)]) == 0
    assert "| ffclockd-learned, there | 9 | 4.0 | 4.0 | 0.0 | 0.00 % | 4 |" in capsys.readouterr().out
    assert main([str(run), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["host"]["ffclockd-learned"]["back"]["mean_us"] == pytest.approx(7.0, abs=2e-3)
    (run / "router" / "path").write_bytes(b"x" * 40)
    assert main([str(run)]) == 1
    assert "not a file of the live laboratory" in capsys.readouterr().err
    assert main([str(tmp_path / "nothing")]) == 1


def test_a_cut_is_judged_by_its_end_and_one_poll_after_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "run.json").write_text(json.dumps({"plan": "cut-16", "duration_s": 2000.0, "poll_log2": 5}))
    # 2 us ahead of the truth; away from 1000 s to 1600 s, when it runs off by 0.1 us/s; back 40 s later, but for 1 us.
    shown_us = [2.0 if t < 1000 else 2.0 - 0.1 * (t - 1000) if t < 1640 else 3.0 for t in range(2000)]
    rows = [f"0,{t},ffclockd-learned,{1e3 * error:.0f}," for t, error in enumerate(shown_us)]
    (run / "samples.csv").write_text("\n".join(["session,t_s,contestant,error_ns,bound_ns", *rows]) + "\n")
    end, after = cut.errors(run)["ffclockd-learned"]
    # In the middle of the last minute, and at the end of the ramp, which lies in the minute after one poll of 32 s.
    assert end == pytest.approx(56.95, abs=0.01)
    assert after == pytest.approx(63.9, abs=0.01)
    assert cut.main([str(run), str(run)]) == 0
    assert "| ffclockd-learned | 57, 57 | 63.9, 63.9 |" in capsys.readouterr().out
    (run / "run.json").write_text(json.dumps({"plan": "quiet-16", "duration_s": 2000.0}))
    assert cut.main([str(run)]) == 1
    assert "the server is never away in quiet-16" in capsys.readouterr().err
