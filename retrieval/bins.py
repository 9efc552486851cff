"""Samples gathered in bins of a whole number of microseconds, counted from 1970-01-01 UTC.

Bins are returned as they are complete, so memory does not grow with the requested time.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from ringlog.retrieval.refused import Refused
from ringlog.retrieval.samples import Samples

SECOND = 1_000_000  # microseconds
MOST_IN_A_BIN = 5_000_000  # samples, where all of a bin are needed at once

Numbers = NDArray[np.float64]
Whole = NDArray[np.int64]


@dataclass(frozen=True)
class Bins:
    """Figures of some bins, one each, in the order of time. Samples without a reading do not count."""

    number: Whole
    """time over the width, cut"""
    n: Whole
    mean: Numbers
    squares: Numbers
    """sum of the squared distances to the mean"""
    low: Numbers
    high: Numbers
    first: Numbers
    last: Numbers
    first_time: Whole
    """microseconds"""
    last_time: Whole

    def __len__(self) -> int:
        return len(self.number)

    def slice(self, start: int, end: int | None) -> "Bins":
        return Bins(*(getattr(self, field.name)[start:end] for field in fields(self)))

    @staticmethod
    def joined(parts: list["Bins"]) -> "Bins":
        return Bins(
            *(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(Bins))
        )

    @property
    def variance(self) -> Numbers:
        """of a sample; 0 of a single value"""
        return np.where(self.n > 1, self.squares / np.maximum(self.n - 1, 1), 0.0)

    @property
    def deviation(self) -> Numbers:
        return np.sqrt(self.variance)


def binned(stream: Iterator[Samples], width: int) -> Iterator[Bins]:
    """The bins of `width` microseconds that hold samples with a reading."""
    pending: Bins | None = None
    for part in stream:
        got = _bins(part, width)
        if pending is not None:
            got = Bins.joined([pending, got]) if len(got) else pending
            if len(got) > 1 and got.number[0] == got.number[1]:
                got = Bins.joined([_merged(got.slice(0, 2)), got.slice(2, None)])
        if len(got):
            if len(got) > 1:
                yield got.slice(0, -1)
            pending = got.slice(-1, None)
    if pending is not None:
        yield pending


def whole_bins(stream: Iterator[Samples], width: int) -> Iterator[tuple[int, Whole, Numbers]]:
    """Number, times and values of each bin with readings: for figures that need all values at once.

    Raises Refused (413) for a bin of more than MOST_IN_A_BIN samples.
    """
    for number, parts in samples_of_bins(stream, width):
        times = np.concatenate([part.time for part in parts])
        values = np.concatenate([part.numbers for part in parts])
        good = ~np.isnan(values)
        if good.any():
            yield number, times[good], values[good]


def samples_of_bins(stream: Iterator[Samples], width: int) -> Iterator[tuple[int, list[Samples]]]:
    """Number and samples of each bin that has some. Raises Refused (413) as whole_bins."""
    number: int | None = None
    held: list[Samples] = []
    for part in stream:
        bins = part.time // width
        starts = _starts(bins)
        for start, end in zip(starts, np.append(starts, len(bins))[1:], strict=True):
            if number is not None and bins[start] != number:
                yield number, held
                held = []
            number = int(bins[start])
            held.append(part.slice(start, end))
            if sum(map(len, held)) > MOST_IN_A_BIN:
                raise Refused(413, f"a bin has more than {MOST_IN_A_BIN} samples: use narrower bins")
    if number is not None:
        yield number, held


def _bins(part: Samples, width: int) -> Bins:
    numbers = part.numbers
    good = ~np.isnan(numbers)
    values, time = numbers[good], part.time[good]
    bins = time // width
    starts = _starts(bins)
    if not len(starts):
        none, whole = np.empty(0), np.empty(0, np.int64)
        return Bins(whole, whole, none, none, none, none, none, none, whole, whole)
    n = np.diff(np.append(starts, len(bins)))
    ends = starts + n - 1
    with np.errstate(invalid="ignore", over="ignore"):
        mean = np.add.reduceat(values, starts) / n
        squares = np.add.reduceat(np.square(values - np.repeat(mean, n)), starts)
    return Bins(
        bins[starts],
        n,
        mean,
        squares,
        np.minimum.reduceat(values, starts),
        np.maximum.reduceat(values, starts),
        values[starts],
        values[ends],
        time[starts],
        time[ends],
    )


def _starts(bins: Whole) -> Whole:
    if not len(bins):
        return np.empty(0, np.int64)
    return np.append(0, np.flatnonzero(np.diff(bins)) + 1)


def _merged(two: Bins) -> Bins:
    """One bin of two parts of it (Chan, Golub, LeVeque 1979)."""
    n = two.n.sum()
    delta = two.mean[1] - two.mean[0]
    return Bins(
        two.number[:1],
        np.array([n]),
        np.array([two.mean[0] + delta * two.n[1] / n]),
        np.array([two.squares.sum() + delta * delta * two.n[0] * two.n[1] / n]),
        np.array([two.low.min()]),
        np.array([two.high.max()]),
        two.first[:1],
        two.last[1:],
        two.first_time[:1],
        two.last_time[1:],
    )
