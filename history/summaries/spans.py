"""Computes the summaries of spans of time, for all columns of a table at once."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringlog.gateway import combine, summarise

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

NAMES = ("n", "min", "max", "mean", "first", "last", "squares", "nans", "nulls")
COUNTS = ("n", "nans", "nulls")


@dataclass(frozen=True)
class Spans:
    """Spans of one length. `numbers` are their numbers since 1970, ascending; the other arrays are of shape
    (spans, columns).

    `n`, `nans` and `nulls` are counts; where `n` is 0 the other values are NaN. `squares` is the sum of the
    squared distances from the mean.
    """

    numbers: Integers
    n: Integers
    min: Floats
    max: Floats
    mean: Floats
    first: Floats
    last: Floats
    squares: Floats
    nans: Integers
    nulls: Integers

    def __len__(self) -> int:
        return len(self.numbers)

    @classmethod
    def together(cls, parts: Sequence["Spans"]) -> "Spans":
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in ("numbers", *NAMES)))

    @property
    def rows(self) -> Integers:
        return self.n + self.nans + self.nulls

    @property
    def have_rows(self) -> NDArray[np.bool_]:
        """Which spans have rows in some column."""
        return np.asarray(self.rows.any(axis=1))

    def chosen(self, which: NDArray[np.bool_] | Integers) -> "Spans":
        """Those of a mask, or at indexes."""
        return Spans(self.numbers[which], *(getattr(self, name)[which] for name in NAMES))


def no_figures(shape: tuple[int, int]) -> dict[str, Any]:
    """The figures, by NAMES, of spans without rows."""
    return {name: np.zeros(shape, np.int64) if name in COUNTS else np.full(shape, np.nan) for name in NAMES}


def of_rows(numbers: Integers, values: Floats, nulls: NDArray[np.bool_]) -> Spans:
    """The spans of rows, which are ordered by time: `numbers` has the span of each row, `values` is of shape
    (rows, columns); fastest with columns that are contiguous.

    Values where `nulls` is set do not count.
    """
    starts = _starts(numbers)
    columns = np.ascontiguousarray(values.T)
    is_null = np.ascontiguousarray(nulls.T) if nulls.any() else None
    return _made(numbers[starts], len(columns), summarise(columns, is_null, len(values), starts))


def combined(spans: Spans, factor: int) -> Spans:
    """The spans that are `factor` times as long."""
    numbers = spans.numbers // factor
    starts = _starts(numbers)
    parts = [
        np.ascontiguousarray(getattr(spans, name).T, np.int64 if name in COUNTS else np.float64)
        for name in NAMES
    ]
    return _made(numbers[starts], len(parts[0]), combine(parts, len(numbers), starts))


def _starts(numbers: Integers) -> Integers:
    return np.flatnonzero(np.concatenate(([True], numbers[1:] != numbers[:-1]))).astype(np.int64)


def _made(numbers: Integers, columns: int, contents: Sequence[bytes]) -> Spans:
    shape = (columns, len(numbers))
    made: dict[str, Any] = {
        name: np.frombuffer(content, np.int64 if name in COUNTS else np.float64).reshape(shape).T
        for name, content in zip(NAMES, contents, strict=True)
    }
    return Spans(numbers, **made)
