"""Collects samples in bins of a whole number of microseconds, counted from 1970-01-01 UTC.

Bins are returned as soon as they are complete, so memory does not grow with the requested time.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ringlog.gateway import bin_starts, whole_figures
from ringlog.history.summaries.spans import Spans, combined
from ringlog.retrieval.samples import INVALID, Samples
from ringlog.retrieval.serving.refused import Refused

SECOND = 1_000_000  # microseconds
MOST_IN_A_BIN = 5_000_000  # samples, if all of a bin are needed at once

Numbers = NDArray[np.float64]
Whole = NDArray[np.int64]


@dataclass(frozen=True)
class Bins:
    """Figures of some bins with samples, in the order of time.

    Samples without a reading, and those whose reading is NaN, do not count: if a bin has no others, n is 0
    and its figures are NaN.
    """

    number: Whole
    """time divided by the width, truncated"""
    n: Whole
    mean: Numbers
    squares: Numbers
    """sum of the squared differences from the mean"""
    low: Numbers
    high: Numbers
    first: Numbers
    last: Numbers
    first_time: Whole
    """microseconds; if n is 0, those of the bin's samples"""
    last_time: Whole
    alarm: Whole
    """the greatest severity recorded with its samples"""
    held: Numbers
    """the value that holds after the bin: that of its last sample, NaN where it has no reading"""
    held_severity: Whole
    empty: NDArray[np.bool_]
    """whether no sample has a reading"""
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
        is_infinite = np.isinf(self.low) | np.isinf(self.high)
        root = np.hypot(np.sqrt(self.squares / self.n), self.mean)
        return np.where(is_infinite, np.inf, root)


def binned(stream: Iterator[Samples], width: int) -> Iterator[Bins]:
    """The bins of `width` microseconds that hold samples."""
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


@dataclass(frozen=True)
class WholeBins(Bins):
    """Bins with a figure that needs all readings of a bin at once; NaN for a bin without readings."""

    figure: Numbers


def whole_bins(stream: Iterator[Samples], width: int, figure: str, most: int) -> Iterator[WholeBins]:
    """The bins that hold samples, with their `figure` (ringlog.gateway.whole_figures).

    Raises Refused (413) for a bin of more than `most` readings or MOST_IN_A_BIN samples.
    """
    for parts in _parts_of_bins(stream, width):
        bins = Bins.joined([*binned(iter(parts), width)])
        times = np.concatenate([part.time for part in parts])
        values = np.concatenate([part.numbers for part in parts])
        good = ~np.isnan(values)
        if bins.n.max() > most:
            raise Refused(413, f"{figure}: a bin has more than {most} samples: use narrower bins")
        # in whole seconds: binNum*intervalSecs + intervalSecs/2 in the appliance's LoessInterpolation
        middles = bins.number * width + width // (2 * SECOND) * SECOND
        made = whole_figures(figure, times[good], values[good], bins.n, middles)
        yield WholeBins(**vars(bins), figure=np.frombuffer(made))


def _parts_of_bins(stream: Iterator[Samples], width: int) -> Iterator[list[Samples]]:
    """The samples in parts, none of which divides a bin. Raises Refused."""
    held: list[Samples] = []
    for part in stream:
        if not len(part):
            continue
        last = int(part.time[-1]) // width * width
        cut = int(np.searchsorted(part.time, last))
        if held and (cut or held[-1].time[-1] < last):
            yield [*held, part.slice(0, cut)]
            held = []
        elif cut:
            yield [part.slice(0, cut)]
        held.append(part.slice(cut, len(part)))
        _demand_room(held)
    if held:
        yield held


def _demand_room(of_a_bin: list[Samples]) -> None:
    if sum(map(len, of_a_bin)) > MOST_IN_A_BIN:
        raise Refused(413, f"a bin has more than {MOST_IN_A_BIN} samples: use narrower bins")


def samples_of_bins(stream: Iterator[Samples], width: int) -> Iterator[tuple[int, list[Samples]]]:
    """Number and samples of each bin with samples. Raises Refused (413) like whole_bins."""
    number: int | None = None
    held: list[Samples] = []
    for part in stream:
        starts = starts_of(part.time, width)
        numbers = (part.time[starts] // width).tolist()
        for found, start, end in zip(numbers, starts, np.append(starts, len(part))[1:], strict=True):
            if number is not None and found != number:
                yield number, held
                held = []
            number = found
            held.append(part.slice(start, end))
            _demand_room(held)
    if number is not None:
        yield number, held


def _bins(part: Samples, width: int) -> Bins:
    values = part.numbers
    starts = starts_of(part.time, width)
    if not len(starts):
        none, whole = np.empty(0), np.empty(0, np.int64)
        no = np.empty(0, np.bool_)
        return Bins(
            whole, whole, none, none, none, none, none, none, whole, whole, whole, none, whole, no, no
        )
    rows = np.diff(np.append(starts, len(part)))
    ends = starts + rows - 1
    n, firsts, lasts, good = rows, starts, ends, ~np.isnan(values)
    if not good.all():
        n, firsts, lasts = _readings(good, starts, ends)
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        mean = np.add.reduceat(np.where(good, values, 0.0), starts) / n
        distances = np.where(good, values - np.repeat(mean, rows), 0.0)
        squares = np.add.reduceat(np.square(distances), starts)
    severities, alarms, missing = part.severities, part.severity, part.missing
    return Bins(
        part.time[starts] // width,
        n,
        mean,
        squares,
        np.fmin.reduceat(values, starts),
        np.fmax.reduceat(values, starts),
        values[firsts],
        values[lasts],
        part.time[firsts],
        part.time[lasts],
        np.zeros(len(starts), np.int64) if alarms is None else np.maximum.reduceat(alarms, starts),
        values[ends],
        np.zeros(len(starts), np.int64) if severities is None else severities[ends],
        np.logical_and.reduceat(missing, starts),
        missing[ends],
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
    none = np.zeros(2, np.int64)
    figures: list[Any] = [two.n, two.low, two.high, two.mean, two.first, two.last, two.squares, none, none]
    spans = combined(Spans(none, *(each[:, None] for each in figures)), 1)
    # the times of values; without any, those of all samples
    timed = np.flatnonzero(two.n) if two.n.any() else np.array([0, 1])
    return Bins(
        number=two.number[:1],
        n=spans.n[:, 0],
        mean=spans.mean[:, 0],
        squares=spans.squares[:, 0],
        low=spans.min[:, 0],
        high=spans.max[:, 0],
        first=spans.first[:, 0],
        last=spans.last[:, 0],
        first_time=two.first_time[timed[:1]],
        last_time=two.last_time[timed[-1:]],
        alarm=np.array([two.alarm.max()]),
        held=two.held[1:],
        held_severity=two.held_severity[1:],
        empty=np.array([two.empty.all()]),
        held_empty=two.held_empty[1:],
    )
