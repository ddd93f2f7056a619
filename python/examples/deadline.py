"""Has a deadline passed? Certainly, certainly not, or unknown: a clock with a bound can distinguish the three, others cannot.

Usage: python deadline.py SECONDS_FROM_NOW
"""

import sys

import ffclock


def verdict(reading: ffclock.Reading, deadline_ns: int) -> str:
    """Compares the interval in which UTC lies with the deadline."""
    if reading.earliest_ns > deadline_ns:
        return "passed"
    if reading.latest_ns < deadline_ns:
        return "not yet"
    return "cannot be known"


def main() -> None:
    """Waits for a clock that is good to a millisecond, and looks at the deadline twice."""
    clock = ffclock.Clock.open()
    start = clock.wait_until(bound=0.001, timeout=30.0)
    deadline_ns = start.utc_ns + round(float(sys.argv[1]) * 1e9)

    begin = clock.stamp()
    first = verdict(clock.now(), deadline_ns)
    took = clock.elapsed(begin, clock.stamp())

    print(f"{first} (the clock is good to {start.bound_ns / 1000:.1f} us; asking it took {took.ns} ns)")


if __name__ == "__main__":
    main()
