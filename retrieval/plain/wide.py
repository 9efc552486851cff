"""Signals beside each other: a column for each, aligned on common times."""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from ringlog.retrieval.bins import binned
from ringlog.retrieval.plain.data import cast
from ringlog.retrieval.plain.forms import TIME, formed
from ringlog.retrieval.plain.notes import noted, with_unit
from ringlog.retrieval.samples import Samples, Whole, samples
from ringlog.retrieval.servers import Servers
from ringlog.retrieval.serving.parts import Part
from ringlog.retrieval.serving.refused import Refused
from ringlog.retrieval.signals import Signal
from ringlog.retrieval.spans import Spans, chosen
from ringlog.schema.moments import microseconds, moment_of

HOW = ("last", "mean", "linear")
_ROWS = 50_000  # of an answer, made at once
_SAMPLES = 500_000  # of a signal, about, read at once
_SHORTEST = 0.01  # seconds from sample to sample, where it is not known
_LONGER = 16  # greatest growth of the next part, where samples are few

Span: TypeAlias = tuple[int, int]
"""microseconds since 1970: from the first on and before the second"""


def wide(
    servers: Servers,
    signals: Sequence[Signal],
    start: datetime,
    end: datetime,
    how: str,
    step: int | None,
    form: str,
    spans: Spans | None = None,
    gap: int | None = None,
    *,
    comments: bool = False,
) -> Iterator[Part]:
    """The signals at the multiples of `step` microseconds since 1970 that are from `start` on and before
    `end`; without a step at the times of all their samples.

    `last` is the newest sample at or before a time, `linear` the line between its neighbours (of a
    held value the same as `last`), `mean` that of the samples from a time on and before the next, of a signal
    with states the same as `last`. The first mean is of the samples from `start` on, at the multiple at or
    before it. Null is no reading. With `spans` the times are those in them, of means those whose step is in
    them in part, and the means are of the samples in them. A value that is `gap` microseconds old is null,
    and so is a line between samples further apart. Raises Refused (400) for texts and waveforms that have no
    mean or line, and for means without a step.
    """
    for signal in signals:
        if how != "last" and not signal.is_number:
            raise Refused(400, f"signal {signal.name!r} is {signal.type}: wide={how} is for numbers")
    if how == "mean" and step is None:
        raise Refused(400, "wide=mean needs a step, as step=10s")
    lines = [_Line(servers, signal, "last" if signal.states and how == "mean" else how) for signal in signals]
    fields = [with_unit(line.signal.name, line.kind, line.signal) for line in lines]
    schema = noted(pa.schema([pa.field("time", TIME), *fields]), servers, signals, start, end)
    span = microseconds(start), microseconds(end)
    if how == "mean" and step is not None:
        first = span[0] // step * step
    else:
        first = span[0] if step is None else -(-span[0] // step) * step

    def batches() -> Iterator[pa.RecordBatch]:
        for block in _blocks(signals, (first, span[1]), step, lambda: max(line.held for line in lines)):
            for line in lines:
                if line.how != "mean":
                    line.read(block, span)
            if step is None:
                times = np.unique(np.concatenate([line.times(block) for line in lines]))
            else:
                times = np.arange(block[0], block[1], step)
            # samples of a microsecond have one row
            unit = 1000 if step is None else 1
            columns = [
                line.at(times, unit, gap)
                if line.how != "mean"
                else line.means(block, times, step or 0, span[0], spans)
                for line in lines
            ]
            made = pa.RecordBatch.from_arrays([pa.array(times, TIME), *columns], schema=schema)
            if spans is not None:
                inside = spans.overlap(times, step or 0) if how == "mean" else spans.holds(times)
                made = made.filter(pa.array(inside))
            if len(made):
                yield made

    return formed(form, schema, batches(), comments=comments)


class _Line:
    """A signal, and its samples of a block of time."""

    def __init__(self, servers: Servers, signal: Signal, how: str) -> None:
        self._servers = servers
        self.signal, self.how = signal, how
        self.kind = signal.type.arrow if how == "last" else pa.float64()
        self._parts: list[Samples] = []
        self._began = False
        self._span: Span = (0, 0)

    def read(self, block: Span, span: Span) -> None:
        """Reads the samples of a block, which follows the last one. `span` is the whole time."""
        begin, after = map(moment_of, block)
        held = [part.slice(len(part) - 1, len(part)) for part in self._parts[-1:]]
        found = samples(self._servers, self.signal, begin, after, before=not self._began)
        self._began, self._span = True, span
        self._parts = [*held, *(part for part in found if len(part))]

    @property
    def held(self) -> int:
        """The number of its samples in memory."""
        return sum(map(len, self._parts))

    def times(self, block: Span) -> Whole:
        """Those of its samples in the block."""
        found = [part.time[part.time >= block[0]] for part in self._parts]
        return np.concatenate(found) if found else np.empty(0, np.int64)

    def at(self, times: Whole, unit: int, gap: int | None) -> pa.Array:
        """Its values at these times of the block, null after `gap` microseconds. `unit`: nanoseconds that
        times of samples are multiples of."""
        parts = self._parts
        linear = self.how == "linear" and not self.signal.held
        if linear and len(times):
            parts = [*parts, *self._next(int(times[-1]))]
        if not parts:
            return pa.nulls(len(times), self.kind)
        known_times = np.concatenate([part.nanoseconds for part in parts]) // unit
        times = times * (1000 // unit)
        index = np.searchsorted(known_times, times, side="right") - 1
        longest = np.inf if gap is None else gap * (1000 // unit)
        if not linear:
            values = pa.concat_arrays([cast(part, self.kind) for part in parts])
            return values.take(pa.array(index, mask=(index < 0) | (times - known_times[index] >= longest)))
        numbers = np.concatenate([part.numbers for part in parts])
        following = np.minimum(index + 1, len(known_times) - 1)
        left, right = known_times[index], known_times[following]
        with np.errstate(invalid="ignore", divide="ignore"):
            share = np.where(times == left, 0.0, (times - left) / (right - left))
            # a value itself is given where there is one: the other may be missing
            line = np.where(
                share == 0, numbers[index], numbers[index] * (1 - share) + numbers[following] * share
            )
        outside = (index < 0) | ((times != left) & ((index == following) | (right - left > longest)))
        return pa.array(line, mask=outside | np.isnan(line))

    def _next(self, last: int) -> list[Samples]:
        """The first sample behind the block, where a line leads beyond the last one in it."""
        newest = int(self._parts[-1].nanoseconds[-1]) if self._parts else None
        if newest is None or newest >= last * 1000:
            return []
        begin, end = map(moment_of, (last, self._span[1]))
        return [*samples(self._servers, self.signal, begin, end, limit=1)]

    def means(self, block: Span, times: Whole, step: int, start: int, spans: Spans | None) -> pa.Array:
        """The mean of the samples from each time on and before the next, without those before `start` or
        outside the spans."""
        means = np.full(len(times), np.nan)
        begin, after = map(moment_of, (max(block[0], start), block[1]))
        for bins in binned(chosen(samples(self._servers, self.signal, begin, after), spans), step):
            means[bins.number - times[0] // step] = np.where(bins.n > 0, bins.mean, np.nan)
        return pa.array(means, from_pandas=True)


def rows_of(span: Span, step: int) -> int:
    """How many multiples of a step there are in a time, and before it for means."""
    return max(0, -(-span[1] // step) - span[0] // step)


def _blocks(
    signals: Sequence[Signal], span: Span, step: int | None, held: Callable[[], int]
) -> Iterator[Span]:
    """Parts of a time, so long that few samples are in each; where there is a step, they are multiples of it
    long. `held` is the number of samples in the last part."""
    cycle = min(signal.cycle or _SHORTEST for signal in signals)
    shortest = length = max(1, int(cycle * _SAMPLES * 1_000_000))
    longest = shortest if all(signal.cycle for signal in signals) else _LONGER * shortest
    begin = span[0]
    while begin < span[1]:
        part = length if step is None else step * max(1, min(_ROWS, length // step))
        yield begin, min(begin + part, span[1])
        begin += part
        length = min(longest, 2 * length) if held() < _SAMPLES // 4 else shortest
