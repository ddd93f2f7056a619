"""What can go wrong when a clock is read. Everything here is an :class:`FfclockError`."""

from __future__ import annotations


class FfclockError(Exception):
    """Base of all errors of this package."""


class PageError(FfclockError):
    """The page is missing, unreadable, damaged, of another version, of another machine, or of an earlier boot."""


class UnsynchronisedError(FfclockError):
    """There is no estimate now: no server has answered yet, or the counter's epoch ended."""


class EpochError(FfclockError):
    """A stamp belongs to another epoch of the counter, or to none."""


class WaitTimeoutError(FfclockError, TimeoutError):
    """The clock did not become good enough in the time given."""


def missing(what: str, error: ModuleNotFoundError) -> str:
    """What to do about a library that is not installed; ``what`` says who needs which."""
    return f"""{what} ({error.name} is missing)
install what is missing with: pip install 'ffclock[analysis]', or pip install -r python/requirements.txt in a checkout"""
