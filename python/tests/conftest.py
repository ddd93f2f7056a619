"""What tests of several files need."""

from __future__ import annotations

from pathlib import Path

import pytest
from matplotlib.figure import Figure as Canvas

from ffclock.program import Program, ProgramError


@pytest.fixture(autouse=True)
def _coarse_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pictures of tests are not looked at, and most of the time would go into pixels."""
    save = Canvas.savefig
    monkeypatch.setattr(Canvas, "savefig", lambda canvas, file, **options: save(canvas, file, **{**options, "dpi": 25}))


@pytest.fixture(scope="session")
def program() -> Program:
    """The command ``ffclock-lab``; tests that need it are skipped where it was not built."""
    try:
        return Program.find()
    except ProgramError:
        pytest.skip("the command ffclock-lab was not built (cargo build -p ffclock-lab)")


@pytest.fixture
def short_world(tmp_path: Path) -> Path:
    """A scenario of two hours with an outage, which runs in a few milliseconds."""
    path = tmp_path / "short.toml"
    path.write_text(
        'extends = "lan-16"\nabout = "a short one"\nduration = "2 h"\nfrom = "30 min"\n'
        '[path]\noutage = [{ at = "60 min", until = "80 min" }]\n',
        encoding="utf-8",
    )
    return path
