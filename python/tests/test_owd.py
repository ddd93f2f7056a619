"""The page of one-way delays."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ffclock.owd_report import main


def spread(median: float) -> dict[str, float]:
    shares = {"min": 0.5, "p25": 0.8, "median": 1.0, "p75": 1.2, "p95": 2.0, "p99": 3.0, "p999": 4.0, "max": 5.0}
    return {name: median * share for name, share in shares.items()}


def answer(contradictions: int = 0) -> dict[str, Any]:
    """What ``ffclock-lab owd report --json`` prints, of one direction."""
    direction = {"delay_ns": spread(50e3), "bound_ns": spread(20e3), "least_ns": 25e3, "below_zero": 0}
    edges = [25e3 * 1.1**edge for edge in range(20)]
    heat = {
        "begin_s": 1.8e9,
        "column_s": 0.5,
        "edges_ns": edges,
        "counts": [[column * row % 7 for row in range(19)] for column in range(30)],
    }
    figures = {
        "packets": 1000,
        "fates": {"measured": 1000 - contradictions},
        "contradictions": contradictions,
        "forward": direction,
        "backward": None,
        "round_trip_ns": spread(100e3),
        "held_ns": spread(9e3),
    }
    return {"about": {}, "figures": figures, "truth": None, "heat": {"forward": heat, "backward": None}}


@pytest.mark.parametrize(("contradictions", "verdict"), [(0, "No packet contradicts"), (3, "A clock or its claim is false")])
def test_the_page_holds_its_picture_and_its_verdict(tmp_path: Path, contradictions: int, verdict: str) -> None:
    source = tmp_path / "figures.json"
    source.write_text(json.dumps(answer(contradictions)), encoding="utf-8")
    assert main([str(source), "-o", str(tmp_path)]) == 0
    text = (tmp_path / "owd.html").read_text(encoding="utf-8")
    assert verdict in text
    assert "data:image/png;base64," in text
    assert (tmp_path / "owd.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [("{", "no JSON"), ("{}", "no figures"), (json.dumps({"figures": {}, "heat": {}}), "nothing to draw")],
)
def test_what_is_no_answer_is_named(text: str, complaint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "figures.json"
    source.write_text(text, encoding="utf-8")
    assert main([str(source), "-o", str(tmp_path)]) == 2
    assert complaint in capsys.readouterr().err


def test_logarithmic_axes_are_labelled_with_numbers() -> None:
    from matplotlib.figure import Figure  # noqa: PLC0415

    from ffclock.owd_report import _label_plainly  # noqa: PLC0415

    axes = Figure().subplots()
    axes.plot([1.0, 2.0], [1.0, 8.0])
    axes.set_yscale("log")
    _label_plainly(axes.yaxis, 1.0, 8.0)
    axes.figure.canvas.draw()
    labels = [label.get_text() for which in ("major", "minor") for label in axes.yaxis.get_ticklabels(which=which)]
    assert {"1", "2", "5"} <= set(labels)
    assert not [label for label in labels if "10^" in label]
