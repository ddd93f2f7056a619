"""The theorems that the bound rests on go through, and each fails without its premises."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("z3", reason="SKIP: z3-solver is not installed")

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "tools" / "bound-proofs"


def run(script: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=600, check=False)


def test_every_theorem_is_proved_and_needs_its_premises() -> None:
    ended = run(SCRIPT)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "NOT" not in ended.stdout
    assert ended.stdout.count("  proved: ") == 34
    assert ended.stdout.count("  fails without: ") == 71


def test_a_wrong_formula_is_not_proved(tmp_path: Path) -> None:
    """An interval that is carried back like one that is carried forward: the script can say no."""
    text = SCRIPT.read_text()
    right = "within(v, l + d * high, h + d * low)"
    assert text.count(right) == 1
    only = text.replace(right, "within(v, l + d * low, h + d * high)").replace("PARTS: tuple", "PARTS = (induction,)\n_: tuple")
    wrong = tmp_path / "wrong"
    wrong.write_text(only)
    ended = run(wrong)
    assert ended.returncode == 1
    assert "NOT PROVED: an interval that is carried back" in ended.stdout


def test_the_document_names_every_theorem() -> None:
    document = " ".join((ROOT / "docs" / "algorithm" / "proofs.md").read_text().split())
    for line in run_names():
        assert line in document, f"docs/algorithm/proofs.md does not name: {line}"


def run_names() -> list[str]:
    """The names as the script has them, without proving anything."""
    source = SCRIPT.read_text().splitlines()
    after = [source[place + 1].strip() for place, line in enumerate(source) if line.strip() == "yield Theorem("]
    return [line.removesuffix(",").strip('"') for line in after]
