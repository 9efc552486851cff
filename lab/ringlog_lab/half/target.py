"""A database into which HALF's data are written and from which they are read, with times."""

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from ringlog.loadtest.experiment.errors import LoadTestError
from ringlog_lab.half.published import HERTZ
from ringlog_lab.half.replay import PVS_OF_A_TABLE, Recording, midnight, tables

CONNECTIONS = 4
"""Writers at once."""


@dataclass(frozen=True)
class Timed:
    """Batches of all PVs, or one PV that is read again and again."""

    target: str
    length: float
    """of the data: minutes of a batch, hours of a query"""
    items: int
    """written, or of a query"""
    seconds: float
    """of writing; of a query, the median"""
    cpu: float
    """seconds that the server took for the batch, or for a query: the mean"""

    @property
    def rate(self) -> float:
        """IDPS or QDPS: items a second."""
        return self.items / self.seconds


@dataclass(frozen=True)
class Replayed:
    """Hours of all PVs, a batch after another."""

    hours: float
    batches: Sequence[Timed]
    bytes: int
    """bytes by which the data on the disk have grown"""

    @property
    def items(self) -> int:
        return sum(one.items for one in self.batches)

    @property
    def seconds(self) -> float:
        """Of writing; the batches are made between."""
        return sum(one.seconds for one in self.batches)

    @property
    def rate(self) -> float:
        """Items a second."""
        return self.items / self.seconds


@dataclass(frozen=True)
class Kept:
    """A target's stored items before they are read."""

    target: str
    items: int
    found: int
    bytes: int
    """on the disk"""
    seconds: float | None
    """seconds for compressing them; None without compression"""


@dataclass(frozen=True)
class Reading:
    """A connection that reads the first PV until a moment."""

    read: Callable[[], int]
    """reads it, and returns the number of items"""
    cpu: Callable[[], float]
    """CPU seconds of its server process so far"""


class Target(ABC):
    """Stores HALF's data and reads them."""

    name: str
    readings: Sequence[str]
    """ways to read it"""
    compresses = False
    """there is a step between writing and reading"""

    def __init__(self, pvs: int) -> None:
        self.recordings = [Recording(table, midnight()) for table in range(tables(pvs))]
        self.items = 0
        """acknowledged"""

    def insert(self, minutes: float, only: int | None = None) -> Timed:
        """Writes a batch of all PVs, or of one table's, by CONNECTIONS writers; the data are made before."""
        rows = max(1, round(minutes * 60 * HERTZ))
        chosen = range(len(self.recordings)) if only is None else [only]
        made = [(table, self.prepare(table, rows)) for table in chosen]
        items = rows * PVS_OF_A_TABLE * len(made)
        failures: list[Exception] = []

        def write(some: Sequence[tuple[int, list[Any]]]) -> None:
            try:
                self.write(some)
            except Exception as error:
                failures.append(error)

        writers = min(CONNECTIONS, len(made))
        threads = [threading.Thread(target=write, args=(made[n::writers],)) for n in range(writers)]
        began, spent = time.monotonic(), self.cpu()
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        if failures:
            raise LoadTestError(f"{self.name}: {failures[0]}")
        self.items += items
        self.readable()
        return Timed(self.name, minutes, items, time.monotonic() - began, self.cpu() - spent)

    def keep(self) -> Kept:
        """Compresses the written data, if the target does so, and counts the stored items."""
        began = time.monotonic()
        if self.compresses:
            self.compress()
        took = time.monotonic() - began if self.compresses else None
        return Kept(self.name, self.items, self.found(), self.size(), took)

    def query(self, hours: float, seconds: float, way: str) -> Timed:
        """Reads the first PV over the first `hours`, for these seconds, at least thrice."""
        items = max(1, round(hours * 3600 * HERTZ))
        until = midnight() + timedelta(seconds=(items - 0.5) / HERTZ)
        took: list[float] = []
        with self.reading(until, way) as reading:
            reading.read()
            end, spent = time.monotonic() + seconds, reading.cpu()
            while time.monotonic() < end or len(took) < 3:
                began = time.perf_counter()
                found = reading.read()
                took.append(time.perf_counter() - began)
                if found != items:
                    raise LoadTestError(f"{way}: {found:,} items instead of {items:,}")
            spent = (reading.cpu() - spent) / len(took)
        return Timed(way, hours, items, sorted(took)[len(took) // 2], spent)

    @abstractmethod
    def prepare(self, table: int, rows: int) -> list[Any]:
        """The next rows of a table in the form that they are sent in."""

    @abstractmethod
    def write(self, some: Sequence[tuple[int, list[Any]]]) -> None:
        """Writes the prepared data of tables, on a separate connection."""

    def readable(self) -> None:
        """Waits until the written data can be read, if that is later than the acknowledgement."""
        return

    def compress(self) -> None:
        """The step between writing and reading."""
        return

    @abstractmethod
    def found(self) -> int:
        """The number of stored items."""

    @abstractmethod
    def size(self) -> int:
        """Bytes on the disk."""

    @abstractmethod
    def cpu(self) -> float:
        """Seconds that the server's processes have taken so far."""

    @abstractmethod
    def reading(self, until: datetime, way: str) -> AbstractContextManager[Reading]:
        """A connection that reads the first PV until a moment."""
