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
    assert ended.stdout.count("  proved: ") == 55
    assert ended.stdout.count("  fails without: ") == 110
    assert ended.stdout.count("  fails with: ") == 18


WRONG = {
    "an interval is carried back like one that is carried forward": (
        "induction",
        "within(v, l + d * high, h + d * low)",
        "within(v, l + d * low, h + d * high)",
        "NOT PROVED: an interval that is carried back",
    ),
    "the last lower end of the vote is taken for the first": (
        "strict_vote",
        "return z3.And(chosen(low, self.low, 1), chosen(high, self.high, -1))",
        "return z3.And(chosen(low, self.low, -1), chosen(high, self.high, 1))",
        "NOT PROVED: the strict interval holds the true time, whatever the false servers claim (n = 3, f = 1)",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_formula_is_not_proved(tmp_path: Path, name: str) -> None:
    """The script can say no."""
    part, right, instead, answer = WRONG[name]
    text = SCRIPT.read_text()
    assert text.count(right) == 1
    wrong = tmp_path / "wrong"
    wrong.write_text(text.replace(right, instead).replace("PARTS: tuple", f"PARTS = ({part},)\n_: tuple"))
    ended = run(wrong)
    assert ended.returncode == 1
    assert answer in ended.stdout


def test_the_document_names_every_theorem() -> None:
    document = " ".join((ROOT / "docs" / "algorithm" / "proofs.md").read_text().split())
    for line in run_names():
        assert line in document, f"docs/algorithm/proofs.md does not name: {line}"


def run_names() -> list[str]:
    """The names as the script has them, without proving anything."""
    source = SCRIPT.read_text().splitlines()
    after = [source[place + 1].strip() for place, line in enumerate(source) if line.strip() == "yield Theorem("]
    return [line.removesuffix(",").strip('"') for line in after]
