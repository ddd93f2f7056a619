"""Logs of message delays as another program would write them, analysed in shards, and drawn."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from ffclock.theta_coverage import figure_of as coverage_figure
from ffclock.theta_coverage import main as coverage_main
from ffclock.theta_report import figure_of
from ffclock.theta_report import main as report_main
from ffclock.theta_scale import Mapper, analyse, here, in_threads, main, on_dask
from ffclock.theta_why import figure_of as story_figure
from ffclock.theta_why import main as story_main

PROCESSES = 4
ROUNDS = 30_000


def write_log(directory: Path, seed: int = 1) -> Path:
    """A log of four processes without faults, written with polars as docs/theta-log.md says."""
    draw = np.random.default_rng(seed)
    sends = np.arange(PROCESSES) * 100 + 1_000_000
    rows: list[tuple[int, int, int, int, int, int | None, int | None]] = []
    for number in range(1, ROUNDS + 1):
        arrivals = sends[:, None] + (20e6 * (1 + draw.pareto(3.0, (PROCESSES, PROCESSES)))).astype(np.int64)
        for sender in range(PROCESSES):
            rows.append((int(sends[sender]), 0, sender, -1, number, None, None))
            rows += [(int(arrivals[sender, to]), 2, to, sender, number, None, None) for to in range(PROCESSES)]
        switches = np.maximum(np.sort(arrivals, axis=0)[PROCESSES - 2], sends + 1000)
        rows += [(int(switches[p]), 3, p, -1, number + 1, number, int(switches[p])) for p in range(PROCESSES)]
        sends = switches + 1000
    rows.sort(key=lambda row: row[0])
    at, kind, process, peer, rounds, from_round, decided = zip(*rows, strict=True)
    directory.mkdir()
    unsigned = {"round": rounds, "at": at, "from_round": from_round, "decided": decided}
    events = pl.DataFrame(
        [pl.Series("kind", kind, pl.Int32), pl.Series("process", process, pl.Int32), pl.Series("peer", peer, pl.Int32)]
        + [pl.Series(name, values, pl.UInt64) for name, values in unsigned.items()]
    )
    events.write_parquet(directory / "events-polars-00000.parquet", compression="snappy", row_group_size=20_000)
    clocks = pl.DataFrame(
        {
            "host": pl.Series([0], dtype=pl.Int32),
            "counter": pl.Series([0], dtype=pl.UInt64),
            "time_ps": pl.Series([0], dtype=pl.Int64),
            "bound_ps": pl.Series([0], dtype=pl.Int64),
            "period_s": [1e-12],
            "drift_bound": [0.0],
        }
    )
    clocks.write_parquet(directory / "clocks.parquet", compression="uncompressed")
    run = {
        "origin": "simulated",
        "form": "repaired",
        "processes": PROCESSES,
        "tolerated": 1,
        "delay_ps": 0,
        "delay_min_ps": 0,
        "disorder_ps": 0,
        "hosts": [{"name": "a", "counter": "simulated"}],
        "host_of": [0] * PROCESSES,
    }
    text = json.dumps({"format": "ffclock-theta-log", "version": 1, "complete": True, "run": run})
    (directory / "run.json").write_text(text, encoding="utf-8")
    return directory


@pytest.fixture(name="log", scope="module")
def _log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_log(tmp_path_factory.mktemp("theta") / "log")


def test_a_log_from_polars_is_whole_and_keeps_the_rules(log: Path) -> None:
    report = json.loads(analyse(log))
    assert report["remarks"] == []
    assert report["conformance"]["kept"]
    assert report["rounds"] == ROUNDS
    assert report["first"]["omega"]["ratio"]["value"] > 1


@pytest.mark.parametrize(("shards", "mapper"), [(2, here), (7, in_threads(3))])
def test_shards_give_what_a_single_pass_gives(log: Path, shards: int, mapper: Mapper) -> None:
    assert analyse(log, shards, mapper, "before", "full") == analyse(log, 1, here, "before", "full")


def test_the_command_prints_the_analysis(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(log), "--shards", "3", "--full"]) == 0
    assert capsys.readouterr().out == analyse(log, 1, here, "after", "full") + "\n"


# What Dask warns of is not ours.
@pytest.mark.filterwarnings("ignore")
def test_dask_gives_what_a_single_pass_gives(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    distributed = pytest.importorskip("distributed", reason="SKIP: dask is not installed")
    # Workers in this process, behind sockets all the same: the start of one as a process of its own has hung.
    workers = {"n_workers": 2, "threads_per_worker": 1, "processes": False}
    with distributed.LocalCluster(**workers, protocol="tcp://", host="127.0.0.1", dashboard_address=None) as cluster:
        with distributed.Client(cluster.scheduler_address) as client:
            assert analyse(log, 5, on_dask(client)) == analyse(log)
        assert main([str(log), "--scheduler", cluster.scheduler_address]) == 0
    assert capsys.readouterr().out == analyse(log) + "\n"


def test_what_is_no_log_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match=r"run\.json"):
        analyse(tmp_path)
    assert main([str(tmp_path), "--workers", "1"]) == 2
    assert "run.json" in capsys.readouterr().err


def test_the_report_holds_its_picture(log: Path, tmp_path: Path) -> None:
    analysis = tmp_path / "analysis.json"
    analysis.write_text(analyse(log, 1, here, "after", "full"), encoding="utf-8")
    assert report_main([str(analysis), "-o", str(tmp_path / "out")]) == 0
    page = (tmp_path / "out" / "theta.html").read_text(encoding="utf-8")
    assert "data:image/png;base64," in page
    assert "keep the rules" in page
    assert (tmp_path / "out" / "theta.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(("text", "complaint"), [("{", "no JSON"), ("[]", "no analysis"), ('{"first": 1, "all": 1}', "no histograms")])
def test_what_is_no_analysis_is_named(text: str, complaint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    analysis = tmp_path / "analysis.json"
    analysis.write_text(text, encoding="utf-8")
    assert report_main([str(analysis), "-o", str(tmp_path)]) == 2
    assert complaint in capsys.readouterr().err


def test_the_picture_has_a_time_axis_with_omega_and_no_colour_twice(log: Path) -> None:
    analysis = json.loads(analyse(log, 1, here, "after", "full"))
    omega = analysis["first"]["omega"]
    over, under = omega["ratio"]["over_ps"], omega["ratio"]["under_ps"]
    pairs = [{"at_ps": 0, "relevant_ps": 2, "longest_ps": 3}, {"at_ps": omega["at_ps"], "relevant_ps": under, "longest_ps": over}]
    correlation = {"verdict": "not-tested", "reason": "too few"}
    axes = figure_of(analysis | {"pairs": pairs, "correlation": correlation}).axes
    over_time = next(one for one in axes if one.get_xlabel() == "time [s]")
    assert [text.get_text() for text in over_time.texts] == [
        f"Omega {omega['ratio']['value']:.4f} at round {omega['round']} of process {omega['process']}"
    ]
    mark = over_time.lines[-1]
    assert mark.get_xydata()[0] == pytest.approx((omega["at_ps"] * 1e-12, omega["ratio"]["value"]))
    tails = [one for one in axes if one.get_ylabel().startswith("share")]
    assert len(tails) == 3
    for one in tails:
        colours = [line.get_color() for line in one.lines]
        assert len(set(colours)) == len(colours) >= 1
        # Tails fall: no curve covers another with spikes.
        assert all((np.diff(line.get_ydata()) <= 0).all() for line in one.lines if len(line.get_ydata()) > 2)


def _coverage() -> dict[str, object]:
    def curve(model: str, bound: float) -> dict[str, object]:
        shares = [{"share": 0.5 + 0.1 * step, "low": 0.4, "high": 1.0} for step in range(3)]
        basis = ["tail-fit", "measured", "measured"]
        points = [
            {"calm_share": 10.0 ** (step - 3), "bound": bound / (1 + step), "basis": basis[step], "loaded": shares[step]}
            for step in range(3)
        ]
        return {"model": model, "points": points}

    return {"curves": [curve("timeout", 3e8), curve("ratio", 9.0)]}


def test_the_curves_of_both_models_are_drawn(tmp_path: Path) -> None:
    shares, bounds, ratios = coverage_figure(_coverage(), "Calm and loaded").axes
    assert [line.get_label() for line in shares.lines] == ["timeout on tau+", "ratio tau+ / tau_r-", "as in calm"]
    assert list(shares.lines[0].get_ydata()) == pytest.approx([50.0, 60.0, 70.0])
    assert (bounds.get_ylabel(), ratios.get_ylabel()) == ("timeout [µs]", "ratio")
    assert any("fit of its tail" in text.get_text() for text in shares.texts)
    bounds.figure.canvas.draw()
    labels = [label.get_text() for axes in (bounds, ratios) for label in axes.get_yticklabels(which="both")]
    assert "5" in labels
    assert not [label for label in labels if "10^" in label]
    written = tmp_path / "coverage.json"
    written.write_text(json.dumps(_coverage()), encoding="utf-8")
    assert coverage_main([str(written), "-o", str(tmp_path / "coverage.png")]) == 0
    assert (tmp_path / "coverage.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(("text", "complaint"), [("{", "no JSON"), ("[]", "no comparison"), ("{}", "no comparison")])
def test_what_is_no_comparison_is_named(text: str, complaint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written = tmp_path / "coverage.json"
    written.write_text(text, encoding="utf-8")
    assert coverage_main([str(written), "-o", str(tmp_path / "coverage.png")]) == 2
    assert complaint in capsys.readouterr().err


def _story() -> dict[str, object]:
    """A switch of process 2 with two messages that let it go on, and two in transit."""

    def message(sender: int, receiver: int, sent: int, perceived: int) -> dict[str, int]:
        return {"round": 7, "sender": sender, "receiver": receiver, "sent_ps": sent * 10**6, "perceived_ps": perceived * 10**6}

    onward = [message(0, 2, 40, 90), message(1, 2, 0, 100)]
    transit = [message(0, 3, 10, 1710), message(1, 3, 90, 190)]
    return {"round": 8, "process": 2, "at_ps": 100 * 10**6, "ratio": 17.0, "contributors": onward, "in_transit": transit}


def test_the_messages_of_a_switch_are_drawn(tmp_path: Path) -> None:
    figure = story_figure(_story(), "Round 8")
    (axes,) = figure.axes
    bars = [(bar.get_x(), bar.get_width()) for bar in axes.patches]
    assert bars == [pytest.approx(bar) for bar in [(-90.0, 1700.0), (-10.0, 100.0), (-100.0, 100.0), (-60.0, 50.0)]]
    assert axes.get_xlabel() == "time from the switch of process 2 [µs]"
    assert next(text.get_text() for text in axes.get_yticklabels()) == "0 to 3, round 7"
    written = tmp_path / "story.json"
    written.write_text(json.dumps(_story()), encoding="utf-8")
    assert story_main([str(written), "-o", str(tmp_path / "why.png")]) == 0
    assert (tmp_path / "why.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(("text", "complaint"), [("{", "no JSON"), ("[]", "no story"), ("{}", "no story")])
def test_what_is_no_story_is_named(text: str, complaint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written = tmp_path / "story.json"
    written.write_text(text, encoding="utf-8")
    assert story_main([str(written), "-o", str(tmp_path / "why.png")]) == 2
    assert complaint in capsys.readouterr().err
