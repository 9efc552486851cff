"""The operators on samples: mean_60, nth_10, optimized_1000, ….

Their names and numbers are the Archiver Appliance's (its user guide, "Processing of data"); bins are counted
from 1970 and have their time in the middle, and the newest sample before the interval has a bin of its own
before the first. A bin has the greatest severity that was recorded with its samples, as in the appliance
(SummaryStatsPostProcessor: of its events). A row without a reading is not an event there, so it does not make
a bin with readings INVALID; a bin of such rows only has no value and is INVALID. One difference: a bin
without samples shows the last value before it with its severity, not the result of an earlier bin, because a
value holds until it changes (the appliance's issue 111).
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from itertools import chain, repeat
from typing import TypeVar

import numpy as np
import pyarrow as pa

from ringlog.history.signals import Location
from ringlog.retrieval.appliance.events import Events, doubles, of_samples, vectors
from ringlog.retrieval.appliance.gaps import Gaps
from ringlog.retrieval.appliance.pattern import SignalRequest
from ringlog.retrieval.bins import (
    MOST_IN_A_BIN,
    SECOND,
    Bins,
    Numbers,
    Whole,
    WholeBins,
    binned,
    parts_of_bins,
    starts_of,
    whole_bins,
)
from ringlog.retrieval.samples import Samples
from ringlog.retrieval.serving.refused import Refused
from ringlog.retrieval.summarised import Summarised
from ringlog.schema.column_type import ColumnType, Kind
from ringlog.schema.moments import microseconds

Part = TypeVar("Part", Bins, Samples)
_TWO_WEEKS = 14 * 86_400 * SECOND

Figure = tuple[Callable[[Bins], Numbers], Callable[[Numbers], Numbers]]
# for bins with samples; for bins without samples, given the last value before each
_FIGURES: dict[str, Figure] = {
    "mean": (lambda bins: bins.mean, np.copy),
    "min": (lambda bins: bins.min, np.copy),
    "max": (lambda bins: bins.max, np.copy),
    "count": (lambda bins: bins.n.astype(float), np.zeros_like),
    "std": (lambda bins: bins.deviation, np.zeros_like),
    "variance": (lambda bins: bins.variance, np.zeros_like),
    "popvariance": (lambda bins: bins.squares / bins.n, np.zeros_like),
    "rms": (lambda bins: bins.rms, np.abs),
    "jitter": (lambda bins: np.divide(bins.deviation, bins.mean), np.zeros_like),
    "errorbar": (lambda bins: bins.mean, np.copy),
    "median": (lambda bins: _of_all(bins), np.copy),
    "skewness": (lambda bins: _of_all(bins), np.zeros_like),
    "kurtosis": (lambda bins: _of_all(bins), np.zeros_like),
    "loess": (lambda bins: _of_all(bins), np.copy),
}
_MOST_OF_BINS = {
    **dict.fromkeys(("median", "skewness", "kurtosis"), MOST_IN_A_BIN),
    "loess": 5000,  # its time grows with the square of a bin's samples
}
"""figures of all readings of a bin at once, and the most of these"""
_STATS: list[Figure] = [
    _FIGURES["mean"],
    _FIGURES["std"],
    _FIGURES["min"],
    _FIGURES["max"],
    _FIGURES["count"],
    (lambda bins: bins.last, np.copy),
]


FIGURES = frozenset(
    [*_FIGURES.keys() - _MOST_OF_BINS.keys(), "stats", "stats6", "optimized", "optimLastSample"]
)
"""operators that can be computed from summaries"""

Moved = Callable[[Iterator[Samples], int], Iterator[Samples]]
Summaries = Callable[[int, Moved], Summarised | None]
"""arguments: the width of bins, and the function that puts the sample before the interval into a bin"""


Thinned = Callable[..., Iterator[Samples] | None]
"""arguments: the width of bins; with `last` the result contains their last samples, otherwise their first"""


def processed(
    stream: Iterator[Samples],
    wanted: SignalRequest,
    start: datetime,
    end: datetime,
    now: datetime,
    summaries: Summaries = lambda width, moved: None,
    thinned: Thinned = lambda width, *, last: None,
) -> Iterator[Events]:
    """The events that the operator makes of the samples from the one before `start` to `end`: from
    `summaries` if the operator is one of FIGURES and they suffice, from `thinned` samples if it takes one of
    each bin.

    Raises Refused (400) for figures of text.
    """
    operator = wanted.operator
    if operator == "":
        return (of_samples(part) for part in stream)
    begin, until = microseconds(start), microseconds(end)
    if operator == "nth":
        return _nth(_inside(stream, begin), int(wanted.number))
    if operator == "ncount":
        return _ncount(_inside(stream, begin), begin)
    width = int(wanted.number)
    if operator in ("firstSample", "lastSample", "firstFill", "lastFill"):
        stream = thinned(width, last=operator.startswith("last")) or stream
    if operator in ("firstSample", "lastSample"):
        return map(of_samples, _picked(stream, width, first=operator == "firstSample"))
    if operator in ("firstFill", "lastFill"):
        gaps = Gaps(width, begin, min(until, microseconds(now)))
        return _filled(stream, gaps, width, first=operator == "firstFill")
    stream = _of_numbers(stream, operator)
    if operator == "deadBand":
        return _dead_band(stream, wanted.number)
    if operator in ("optimized", "optimLastSample"):
        return _optimized(stream, wanted, begin, until, microseconds(now), summaries)
    if operator == "twoweek":
        return _two_weeks(stream, microseconds(now))
    if operator in ("flyers", "ignoreflyers"):
        return _flyers(stream, width, wanted.deviations, given=operator == "flyers")
    if operator == "caplotbinning":
        return _plot_bins(stream, width)
    if operator == "linear":
        return _linear(stream, width, wanted.fill, begin, until)
    found = None if operator in _MOST_OF_BINS else summaries(width, Gaps(width, begin, None).moved)
    return _figures(stream, wanted, width, begin, until, microseconds(now), found)


def _inside(stream: Iterator[Samples], begin: int) -> Iterator[Samples]:
    """Removes the sample before the interval."""
    for part in stream:
        skip = int(np.searchsorted(part.time, begin))
        if skip < len(part):
            yield part.slice(skip, len(part))


def _of_numbers(stream: Iterator[Samples], operator: str) -> Iterator[Samples]:
    for part in stream:
        if pa.types.is_string(part.values.type) or pa.types.is_list(part.values.type):
            raise Refused(
                400, f"{operator} is for numbers, and this signal is {part.location.type}: use nth or ncount"
            )
        yield part


def _nth(stream: Iterator[Samples], every: int) -> Iterator[Events]:
    skip = 0
    for part in stream:
        chosen = np.arange(skip, len(part), every)
        skip = (skip - len(part)) % every if skip < len(part) else skip - len(part)
        if len(chosen):
            yield of_samples(part.at(chosen))


def _ncount(stream: Iterator[Samples], begin: int) -> Iterator[Events]:
    n = sum(len(part) for part in stream)
    yield Events(ColumnType(Kind.INT), "", np.array([begin * 1000]), pa.array([n], pa.int32()))


def _dead_band(stream: Iterator[Samples], width: float) -> Iterator[Events]:
    """The first sample, and samples that differ from the last returned one by more than `width` or in
    severity."""
    last: tuple[float, int] | None = None
    for part in stream:
        severities = part.severities
        pairs = zip(
            part.numbers.tolist(), repeat(0) if severities is None else severities.tolist(), strict=False
        )
        chosen = []
        for index, (value, severity) in enumerate(pairs):
            if last is None or severity != last[1] or not abs(value - last[0]) <= width:
                chosen.append(index)
                last = value, severity
        if chosen:
            yield of_samples(part.at(np.array(chosen, np.int64)))


def _two_weeks(stream: Iterator[Samples], now: int) -> Iterator[Events]:
    """The first sample of each quarter of an hour until two weeks ago, all samples since."""
    ago = now - _TWO_WEEKS
    rest: list[Samples] = []

    def older() -> Iterator[Samples]:
        for part in stream:
            index = int(np.searchsorted(part.time, ago))
            if index:
                yield part.slice(0, index)
            if index < len(part):
                rest.append(part.slice(index, len(part)))
                return

    yield from map(of_samples, _picked(older(), 900, first=True))
    yield from map(of_samples, rest)
    yield from map(of_samples, stream)


def _flyers(stream: Iterator[Samples], width: int, deviations: float, given: bool) -> Iterator[Events]:
    """The samples further than this many deviations from the mean of their bin, or the others; the sample
    before the interval counts like the others (the appliance's Fliers and IgnoreFliers)."""
    for parts, times, numbers in parts_of_bins(stream, width * SECOND):
        distances, reach = np.full(len(numbers), np.nan), np.empty(len(numbers))
        starts = starts_of(times, width * SECOND)
        for start, end in zip(starts, np.append(starts, len(numbers))[1:], strict=True):
            of_bin = numbers[start:end]
            good = of_bin[~np.isnan(of_bin)]
            if len(good):
                distances[start:end] = np.abs(of_bin - good.mean())
                reach[start:end] = deviations * (float(np.std(good, ddof=1)) if len(good) > 1 else 0.0)
        chosen = distances > reach if given else distances <= reach
        for part, own in zip(parts, np.split(chosen, np.cumsum([len(part) for part in parts])), strict=False):
            if own.any():
                yield of_samples(part.at(np.flatnonzero(own)))


def _optimized(
    stream: Iterator[Samples], wanted: SignalRequest, begin: int, until: int, now: int, summaries: Summaries
) -> Iterator[Events]:
    """The samples themselves when there are few, otherwise five figures per bin (mean, deviation, min, max,
    n)."""
    points = int(wanted.number)
    width = max(1, (until - begin) // SECOND // points)
    stats = SignalRequest(
        wanted.signal, "stats" if wanted.operator == "optimized" else "stats6", width, wanted.fill
    )
    found = summaries(width, Gaps(width, begin, None).moved)
    if found is not None and found.samples > points:
        yield from _figures(stream, stats, width, begin, until, now, found)
        return
    held: list[Samples] = []
    rest = iter(stream)
    for part in rest:
        held.append(part)
        if sum(len(each) for each in held) > points:
            break
    else:
        yield from map(of_samples, held)
        return
    yield from _figures(chain(held, rest), stats, width, begin, until, now, None)


def _figures(
    stream: Iterator[Samples],
    wanted: SignalRequest,
    width: int,
    begin: int,
    until: int,
    now: int,
    found: Summarised | None,
) -> Iterator[Events]:
    """From the bins found in summaries, otherwise from the samples."""
    gaps = Gaps(width, begin, min(until, now) if wanted.fill else None)
    if found is not None:
        location, all_bins = found.location, found.bins
    else:
        first, stream = _location_of(stream)
        if first is None:
            return
        location, all_bins = first, _bins(gaps.moved(stream, begin), wanted.operator, width * SECOND)
    numbered = ((bins, bins.number) for bins in all_bins)
    for bins, number, source in _with_gaps(numbered, gaps):
        middle = number * (width * 1_000_000_000) + width * 500_000_000  # nanoseconds
        yield _events_of_bins(location, wanted.operator, middle, number, source, bins)


def _bins(stream: Iterator[Samples], operator: str, width: int) -> Iterator[Bins]:
    if operator in _MOST_OF_BINS:
        return whole_bins(stream, width, operator, _MOST_OF_BINS[operator])
    return binned(stream, width)


def _of_all(bins: Bins) -> Numbers:
    assert isinstance(bins, WholeBins)
    return bins.figure


def _with_gaps(stream: Iterator[tuple[Part, Whole]], gaps: Gaps) -> Iterator[tuple[Part, Whole, Whole]]:
    """Yields each part of the bins with, in pieces, the numbers of all bins up to its last one, and the index
    of the bin that each is or follows."""
    before: Part | None = None
    for part, numbers in stream:
        for number, source in gaps.filled(numbers):
            if before is not None and source[0] < 0:
                yield before, number, np.zeros(len(number), np.int64)
            else:
                yield part, number, source
        before = part.slice(len(part) - 1, len(part))
    for number in gaps.rest():
        if before is not None:
            yield before, number, np.zeros(len(number), np.int64)


def _events_of_bins(
    location: Location, operator: str, nanoseconds: Whole, number: Whole, source: Whole, bins: Bins
) -> Events:
    """Events of the bins of these numbers: `source` gives the index in `bins` of the bin that each is or
    follows."""
    own = bins.number[source] == number
    last = bins.held[source]

    def figure(of: Callable[[Bins], Numbers], empty: Callable[[Numbers], Numbers]) -> Numbers:
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(own, of(bins)[source], empty(last))

    if operator in ("stats", "stats6"):
        columns = [figure(*each) for each in (_STATS if operator == "stats6" else _STATS[:5])]
        events = vectors(location, nanoseconds, columns)
    else:
        missing = np.where(own, bins.empty[source], bins.held_empty[source])
        events = doubles(location, nanoseconds, figure(*_FIGURES[operator]), missing)
    if operator == "errorbar":
        deviation = pa.array(figure(*_FIGURES["std"]), pa.float64(), from_pandas=True)
        events = replace(events, fields={"stdz": deviation.cast(pa.string()).fill_null("NaN")})
    severity = np.where(own, bins.severity[source], bins.held_severity[source])
    return replace(events, severity=severity if severity.any() else None)


def _picked(stream: Iterator[Samples], width: int, *, first: bool) -> Iterator[Samples]:
    """The first or last sample of each bin, of any type."""
    held: Samples | None = None
    number = -1
    for part in stream:
        starts = starts_of(part.time, width * SECOND)
        if not len(starts):
            continue
        bins = part.time[starts] // (width * SECOND)
        if first:
            chosen = starts[int(bins[0]) == number :]
            if len(chosen):
                yield part.at(chosen)
        else:
            if held is not None and bins[0] != number:
                yield held
            if len(starts) > 1:
                yield part.at(starts[1:] - 1)
            held = part.slice(len(part) - 1, len(part))
        number = int(bins[-1])
    if held is not None:
        yield held


def _filled(stream: Iterator[Samples], gaps: Gaps, width: int, *, first: bool) -> Iterator[Events]:
    """The first or last sample of each bin, at the middle of the bin; for bins without samples the sample
    before."""
    # a sample before the interval but in its first bin belongs to that bin
    chosen = _picked(gaps.moved(stream, gaps.first_bin), width, first=first)
    made = ((part, part.time // (width * SECOND)) for part in chosen)
    for part, number, source in _with_gaps(made, gaps):
        # whole seconds, also for odd widths: binNum * intervalSecs + intervalSecs / 2 in the appliance's
        # FillsCollectorEventStream; only figures (SummaryStatsCollectorEventStream) have the half second
        seconds = number * width + width // 2
        yield replace(of_samples(part.at(source)), nanoseconds=seconds * 1_000_000_000)


def _plot_bins(stream: Iterator[Samples], width: int) -> Iterator[Events]:
    """At most four events per bin: one or two samples have their own times, in whole seconds; of more the
    first, minimum, maximum and last are at the begin, a quarter, half and three quarters of the bin
    (SampleLocation in the appliance's CAPlotBinning)."""
    location, stream = _location_of(stream)
    if location is None:
        return
    quarters = np.arange(4) * width // 4
    for bins in binned(stream, width * SECOND):
        few = np.column_stack([bins.first_time, bins.first_time, bins.first_time, bins.last_time]) // SECOND
        many = bins.number[:, None] * width + quarters
        seconds = np.where(bins.n[:, None] > 2, many, few)
        values = np.column_stack([bins.first, bins.min, bins.max, bins.last])
        keep = np.column_stack([bins.n > 0, bins.n > 2, bins.n > 2, bins.n > 1])
        events = doubles(location, seconds[keep] * 1_000_000_000, values[keep])
        severity = np.repeat(bins.severity, keep.sum(axis=1)) if bins.severity.any() else None
        yield replace(events, severity=severity)


def _linear(stream: Iterator[Samples], width: int, fill: bool, begin: int, until: int) -> Iterator[Events]:
    """The value at the middle of each bin, on the line between the neighbouring readings; with `fill` also
    for bins without samples.

    Its severity is the greatest one recorded with the bin's samples, as in the appliance's
    LinearInterpolation, a SummaryStatsPostProcessor; without samples it is the severity of the sample before.
    """
    location, stream = _location_of(stream)
    if location is None:
        return
    step = SECOND * width
    half = step // 2

    def middle_after(time: int) -> int:
        return -(-(time - half) // step) * step + half

    next_point = middle_after(begin)
    none = np.empty(0, np.int64)
    # readings, and the severities of all samples: of the incomplete bins, and the one before them
    time, value = none, np.empty(0)
    alarmed, severity = none, none
    for part in chain(stream, [None]):
        if part is not None and len(part):
            numbers = part.numbers
            good = ~np.isnan(numbers)
            time, value = np.append(time, part.time[good]), np.append(value, numbers[good])
            alarmed = np.append(alarmed, part.time)
            severity = np.append(
                severity, np.zeros(len(part), np.int64) if part.severity is None else part.severity
            )
        if not len(time):
            continue
        next_point = max(next_point, middle_after(int(time[0])))
        last = min(int(time[-1]), until)
        if part is not None:
            # the last sample's bin may get more samples
            last = min(last, int(alarmed[-1]) // step * step - 1)
        points = np.arange(next_point, last + 1, step, dtype=np.int64)
        if not len(points):
            continue
        next_point = int(points[-1]) + step
        if not fill:
            points = points[np.isin(points // step, time // step)]
        events = doubles(location, points * 1000, np.interp(points, time, value))
        severities = _greatest(alarmed, severity, points // step * step, step)
        yield replace(events, severity=severities if severities.any() else None)
        complete = next_point - half
        kept = max(int(np.searchsorted(time, complete)) - 1, 0)
        time, value = time[kept:], value[kept:]
        kept = max(int(np.searchsorted(alarmed, complete)) - 1, 0)
        alarmed, severity = alarmed[kept:], severity[kept:]


def _greatest(time: Whole, severity: Whole, starts: Whole, width: int) -> Whole:
    """The greatest severity from each start to the end of its width; without samples there, the severity of
    the sample before."""
    first, end = np.searchsorted(time, starts), np.searchsorted(time, starts + width)
    before = np.append(0, severity)[first]
    within = np.maximum.reduceat(np.append(severity, 0), np.column_stack([first, end]).ravel())[::2]
    return np.where(end > first, within, before)


def _location_of(stream: Iterator[Samples]) -> tuple[Location | None, Iterator[Samples]]:
    """The location of the first samples, and all samples."""
    first = next(stream, None)
    return (None, stream) if first is None else (first.location, chain([first], stream))
