"""The sampling policy of a table: decides when readings become a row."""

import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ringlog.clients.moments import moment_of
from ringlog.loader.schedule import SECOND, Schedule, now
from ringlog.loader.sources import Changed, Note, Reading, Row, Wait
from ringlog.loader.statistics import Statistics
from ringlog.schema.facility import Deadband, Table

# Seconds between two checks for changes; shorter for short cycles.
_LOOK = 0.1


def moved(deadband: Deadband | None, before: Reading, after: Reading) -> bool:
    """Whether a reading counts as changed. A change from or to a missing reading always does."""
    if deadband is None or not isinstance(before, int | float) or not isinstance(after, int | float):
        return before != after
    distance = deadband.distance * abs(before) if deadband.relative else deadband.distance
    # a change from or to NaN counts
    return not abs(after - before) <= distance


class Filter:
    """Omits rows without a change, if the table's policy says so."""

    def __init__(self, table: Table) -> None:
        self._last: Row | None = None
        self.adopt(table)

    def adopt(self, table: Table) -> None:
        """Uses the policy of `table` from now on."""
        self._deadbands = [column.deadband for column in table.columns]
        self._below = table.nanoseconds
        self._longest = table.sample.max_period
        self._on = table.sample.max_period is not None or any(self._deadbands)

    def takes(self, row: Row) -> bool:
        """Whether the row is to be written."""
        last = self._last
        wanted = (
            not self._on
            or last is None
            or (self._longest is not None and (row.time - last.time).total_seconds() >= self._longest)
            or any(
                moved(deadband, before, after)
                for place, (deadband, before, after) in enumerate(
                    zip(self._deadbands, last.values, row.values, strict=True)
                )
                # a new time is not a change
                if place != self._below
            )
        )
        if wanted:
            self._last = row
        return wanted


class _Update(NamedTuple):
    """A reading that waits for its row: its time, its arrival, its value."""

    stamp: int
    came: float
    reading: Reading
    nanoseconds: int


class Cells:
    """The readings of a table's columns, set by any thread, and the rows made from them."""

    def __init__(self, table: Table, statistics: Statistics) -> None:
        self._table = table
        self._statistics = statistics
        self._monitors = table.sample.mode == "monitor"
        self._lock = threading.Lock()
        self._readings: list[Reading] = [None] * len(table.columns)
        # columns set since the last scan
        self._fresh: set[int] = set()
        # the waiting updates by column, and the latest reading
        self._updates: list[deque[_Update]] = [deque() for _ in table.columns]
        self._newest: list[Reading] = [None] * len(table.columns)
        self._deadbands = [column.deadband for column in table.columns]
        # the latest time of the rows so far, in microseconds since 1970 and nanoseconds
        self._latest_stamp = 0
        self._latest_nanoseconds = 0
        # signals whose last time stamp was too far ahead
        self._ahead: set[str] = set()

    def adopt(self, table: Table) -> None:
        """Uses the policy of `table` from now on; the readings stay."""
        with self._lock:
            if self._monitors and table.sample.mode != "monitor":
                for place, updates in enumerate(self._updates):
                    if updates:
                        self._statistics.dropped += len(updates) - 1
                        self._readings[place] = updates[-1].reading
                        self._fresh.add(place)
                        updates.clear()
            elif not self._monitors:
                self._newest = [*self._readings]
                self._fresh.clear()
            self._table = table
            self._monitors = table.sample.mode == "monitor"
            self._deadbands = [column.deadband for column in table.columns]

    def believed(self, stamp: int, name: str, note: Note) -> int:
        """A reading's time stamp, or the present time instead of one that is too far ahead of this machine's
        clock; an event then names the signal."""
        moment = now()
        with self._lock:
            if stamp <= moment + self._table.sample.clock_drift * SECOND:
                self._ahead.discard(name)
                return stamp
            if name not in self._ahead:
                self._ahead.add(name)
                distance = (stamp - moment) // SECOND
                words = f"{name}: its time stamp is {distance} s ahead: its readings get the present time"
                note("clock", moment, words, None, None)
            return moment

    def set(self, readings: Sequence[tuple[int, Reading]], stamp: int, nanoseconds: int = 0) -> None:
        """Sets columns, by their places, to readings taken at `stamp` (microseconds since 1970) and so many
        nanoseconds (below 1000).
        """
        came = time.monotonic()
        with self._lock:
            for place, reading in readings:
                if self._monitors:
                    if moved(self._deadbands[place], self._newest[place], reading):
                        self._newest[place] = reading
                        self._updates[place].append(_Update(stamp, came, reading, nanoseconds))
                    continue
                # the last reading between two scans counts
                self._statistics.dropped += place in self._fresh
                self._fresh.add(place)
                self._readings[place] = reading

    def rows(self, wait: Wait) -> Iterator[Row]:
        """Rows according to the table's policy, for ever."""
        while True:
            try:
                yield from self._monitored(wait) if self._monitors else self._scanned(wait)
            except Changed as change:
                self.adopt(change.table)

    def _scanned(self, wait: Wait) -> Iterator[Row]:
        schedule = Schedule.of(self._table.name, self._table.cycle)
        for due in schedule.instants(wait, self._statistics):
            with self._lock:
                self._fresh.clear()
                row = self._row(due, 0)
            yield row

    def _monitored(self, wait: Wait) -> Iterator[Row]:
        """A row has the updates of one cycle, at most one of each column. No update is omitted, however late,
        except with `min_period`: then the last one of each column counts."""
        cycle = self._table.cycle
        sample = self._table.sample
        patience = max(cycle, sample.min_period or 0.0)
        latest = time.monotonic()
        while True:
            wait(min(_LOOK, cycle / 4))
            rows = []
            with self._lock:
                moment = time.monotonic()
                while waiting := [updates for updates in self._updates if updates]:
                    if moment - min(updates[0].came for updates in waiting) < patience:
                        break
                    first = min(updates[0].stamp for updates in waiting)
                    end = first + round(cycle * SECOND)
                    if sample.min_period is not None:
                        end = max(end, self._latest_stamp + round((sample.min_period + cycle) * SECOND))
                    else:
                        # readings of one moment stay together
                        seconds = [updates[1].stamp for updates in waiting if len(updates) > 1]
                        end = max(min([end, *seconds]), first + 1)
                    # a late update does not set the row back in time
                    latest = moment
                    newest = max((self._latest_stamp, self._latest_nanoseconds), self._take(end))
                    self._latest_stamp, self._latest_nanoseconds = newest
                    rows.append(self._row(*newest))
                if (
                    sample.max_period is not None
                    and self._latest_stamp
                    and moment - latest >= sample.max_period
                ):
                    latest = moment
                    rows.append(self._row(now(), 0))
            yield from rows

    def _row(self, stamp: int, nanoseconds: int) -> Row:
        if self._table.nanoseconds is not None:
            self._readings[self._table.nanoseconds] = nanoseconds
        return Row(moment_of(stamp), tuple(self._readings))

    def _take(self, end: int) -> tuple[int, int]:
        """Applies the next update of each column before `end` to the row; returns their latest stamp, with
        its nanoseconds.
        """
        latest = (0, 0)
        for place, updates in enumerate(self._updates):
            taken = 0
            while updates and updates[0].stamp < end and (not taken or self._table.sample.min_period):
                update = updates.popleft()
                self._readings[place] = update.reading
                latest = max(latest, (update.stamp, update.nanoseconds))
                taken += 1
            self._statistics.dropped += max(0, taken - 1)
        return latest
