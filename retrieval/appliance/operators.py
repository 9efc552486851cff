"""The operators on samples: mean_60, nth_10, optimized_1000, ….

Their names and numbers are the Archiver Appliance's (its user guide, "Processing of data"); bins are counted
from 1970 and have their time in the middle, and the newest sample before the interval has a bin of its own
before the first. One difference: a bin without samples shows the last value before it, not the result of an
earlier bin, since a value stays until it changes (the appliance's issue 111).
"""

from collections.abc import Callable, Iterator
from datetime import datetime

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ringlog.history.signals import Place
from ringlog.retrieval.appliance.events import Events, doubles, of_samples, vectors
from ringlog.retrieval.appliance.gaps import Gaps
from ringlog.retrieval.appliance.pattern import Wanted
from ringlog.retrieval.appliance.regression import loess
from ringlog.retrieval.bins import SECOND, Bins, binned, samples_of_bins, whole_bins
from ringlog.retrieval.refused import Refused
from ringlog.retrieval.samples import Samples, microseconds

Numbers = NDArray[np.float64]
_MOST_OF_LOESS = 5000  # samples in a bin: its time grows with their square
_TWO_WEEKS = 14 * 86_400 * SECOND

# of a bin with samples; of a bin without, given the last value before it
_FIGURES: dict[str, tuple[Callable[[Bins], Numbers], Callable[[float], float]]] = {
    "mean": (lambda bins: bins.mean, lambda last: last),
    "min": (lambda bins: bins.low, lambda last: last),
    "max": (lambda bins: bins.high, lambda last: last),
    "count": (lambda bins: bins.n.astype(float), lambda last: 0.0),
    "std": (lambda bins: bins.deviation, lambda last: 0.0),
    "variance": (lambda bins: bins.variance, lambda last: 0.0),
    "popvariance": (lambda bins: bins.squares / bins.n, lambda last: 0.0),
    "rms": (lambda bins: np.sqrt(bins.squares / bins.n + np.square(bins.mean)), abs),
    "jitter": (lambda bins: np.divide(bins.deviation, bins.mean), lambda last: 0.0),
    "errorbar": (lambda bins: bins.mean, lambda last: last),
}


def processed(
    stream: Iterator[Samples], wanted: Wanted, start: datetime, end: datetime, now: datetime
) -> Iterator[Events]:
    """The events that are wanted of samples from the one before `start` to `end`.

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
    stream = _of_numbers(stream, operator)
    if operator == "deadBand":
        return _dead_band(stream, wanted.number)
    if operator in ("optimized", "optimLastSample"):
        return _optimized(stream, wanted, begin, until, microseconds(now))
    width = int(wanted.number)
    if operator == "twoweek":
        return _two_weeks(stream, begin, until, microseconds(now))
    if operator in ("flyers", "ignoreflyers"):
        return _flyers(_inside(stream, begin), width, wanted.deviations, given=operator == "flyers")
    if operator in ("firstSample", "firstFill", "lastSample", "lastFill"):
        return _picked(stream, operator, width, begin, until, microseconds(now))
    if operator in ("median", "skewness", "kurtosis", "loess"):
        return _of_whole_bins(stream, operator, width, wanted.fill, begin, until, microseconds(now))
    if operator == "caplotbinning":
        return _plot_bins(stream, width)
    if operator == "linear":
        return _linear(stream, width, begin, until)
    return _figures(stream, wanted, width, begin, until, microseconds(now))


def _inside(stream: Iterator[Samples], begin: int) -> Iterator[Samples]:
    """Without the sample before the interval."""
    for part in stream:
        skip = int(np.searchsorted(part.time, begin))
        if skip < len(part):
            yield part.slice(skip, len(part))


def _of_numbers(stream: Iterator[Samples], operator: str) -> Iterator[Samples]:
    for part in stream:
        if pa.types.is_string(part.values.type) or pa.types.is_list(part.values.type):
            raise Refused(
                400, f"{operator} is for numbers, and this signal is {part.place.type}: use nth or ncount"
            )
        yield part


def _nth(stream: Iterator[Samples], every: int) -> Iterator[Events]:
    skip = 0
    for part in stream:
        chosen = np.arange(skip, len(part), every)
        skip = (skip - len(part)) % every if skip < len(part) else skip - len(part)
        if len(chosen):
            yield of_samples(part.taken(chosen))


def _ncount(stream: Iterator[Samples], begin: int) -> Iterator[Events]:
    n = sum(len(part) for part in stream)
    yield Events("int", "", np.array([begin * 1000]), pa.array([n], pa.int32()))


def _dead_band(stream: Iterator[Samples], width: float) -> Iterator[Events]:
    """Samples that are further than `width` from the last one given, and the first."""
    last: float | None = None
    for part in stream:
        chosen = []
        for index, value in enumerate(part.numbers.tolist()):
            if last is None or not abs(value - last) <= width:
                chosen.append(index)
                last = value
        if chosen:
            yield of_samples(part.taken(np.array(chosen, np.int64)))


def _two_weeks(stream: Iterator[Samples], begin: int, until: int, now: int) -> Iterator[Events]:
    """The first sample of each quarter of an hour until two weeks ago, all samples since."""
    ago = now - _TWO_WEEKS
    rest: list[Samples] = []

    def older() -> Iterator[Samples]:
        for part in stream:
            place = int(np.searchsorted(part.time, ago))
            if place:
                yield part.slice(0, place)
            if place < len(part):
                rest.append(part.slice(place, len(part)))
                return

    yield from _picked(older(), "firstSample", 900, begin, until, now)
    yield from map(of_samples, rest)
    yield from map(of_samples, stream)


def _flyers(stream: Iterator[Samples], width: int, deviations: float, given: bool) -> Iterator[Events]:
    """The samples further than so many deviations from the mean of their bin, or the others."""
    for _, parts in samples_of_bins(stream, width * SECOND):
        numbers = np.concatenate([part.numbers for part in parts])
        good = numbers[~np.isnan(numbers)]
        if not len(good):
            continue
        reach = deviations * (float(np.std(good, ddof=1)) if len(good) > 1 else 0.0)
        for part in parts:
            distances = np.abs(part.numbers - good.mean())
            chosen = np.flatnonzero(distances > reach if given else distances <= reach)
            if len(chosen):
                yield of_samples(part.taken(chosen))


def _optimized(
    stream: Iterator[Samples], wanted: Wanted, begin: int, until: int, now: int
) -> Iterator[Events]:
    """The samples themselves when there are few, else five figures a bin (mean, deviation, min, max, n)."""
    points = int(wanted.number)
    held: list[Samples] = []
    rest = iter(stream)
    for part in rest:
        held.append(part)
        if sum(len(each) for each in held) > points:
            break
    else:
        yield from map(of_samples, held)
        return

    def all_of_it() -> Iterator[Samples]:
        while held:
            yield held.pop(0)
        yield from rest

    width = max(1, (until - begin) // SECOND // points)
    stats = Wanted(wanted.signal, "stats" if wanted.operator == "optimized" else "stats6", width, wanted.fill)
    yield from _figures(all_of_it(), stats, width, begin, until, now)


def _figures(
    stream: Iterator[Samples], wanted: Wanted, width: int, begin: int, until: int, now: int
) -> Iterator[Events]:
    place, stream = _place_of(stream)
    if place is None:
        return
    gaps = Gaps(width, begin, min(until, now) if wanted.fill else None)
    for bins in binned(gaps.moved(stream), width * SECOND):
        for number, got, last in gaps.filled(bins.number, bins.last):
            yield _events_of_bins(place, wanted.operator, width, number, got, last, bins)
    for number, last in gaps.rest():
        yield _events_of_bins(place, wanted.operator, width, number, None, last, None)


def _events_of_bins(
    place: Place,
    operator: str,
    width: int,
    number: NDArray[np.int64],
    got: NDArray[np.int64] | None,
    last: Numbers,
    bins: Bins | None,
) -> Events:
    """Events of bins: `got` says which of `bins` each is, -1 or None for none."""

    def figure(of: Callable[[Bins], Numbers], empty: Callable[[Numbers], Numbers]) -> Numbers:
        if bins is None or got is None:
            return empty(last)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(got >= 0, of(bins)[np.maximum(got, 0)], empty(last))

    times = _middle(number, width)
    nothing, same = np.zeros_like, np.copy
    if operator in ("stats", "stats6"):
        columns = [
            figure(lambda b: b.mean, same),
            figure(lambda b: b.deviation, nothing),
            figure(lambda b: b.low, same),
            figure(lambda b: b.high, same),
            figure(lambda b: b.n.astype(float), nothing),
        ]
        if operator == "stats6":
            columns.append(figure(lambda b: b.last, same))
        return vectors(place, times, columns)
    of, empty_one = _FIGURES[operator]
    made = doubles(place, times, figure(of, np.vectorize(empty_one, otypes=[float])))
    if operator == "errorbar":
        deviation = figure(lambda b: b.deviation, nothing)
        return Events(
            made.kind,
            made.unit,
            made.nanoseconds,
            made.values,
            {"stdz": pa.array(deviation, pa.float64()).cast(pa.string())},
        )
    return made


def _picked(
    stream: Iterator[Samples], operator: str, width: int, begin: int, until: int, now: int
) -> Iterator[Events]:
    """The first or last sample of each bin, at its own time; …Fill puts it in the middle and fills gaps."""
    place, stream = _place_of(stream)
    if place is None:
        return
    first, fill = operator.startswith("first"), operator.endswith("Fill")
    gaps = Gaps(width, begin, min(until, now) if fill else None)
    source = gaps.moved(stream) if fill else stream
    for bins in binned(source, width * SECOND):
        chosen = bins.first if first else bins.last
        if not fill:
            yield doubles(place, (bins.first_time if first else bins.last_time) * 1000, chosen)
            continue
        for number, got, last in gaps.filled(bins.number, chosen):
            values = np.where(got >= 0, chosen[np.maximum(got, 0)], last)
            yield doubles(place, _middle(number, width), values)
    for number, last in gaps.rest():
        yield doubles(place, _middle(number, width), last)


def _of_whole_bins(
    stream: Iterator[Samples], operator: str, width: int, fill: bool, begin: int, until: int, now: int
) -> Iterator[Events]:
    place, stream = _place_of(stream)
    if place is None:
        return
    gaps = Gaps(width, begin, min(until, now) if fill else None)
    of = {"median": _median, "skewness": _skewness, "kurtosis": _kurtosis}
    of_a_level = operator in ("median", "loess")
    for number, times, values in whole_bins(gaps.moved(stream), width * SECOND):
        figure = _smooth(number, times, values, width) if operator == "loess" else of[operator](values)
        for numbers, got, last in gaps.filled(np.array([number]), values[-1:]):
            empty = last if of_a_level else np.zeros(len(last))
            yield doubles(place, _middle(numbers, width), np.where(got >= 0, figure, empty))
    for numbers, last in gaps.rest():
        yield doubles(place, _middle(numbers, width), last if of_a_level else np.zeros(len(last)))


def _smooth(number: int, times: NDArray[np.int64], values: Numbers, width: int) -> float:
    """Raises Refused (413) for a bin with too many samples."""
    if len(times) > _MOST_OF_LOESS:
        raise Refused(413, f"loess: a bin has more than {_MOST_OF_LOESS} samples: use narrower bins")
    seconds = (times - number * width * SECOND) / SECOND
    return loess(seconds, values, width / 2)


def _median(values: Numbers) -> float:
    return float(np.median(values))


def _skewness(values: Numbers) -> float:
    """of a sample, as in Apache Commons Math: n / (n-1) / (n-2) Σ ((x - mean) / std)³"""
    n = len(values)
    deviation = float(np.std(values, ddof=1)) if n > 2 else 0.0
    if deviation == 0.0:
        return 0.0 if n > 2 else float("nan")
    return float(n / (n - 1) / (n - 2) * (((values - values.mean()) / deviation) ** 3).sum())


def _kurtosis(values: Numbers) -> float:
    """of a sample, less that of a normal distribution, as in Apache Commons Math"""
    n = len(values)
    deviation = float(np.std(values, ddof=1)) if n > 3 else 0.0
    if deviation == 0.0:
        return 0.0 if n > 3 else float("nan")
    fourth = float((((values - values.mean()) / deviation) ** 4).sum())
    return n * (n + 1) / (n - 1) / (n - 2) / (n - 3) * fourth - 3 * (n - 1) ** 2 / (n - 2) / (n - 3)


def _plot_bins(stream: Iterator[Samples], width: int) -> Iterator[Events]:
    """At most four events a bin: first, least, greatest, last; the middle two midway between the others."""
    place, stream = _place_of(stream)
    if place is None:
        return
    for bins in binned(stream, width * SECOND):
        middle = (bins.first_time + bins.last_time) // 2
        times = np.column_stack([bins.first_time, middle, middle, bins.last_time])
        values = np.column_stack([bins.first, bins.low, bins.high, bins.last])
        keep = np.column_stack([bins.n > 0, bins.n > 2, bins.n > 2, bins.n > 1])
        yield doubles(place, times[keep] * 1000, values[keep])


def _linear(stream: Iterator[Samples], width: int, begin: int, until: int) -> Iterator[Events]:
    """The value on the line between its neighbours, in the middle of each bin."""
    place, stream = _place_of(stream)
    if place is None:
        return
    step = SECOND * width
    half = step // 2

    def middle_after(time: int) -> int:
        return -(-(time - half) // step) * step + half

    next_point = middle_after(begin)
    held_time, held_value = np.empty(0, np.int64), np.empty(0)
    for part in stream:
        numbers = part.numbers
        good = ~np.isnan(numbers)
        time = np.append(held_time, part.time[good])
        value = np.append(held_value, numbers[good])
        if not len(time):
            continue
        next_point = max(next_point, middle_after(int(time[0])))
        points = np.arange(next_point, min(int(time[-1]), until) + 1, step, dtype=np.int64)
        if len(points):
            yield doubles(place, points * 1000, np.interp(points, time, value))
            next_point = int(points[-1]) + step
        held_time, held_value = time[-1:], value[-1:]


def _middle(number: NDArray[np.int64], width: int) -> NDArray[np.int64]:
    """Nanoseconds of the middle of bins."""
    return number * (width * 1_000_000_000) + width * 500_000_000


def _place_of(stream: Iterator[Samples]) -> tuple[Place | None, Iterator[Samples]]:
    """The place of the first samples, and all of them."""
    first = next(stream, None)
    if first is None:
        return None, stream

    def all_of_it() -> Iterator[Samples]:
        yield first
        yield from stream

    return first.place, all_of_it()
