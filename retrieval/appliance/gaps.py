"""Bins without samples, which operators fill with the value before them."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ringlog.retrieval.bins import SECOND
from ringlog.retrieval.samples import Samples

Numbers = NDArray[np.float64]
_BLOCK = 65_536  # events of filled bins made at once


class Gaps:
    """Bins without samples: those between, and those to the end of the interval or to now."""

    def __init__(self, width: int, begin: int, until: int | None) -> None:
        self._width = width
        self._first = begin // (SECOND * width)
        self._begin = begin
        self._until = None if until is None else until // (SECOND * width)
        self._number: int | None = None
        self._last = np.nan

    def moved(self, stream: Iterator[Samples]) -> Iterator[Samples]:
        """The sample before the interval goes into the bin before the first."""
        before = (self._first - 1) * SECOND * self._width
        for part in stream:
            if len(part) and part.time[0] < self._begin:
                time = np.where(part.time < self._begin, max(before, 0), part.time)
                yield Samples(part.place, time, part.values)
            else:
                yield part

    def filled(
        self, number: NDArray[np.int64], last: Numbers
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], Numbers]]:
        """These bins with those missing before each: number, index or -1, and the last value before or in
        it.
        """
        if self._until is None:
            yield number, np.arange(len(number)), last
            return
        if self._number is not None:
            for gap in self._ranges(self._number + 1, int(number[0])):
                yield gap, np.full(len(gap), -1), np.full(len(gap), self._last)
        for start in range(0, len(number), _BLOCK):
            some, values = number[start : start + _BLOCK], last[start : start + _BLOCK]
            following = number[start + _BLOCK : start + _BLOCK + 1]
            steps = np.diff(np.append(some, following if len(following) else some[-1] + 1))
            total = int(steps.sum())
            if total <= 16 * _BLOCK:
                offsets = np.arange(total) - np.repeat(np.cumsum(steps) - steps, steps)
                origin = np.repeat(np.arange(start, start + len(some)), steps)
                yield (
                    np.repeat(some, steps) + offsets,
                    np.where(offsets == 0, origin, -1),
                    np.repeat(values, steps),
                )
                continue
            for index in range(len(some)):
                yield some[index : index + 1], np.array([start + index]), values[index : index + 1]
                for gap in self._ranges(int(some[index]) + 1, int(some[index] + steps[index])):
                    yield gap, np.full(len(gap), -1), np.full(len(gap), values[index])
        self._number, self._last = int(number[-1]), float(last[-1])

    def rest(self) -> Iterator[tuple[NDArray[np.int64], Numbers]]:
        """The bins after the last one with samples."""
        if self._until is not None and self._number is not None:
            for gap in self._ranges(self._number + 1, self._until + 1):
                yield gap, np.full(len(gap), self._last)

    @staticmethod
    def _ranges(start: int, end: int) -> Iterator[NDArray[np.int64]]:
        for begin in range(start, end, _BLOCK):
            yield np.arange(begin, min(begin + _BLOCK, end), dtype=np.int64)
