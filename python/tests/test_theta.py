"""Logs of message delays as another program would write them, analysed in shards, and drawn."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from ffclock.theta_report import main as report_main
from ffclock.theta_scale import analyse, here, main, on_dask

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


@pytest.mark.parametrize("shards", [2, 7])
def test_shards_give_what_a_single_pass_gives(log: Path, shards: int) -> None:
    assert analyse(log, shards, here, "before", "full") == analyse(log, 1, here, "before", "full")


def test_dask_gives_what_a_single_pass_gives(log: Path) -> None:
    distributed = pytest.importorskip("distributed", reason="SKIP: dask is not installed")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        assert analyse(log, 5, on_dask(client)) == analyse(log)


def test_what_is_no_log_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("distributed", reason="SKIP: dask is not installed")
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
