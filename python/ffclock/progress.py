"""The progress of long work, on standard error, for people only."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Final

_WIDTH: Final = 30
_CLEAR: Final = "\r\x1b[K"


class Progress:
    """A bar on a terminal; into a file or a pipe it says nothing."""

    def __init__(self, whole: int) -> None:
        self._whole = max(whole, 1)
        self._done = 0
        self._begun = time.monotonic()
        self._shown = sys.stderr.isatty()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._shown:
            sys.stderr.write(_CLEAR)
            sys.stderr.flush()

    def say(self, what: str) -> None:
        """Shows what is being done now."""
        if not self._shown:
            return
        full = "#" * (self._done * _WIDTH // self._whole)
        elapsed = time.monotonic() - self._begun
        sys.stderr.write(f"{_CLEAR}[{full:<{_WIDTH}}] {self._done}/{self._whole} {elapsed:.0f} s  {what[:60]}")
        sys.stderr.flush()

    def step(self, what: str) -> None:
        """One more part is done: ``what``."""
        self._done += 1
        self.say(what)
