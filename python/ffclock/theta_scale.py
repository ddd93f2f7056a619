"""Analyses a log of message delays in shards of time: ``python -m ffclock.theta_scale LOG --shards N``.

The compiled pass that ``ffclock-lab theta analyse`` runs is mapped over the shards, in threads here or on a Dask cluster whose machines see
the log at the same path. A shard is exact by itself, and tallies add up, so the result is that of a single pass.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any

Range = tuple[int, int]
Mapper = Callable[[Callable[[Range], str], Sequence[Range]], Iterable[str]]


def tally_shard(log: str, stamp: str, detail: str, shard: Range) -> str:
    """The tally of one shard of the log, as JSON; ValueError says what is wrong with the log."""
    from ._ffclock import _theta_tally  # noqa: PLC0415  so that --help works without the compiled part

    return _theta_tally(log, shard, stamp, detail)


class _Tally:
    """What to do with a shard. An object of a module, not a closure, so that it can be sent to other machines."""

    def __init__(self, log: str, stamp: str, detail: str) -> None:
        self.log, self.stamp, self.detail = log, stamp, detail

    def __call__(self, shard: Range) -> str:
        return tally_shard(self.log, self.stamp, self.detail, shard)


def here(work: Callable[[Range], str], shards: Sequence[Range]) -> Iterable[str]:
    """One shard after the other, in this thread."""
    return [work(shard) for shard in shards]


def in_threads(count: int) -> Mapper:
    """As many shards at a time; the compiled pass leaves the interpreter's lock alone."""

    def mapped(work: Callable[[Range], str], shards: Sequence[Range]) -> Iterable[str]:
        with ThreadPoolExecutor(count) as pool:
            return list(pool.map(work, shards))

    return mapped


def on_dask(client: Any) -> Mapper:
    """Shards as tasks of the Dask ``client``."""

    def mapped(work: Callable[[Range], str], shards: Sequence[Range]) -> Iterable[str]:
        results: list[str] = client.gather(client.map(work, list(shards)))
        return results

    return mapped


def analyse(log: str | Path, shards: int = 1, mapper: Mapper = here, stamp: str = "after", detail: str = "plain") -> str:
    """The report of a log as JSON, as ``ffclock-lab theta analyse --json`` prints it; ValueError says what is wrong with the log.

    ``shards`` is how many tasks there are; ``mapper`` runs them. ``stamp`` is "after" or "before", ``detail`` "plain" or "full" (Theta
    and the histograms too).
    """
    from ._ffclock import _theta_merge, _theta_plan, _theta_report  # noqa: PLC0415

    path = str(log)
    tallies = list(mapper(_Tally(path, stamp, detail), _theta_plan(path, shards)))
    return _theta_report(path, _theta_merge(tallies))


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m ffclock.theta_scale",
        description="Analyse a log of message delays in shards of time, in threads or on a Dask cluster.",
        epilog="example: python -m ffclock.theta_scale run-1 --shards 8 --workers 4",
    )
    parser.add_argument("log", type=Path, metavar="LOG", help="a log as docs/theta-log.md describes it")
    parser.add_argument("--shards", type=int, default=8, metavar="N", help="how many shards (default: 8)")
    parser.add_argument("--stamp", choices=("after", "before"), default="after", help="where switches are put, see docs/theta.md")
    parser.add_argument("--full", action="store_true", help="work out Theta and the histograms too")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--workers", type=int, default=2, metavar="N", help="threads of this machine (default: 2)")
    where.add_argument("--scheduler", metavar="ADDRESS", help="a running Dask scheduler instead, such as tcp://head:8786")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns 0, or 2 with one message on standard error if the log is unusable or Dask is missing."""
    options = _arguments(arguments)
    detail = "full" if options.full else "plain"
    try:
        if not options.scheduler:
            print(analyse(options.log, options.shards, in_threads(options.workers), options.stamp, detail))
            return 0
        try:
            dask: Any = import_module("distributed")
        except ModuleNotFoundError as error:
            print(f"ffclock.theta_scale: a cluster needs {error.name}, which is missing: pip install 'ffclock[cluster]'", file=sys.stderr)
            return 2
        with dask.Client(options.scheduler) as client:
            print(analyse(options.log, options.shards, on_dask(client), options.stamp, detail))
    except (ValueError, OSError) as error:
        print(f"ffclock.theta_scale: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
