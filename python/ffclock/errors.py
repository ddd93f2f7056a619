"""What can go wrong when a clock is read. Everything here is an :class:`FfclockError`."""

from __future__ import annotations


class FfclockError(Exception):
    """Base of all errors of this package."""


class PageError(FfclockError):
    """The page is missing, unreadable, damaged, of another version, or from before the last start of the machine."""


class UnsynchronisedError(FfclockError):
    """There is no estimate now: no server has answered yet, or the counter's epoch ended."""


class EpochError(FfclockError):
    """A stamp belongs to another epoch of the counter, or to another counter."""


class WaitTimeoutError(FfclockError, TimeoutError):
    """The clock did not become good enough in the time given."""
