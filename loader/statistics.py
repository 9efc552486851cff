"""The figures of a process's calls: of fixed size, in memory shared with its supervisor."""

import ctypes
import math
import mmap
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import get_type_hints

# Latency classes: 16 to an octave (4.4 % wide) from 10 microseconds up to 10 * 2**24 microseconds (168 s).
_PER_OCTAVE = 16
_SHORTEST = 10e-6
CLASSES = 24 * _PER_OCTAVE


class Statistics(ctypes.Structure):
    """One process's figures. That process writes them (the supervisor: `restarts` and the state of the dead);
    a reader may see fields that differ by one call."""

    state: int
    restarts: int
    seq_no: int
    """the ring row written last"""
    sent: int
    """by a writer: rows of the source; by a reader: calls"""
    acknowledged: int
    """those of them that the server has"""
    rows: int
    """rows read, by a reader"""
    refused: int
    """calls that the server answered with an error about the row: not repeated"""
    repeated: int
    """calls sent again because no answer arrived"""
    reconnected: int
    missed: int
    """cycles in which no reading was taken"""
    skipped: int
    """rows of the source that the table already had"""
    late: int
    """rows that reached the server after later ones"""
    dropped: int
    """readings replaced by a newer one of their column before a row was made"""
    spooled: int
    """rows not yet acknowledged"""
    oldest: int
    """the time of the oldest of them, in microseconds since 1970; 0 for none"""
    thinned: int
    """rows dropped because the spool was full"""
    bytes: int
    """of the readings in acknowledged rows, in the types of their columns"""
    commits: int
    """calls that were answered"""
    batches: int
    """those of them that carried several rows"""
    total_latency: float
    """seconds, as are the following"""
    last_latency: float
    longest_latency: float
    cpu: float
    _cpu_mark: float
    _parts = 1

    @property
    def message(self) -> str:
        """The latest problem; empty: none."""
        return bytes(self._message).decode("utf-8", "ignore")

    @message.setter
    def message(self, text: str) -> None:
        self._message = text.encode()[:399]

    def answered(self, latency: float, rows: int = 1) -> None:
        """Counts a call that succeeded after `latency` seconds, with so many rows."""
        self.acknowledged += rows
        self.commits += 1
        self.total_latency += latency
        self.last_latency = latency
        self.longest_latency = max(self.longest_latency, latency)
        octaves = math.log2(max(latency, _SHORTEST) / _SHORTEST)
        self._latencies[min(int(octaves * _PER_OCTAVE), CLASSES - 1)] += 1

    def buckets(self, octaves: Iterable[int]) -> Iterator[tuple[float, int]]:
        """Bounds so many octaves above the shortest latency, in seconds, with the calls that stayed below;
        infinity with all of them."""
        below = [0, *accumulate(self._latencies)]
        for octave in octaves:
            yield _SHORTEST * 2**octave, below[octave * _PER_OCTAVE]
        yield math.inf, below[-1]

    def forget_latencies(self) -> None:
        """For the supervisor: resets the latencies."""
        self.longest_latency = 0.0
        self.total_latency = 0.0
        ctypes.memset(self._latencies, 0, ctypes.sizeof(self._latencies))

    def start_cpu(self, parts: int = 1) -> None:
        """For a process that has just begun and does `parts` jobs: each gets its share of the CPU time."""
        self._parts = parts
        self._cpu_mark = time.process_time()

    def count_cpu(self) -> None:
        """Adds the processor time used since the last count."""
        mark = time.process_time()
        self.cpu += (mark - self._cpu_mark) / self._parts
        self._cpu_mark = mark


Statistics._fields_ = [
    *(
        (name, ctypes.c_double if kind is float else ctypes.c_int64)
        for name, kind in get_type_hints(Statistics).items()
    ),
    ("_latencies", ctypes.c_uint32 * CLASSES),
    ("_message", ctypes.c_char * 400),
]


class Latencies:
    """The latencies of several processes together, in seconds."""

    def __init__(self, statistics: Iterable[Statistics]) -> None:
        self._counts = [0] * CLASSES
        self.longest = 0.0
        for one in statistics:
            self.longest = max(self.longest, one.longest_latency)
            for index, count in enumerate(one._latencies):
                self._counts[index] += count

    @property
    def count(self) -> int:
        """The number of calls."""
        return sum(self._counts)

    def quantile(self, part: float) -> float:
        """The latency that `part` (0 to 1) of the calls stayed within, at most 4.4 % too long; NaN without
        calls."""
        total = self.count
        if total == 0:
            return math.nan
        reached = 0
        for index, count in enumerate(self._counts):
            reached += count
            if reached >= max(1, part * total):
                return float(min(self.longest, _SHORTEST * 2 ** ((index + 1) / _PER_OCTAVE)))
        return self.longest


def shared(count: int) -> Sequence[Statistics]:
    """Statistics, all zero, that processes forked from this one share with it."""
    size = ctypes.sizeof(Statistics)
    memory = mmap.mmap(-1, max(1, count) * size)
    return [Statistics.from_buffer(memory, index * size) for index in range(count)]
