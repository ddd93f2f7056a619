"""A picture of one run of the live laboratory: ``python -m ffclock.live_figures.picture RUN FILE.png``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from ..errors import missing


def write(directory: Path, file: Path) -> None:
    """Draws the run that is in a directory."""
    from .drawing import drawing  # noqa: PLC0415
    from .runs import Setting, read  # noqa: PLC0415

    plan = json.loads((directory / "run.json").read_text(encoding="utf-8"))["plan"]
    file.write_bytes(drawing(read(Setting(f"{plan}, {directory.name}", plan), directory)))


def main(arguments: Sequence[str] | None = None) -> int:
    """Writes the picture; returns 1 where there is no run, and 2 where numpy or matplotlib is missing."""
    parser = argparse.ArgumentParser(prog="ffclock.live_figures.picture", description=__doc__)
    parser.add_argument("run", type=Path, metavar="RUN", help="the directory of a run")
    parser.add_argument("file", type=Path, metavar="FILE", help="where the PNG goes")
    chosen = parser.parse_args(arguments)
    try:
        write(chosen.run, chosen.file)
    except ModuleNotFoundError as error:
        print(f"ffclock.live_figures.picture: {missing('a picture needs numpy and matplotlib', error)}", file=sys.stderr)
        return 2
    except (OSError, KeyError, ValueError, RuntimeError) as error:
        print(f"{chosen.run}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
