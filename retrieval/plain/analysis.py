"""Histogram and spectrum of signals, as short as a picture of them."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, TypeAlias

import numpy as np
import orjson
import pyarrow as pa
from numpy.typing import NDArray

from ringlog.retrieval.plain.notes import described
from ringlog.retrieval.plain.trends import trend
from ringlog.retrieval.servers import Servers
from ringlog.retrieval.signals import Signal
from ringlog.retrieval.spans import Spans

MOST = 1_000_000
"""values of a request; of more samples they are the means of a trend's points"""
_LEAST = 16
"""values of a spectrum"""

Numbers: TypeAlias = NDArray[np.float64]


def histogram(
    servers: Servers,
    signals: Sequence[Signal],
    start: datetime,
    end: datetime,
    bins: int,
    spans: Spans | None = None,
    *,
    log: bool,
) -> Iterator[bytes]:
    """Histograms of the signals in JSON: `edges` of the bins, which all signals have in common, and
    `counts`; with `spans` of the values in them.

    With `log` the bins are equally wide in the logarithm, and values at or below 0 are `outside`. Infinite
    values do not count.
    """
    read = [_values(servers, signal, start, end, MOST // len(signals), spans) for signal in signals]
    shown = [values[values > 0] if log else values for _, _, values in read]
    edges = _edges([values for values in shown if len(values)], bins, log=log)

    def figures(number: int) -> dict[str, Any]:
        width, _, values = read[number]
        return {
            "width": width / 1e6,
            "n": len(values),
            "mean": values.mean() if len(values) else None,
            "deviation": values.std() if len(values) else None,
            "outside": len(values) - len(shown[number]),
            "counts": np.histogram(shown[number], edges)[0] if len(values) else [],
        }

    content = [described(signal) | figures(number) for number, signal in enumerate(signals)]
    yield _json({"edges": edges, "signals": content})


def spectrum(
    servers: Servers, signals: Sequence[Signal], start: datetime, end: datetime, points: int, *, log: bool
) -> Iterator[bytes]:
    """Spectra of the signals in JSON: `frequency` in Hz and `amplitude`; a sine of amplitude 1 has a peak
    of 1.

    Of more than `points` frequencies, the one with the greatest amplitude in each of at most so many bands is
    returned, which are equally wide, with `log` in the logarithm. Fewer than 16 values have no spectrum.
    """

    content = []
    for signal in signals:
        width, times, values = _values(servers, signal, start, end, MOST // len(signals))
        frequency, amplitude = _amplitudes(times, values)
        if len(frequency) > points:
            kept = _peaks(amplitude, points, log=log)
            frequency, amplitude = frequency[kept], amplitude[kept]
        figures = {"width": width / 1e6, "n": len(values), "frequency": frequency, "amplitude": amplitude}
        content.append(described(signal) | figures)
    yield _json({"signals": content})


def _json(content: dict[str, Any]) -> bytes:
    return orjson.dumps(content, option=orjson.OPT_SERIALIZE_NUMPY) + b"\n"


def _values(
    servers: Servers, signal: Signal, start: datetime, end: datetime, points: int, spans: Spans | None = None
) -> tuple[int, NDArray[np.int64], Numbers]:
    """The width of a trend's points in microseconds, the begin of each, and the finite means of them."""
    means = trend(servers, signal, start, end, points, spans)
    values = means.table["mean"].to_numpy(zero_copy_only=False)
    times = means.table["time"].cast(pa.int64()).to_numpy(zero_copy_only=False)
    good = np.isfinite(values)
    return means.width, times[good], values[good]


def _edges(values: Sequence[Numbers], bins: int, *, log: bool) -> Numbers:
    """The edges of bins from the least to the greatest of all values; none without values."""
    if not values:
        return np.empty(0)
    low, high = min(some.min() for some in values), max(some.max() for some in values)
    if low == high:
        low, high = sorted((low, low * 0.95)) if low else (-1.0, 1.0)
    share = np.linspace(0, 1, bins + 1)
    # a weighted mean, because a difference of large values is infinite
    edges = (
        np.exp(np.log(low) * (1 - share) + np.log(high) * share) if log else low * (1 - share) + high * share
    )
    edges[0], edges[-1] = low, high
    return np.maximum.accumulate(np.minimum(edges, high))


def _amplitudes(times: NDArray[np.int64], values: Numbers) -> tuple[Numbers, Numbers]:
    """Frequencies in Hz and amplitudes: values are interpolated linearly on an even raster, their mean is
    subtracted, and a Hann window applied."""
    if len(values) < _LEAST or times[-1] <= times[0]:
        return np.empty(0), np.empty(0)
    n = 2 ** int(np.log2(len(values)))
    seconds = (times - times[0]) / 1e6
    even = np.interp(np.linspace(0, seconds[-1], n), seconds, values)
    # the window halves the amplitude
    amplitude = np.abs(np.fft.rfft((even - even.mean()) * np.hanning(n)))[1 : n // 2] * 4 / n
    return np.arange(1, n // 2) * (n - 1) / (n * seconds[-1]), amplitude


def _peaks(amplitude: Numbers, bands: int, *, log: bool) -> NDArray[np.int64]:
    """The index of the greatest amplitude of each band."""
    n = len(amplitude)
    begins = np.geomspace(1, n + 1, bands + 1)[:-1] - 1 if log else np.arange(bands) * n / bands
    starts = np.unique(begins.astype(np.int64))
    ends = np.append(starts[1:], n)
    return np.array([start + amplitude[start:end].argmax() for start, end in zip(starts, ends, strict=True)])
