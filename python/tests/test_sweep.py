"""Sweeps: what is run and where, what is kept, and that a stopped sweep goes on."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from ffclock import sweep
from ffclock.engines import Outcome, Processes
from ffclock.jobs import Job
from ffclock.program import Program, ProgramError
from ffclock.sweep import SweepError, Table, _arguments, jobs_of, main, seeds, variation

RESULT: dict[str, Any] = {
    "exchanges": 10,
    "requests": 12,
    "asymmetry_s": 0.0,
    "passed": True,
    "clocks": [{"name": "pi", "windows": [{"name": "", "iqr": 1e-6, "p99": None}, {"name": "end", "iqr": 2e-6, "p99": 3e-6}]}],
}


class Counting:
    """An engine that only counts, and fails where the test asks for it."""

    def __init__(self, *failing: int) -> None:
        self.made: list[Job] = []
        self.failing = failing

    def program(self) -> str:
        return "build"

    def outcomes(self, jobs: Iterable[Job]) -> Iterator[Outcome]:
        for job in jobs:
            self.made.append(job)
            yield job, ProgramError("no") if job.seed in self.failing else RESULT


def test_seeds_and_variations_are_read() -> None:
    assert seeds("1..3") == [1, 2, 3]
    assert seeds("7") == [7]
    assert seeds("1,5,4..6") == [1, 5, 4, 6]
    assert variation("path.loss=0, 0.1") == ("path.loss", ["0", "0.1"])
    for wrong in ("", "3..1", "a", "1..", "-1"):
        with pytest.raises(ValueError, match=r"must be FIRST|invalid literal"):
            seeds(wrong)
    for endless in ("1..18446744073709551614", "1..60000,100001..160000"):
        with pytest.raises(ValueError, match="at most 100000"):
            seeds(endless)
    for wrong in ("poll", "=1", "poll=", "poll= ,"):
        with pytest.raises(ValueError, match="not KEY=VALUE"):
            variation(wrong)


def test_a_varied_scenario_extends_the_built_in_one() -> None:
    assert Job("lan-16", 1).file() == ""
    assert Job("mine", 1, text="about = 1").file() == "about = 1"
    values = (("path.loss", "0.1"), ("oscillator.flicker_frequency", "3e-9"), ("poll", "64 s"), ("server.fault", "[]"), ("x", 'a"b'))
    lines = Job("lan-16", 1, values).file().splitlines()
    assert lines == [
        'extends = "lan-16"',
        "path.loss = 0.1",
        "oscillator.flicker_frequency = 3e-9",
        'poll = "64 s"',
        "server.fault = []",
        'x = "a\\"b"',
    ]
    assert Job("a", 1).digest == Job("a", 1).digest
    different = (
        Job("a", 1),
        Job("a", 2),
        Job("b", 1),
        Job("a", 1, oracle=True),
        Job("a", 1, (("k", "v"),)),
        Job("a", 1, without=("cycles",)),
    )
    assert len({job.digest for job in different}) == 6


def test_a_key_is_varied_once() -> None:
    options = _arguments(["lan-16", "--vary", "path.loss=0,0.1", "--vary", "path.loss=0.2"])
    with pytest.raises(SweepError, match=r"path\.loss is there twice"):
        jobs_of(options)


def test_what_is_asked_for_twice_is_run_once(tmp_path: Path) -> None:
    twice = _arguments(["lan-16", "near-16", "lan-16", "--seeds", "2,1,2", "--vary", "path.loss=0,0.1,0"])
    once = _arguments(["lan-16", "near-16", "--seeds", "2,1", "--vary", "path.loss=0,0.1"])
    assert jobs_of(twice) == jobs_of(once)
    assert len(jobs_of(once)) == 8
    again = [*jobs_of(once), *jobs_of(once)]
    engine = Counting()
    assert sweep.sweep(engine, again, Table(tmp_path / "table.parquet", "build")) == []
    assert engine.made == jobs_of(once)


def test_a_stopped_sweep_goes_on_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "new" / "table.parquet"
    jobs = [Job("lan-16", seed) for seed in range(1, 6)]
    first = Counting(2)
    failed = sweep.sweep(first, jobs[:3], Table.open(path, "build"))
    assert [job.seed for job, _ in failed] == [2]
    second = Counting()
    assert sweep.sweep(second, jobs, Table.open(path, "build")) == []
    assert [job.seed for job in second.made] == [2, 4, 5]
    frame = pl.read_parquet(path)
    assert sorted(frame["seed"].to_list()) == [1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
    assert frame["iqr"].sum() == pytest.approx(5 * 3e-6)
    assert not list(path.parent.glob("*.partial"))


def test_what_was_done_is_kept_when_a_sweep_is_interrupted(tmp_path: Path) -> None:
    class Interrupted(Counting):
        def outcomes(self, jobs: Iterable[Job]) -> Iterator[Outcome]:
            yield from list(super().outcomes(jobs))[:2]
            raise KeyboardInterrupt

    path = tmp_path / "table.parquet"
    with pytest.raises(KeyboardInterrupt):
        sweep.sweep(Interrupted(), [Job("lan-16", seed) for seed in range(4)], Table.open(path, "build"))
    assert set(pl.read_parquet(path)["seed"]) == {0, 1}


def test_tables_of_other_builds_and_other_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "table.parquet"
    sweep.sweep(Counting(), [Job("lan-16", 1)], Table.open(path, "build"))
    with pytest.raises(SweepError, match="another build"):
        Table.open(path, "other")
    path.write_text("no table", encoding="utf-8")
    with pytest.raises(SweepError, match="--fresh"):
        Table.open(path, "build")


def test_new_parameters_become_columns(tmp_path: Path) -> None:
    path = tmp_path / "table.parquet"
    sweep.sweep(Counting(), [Job("a", 1), Job("a", 1, (("poll", "64 s"),))], Table.open(path, "build"))
    sweep.sweep(Counting(), [Job("a", 1, (("path.loss", "0.1"),))], Table.open(path, "build"))
    frame = pl.read_parquet(path)
    assert frame["poll"].to_list() == [None, None, "64 s", "64 s", None, None]
    assert frame["path.loss"].drop_nulls().to_list() == ["0.1", "0.1"]


def test_the_command_runs_files_and_variations(
    program: Program, short_world: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "table.parquet"
    base = ["-o", str(out), "--ffclock-lab", str(program.path), "--jobs", "2", "--json"]
    assert main([str(short_world), "--seeds", "3,4", *base]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["runs"], answer["failed"], answer["rows"]) == (2, 0, pl.read_parquet(out).height)
    vary = ["--vary", "path.loss=0,0.5", "--vary", "poll=16 s,64 s"]
    assert main(["start-0ppm", "--seeds", "1", *vary, *base]) == 0
    frame = pl.read_parquet(out).filter((pl.col("scenario") == "start-0ppm") & (pl.col("clock") == "learned") & (pl.col("window") == ""))
    exchanges = {(row["path.loss"], row["poll"]): row["exchanges"] for row in frame.iter_rows(named=True)}
    assert len(exchanges) == 4
    assert exchanges["0.5", "16 s"] < 0.4 * exchanges["0", "16 s"]
    assert exchanges["0", "64 s"] < 0.4 * exchanges["0", "16 s"]
    # The same run is the same row, whichever engine makes it.
    direct = program.simulate("start-0ppm", 1)
    swept = frame.filter((pl.col("path.loss") == "0") & (pl.col("poll") == "16 s"))["iqr"].item()
    assert swept == next(clock for clock in direct["clocks"] if clock["name"] == "learned")["windows"][0]["iqr"]


def test_parts_are_left_out_and_the_rows_say_so(program: Program, short_world: Path, tmp_path: Path) -> None:
    out = tmp_path / "table.parquet"
    base = [str(short_world), "--seeds", "1", "-o", str(out), "--ffclock-lab", str(program.path)]
    assert main(base) == 0
    assert main([*base, "--without", "floor-changes", "--without", "directions"]) == 0
    assert main([*base, "--without", "directions", "--without", "floor_changes"]) == 0
    frame = pl.read_parquet(out).filter((pl.col("clock") == "learned") & (pl.col("window") == ""))
    iqr = dict(frame.select("without", "iqr").iter_rows())
    assert (frame.height, set(iqr)) == (2, {"", "directions,floor_changes"})
    assert iqr[""] != iqr["directions,floor_changes"]


def test_a_run_that_fails_is_named_and_the_others_go_on(program: Program, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "table.parquet"
    assert main(["start-0ppm", "fish", "--seeds", "1", "-o", str(out), "--ffclock-lab", str(program.path)]) == 1
    said = capsys.readouterr()
    assert "fish with seed 1" in said.err
    assert "1 of 2 runs" in said.out
    assert set(pl.read_parquet(out)["scenario"]) == {"start-0ppm"}


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["lan-16", "--ffclock-lab", "/nowhere/ffclock-lab"], "make build"),
        (["/nowhere/world.toml"], "No such file"),
        (["lan-16", "--scheduler", "tcp://127.0.0.1:9"], "no Dask scheduler answers"),
        (["lan-16", "--scheduler", "nonsense://x"], "no Dask scheduler answers"),
    ],
)
def test_a_sweep_that_cannot_be_made_is_explained(
    arguments: list[str], complaint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ffclock.engines.PATIENCE", "1s")
    assert main([*arguments, "-o", str(tmp_path / "table.parquet")]) == 2
    said = capsys.readouterr().err
    assert said.startswith("ffclock.sweep: ")
    assert complaint in said


@pytest.mark.filterwarnings("ignore")
def test_a_cluster_makes_the_same_table(program: Program, tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed")
    common = ["start-0ppm", "--seeds", "1..3", "--vary", "path.loss=0,0.2", "--ffclock-lab", str(program.path)]
    # Workers in this process, behind sockets all the same: the start of one as a process of its own has hung.
    workers = {"n_workers": 2, "threads_per_worker": 1, "processes": False}
    with distributed.LocalCluster(**workers, protocol="tcp://", host="127.0.0.1", dashboard_address=None) as local:
        assert local.scheduler_address.startswith("tcp://")
        assert main([*common, "--scheduler", local.scheduler_address, "-o", str(tmp_path / "there.parquet")]) == 0
        missing = ["start-0ppm", "--seeds", "1", "--scheduler", local.scheduler_address, "--ffclock-lab", "/nowhere/ffclock-lab"]
        assert main([*missing, "-o", str(tmp_path / "none.parquet")]) == 2
    assert main([*common, "-o", str(tmp_path / "here.parquet")]) == 0
    order = ["seed", "path.loss", "clock", "window"]
    here, there = (pl.read_parquet(tmp_path / f"{name}.parquet").sort(order) for name in ("here", "there"))
    assert here.equals(there)


def test_processes_keep_few_runs_in_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = 0

    def endless() -> Iterator[Job]:
        nonlocal taken
        while True:
            taken += 1
            yield Job("a", taken)

    monkeypatch.setattr("ffclock.engines.run_job", lambda job, ffclock_lab: RESULT)
    outcomes = Processes(None, 2).outcomes(endless())
    for _ in range(10):
        next(outcomes)
    assert taken < 60
    outcomes.close()
