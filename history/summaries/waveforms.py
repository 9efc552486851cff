"""The scalars of a waveform in the summaries: min, max, mean, rms and length.

NaN points do not count. The scalars of a waveform with NaN only are NaN, those of one without points are
null; both have a length. PostgreSQL computes the same for rows that are not summarised yet
(ringlog.waveform_scalars).
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ringlog.schema.layout import SCALARS

if TYPE_CHECKING:
    import pyarrow as pa

Scalars = tuple[NDArray[np.float64], NDArray[np.bool_]]
"""Values of shape (waveforms, SCALARS), and a mask of the nulls."""

_POINTS = 1_000_000
"""approximate number of points in memory at once"""


def names(column: str) -> Iterator[str]:
    """The names of the scalars as columns of the summaries; names of a log's columns have no dot."""
    return (f"{column}.{scalar}" for scalar in SCALARS)


def of_rows(waveforms: Iterable[NDArray[np.float64] | None]) -> Scalars:
    """The scalars of an iterable of waveforms; None is no waveform."""
    parts = [_scalars(np.empty(0), np.empty(0, np.int64), np.empty(0, bool))]
    waiting: list[NDArray[np.float64] | None] = []

    def take() -> None:
        there = [waveform for waveform in waiting if waveform is not None]
        lengths = np.array([0 if waveform is None else len(waveform) for waveform in waiting], np.int64)
        missing = np.array([waveform is None for waveform in waiting], bool)
        parts.append(_scalars(np.concatenate([np.empty(0), *there]), lengths, missing))
        waiting.clear()

    points = 0
    for waveform in waveforms:
        waiting.append(waveform)
        points += 0 if waveform is None else len(waveform)
        if points > _POINTS:
            take()
            points = 0
    take()
    values, nulls = zip(*parts, strict=True)
    return np.concatenate(values), np.concatenate(nulls)


def of_lists(waveforms: "pa.ListArray") -> Scalars:
    """The scalars of waveforms as Arrow's lists."""
    return _scalars(
        waveforms.flatten().cast("float64", safe=False).to_numpy(zero_copy_only=False),
        waveforms.value_lengths().fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64),
        waveforms.is_null().to_numpy(zero_copy_only=False),
    )


def _scalars(points: NDArray[np.float64], lengths: NDArray[np.int64], missing: NDArray[np.bool_]) -> Scalars:
    """The scalars of waveforms whose points are contiguous."""
    values = np.full((len(lengths), len(SCALARS)), np.nan)
    values[:, 4] = lengths
    some = lengths > 0
    if some.any():
        starts = (np.cumsum(lengths) - lengths)[some]
        number = ~np.isnan(points)
        n = np.add.reduceat(number, starts, dtype=np.int64)
        numbers = np.where(number, points, 0.0)
        with np.errstate(invalid="ignore", divide="ignore", over="ignore", under="ignore"):
            low = np.minimum.reduceat(np.where(number, points, np.inf), starts)
            high = np.maximum.reduceat(np.where(number, points, -np.inf), starts)
            mean = np.add.reduceat(numbers, starts) / n
            # scaled, because squares of 1e200 and of 1e-200 exceed the range of double precision
            unit = np.maximum(np.abs(low), np.abs(high))
            unit = np.where((unit > 0) & (unit < np.inf), unit, 1.0)
            parts = numbers / np.repeat(unit, lengths[some])
            rms = unit * np.sqrt(np.add.reduceat(parts * parts, starts) / n)
        values[some, :4] = np.where((n > 0)[:, None], np.column_stack((low, high, mean, rms)), np.nan)
    nulls = np.repeat(~some[:, None], len(SCALARS), axis=1)
    nulls[:, 4] = missing
    return values, nulls
