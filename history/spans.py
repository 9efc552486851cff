"""Computes the summaries of spans of time, for all columns of a table at once."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringlog.gateway import summarise

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

NAMES = ("n", "min", "max", "mean", "first", "last", "squares", "nans", "nulls")
_COUNTS = ("n", "nans", "nulls")


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

    def chosen(self, which: NDArray[np.bool_]) -> "Spans":
        return Spans(self.numbers[which], *(getattr(self, name)[which] for name in NAMES))


def of_rows(numbers: Integers, values: Floats, nulls: NDArray[np.bool_]) -> Spans:
    """The spans of rows, which are ordered by time: `numbers` has the span of each row, `values` is of shape
    (rows, columns); fastest with columns that are contiguous.

    Values where `nulls` is set do not count.
    """
    starts = _starts(numbers)
    columns = np.ascontiguousarray(values.T)
    is_null = np.ascontiguousarray(nulls.T) if nulls.any() else None
    shape = (len(columns), len(starts))
    made: dict[str, Any] = {
        name: np.frombuffer(content, np.int64 if name in _COUNTS else np.float64).reshape(shape).T
        for name, content in zip(
            NAMES, summarise(columns, is_null, len(values), starts.tolist()), strict=True
        )
    }
    return Spans(numbers[starts], **made)


def combined(spans: Spans, factor: int) -> Spans:
    """The spans that are `factor` times as long."""
    numbers = spans.numbers // factor
    starts = _starts(numbers)
    is_number = spans.n > 0
    n = np.add.reduceat(spans.n, starts, axis=0)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        mean = np.add.reduceat(np.where(is_number, spans.n * spans.mean, 0.0), starts, axis=0) / n
        of_span = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(numbers))))
        distances = np.where(is_number, spans.mean - mean[of_span], 0.0)
        parts = np.where(is_number, spans.squares, 0.0) + spans.n * distances * distances
        squares = np.add.reduceat(parts, starts, axis=0)
    none = n == 0
    return Spans(
        numbers[starts],
        n,
        _emptied(np.minimum.reduceat(np.where(is_number, spans.min, np.inf), starts, axis=0), none),
        _emptied(np.maximum.reduceat(np.where(is_number, spans.max, -np.inf), starts, axis=0), none),
        _emptied(mean, none),
        _emptied(_first(spans.first, is_number, starts), none),
        _emptied(_last(spans.last, is_number, starts), none),
        _emptied(squares, none),
        np.add.reduceat(spans.nans, starts, axis=0),
        np.add.reduceat(spans.nulls, starts, axis=0),
    )


def _starts(numbers: Integers) -> NDArray[np.intp]:
    return np.flatnonzero(np.concatenate(([True], numbers[1:] != numbers[:-1])))


def _emptied(values: Floats, none: NDArray[np.bool_]) -> Floats:
    return np.where(none, np.nan, values)


def _first(values: Floats, is_number: NDArray[np.bool_], starts: NDArray[np.intp]) -> Floats:
    if is_number.all():
        return np.asarray(values[starts])
    rows = np.arange(len(values))[:, None]
    where = np.minimum.reduceat(np.where(is_number, rows, len(values) - 1), starts, axis=0)
    return np.asarray(np.take_along_axis(values, where, axis=0))


def _last(values: Floats, is_number: NDArray[np.bool_], starts: NDArray[np.intp]) -> Floats:
    if is_number.all():
        return np.asarray(values[np.append(starts[1:], len(values)) - 1])
    rows = np.arange(len(values))[:, None]
    where = np.maximum.reduceat(np.where(is_number, rows, 0), starts, axis=0)
    return np.asarray(np.take_along_axis(values, where, axis=0))
