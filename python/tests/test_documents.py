"""What the documents show works as shown, and what the stub promises is compiled."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from pagefile import Estimate, write_page

PACKAGE = Path(__file__).resolve().parents[1]
DOCUMENTS = [PACKAGE / "README.md", PACKAGE.parent / "docs" / "python.md"]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_code_in_documents_runs(document: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FFCLOCK_PAGE", str(write_page(tmp_path / "page", Estimate.present())))
    blocks = re.findall(r"^```python\n(.*?)^```", document.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert blocks
    names: dict[str, object] = {"deadline_ns": 0, "work": lambda: None}
    for block in blocks:
        exec(compile(block, str(document), "exec"), names)


@pytest.mark.parametrize(("ahead", "verdict"), [("-1", "passed"), ("3600", "not yet"), ("0", "cannot be known")])
def test_example_runs(ahead: str, verdict: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FFCLOCK_PAGE", str(write_page(tmp_path / "page", Estimate.present(bound_ns=900_000))))
    command = [sys.executable, str(PACKAGE / "examples" / "deadline.py"), ahead]
    assert subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.startswith(verdict)


def run_example(name: str, *arguments: str) -> str:
    command = [sys.executable, str(PACKAGE / "examples" / name), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout


# The verdicts are those of examples/rust/order_of_hosts.rs, word by word.
def test_order_of_hosts(tmp_path: Path) -> None:
    page = str(write_page(tmp_path / "page", Estimate.present(bound_ns=1000)))
    first, second = (run_example("order_of_hosts.py", "event", page).split() for _ in range(2))
    for one, other, verdict in [
        (first, second, "the first was first"),
        (second, first, "the second was first"),
        (first, first, "it cannot be known"),
        (["1", "5"], ["5", "9"], "it cannot be known"),
    ]:
        assert run_example("order_of_hosts.py", "compare", *one, *other) == f"{verdict}\n"


def test_commit_wait(tmp_path: Path) -> None:
    page = str(write_page(tmp_path / "page", Estimate.present(bound_ns=1000)))
    assert re.fullmatch(r"2 commits in order, in \d+ us\n", run_example("commit_wait.py", page))


def test_stub_and_compiled_part_agree(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mypy.stubtest", "ffclock._ffclock"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False, timeout=300)
    assert done.returncode == 0, done.stdout
