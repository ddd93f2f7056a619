"""What is drawn of recordings of counters, and what is said about input that is none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ffclock.counters import main, page, pictures
from ffclock.counters_figures import allan, box, interface_alone, is_against_reference, time_errors
from ffclock.counters_recording import FORMAT, Machine, RecordingError, machines, read_recording
from ffclock.evidence.verdict import read as read_verdicts

BARE = f'{{"format": "{FORMAT}", "instrument": "clock"}}\n{{"record": "clock"}}\n{{"record": "end", "records": 1}}\n'
PHASES = [
    {"record": "phase", "number": 0, "load": None, "begin_s": 0.0, "length_s": 20.0},
    {"record": "phase", "number": 1, "load": "cpu", "begin_s": 20.0, "length_s": 20.0},
]


def recorded(path: Path, instrument: str, about: dict[str, Any], records: list[dict[str, Any]], **head: Any) -> Path:
    first = {"format": FORMAT, "instrument": instrument, "about": about, **head}
    lines = [first, *records, {"record": "end", "records": len(records)}]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def stability(path: Path) -> Path:
    """A base of 1 GHz that turns over, a counter of 1 MHz that is 50 ppm fast, a reference by which the base is 10 ppm fast."""
    about = {"base_hertz": 1e9, "counters": [{"name": "slow", "hertz": 1e6}], "reference": "truth", "every_s": 1.0}
    samples = []
    for second in range(40):
        base = (2**64 - 5_000_000_000 + second * 1_000_000_000) % 2**64
        point = {"base": base, "width": 30, "value": second * 1_000_050}
        reference = {"base": base, "width": 0, "value": round(second * 1e9 / 1.00001)}
        samples.append({"record": "sample", "t": float(second), "phase": second // 20, "points": [point], "reference": reference})
    return recorded(path, "stability", about, [*samples, *PHASES])


def latency(path: Path, arrangement: str = "first") -> Path:
    spread = {"min": 90.0, "p25": 100.0, "median": 110.0, "p75": 120.0, "p95": 150.0, "p99": 200.0, "p999": 900.0, "max": 5000.0}
    what = {"counter": "monotonic-raw", "access": "vDSO", "arrangement": arrangement}
    rows: list[dict[str, Any]] = []
    for phase in (0, 1):
        rows.append({"record": "figures", "phase": phase, **what, "count": 10, "ticks": spread, "ns": spread})
        rows.append({"record": "histogram", "phase": phase, **what, "bins": [[100.0, 7], [120.0, 3]]})
        rows.append({"record": "round", "t": 20.0 * phase, "phase": phase, "cpu": 0, **what, "min": 90.0, "median": 110.0, "max": 150.0})
        rows.append(
            {"record": "overhead", "phase": phase, "arrangement": arrangement, "subtracted_ns": 16.0, "left_ns": 0.0, "left_iqr_ns": 1.0}
        )
    return recorded(path, "latency", {"cpus": [0], "hertz": 2.5e9}, [*rows, *PHASES])


def clock(path: Path, iqr_s: float = 2e-7, **head: Any) -> Path:
    errors = {"median_s": -4e-6, "iqr_s": iqr_s, "p1_s": -5e-6, "p25_s": -4.1e-6, "p75_s": -3.9e-6, "p99_s": -3e-6}
    row = {"record": "clock", "counter": "tsc", "stamps": "socket", "phase": 0, "count": 100, "outside": 1, **errors}
    return recorded(path, "clock", {}, [row, {**row, "estimator": "learned"}, PHASES[0]], **head)


def test_time_errors_survive_a_turn_of_the_counter(tmp_path: Path) -> None:
    recording = read_recording(stability(tmp_path / "s"))
    errors = time_errors(recording)
    assert is_against_reference(recording)
    assert list(errors) == ["base against truth", "slow against truth"]
    t, x = errors["base against truth"]
    assert x[-1] / t[-1] == pytest.approx(10e-6, rel=1e-4)
    t, x = errors["slow against truth"]
    assert t[-1] == pytest.approx(39.0)
    assert x[-1] / t[-1] == pytest.approx(60e-6, rel=1e-4)


def test_without_a_reference_counters_are_compared_with_the_base(tmp_path: Path) -> None:
    path = stability(tmp_path / "s")
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    path.write_text(
        "".join(json.dumps(line | ({"reference": None} if "reference" in line else {})) + "\n" for line in lines), encoding="utf-8"
    )
    recording = read_recording(path)
    errors = time_errors(recording)
    assert not is_against_reference(recording)
    assert list(errors) == ["slow"]
    t, x = errors["slow"]
    assert (x / np.maximum(t, 1.0))[-1] == pytest.approx(50e-6)


def test_theinterface_alone_is_what_it_costs_beside_the_register() -> None:
    row = {"counter": "module:tsc", "phase": 0}
    rows = [
        {**row, "access": access, "ticks": {"median": median}}
        for access, median in (("kernel register", 40.0), ("kernel interface", 100.0))
    ]
    assert interface_alone(rows) == [(2, 60.0)]
    assert interface_alone(rows[1:]) == []


def test_the_deviations_are_those_of_the_handbook() -> None:
    # NIST SP 1065, table 31: 1000 frequencies of a linear congruential generator.
    number, x = 1234567890, [0.0]
    for _ in range(1000):
        x.append(x[-1] + number / 2147483647)
        number = number * 16807 % 2147483647
    taus, adev, mdev = allan(np.arange(1001.0), np.array(x))
    assert taus[0] == 1.0
    assert adev[0] == pytest.approx(2.922319e-01, rel=1e-6)
    assert mdev[0] == pytest.approx(2.922319e-01, rel=1e-6)


def test_boxes_are_between_the_quartiles() -> None:
    found = box({"min": 1.0, "p25": 2.0, "median": 3.0, "p75": 4.0, "p95": 5.0}, "a", ("min", "p95"))
    assert found == {"label": "a", "q1": 2.0, "med": 3.0, "q3": 4.0, "whislo": 1.0, "whishi": 5.0}


def test_every_recording_becomes_its_figures_beside_the_papers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [latency(tmp_path / "l"), stability(tmp_path / "s"), clock(tmp_path / "c")]
    inventory = tmp_path / "inventory.json"
    counter = {"name": "tsc", "hertz": 2.5e9, "width": 64, "kernel": "in use", "access": "rdtsc"}
    missing = [{"what": "HPET", "remedy": "load the module"}]
    content = {"counters": [counter], "choice": "tsc", "reason": "it is sound", "missing": missing}
    inventory.write_text(json.dumps(content), encoding="utf-8")
    out = tmp_path / "out"
    assert main([*map(str, files), "--inventory", str(inventory), "-o", str(out)]) == 0
    assert capsys.readouterr().out.strip() == str(out / "counters.md")
    names = {path.name for path in out.iterdir()}
    expected = {"figure-12-stability", "figure-13-rates", "figure-14-latency", "figure-16-user", "figure-17-clocks", "figure-18-machines"}
    assert names == {"counters.md", "verdicts.json", *(f"{name}.png" for name in expected)}
    text = (out / "counters.md").read_text(encoding="utf-8")
    for words in (
        "| 10440 | 390 |",
        "| monotonic-raw vDSO | first | cpu | 10 |",
        "| tsc | socket | classic | quiet | 100 | -4.000 |",
        "HPET: load",
    ):
        assert words in text, words


def test_the_kernels_figure_is_drawn_where_the_module_was(tmp_path: Path) -> None:
    assert "figure-15-kernel.png" in pictures([read_recording(latency(tmp_path / "l", "kernel"))])
    assert "figure-15-kernel.png" not in pictures([read_recording(latency(tmp_path / "m"))])


def test_latencies_from_user_space_are_not_called_those_of_the_kernel(tmp_path: Path) -> None:
    for arrangement, words in (("kernel", "within the kernel (as figure 14)"), ("first", "from user space (figure 14 is of the kernel)")):
        canvas = pictures([read_recording(latency(tmp_path / arrangement, arrangement))])["figure-14-latency.png"]
        assert words in canvas.axes[0].get_title(loc="left")


def test_recordings_of_two_hosts_are_merged_by_machine(tmp_path: Path) -> None:
    about = {"cpu": "A CPU", "kernel": "6.1.0"}
    one = clock(tmp_path / "one", machine={"host": "alpha", "cpu_hertz": 2.5e9, **about})
    # The second is worse than the paper's worst machine.
    two = clock(tmp_path / "two", 9e-6, machine={"host": "beta", "cpu_hertz": None, **about})
    recordings = [read_recording(path) for path in (one, two)]
    assert list(machines(recordings)) == [Machine("alpha", "A CPU", "6.1.0"), Machine("beta", "A CPU", "6.1.0")]
    out = tmp_path / "out"
    assert main([str(one), str(two), "-o", str(out)]) == 0
    drawn = {path.name for path in out.glob("*.png")}
    assert drawn == {"figure-17-clocks-1.png", "figure-17-clocks-2.png", "figure-18-machines.png"}
    labels = [label.get_text() for label in pictures(recordings)["figure-18-machines.png"].axes[0].get_yticklabels()]
    assert [label.split(" (")[0] for label in labels] == ["alpha", "alpha", "beta", "beta"]
    assert [label.rsplit(", ", 1)[1] for label in labels] == ["classic", "learned"] * 2
    text = (out / "counters.md").read_text(encoding="utf-8")
    assert "# alpha (A CPU, Linux 6.1.0)" in text
    assert "# beta (A CPU, Linux 6.1.0)" in text
    found = read_verdicts(out / "verdicts.json")
    assert {one.what.split(",")[0] for one in found if one.figure == "17"} == {"alpha", "beta"}
    by_machine = [one for one in found if one.figure == "18"]
    assert [one.what.split(":")[0] for one in by_machine] == ["socket, classic", "socket, learned"]
    for one_kind in by_machine:
        assert "2 here: alpha" in one_kind.ours
        assert "beta" in one_kind.ours
        assert one_kind.outcome == "differs"
    # As for a host and its guest: the other machine counts in the comparison of machines and nowhere else.
    assert main([str(two), "--beside", str(one), "-o", str(tmp_path / "beside")]) == 0
    beside = read_verdicts(tmp_path / "beside" / "verdicts.json")
    assert [one_kind.ours for one_kind in beside if one_kind.figure == "18"] == [one_kind.ours for one_kind in by_machine]
    assert {one_kind.what.split(",")[0] for one_kind in beside if one_kind.figure == "17"} == {"socket"}


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    text = page([read_recording(clock(tmp_path / "c"))], None, [])
    assert "a recording of `ffclock-lab counters latency`" in text


def test_a_recording_cut_anywhere_is_refused(tmp_path: Path) -> None:
    whole = clock(tmp_path / "c").read_bytes()
    cut = tmp_path / "cut"
    for length in range(len(whole)):
        cut.write_bytes(whole[:length])
        with pytest.raises(RecordingError, match=r"cut after line|no recording"):
            read_recording(cut)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no recording"),
        ("Ta,Tb\n1,2\n", "no recording"),
        ("[]\n", "no object"),
        (f'{{"format": "{FORMAT}"}}\nnonsense\n', "line 2 is damaged"),
        (f'{{"format": "{FORMAT}"}}\n{{"record": "end", "records": 3}}\n', "announces 3"),
        (BARE, "fields of its kind"),
    ],
)
def test_other_input_is_refused_in_words(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, words: str) -> None:
    file = tmp_path / "x"
    file.write_text(text, encoding="utf-8")
    assert main([str(file), "-o", str(tmp_path / "out")]) == 2
    assert words in capsys.readouterr().err
