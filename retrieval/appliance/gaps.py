"""Bins without samples, which operators fill with the value before them."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ringlog.retrieval.bins import SECOND, Whole
from ringlog.retrieval.samples import Samples

_BLOCK = 65_536  # events of filled bins made at once


class Gaps:
    """Bins without samples: those between bins with samples, and those up to the end of the interval or the
    present."""

    def __init__(self, width: int, begin: int, until: int | None) -> None:
        self._width = width
        self._first = begin // (SECOND * width)
        self._until = None if until is None else until // (SECOND * width)
        self._number: int | None = None
        self.first_bin = self._first * SECOND * width
        """its begin, in microseconds"""

    def moved(self, stream: Iterator[Samples], begin: int) -> Iterator[Samples]:
        """Moves a sample before `begin` into the bin before the first."""
        before = max((self._first - 1) * SECOND * self._width, 0)
        for part in stream:
            if len(part) and part.time[0] < begin:
                yield replace(part, time=np.where(part.time < begin, before, part.time))
            else:
                yield part

    def filled(self, number: Whole) -> Iterator[tuple[Whole, Whole]]:
        """These bins and the missing bins before each: their numbers, and for each the index of the given bin
        that it is or follows.

        Bins after the last one of the previous call come first, separately, with index -1.
        """
        if self._until is None:
            yield number, np.arange(len(number))
            return
        if self._number is not None:
            for gap in self._ranges(self._number + 1, int(number[0])):
                yield gap, np.full(len(gap), -1)
        for start in range(0, len(number), _BLOCK):
            some = number[start : start + _BLOCK]
            following = number[start + _BLOCK : start + _BLOCK + 1]
            steps = np.diff(np.append(some, following if len(following) else some[-1] + 1))
            total = int(steps.sum())
            if total <= 16 * _BLOCK:
                offsets = np.arange(total) - np.repeat(np.cumsum(steps) - steps, steps)
                source = np.repeat(np.arange(start, start + len(some)), steps)
                yield number[source] + offsets, source
                continue
            for index in range(len(some)):
                yield some[index : index + 1], np.array([start + index])
                for gap in self._ranges(int(some[index]) + 1, int(some[index] + steps[index])):
                    yield gap, np.full(len(gap), start + index)
        self._number = int(number[-1])

    def rest(self) -> Iterator[Whole]:
        """The bins after the last one with samples."""
        if self._until is not None and self._number is not None:
            yield from self._ranges(self._number + 1, self._until + 1)

    @staticmethod
    def _ranges(start: int, end: int) -> Iterator[Whole]:
        for begin in range(start, end, _BLOCK):
            yield np.arange(begin, min(begin + _BLOCK, end), dtype=np.int64)
