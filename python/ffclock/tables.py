"""CSV files as text columns, whose cells are parsed on demand so that a bad one can be named."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Texts = npt.NDArray[np.str_]
Counts = npt.NDArray[np.uint64]
Places = npt.NDArray[np.intp]


class RunError(ValueError):
    """The input is not a run: the message says which file, where, and what was expected."""


class Table:
    """A CSV file that was read whole. Missing columns are ``None`` and missing cells are NaN, never zero."""

    def __init__(self, path: Path, frame: pl.DataFrame) -> None:
        self.path = path
        self.columns = frame.columns
        self._frame = frame

    @classmethod
    def read(cls, path: Path, *, may_be_empty: bool = False) -> Table:
        try:
            frame = pl.read_csv(path, infer_schema=False, comment_prefix="#")
        except pl.exceptions.NoDataError:
            raise RunError(f"{path}: empty; a header line with column names is needed") from None
        except (pl.exceptions.PolarsError, OSError, UnicodeDecodeError) as error:
            raise RunError(f"{path}: cannot be read as CSV: {str(error).splitlines()[0]}") from error
        frame = frame.rename({name: name.strip() for name in frame.columns})
        if frame.height == 0 and not may_be_empty:
            raise RunError(f"{path}: has a header but no rows")
        return cls(path, frame)

    def texts(self, name: str) -> Texts | None:
        if name not in self.columns:
            return None
        return self._frame[name].fill_null("").str.strip_chars().to_numpy().astype(np.str_)

    def _cast(self, name: str, kind: type[pl.DataType], meaning: str) -> pl.Series | None:
        if name not in self.columns:
            return None
        text = self._frame[name].str.strip_chars()
        text = text.set(text == "", None)
        values = text.cast(kind, strict=False)
        bad = (values.is_null() & text.is_not_null()).arg_true()
        if len(bad):
            row = int(bad[0])
            # Line 1 is the header. Comment lines are not counted: the data row says enough to find it.
            raise RunError(f"{self.path}: line {row + 2}, column {name}: {text[row]!r} is not {meaning}")
        return values

    def floats(self, name: str) -> Floats | None:
        values = self._cast(name, pl.Float64, "a number")
        return None if values is None else values.fill_null(float("nan")).to_numpy().astype(np.float64)

    def flags(self, name: str) -> Flags | None:
        texts = self.texts(name)
        if texts is None:
            return None
        lowered = np.char.lower(texts)
        known = np.isin(lowered, ["true", "false", "1", "0", "yes", "no", ""])
        if not known.all():
            row = int(np.argmin(known))
            raise RunError(f"{self.path}: line {row + 2}, column {name}: {str(texts[row])!r} is neither true nor false")
        return np.isin(lowered, ["true", "1", "yes"])

    def times(self, name: str) -> Floats:
        times = self.floats(name)
        if times is None:
            raise RunError(f"{self.path}: has no column {name}; its columns are {', '.join(self.columns)}")
        if not np.isfinite(times).all():
            row = int(np.argmin(np.isfinite(times)))
            raise RunError(f"{self.path}: line {row + 2}, column {name}: every row needs a time")
        return times

    def counts(self, name: str) -> Counts | None:
        values = self._cast(name, pl.UInt64, "a whole number of ticks")
        return None if values is None or values.null_count() else values.to_numpy().astype(np.uint64)

    def seconds_since_first(self, name: str) -> Floats:
        """From integer nanoseconds; subtracted as integers, because a float of today's date has steps of 256 ns."""
        nanos = self._cast(name, pl.Int64, "a whole number of nanoseconds")
        if nanos is None or nanos.null_count():
            raise RunError(f"{self.path}: column {name} must be given in every row")
        return np.asarray((nanos - nanos[0]).to_numpy() / 1e9, dtype=np.float64)
