"""The command ``ffclock-lab`` as a tool of the package: it replays traces and runs simulated worlds."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

_CHECKOUT: Final = Path(__file__).resolve().parents[2]

NOT_FOUND: Final = """the command ffclock-lab was not found; build it with `make build` and put it on the PATH,
or name it with --ffclock-lab PATH or in the environment variable FFCLOCK_LAB"""


class ProgramError(RuntimeError):
    """The command is missing or failed: the message holds what it said."""


@dataclass(frozen=True)
class Program:
    """One ``ffclock-lab`` to be run."""

    path: Path

    @classmethod
    def find(cls, named: Path | None = None) -> Program:
        """The one that is named, else that of ``$FFCLOCK_LAB``, of the PATH, of this checkout; :class:`ProgramError` if there is none."""
        given = named or os.environ.get("FFCLOCK_LAB")
        if given:
            found = shutil.which(str(given))
            if found is None:
                raise ProgramError(f"{given}: no program that can be run; {NOT_FOUND}")
            return cls(Path(found).resolve())
        installed = shutil.which("ffclock-lab")
        if installed:
            return cls(Path(installed).resolve())
        built = [path for kind in ("release", "debug") if (path := _CHECKOUT / "target" / kind / "ffclock-lab").is_file()]
        if not built:
            raise ProgramError(NOT_FOUND)
        # The one built last is the one that fits the sources.
        return cls(max(built, key=lambda path: path.stat().st_mtime))

    def json(self, arguments: Sequence[str], allowed: Sequence[int] = (0,)) -> Any:
        """What ``ffclock-lab --json ARGUMENTS`` answers; a list where it answers with several lines. :class:`ProgramError` if it fails."""
        done = self._run(["--json", *arguments], allowed)
        answers = [json.loads(line) for line in done.splitlines() if line]
        return answers[0] if len(answers) == 1 else answers

    def simulate(self, scenario: str, seed: int, options: Sequence[str] = ()) -> dict[str, Any]:
        """The result of one simulated run. A failed check of the scenario is a result, too."""
        answer = self.json(["sim", "run", scenario, "--seed", str(seed), *options], allowed=(0, 1))
        if not isinstance(answer, dict):
            raise ProgramError(f"{self.path} sim run {scenario}: answered with {len(answer)} lines instead of one")
        return answer

    @cached_property
    def has_oracle(self) -> bool:
        """Whether it has oracles, which show how well any clock could have done."""
        return "--oracle" in self._run(["sim", "run", "--help"], (0,))

    def _run(self, arguments: Sequence[str], allowed: Sequence[int]) -> str:
        # On a terminal its progress is for the user; elsewhere its complaint belongs into ours.
        errors = None if sys.stderr.isatty() else subprocess.PIPE
        command = [str(self.path), *arguments]
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, text=True, check=False)
        except OSError as error:
            raise ProgramError(f"{self.path}: {error.strerror}; {NOT_FOUND}") from error
        if done.returncode not in allowed or (done.returncode and not done.stdout):
            said = " ".join((done.stderr or "").split()) or f"ended with {done.returncode}"
            # The command names itself in its complaints; only without one does the call matter, without our own files.
            words = itertools.takewhile(lambda word: word != "--output", (word for word in arguments if word != "--json"))
            call = " ".join(["ffclock-lab", *itertools.islice(words, 4)])
            if errors is None and done.returncode > 0:
                said = f"{call} failed, for the reason above"
            elif not said.startswith("ffclock-lab: "):
                said = f"{call}: {said}"
            raise ProgramError(said)
        return done.stdout
