"""Computes the summaries of spans of time, for all columns of a table at once."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

NAMES = ("n", "min", "max", "mean", "first", "last", "squares", "nans", "nulls")


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
    (rows, columns).

    Values where `nulls` is set do not count.
    """
    starts = _starts(numbers)
    if not nulls.any():
        sums = np.add.reduceat(values, starts, axis=0)
        if np.isfinite(sums).all():
            return _of_numbers(numbers, values, starts, sums)
    nan = np.isnan(values) & ~nulls
    is_number = ~nan & ~nulls
    n = np.add.reduceat(is_number, starts, axis=0, dtype=np.int64)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        mean = np.add.reduceat(np.where(is_number, values, 0.0), starts, axis=0) / n
        of_row = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(numbers))))
        distances = np.where(is_number, values - mean[of_row], 0.0)
        squares = np.add.reduceat(distances * distances, starts, axis=0)
    none = n == 0
    return Spans(
        numbers[starts],
        n,
        _emptied(np.minimum.reduceat(np.where(is_number, values, np.inf), starts, axis=0), none),
        _emptied(np.maximum.reduceat(np.where(is_number, values, -np.inf), starts, axis=0), none),
        _emptied(mean, none),
        _emptied(_first(values, is_number, starts), none),
        _emptied(_last(values, is_number, starts), none),
        _emptied(squares, none),
        np.add.reduceat(nan, starts, axis=0, dtype=np.int64),
        np.add.reduceat(nulls, starts, axis=0, dtype=np.int64),
    )


def _of_numbers(numbers: Integers, values: Floats, starts: Integers, sums: Floats) -> Spans:
    """The same of rows with numbers only, in half the time."""
    counts = np.diff(np.append(starts, len(numbers)))
    mean = sums / counts[:, None]
    distances = values - np.repeat(mean, counts, axis=0)
    distances *= distances
    zeros = np.zeros(mean.shape, np.int64)
    return Spans(
        numbers[starts],
        np.broadcast_to(counts[:, None], mean.shape).copy(),
        np.minimum.reduceat(values, starts, axis=0),
        np.maximum.reduceat(values, starts, axis=0),
        mean,
        values[starts],
        values[starts + counts - 1],
        np.add.reduceat(distances, starts, axis=0),
        zeros,
        zeros.copy(),
    )


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
