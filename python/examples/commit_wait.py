"""A store that gives each transaction a time, and shows it only when that time has certainly passed.

Who sees one transaction and then begins another, on any host whose bound holds, gets a later time for it.

Usage: python commit_wait.py [PAGE]
"""

import sys

import ffclock

PATIENCE = 10.0
"""The longest that a commit may take, in seconds."""


def commit(clock: ffclock.Clock, store: list[tuple[int, str]], text: str) -> ffclock.Reading:
    """Writes a transaction with its time; returns what the clock shows when others may see it."""
    time = clock.now().latest_tai_ns
    # What this takes is taken off the wait.
    store.append((time, text))
    return clock.wait_certainly_after(time, timeout=PATIENCE)


def main() -> None:
    """Two commits, the second of which is later on every host."""
    clock = ffclock.Clock.open(*sys.argv[1:2])
    store: list[tuple[int, str]] = []
    begin = clock.stamp()
    first = commit(clock, store, "first")
    second = commit(clock, store, "second")
    if store != sorted(store) or not ffclock.certainly_before(first, second):
        raise SystemExit(f"not in order: {store}")
    print(f"2 commits in order, in {clock.elapsed(begin, clock.stamp()).ns // 1000} us")


if __name__ == "__main__":
    main()
