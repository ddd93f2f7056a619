"""Time with an error bound, read from the page that ``ffclockd`` publishes on this machine, without asking the daemon.

>>> import ffclock
>>> clock = ffclock.Clock.open()              # doctest: +SKIP
>>> reading = clock.now()                     # doctest: +SKIP
>>> reading.earliest_ns <= reading.utc_ns     # doctest: +SKIP
True

The clock itself is compiled. Reports (``ffclock.report``) are not, and can be imported and used where the compiled part is missing; what
is compiled is therefore fetched at its first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .errors import EpochError, FfclockError, PageError, UnsynchronisedError, WaitTimeoutError

if TYPE_CHECKING:
    from ._ffclock import Clock, Interval, Reading, Stamp, __version__, certainly_before

__all__ = [
    "Clock",
    "EpochError",
    "FfclockError",
    "Interval",
    "PageError",
    "Reading",
    "Stamp",
    "UnsynchronisedError",
    "WaitTimeoutError",
    "__version__",
    "certainly_before",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'ffclock' has no attribute {name!r}")
    try:
        compiled = import_module("._ffclock", __name__)
    except ModuleNotFoundError as error:
        raise ImportError(
            "the compiled part of ffclock is not installed; in a checkout, run: pip install ./python",
            name="ffclock._ffclock",
        ) from error
    return getattr(compiled, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
