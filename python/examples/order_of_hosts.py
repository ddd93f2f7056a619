"""Which of two events was first, of which each was seen by a host of its own.

Usage: python order_of_hosts.py event [PAGE]    prints the range in which the event was: from and until, in ns of TAI
       python order_of_hosts.py compare FROM UNTIL FROM UNTIL
"""

import sys

import ffclock

Range = tuple[int, int]


def range_of_now(page: str | None = None) -> Range:
    """The range of an event that happens now, which can be sent to other hosts."""
    event = ffclock.Clock.open(page).now()
    if event.status == "unsynchronised":
        raise SystemExit("the clock is unsynchronised: nothing is certain about this event")
    return event.earliest_tai_ns, event.latest_tai_ns


def verdict(first: Range, second: Range) -> str:
    """Two ranges that touch leave the order open."""
    if first[1] < second[0]:
        return "the first was first"
    if second[1] < first[0]:
        return "the second was first"
    return "it cannot be known"


def main(words: list[str]) -> None:
    """Prints a range or a verdict."""
    match words:
        case ["event", *page] if len(page) < 2:
            print(*range_of_now(*page))
        case ["compare", a, b, c, d]:
            print(verdict((int(a), int(b)), (int(c), int(d))))
        case _:
            raise SystemExit("usage: order_of_hosts.py event [PAGE] | compare FROM UNTIL FROM UNTIL")


if __name__ == "__main__":
    main(sys.argv[1:])
