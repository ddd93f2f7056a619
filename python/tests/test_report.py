"""What a report says about a run, and what it says about input that is no run."""

from __future__ import annotations

import base64
import html.parser
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from runfiles import demo_run, write_csv

from ffclock import details, plots, wander
from ffclock.figures import clocks_table, connected, containment, spread, table
from ffclock.marks import BINS, View, sparse, thinned
from ffclock.report import main
from ffclock.runs import Event, Run, Samples, Summary, read_run, status_word
from ffclock.scales import length_scale
from ffclock.tables import RunError

PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(name="demo")
def _demo(tmp_path: Path) -> Path:
    return demo_run(tmp_path)


def texts_of(run: Run) -> list[str]:
    """Every text that is drawn, axis by axis."""
    canvas = plots.draw(run)
    found = [text.get_text() for text in canvas.texts]
    for axes in canvas.axes:
        legend = axes.get_legend()
        found += [axes.get_title(loc="left"), axes.get_xlabel(), axes.get_ylabel(), *(text.get_text() for text in axes.texts)]
        found += [text.get_text() for text in legend.get_texts()] if legend else []
    return [text for text in found if text]


class Page(html.parser.HTMLParser):
    """The rows of all tables, and whatever the page would load."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.sources: list[str] = []
        self.tags: set[str] = set()
        self.open = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.open = tag in {"td", "th"}
        if tag == "tr":
            self.rows.append([])
        if self.open:
            self.rows[-1].append("")
        self.sources += [value or "" for name, value in attrs if name in {"src", "href", "srcset"}]

    def handle_endtag(self, tag: str) -> None:
        self.open = False

    def handle_data(self, data: str) -> None:
        if self.open:
            self.rows[-1][-1] += data


def test_figures_are_those_of_the_connected_phase(demo: Path) -> None:
    run = read_run(demo)
    chosen = connected(run)
    assert int(chosen.sum()) == 3500 + 2500  # 10..45 s and 65..90 s
    found = spread(run.samples.error_s, chosen)
    assert found is not None
    assert found.median == pytest.approx(0.0, abs=3e-8)
    assert found.iqr == pytest.approx(1e-6, rel=0.03)
    assert found.percentiles[1] == pytest.approx(-0.98e-6, rel=0.02)
    assert found.max_abs == pytest.approx(1e-6)
    assert found.rms == pytest.approx(1e-6 / np.sqrt(3), rel=0.02)


def test_containment_counts_every_sample_that_claims_a_bound() -> None:
    errors = np.array([0.0, 1.0, -3.0, np.nan, 2.0, 2.0])
    bounds = np.array([0.0, 2.0, 2.0, 1.0, np.nan, np.inf])
    inside = containment(errors, bounds)
    assert inside is not None
    assert (inside.count, inside.outside) == (4, 1)
    assert inside.largest_share == pytest.approx(1.5)
    assert containment(None, bounds) is None
    nothing = containment(errors[3:4], bounds[3:4])
    assert nothing is not None
    assert np.isnan(nothing.share)


def test_a_single_broken_bound_is_never_rounded_away() -> None:
    samples = Samples(np.arange(3e6), error_s=np.zeros(3_000_000), bound_s=np.ones(3_000_000))
    assert samples.error_s is not None
    samples.error_s[7] = 2.0
    rows = dict(table(Run(samples, Summary("three million"))))
    assert rows["inside the bound"] == "99.9999 %"


def test_command_writes_picture_and_page(demo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "a" / "b"
    assert main([str(demo), "-o", str(out)]) == 0
    names = ["report.png", "report-delays.png", "report-stability.png"]
    assert capsys.readouterr().out.split() == [str(out / name) for name in (*names, "report.html")]
    pictures = [(out / name).read_bytes() for name in names]
    assert all(picture.startswith(PNG_SIGNATURE) for picture in pictures)
    text = (out / "report.html").read_text(encoding="utf-8")
    page = Page(text)
    assert [base64.b64decode(source.removeprefix("data:image/png;base64,")) for source in page.sources] == pictures
    assert not page.tags & {"script", "link", "iframe", "object"}
    assert "Demo &lt;veth&gt; &amp; more" in text
    assert "stayed inside the bound in all 9000 samples" in text


def test_page_lists_stated_and_computed_figures(demo: Path, tmp_path: Path) -> None:
    assert main([str(demo), "-o", str(tmp_path)]) == 0
    rows = Page((tmp_path / "report.html").read_text(encoding="utf-8")).rows
    assert ["error IQR", "1.01 µs", "1.5 µs", "✓ met"] in rows
    assert ["resident memory", "9.1 MiB", "8 MiB", "✗ missed"] in rows
    assert ["counter", "tsc", "", ""] in rows
    assert ["45 s", "20 s", "server cut off"] in rows
    assert ["70 s", "", "poll 1 s"] in rows
    computed = {row[0]: row[1] for row in rows if len(row) == 2}
    for percent in (1, 5, 25, 50, 75, 95, 99):
        assert re.fullmatch(r"-?[\d.]+ (ns|µs)|0 µs", computed[f"error, {percent} %"])
    assert computed["inside the bound"] == "100 %"


def test_picture_shows_panels_events_and_fitting_units(demo: Path) -> None:
    texts = texts_of(read_run(demo))
    assert "Error inside its bound: all 9\u202f000 samples" in texts
    for expected in ("Error enlarged", "Round trips and their floor", "Rate error", "Error while connected", "server cut off", "poll 1 s"):
        assert expected in texts
    for expected in ("error [µs]", "delay [µs]", "rate error [ppb]", "time since the start [s]"):
        assert expected in texts
    for expected in ("± bound", "± uncertainty", "± noise around the median", "round trip, not used", "floor", "holdover"):
        assert expected in texts


def test_events_and_statuses_stay_legible_side_by_side(demo: Path) -> None:
    run = read_run(demo)
    crowd = tuple(Event(t_s=4.5 * k, text=f"something long happened {k}") for k in range(20))
    canvas = plots.draw(Run(run.samples, Summary("crowd", events=crowd)))
    strip = canvas.axes[0]
    canvas.draw_without_rendering()
    renderer = canvas._get_renderer()  # type: ignore[attr-defined]
    boxes = [text.get_window_extent(renderer) for text in strip.texts if text.get_text().startswith("something")]
    assert 4 <= len(boxes) < 20
    assert not any(a.overlaps(b) for k, a in enumerate(boxes) for b in boxes[k + 1 :])
    assert max(box.x1 for box in boxes) <= strip.get_window_extent(renderer).x1 + 1


def test_replay_output_is_read_with_exact_times(tmp_path: Path) -> None:
    start = 1_767_225_600_123_456_789
    path = write_csv(
        tmp_path / "replay.csv",
        {
            "counter": [10, 20, 30],
            "utc_ns": [start, start + 16_000_000_001, start + 32_000_000_007],
            "period_s": [3.3e-10, 3.3e-10, 3.3000001e-10],
            "uncertainty_s": [1e-5, 2e-6, 2e-6],
            "bound_s": [1e-4, 8e-5, 8e-5],
            "floor_s": [1.4e-4] * 3,
            "status": ["WarmingUp", "Synchronised", "Synchronised"],
            "error_s": [5e-6, float("nan"), 9e-5],
        },
    )
    run = read_run(path)
    assert run.samples.t_s.tolist() == [0.0, 16.000000001, 32.000000007]
    assert run.exchanges is not None
    assert run.exchanges.round_trip_s is None
    texts = texts_of(run)
    assert "Bound broken in 1 of 2 samples" in texts
    assert "Rate against the run's own median" in texts
    assert "floor" in texts


def test_no_file_is_taken_for_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = write_csv(tmp_path / "run.csv", {"t_s": [0.0, 1.0]})
    before = run.read_bytes()
    linked = tmp_path / "linked.html"
    linked.symlink_to(run)
    for output in (run, linked):
        assert main([str(run), "-o", str(output)]) == 2
        assert capsys.readouterr().err == "ffclock.report: --output would overwrite the run; name another file\n"
    other = tmp_path / "other.trace"
    other.write_text("kept", encoding="utf-8")
    assert main([str(run), "-o", str(other)]) == 2
    assert capsys.readouterr().err == (
        f"ffclock.report: {other} is a file, and the name of a page ends in .html: name a page, or a directory\n"
    )
    assert (run.read_bytes(), other.read_text(encoding="utf-8")) == (before, "kept")


def test_only_a_time_column_is_needed(tmp_path: Path) -> None:
    run = read_run(write_csv(tmp_path / "bare.csv", {"t_s": [0.5]}))
    assert run.samples.error_s is None
    texts = texts_of(run)
    assert texts == ["bare", "Figures", "samples", "1"]
    assert main([str(tmp_path / "bare.csv"), "-o", str(tmp_path)]) == 0
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "is not known" in page
    assert page.count("data:image/png;base64,") == 1
    assert sorted(path.name for path in tmp_path.glob("*.png")) == ["report.png"]


@pytest.mark.parametrize("value", [float("nan"), 0.0, 3e-6, float("inf")])
def test_degenerate_columns_are_drawn(tmp_path: Path, value: float) -> None:
    columns = ("error_s", "bound_s", "uncertainty_s", "rate_error_ppm", "period_s")
    write_csv(tmp_path / "samples.csv", {"t_s": [0.0, 1.0, 2.0], **{name: [value] * 3 for name in columns}})
    write_csv(tmp_path / "exchanges.csv", {"t_s": [0.0, 1.0], "round_trip_s": [value] * 2, "floor_s": [value] * 2})
    assert main([str(tmp_path), "-o", str(tmp_path / "out")]) == 0


def test_what_was_not_recorded_has_no_panel(tmp_path: Path) -> None:
    write_csv(tmp_path / "samples.csv", {"t_s": [0.0, 1.0], "bound_s": [1e-5, 2e-5]})
    (tmp_path / "exchanges.csv").write_text("t_s,round_trip_s,floor_s,used\n", encoding="utf-8")
    run = read_run(tmp_path)
    assert [text for text in texts_of(run) if text[0].isupper()] == ["Claimed bound and uncertainty", "Figures"]
    assert details.draw(run) is None
    assert wander.draw(run) is None


def test_each_panel_appears_with_its_data(demo: Path) -> None:
    run = read_run(demo)
    picture = details.draw(run)
    assert picture is not None
    shown = [axes.get_title(loc="left") for axes in picture.axes]
    assert shown == ["How often the error was larger (1 - CDF)", "Floor, and the smallest round trips"]
    assert run.exchanges is not None
    trips = run.exchanges.round_trip_s
    picture = details.draw(replace(run, exchanges=replace(run.exchanges, offset_s=np.zeros(run.exchanges.t_s.size))))
    assert trips is not None
    assert picture is not None
    assert len(picture.axes) == 4


@pytest.mark.parametrize(
    ("length", "unit"),
    [
        (0.02, "ms"),
        (0.5, "ms"),
        (5.0, "s"),
        (90.0, "s"),
        (599.0, "s"),
        (600.0, "min"),
        (3600.0 * 5, "h"),
        (86400.0 * 3, "h"),
        (86400.0 * 30, "d"),
    ],
)
def test_the_time_axis_has_the_unit_of_the_length(tmp_path: Path, length: float, unit: str) -> None:
    times = np.linspace(0.0, length, 50)
    write_csv(tmp_path / "samples.csv", {"t_s": times.tolist(), "error_s": [1e-6] * 50, "bound_s": [1e-5] * 50})
    trips = (4e-5 + 1e-6 * np.arange(50)).tolist()
    write_csv(tmp_path / "exchanges.csv", {"t_s": times.tolist(), "round_trip_s": trips, "floor_s": [4e-5] * 50})
    run = read_run(tmp_path)
    assert f"time since the start [{unit}]" in texts_of(run)
    picture = details.draw(run)
    assert picture is not None
    axes = picture.axes[-1]
    assert axes.get_xlabel() == f"time since the start [{unit}]"
    picture.draw_without_rendering()
    labels = [float(label.get_text().replace("\N{MINUS SIGN}", "-")) for label in axes.get_xticklabels() if label.get_text()]
    assert 3 <= len([label for label in labels if 0.0 <= label <= length * length_scale(length).factor]) <= 14


@pytest.mark.parametrize(("size", "unit"), [(3e-9, "ns"), (4e-6, "µs"), (2e-3, "ms"), (1.5, "s")])
def test_error_axes_have_the_unit_of_the_size(tmp_path: Path, size: float, unit: str) -> None:
    errors = np.resize([-size, size, 0.5 * size], 60)
    write_csv(tmp_path / "samples.csv", {"t_s": np.arange(60.0).tolist(), "error_s": errors.tolist(), "bound_s": [2.0 * size] * 60})
    assert f"error [{unit}]" in texts_of(read_run(tmp_path))


def lying_run(directory: Path, lie_s: float) -> Run:
    """A demonstration with two servers, the second of which lies by ``lie_s`` from second 20 on and is named at 22."""
    demo_run(directory)
    t = np.repeat(np.arange(0.0, 40.0, 0.5), 2)
    server = np.resize(["honest 1", "liar"], t.size)
    error = np.where((server == "liar") & (t >= 20.0), lie_s, 1e-6)
    reach = np.where(server == "liar", 3e-5, 2e-4)
    standing = np.where((server == "liar") & (t >= 22.0), "falseticker", "believed")
    columns = {"t_s": t.tolist(), "server": server.tolist()}
    write_csv(directory / "servers.csv", {**columns, "error_s": error.tolist(), "reach_s": reach.tolist()})
    write_csv(directory / "votes.csv", {**columns, "standing": standing.tolist()})
    write_csv(directory / "samples-smallest-claim.csv", {"t_s": t.tolist(), "error_s": error.tolist(), "bound_s": reach.tolist()})
    return read_run(directory)


def test_several_servers_are_drawn_with_what_is_said_of_them(tmp_path: Path) -> None:
    run = lying_run(tmp_path, 1e-4)
    assert list(run.servers) == ["honest 1", "liar"]
    texts = texts_of(run)
    for expected in ("Servers, their claims, and the clock", "honest 1: believed", "liar: falseticker", "liar", "± bound"):
        assert expected in texts
    assert "error [µs]" in texts
    assert [row[0] for row in clocks_table(run)] == ["", "smallest-claim"]
    assert main([str(tmp_path), "-o", str(tmp_path)]) == 0


def test_a_lie_far_outside_leaves_the_claims_their_room(tmp_path: Path) -> None:
    canvas = plots.draw(lying_run(tmp_path, 0.02))
    servers = next(axes for axes in canvas.axes if axes.get_title(loc="left").startswith("Servers"))
    assert servers.get_yscale() == "symlog"
    assert servers.get_ylabel() == "error [ms]"
    low, high = servers.get_ylim()
    assert low < -2e-4
    assert high > 0.02


def test_a_file_of_servers_without_its_columns_is_named(tmp_path: Path) -> None:
    write_csv(tmp_path / "samples.csv", {"t_s": [0.0, 1.0]})
    write_csv(tmp_path / "servers.csv", {"t_s": [0.0], "server": ["a"]})
    with pytest.raises(RunError, match="needs the columns server, error_s and reach_s"):
        read_run(tmp_path)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("", "empty; a header line"),
        ("t_s,error_s\n", "a header but no rows"),
        ("error_s,bound_s\n1,2\n", "has no column t_s; its columns are error_s, bound_s"),
        ("t_s,error_s\n0,1e-6\n1,fast\n", "line 3, column error_s: 'fast' is not a number"),
        ("t_s,error_s\n0,1e-6\n,2e-6\n", "line 3, column t_s: every row needs a time"),
        ("t_s,error_s\n0,1,2,3\n", "cannot be read as CSV"),
        ("counter,utc_ns\n1,1.5\n", "line 2, column utc_ns: '1.5' is not a whole number of nanoseconds"),
        ("counter,utc_ns\n1,\n", "column utc_ns must be given in every row"),
    ],
)
def test_what_is_no_run_is_named(tmp_path: Path, content: str, complaint: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.csv"
    path.write_text(content, encoding="utf-8")
    assert main([str(path), "-o", str(tmp_path / "out")]) == 2
    message = capsys.readouterr().err
    assert message.startswith(f"ffclock.report: {path}: ")
    assert complaint in message
    assert message.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("{", "Expecting"),
        ("[]", "an object is expected"),
        ('{"events": [{"text": "x"}]}', "an event has no t_s"),
        ('{"events": {"t_s": 1}}', "events must be a list of objects"),
        ('{"figures": [{"value": 1}]}', "a figure has no name"),
        ('{"warm_up_s": "soon"}', "could not convert"),
    ],
)
def test_a_bad_summary_is_named(tmp_path: Path, content: str, complaint: str) -> None:
    write_csv(tmp_path / "samples.csv", {"t_s": [0.0, 1.0]})
    (tmp_path / "summary.json").write_text(content, encoding="utf-8")
    with pytest.raises(RunError, match=complaint):
        read_run(tmp_path)


def test_a_flag_that_is_none_is_named(tmp_path: Path) -> None:
    write_csv(tmp_path / "samples.csv", {"t_s": [0.0, 1.0]})
    write_csv(tmp_path / "exchanges.csv", {"t_s": [0.0, 1.0], "used": ["true", "maybe"]})
    with pytest.raises(RunError, match="line 3, column used: 'maybe' is neither true nor false"):
        read_run(tmp_path)


def test_missing_input_is_named(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="no such file"):
        read_run(tmp_path / "nowhere")
    with pytest.raises(RunError, match=r"has no samples\.csv"):
        read_run(tmp_path)


def test_statuses_of_all_programs_are_one() -> None:
    for text in ("WarmingUp", "warming up", "warming_up", " warming-up "):
        assert status_word(text.strip()) == "warming-up"
    for text in ("Holdover", "holdover", "FreeRunning", "free running", "free_running", "free-running"):
        assert status_word(text) == "holdover"


def test_thinning_keeps_every_extreme_and_every_gap() -> None:
    t = np.arange(100_000.0)
    values = np.sin(t)
    values[777], values[50_000:60_000] = 9.0, np.nan
    thin_t, thin = thinned(t, values)
    assert thin.size == thin_t.size == 2 * BINS
    assert np.nanmax(thin) == 9.0
    assert np.isnan(thin[(thin_t > 50_100) & (thin_t < 59_900)]).all()


def test_the_first_guess_does_not_flatten_the_rest() -> None:
    t = np.arange(1000.0)
    status = np.where(t < 100, "warming-up", "synchronised")
    samples = Samples(t, error_s=np.where(t < 100, 1.0, 1e-6), status=status)
    assert View.of(Run(samples, Summary("x"))).largest(samples.error_s) == pytest.approx(1e-6)


def test_reports_need_no_compiled_part(tmp_path: Path) -> None:
    """A checkout where nothing was built can still draw, and says what is missing when time is asked for."""
    source = Path(plots.__file__).parent
    (tmp_path / "ffclock").mkdir()
    for module in source.glob("*.py"):
        (tmp_path / "ffclock" / module.name).write_bytes(module.read_bytes())
    script = f"""
import sys
sys.path.insert(0, {str(tmp_path)!r})
import ffclock, ffclock.report, ffclock.plots
assert ffclock.__file__.startswith({str(tmp_path)!r}), ffclock.__file__
try:
    ffclock.Clock
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True, timeout=120)
    assert "pip install ./python" in done.stdout


def test_sparse_dots_keep_the_largest_and_are_evenly_spread() -> None:
    values = np.random.default_rng(3).standard_normal(1_000_000)
    values[123_456], values[7] = 50.0, np.nan
    places = sparse(values)
    assert places.size < 3.1 * BINS
    assert 123_456 in places
    assert np.median(values[places][np.isfinite(values[places])]) < 1.0
    assert sparse(values[:100]).tolist() == list(range(100))
