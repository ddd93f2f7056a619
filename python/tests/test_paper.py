"""The counterparts of the paper's figures: what they say of a world, and that everything is written and nothing has to be loaded."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from ffclock.paper.__main__ import main, of_one_server
from ffclock.paper.comparison import compare, table
from ffclock.paper.findings import Figure, Finding
from ffclock.paper.lan import settling_s
from ffclock.paper.wan import in_window
from ffclock.paper.worlds import Laboratory, World
from ffclock.program import Program
from ffclock.runs import Samples
from ffclock.series import Series

SCENARIOS = Path(__file__).resolve().parents[2] / "scenarios" / "paper"


def result(scenario: str, seed: int, iqrs: dict[str, float | None]) -> dict[str, object]:
    def window(iqr: float | None) -> dict[str, object]:
        return {"name": "", **{name: None if iqr is None else times * iqr for name, times in (("iqr", 1), ("net_p99", 3), ("net_max", 9))}}

    return {"scenario": scenario, "seed": seed, "clocks": [{"name": name, "windows": [window(iqr)]} for name, iqr in iqrs.items()]}


def test_the_table_has_medians_ratios_and_the_best_in_bold() -> None:
    seeds = [(1, 1e-6), (2, 3e-6), (3, 2e-6)]
    comparison = compare(
        result(name, seed, {"pll": 4e-6, "learned": iqr * factor, "oracle": 1e-6, "ptpd": None})
        for name, factor in (("quiet", 1.0), ("loud", 4.0))
        for seed, iqr in seeds
    )
    assert comparison.seeds == [1, 2, 3]
    assert comparison.value("quiet", "learned", "iqr") == pytest.approx(2e-6)
    heads, rows = table(comparison, "iqr")
    assert heads == ["scenario", "ffclock", "PI (ptpd)", "PLL (ntpd)", "oracle, past only", "ours / best feedback", "ours / oracle"]
    assert rows[0] == ("quiet", "**2 µs", "-", "4 µs", "1 µs", "0.50", "2.00")
    assert rows[1] == ("loud", "8 µs", "-", "**4 µs", "1 µs", "2.00", "8.00")
    assert rows[2] == ("geometric mean", "", "", "", "", "1.00", "4.00")


def test_the_table_is_of_worlds_without_a_list_of_servers() -> None:
    assert of_one_server([{"name": "lan-16", "servers": 0}, {"name": "three-servers", "servers": 3}]) == ["lan-16"]


def test_a_window_of_a_clock_is_found_by_name() -> None:
    windows = [{"name": "", "iqr": 1e-6}, {"name": "near", "iqr": 2e-6}]
    answer = {"clocks": [{"name": "ntpd", "windows": []}, {"name": "joint", "windows": windows}]}
    assert in_window(answer, "joint", "near", "iqr") == pytest.approx(2e-6)


def test_without_an_oracle_there_is_no_column_of_it() -> None:
    heads, rows = table(compare([result("quiet", 1, {"learned": 1e-6, "pi": 2e-6})]), "net_max")
    assert heads == ["scenario", "ffclock", "PI (linuxptp)", "ours / best feedback"]
    assert rows == [("quiet", "**9 µs", "18 µs", "0.50"), ("geometric mean", "", "", "0.50")]


def test_a_figure_agrees_if_everything_that_can_be_compared_does() -> None:
    def figure(*agrees: bool | None) -> Figure:
        return Figure("7", "x", "y", b"", (), tuple(Finding("a", "b", "c", agree) for agree in agrees))

    assert figure(True, None).agrees
    assert figure(None).agrees
    assert not figure(True, False).agrees
    assert figure().name == "figure-07"


def test_settling_is_the_last_time_beyond_the_limit() -> None:
    times = np.arange(100.0)
    errors = np.where(times < 30, 1.0, 0.1) + 0.5
    series = Series("x", "", 1, 0.0, (), {"pi": Samples(times, error_s=errors)})
    world = World("x", 1, series, {"asymmetry_s": 1.0}, "")
    assert settling_s(world, "pi", 0.5) == 29.0
    assert settling_s(world, "pi", 2.0) == 0.0
    errors[:7] = np.nan
    assert settling_s(world, "pi", 2.0) == 7.0, "without a time nothing has settled"


@pytest.mark.parametrize("path", sorted(SCENARIOS.glob("*.toml")), ids=lambda path: path.stem)
def test_every_scenario_of_the_paper_is_understood(path: Path, program: Program, tmp_path: Path) -> None:
    """The whole worlds take too long for a test: a copy that ends after its statistics have begun shows that each is read."""
    text = path.read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.startswith(("duration", "from"))]
    place = next(index for index, line in enumerate(lines) if line.startswith("about"))
    short = [*lines[: place + 1], 'duration = "30 min"', 'from = "10 min"', *lines[place + 1 :]]
    copy = tmp_path / path.name
    copy.write_text("\n".join(short) + "\n", encoding="utf-8")
    assert program.simulate(str(copy), 1)["exchanges"] > 5


def test_a_world_of_the_paper_is_named_by_its_file_and_others_by_their_name(program: Program) -> None:
    lab = Laboratory(program, SCENARIOS, 5)
    world = lab.run("start", later=2)
    assert world.seed == 7
    assert world.command == "ffclock-lab sim run scenarios/paper/start.toml --seed 7 --series start.csv"
    assert world.bias_s == pytest.approx(13e-6, abs=2e-6)
    assert lab.run("start-0ppm").command == "ffclock-lab sim run start-0ppm --seed 5 --series start-0ppm.csv"


def test_figures_table_and_page_are_written(program: Program, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "figures"
    chosen = ["--only", "7", "--table-scenarios", "start-0ppm", "--table-seeds", "2", "--jobs", "1", "--ffclock-lab", str(program.path)]
    assert main(["-o", str(out), *chosen]) == 0
    assert sorted(path.name for path in out.iterdir()) == ["figure-07.png", "index.html", "table.csv", "table.png", "verdicts.json"]
    text = (out / "index.html").read_text(encoding="utf-8")
    assert text.count("data:image/png;base64,") == 2
    assert "<script" not in text
    assert 'src="http' not in text
    for expected in ("Counterpart of figure 7 of the paper", "-300 ms", "scenarios/paper/disconnection.toml --seed 1", "geometric mean"):
        assert expected in text
    assert set(pl.read_csv(out / "table.csv")["scenario"]) == {"start-0ppm"}
    printed = capsys.readouterr().out
    assert printed.startswith("figure  7  as in the paper")


def test_what_is_missing_is_named(tmp_path: Path, program: Program, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--ffclock-lab", str(tmp_path / "none")]) == 2
    assert "make build" in capsys.readouterr().err
    assert main(["--ffclock-lab", str(program.path), "--scenarios", str(tmp_path / "none")]) == 2
    assert "--scenarios DIR" in capsys.readouterr().err


def test_it_runs_as_a_module_in_several_processes(program: Program, tmp_path: Path) -> None:
    options = ["--only", "4", "--no-table", "--jobs", "2", "--ffclock-lab", str(program.path), "-o", str(tmp_path)]
    done = subprocess.run([sys.executable, "-m", "ffclock.paper", *options], capture_output=True, text=True, check=False, timeout=200)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "figure-04.png").read_bytes().startswith(b"\x89PNG")
