"""Numbers of spans: number n of a level begins n · level seconds after 1970."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta

import numpy as np

from ringlog.schema.moments import EPOCH


def begin_at(moment: datetime, level: int) -> datetime:
    """The begin of the span of a time."""
    return EPOCH + timedelta(seconds=number_at(moment, level) * level)


def number_at(moment: datetime, level: int) -> int:
    """The number of the span of a time."""
    return (moment.astimezone(UTC) - EPOCH) // timedelta(seconds=level)


def unique(numbers: Iterable[int]) -> np.ndarray:
    return np.unique(np.array([*numbers], np.int64))


def runs_of(numbers: np.ndarray, near: int = 1) -> Iterator[tuple[int, int]]:
    """Runs of numbers with distances of at most `near`, as the first number and the one after the last."""
    if len(numbers):
        for run in np.split(numbers, np.flatnonzero(np.diff(numbers) > near) + 1):
            yield int(run[0]), int(run[-1]) + 1


def times_of(numbers: np.ndarray, level: int) -> list[tuple[datetime, datetime]]:
    """The runs of these spans as times, from one on and before another."""
    bounds = [[EPOCH + timedelta(seconds=number * level) for number in run] for run in runs_of(numbers)]
    return [(start, stop) for start, stop in bounds]


def grouped(runs: Iterable[tuple[int, int]], most: int) -> Iterator[list[tuple[int, int]]]:
    """Groups of consecutive runs with at most `most` spans together; a longer run is a group of its own."""
    together: list[tuple[int, int]] = []
    count = 0
    for start, stop in runs:
        count += stop - start
        if together and count > most:
            yield together
            together, count = [], stop - start
        together.append((start, stop))
    if together:
        yield together
