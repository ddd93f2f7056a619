"""The proofs of the thresholds run and all go through."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("z3", reason="SKIP: z3-solver is not installed")

SCRIPT = Path(__file__).parents[2] / "tools" / "theta-thresholds"


def test_every_statement_is_proved() -> None:
    ended = subprocess.run([sys.executable, str(SCRIPT)], capture_output=True, text=True, timeout=300, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "NOT PROVED" not in ended.stdout
    assert ended.stdout.count("  proved: ") == 12


def test_a_wrong_threshold_is_not_proved(tmp_path: Path) -> None:
    """With n >= 3f alone the statements about n - f fail: the script can say no."""
    weakened = tmp_path / "weakened"
    text = SCRIPT.read_text()
    assert "n >= 3 * f + 1" in text
    weakened.write_text(text.replace("n >= 3 * f + 1)", "n >= 3 * f)"))
    ended = subprocess.run([sys.executable, str(weakened)], capture_output=True, text=True, timeout=300, check=False)
    assert ended.returncode == 1
    assert "NOT PROVED: an advance needs" in ended.stdout
