"""Collects samples in bins of a whole number of microseconds, counted from 1970-01-01 UTC.

Bins are returned as soon as they are complete, so memory does not grow with the requested time.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ringlog.gateway import bin_starts, whole_figures
from ringlog.history.summaries.spans import NAMES, Spans, combined
from ringlog.retrieval.samples import INVALID, Samples
from ringlog.retrieval.serving.refused import Refused

SECOND = 1_000_000  # microseconds
MOST_IN_A_BIN = 5_000_000  # samples, if all of a bin are needed at once

Numbers = NDArray[np.float64]
Whole = NDArray[np.int64]


@dataclass(frozen=True)
class Bins:
    """Figures of some bins with samples, in the order of time.

    Samples without a reading (`nulls`), and those whose reading is NaN (`nans`), do not count: if a bin has
    no others, n is 0 and its figures are NaN.
    """

    number: Whole
    """time divided by the width, truncated"""
    n: Whole
    min: Numbers
    max: Numbers
    mean: Numbers
    first: Numbers
    last: Numbers
    squares: Numbers
    """sum of the squared differences from the mean"""
    nans: Whole
    nulls: Whole
    first_time: Whole
    """microseconds; if n is 0, those of the bin's samples"""
    last_time: Whole
    alarm: Whole
    """the greatest severity recorded with its samples"""
    held: Numbers
    """the value that holds after the bin: that of its last sample, NaN where it has no reading"""
    held_severity: Whole
    held_empty: NDArray[np.bool_]
    """whether the last sample has no reading"""

    def __len__(self) -> int:
        return len(self.number)

    def slice(self, start: int, end: int | None) -> Self:
        return type(self)(*(getattr(self, field.name)[start:end] for field in fields(self)))

    @staticmethod
    def joined(parts: list["Bins"]) -> "Bins":
        return Bins(
            *(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(Bins))
        )

    @classmethod
    def of_spans(cls, spans: Spans, **others: Any) -> Self:
        """Bins with the figures of spans' first column."""
        return cls(spans.numbers, *(getattr(spans, name)[:, 0] for name in NAMES), **others)

    @property
    def empty(self) -> NDArray[np.bool_]:
        """whether no sample has a reading"""
        return np.asarray((self.n == 0) & (self.nans == 0))

    @property
    def severity(self) -> Whole:
        """The greatest recorded severity; INVALID if no sample has a reading."""
        return np.where(self.empty, INVALID, self.alarm)

    @property
    def variance(self) -> Numbers:
        """of a sample; 0 for a single value, NaN for none"""
        single = np.where(self.n == 1, 0.0, np.nan)
        return np.where(self.n > 1, self.squares / np.maximum(self.n - 1, 1), single)

    @property
    def deviation(self) -> Numbers:
        return np.sqrt(self.variance)

    @property
    def rms(self) -> Numbers:
        """root mean square"""
        is_infinite = np.isinf(self.min) | np.isinf(self.max)
        root = np.hypot(np.sqrt(self.squares / self.n), self.mean)
        return np.where(is_infinite, np.inf, root)


def binned(stream: Iterator[Samples], width: int) -> Iterator[Bins]:
    """The bins of `width` microseconds that hold samples."""
    pending: Bins | None = None
    for part in filter(len, stream):
        got = _bins(part, width)
        if pending is not None:
            got = Bins.joined([pending, got])
            if got.number[0] == got.number[1]:
                got = Bins.joined([_merged(got.slice(0, 2)), got.slice(2, None)])
        if len(got) > 1:
            yield got.slice(0, -1)
        pending = got.slice(-1, None)
    if pending is not None:
        yield pending


@dataclass(frozen=True)
class WholeBins(Bins):
    """Bins with a figure that needs all readings of a bin at once; NaN for a bin without readings."""

    figure: Numbers


def whole_bins(stream: Iterator[Samples], width: int, figure: str, most: int) -> Iterator[WholeBins]:
    """The bins that hold samples, with their `figure` (ringlog.gateway.whole_figures).

    Raises Refused (413) for a bin of more than `most` readings or MOST_IN_A_BIN samples.
    """
    for parts, times, values in parts_of_bins(stream, width):
        bins = Bins.joined([*binned(iter(parts), width)])
        good = ~np.isnan(values)
        if bins.n.max() > most:
            raise Refused(413, f"{figure}: a bin has more than {most} samples: use narrower bins")
        # in whole seconds: binNum*intervalSecs + intervalSecs/2 in the appliance's LoessInterpolation
        middles = bins.number * width + width // (2 * SECOND) * SECOND
        made = whole_figures(figure, times[good], values[good], bins.n, middles)
        yield WholeBins(**vars(bins), figure=np.frombuffer(made))


def parts_of_bins(stream: Iterator[Samples], width: int) -> Iterator[tuple[list[Samples], Whole, Numbers]]:
    """The samples in groups that divide no bin, each with its times and values. Raises Refused (413)."""
    held: list[Samples] = []
    for part in filter(len, stream):
        last = int(part.time[-1]) // width * width
        cut = int(np.searchsorted(part.time, last))
        if cut or (held and held[-1].time[-1] < last):
            yield _joined([*held, part.slice(0, cut)])
            held = []
        held.append(part.slice(cut, len(part)))
        if sum(map(len, held)) > MOST_IN_A_BIN:
            raise Refused(413, f"a bin has more than {MOST_IN_A_BIN} samples: use narrower bins")
    if held:
        yield _joined(held)


def _joined(parts: list[Samples]) -> tuple[list[Samples], Whole, Numbers]:
    times = np.concatenate([part.time for part in parts])
    return parts, times, np.concatenate([part.numbers for part in parts])


def _bins(part: Samples, width: int) -> Bins:
    values = part.numbers
    starts = starts_of(part.time, width)
    rows = np.diff(np.append(starts, len(part)))
    ends = starts + rows - 1
    severities, alarms, missing = part.severities, part.severity, part.missing
    nulls = none = np.zeros(len(starts), np.int64)
    n, firsts, lasts, good = rows, starts, ends, ~np.isnan(values)
    if not good.all():
        n, firsts, lasts = _readings(good, starts, ends)
        nulls = np.add.reduceat(missing, starts, dtype=np.int64)
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        mean = np.add.reduceat(np.where(good, values, 0.0), starts) / n
        distances = np.where(good, values - np.repeat(mean, rows), 0.0)
        squares = np.add.reduceat(np.square(distances), starts)
    return Bins(
        part.time[starts] // width,
        n,
        np.fmin.reduceat(values, starts),
        np.fmax.reduceat(values, starts),
        mean,
        values[firsts],
        values[lasts],
        squares,
        rows - n - nulls,
        nulls,
        part.time[firsts],
        part.time[lasts],
        alarm=none if alarms is None else np.maximum.reduceat(alarms, starts),
        held=values[ends],
        held_severity=none if severities is None else severities[ends],
        held_empty=missing[ends],
    )


def _readings(good: NDArray[np.bool_], starts: Whole, ends: Whole) -> tuple[Whole, Whole, Whole]:
    """The number of samples with a reading in each bin, and the first and last of them; without any, the
    bin's first and last sample."""
    n = np.add.reduceat(good.astype(np.int64), starts)
    indexes = np.arange(len(good))
    firsts = np.minimum.reduceat(np.where(good, indexes, len(good)), starts)
    lasts = np.maximum.reduceat(np.where(good, indexes, -1), starts)
    return n, np.where(n > 0, firsts, starts), np.where(n > 0, lasts, ends)


def starts_of(times: Whole, width: int) -> Whole:
    """The index of the first time in each bin of `width` microseconds."""
    return np.frombuffer(bin_starts(np.ascontiguousarray(times), width), np.int64)


def _merged(two: Bins) -> Bins:
    """Combines two parts of one bin."""
    spans = combined(Spans(two.number, *(getattr(two, name)[:, None] for name in NAMES)), 1)
    # the times of values; without any, those of all samples
    timed = np.flatnonzero(two.n) if two.n.any() else np.array([0, 1])
    return Bins.of_spans(
        spans,
        first_time=two.first_time[timed[:1]],
        last_time=two.last_time[timed[-1:]],
        alarm=np.array([two.alarm.max()]),
        held=two.held[1:],
        held_severity=two.held_severity[1:],
        held_empty=two.held_empty[1:],
    )
