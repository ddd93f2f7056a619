"""The compiled part: a reader of the page that ``ffclockd`` publishes. Described in docs/python.md."""

from os import PathLike
from typing import final

__version__: str
# PyO3 exports everything in the module, including the parts of ffclock.theta_scale.
__all__ = [
    "Clock",
    "Interval",
    "Reading",
    "Stamp",
    "__version__",
    "_theta_merge",
    "_theta_plan",
    "_theta_report",
    "_theta_tally",
    "certainly_before",
]

@final
class Clock:
    """An open page. May be shared between threads."""

    @staticmethod
    def open(path: str | PathLike[str] | None = None) -> Clock:
        """Opens the page at ``path``, by default that of this machine's daemon; raises PageError.

        The default is the page that $FFCLOCK_PAGE names, else /run/ffclock/page, else $XDG_RUNTIME_DIR/ffclock/page.
        """

    def now(self) -> Reading:
        """The time now with its bound; raises UnsynchronisedError or PageError."""

    def stamp(self) -> Stamp:
        """The raw counter now. A stamp taken while the page says nothing belongs to no epoch, and is refused later."""

    def at(self, stamp: Stamp) -> Reading:
        """The time of ``stamp``, of up to a day ago, by the lines around it; raises EpochError, UnsynchronisedError or PageError."""

    def elapsed(self, begin: Stamp, end: Stamp) -> Interval:
        """From ``begin`` to ``end`` by the better of the difference clock and of two conversions; raises as ``at`` does.

        Negative if ``end`` was taken first.
        """

    def wait_until(self, bound: float, timeout: float | None = None) -> Reading:
        """Waits until the clock is synchronised within ``bound`` seconds, for at most ``timeout`` seconds (for ever if None).

        Returns that reading, or raises WaitTimeoutError. Other threads run meanwhile, and an interrupt ends it. ValueError if an
        argument is negative or not a number.
        """

    def wait_certainly_after(self, tai_ns: int, timeout: float | None = None) -> Reading:
        """Waits until the moment ``tai_ns`` has certainly passed, for at most ``timeout`` seconds (for ever if None).

        That is, until a reading has an ``earliest_tai_ns`` after it. With the ``latest_tai_ns`` of an event this is the commit wait
        of databases. Returns that reading, or raises WaitTimeoutError. Other threads run meanwhile, and an interrupt ends it.
        ValueError if the timeout is negative or not a number.
        """

    @property
    def status(self) -> str:
        """The clock's status now; ``"unsynchronised"`` also where there is no reading."""

@final
class Reading:
    """A time with its error figures and status, all from one snapshot. An error figure that is not known is 2**63 - 1 ns."""

    @property
    def utc_ns(self) -> int:
        """UTC as POSIX counts it [ns since 1970]."""

    @property
    def tai_ns(self) -> int:
        """TAI [ns since 1970-01-01 00:00:00 TAI]."""

    @property
    def bound_ns(self) -> int:
        """Largest possible error [ns, rounded up]."""

    @property
    def bound_strict_ns(self) -> int:
        """Largest possible error although a minority of the servers is false in whatever way [ns, rounded up]."""

    @property
    def uncertainty_ns(self) -> int:
        """Combined standard uncertainty (k = 1): noise, and what is assumed of path and servers [ns, rounded up]."""

    @property
    def noise_ns(self) -> int:
        """The part of the uncertainty that exchanges show [ns, rounded up]."""

    @property
    def earliest_ns(self) -> int:
        """The earliest that UTC can be [ns since 1970]; -2**63 while that is not known, as when unsynchronised."""

    @property
    def latest_ns(self) -> int:
        """The latest that UTC can be [ns since 1970]; 2**63 - 1 while that is not known."""

    @property
    def earliest_tai_ns(self) -> int:
        """The earliest that TAI can be [ns since 1970-01-01 00:00:00 TAI]; -2**63 while that is not known."""

    @property
    def latest_tai_ns(self) -> int:
        """The latest that TAI can be [ns since 1970-01-01 00:00:00 TAI]; 2**63 - 1 while that is not known."""

    @property
    def status(self) -> str:
        """``"synchronised"``, ``"warming-up"``, ``"holdover"`` or ``"unsynchronised"``."""

@final
class Stamp:
    """A raw counter reading and the epoch of the counter that it belongs to. It can be stored, pickled and made again."""

    def __new__(cls, raw: int, epoch: int) -> Stamp:
        """From the parts of a stored stamp."""

    @property
    def raw(self) -> int:
        """Ticks since the counter's arbitrary origin."""

    @property
    def epoch(self) -> int:
        """The number of the counter's epoch."""

    def __eq__(self, value: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __getnewargs__(self) -> tuple[int, int]: ...

@final
class Interval:
    """A length of time, by the better of the difference clock and of two conversions."""

    @property
    def ns(self) -> int:
        """The length [ns], the nearest."""

    @property
    def seconds(self) -> float:
        """The length [s]."""

    @property
    def bound_ns(self) -> int:
        """Largest possible error of the length [ns, rounded up]."""

    @property
    def uncertainty_ns(self) -> int:
        """Standard uncertainty (k = 1) of the length [ns, rounded up]."""

    @property
    def status(self) -> str:
        """How far the clock may be trusted, in the words of a reading."""

    @property
    def way(self) -> str:
        """How it was measured: ``"difference"`` or ``"absolute"``."""

def certainly_before(first: Reading, second: Reading) -> bool:
    """Whether the first event was before the second, whatever the errors within the bounds of both.

    False where the ranges touch, and where either clock was unsynchronised.
    """

def _theta_plan(directory: str | PathLike[str], shards: int) -> list[tuple[int, int]]:
    """Cuts a log into about ``shards`` ranges of time, as (after, until) in picoseconds; ValueError if there is no log."""

def _theta_tally(directory: str | PathLike[str], range: tuple[int, int], stamp: str, detail: str) -> str:
    """The tally of a range of a log, as JSON; ValueError says what is wrong."""

def _theta_merge(tallies: list[str]) -> str:
    """Adds the tallies of ranges that follow one another."""

def _theta_report(directory: str | PathLike[str], tally: str) -> str:
    """What the tally of a whole log means, as ``ffclock-lab theta analyse --json`` prints it."""
