"""The sampling policy of a table: decides when readings become a row."""

from collections.abc import Iterator, Sequence
from typing import Any

from ringlog.gateway import _core
from ringlog.loader.schedule import SECOND, Schedule
from ringlog.loader.sources import Changed, Note, Reading, Row, Wait
from ringlog.loader.statistics import Statistics
from ringlog.schema.facility import Table

# Seconds between two checks for changes; shorter for short cycles.
_LOOK = 0.1


class Filter:
    """Omits rows without a change, if the table's policy requires it."""

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
            or (self._longest is not None and row.time - last.time >= self._longest * SECOND)
            # a new time is not a change
            or _core.moved(self._deadbands, last.values, row.values, self._below)
        )
        if wanted:
            self._last = row
        return wanted


class Cells:
    """The readings of a table's columns, set by any thread, and the rows made from them."""

    def __init__(self, table: Table, statistics: Statistics) -> None:
        self._table = table
        self._statistics = statistics
        self.native = _core.Cells(_policy(table))

    def adopt(self, table: Table) -> None:
        """Uses the policy of `table` from now on; the readings stay."""
        self._table = table
        self.native.adopt(_policy(table))

    def plausible(self, stamp: int, name: str, note: Note) -> int:
        """A reading's time stamp, or the present time if it is too far ahead of this machine's clock; an
        event then names the signal."""
        plausible, distance = self.native.believed(stamp, name)
        if distance is not None:
            note("clock", plausible, clock_message(name, distance), None, None)
        return plausible

    def set(self, readings: Sequence[tuple[int, Reading]], stamp: int, nanoseconds: int = 0) -> None:
        """Sets columns, by their indexes, to readings taken at `stamp` (microseconds since 1970) and so many
        nanoseconds (below 1000).
        """
        self.native.set(readings, stamp, nanoseconds)

    def rows(self, wait: Wait) -> Iterator[Sequence[Row]]:
        """Rows according to the table's policy, for ever."""
        while True:
            try:
                yield from self._monitored(wait) if self._monitors else self._scanned(wait)
            except Changed as change:
                self.adopt(change.table)

    @property
    def _monitors(self) -> bool:
        return self._table.sample.mode == "monitor"

    def _scanned(self, wait: Wait) -> Iterator[Sequence[Row]]:
        schedule = Schedule.of(self._table.name, self._table.cycle)
        for due in schedule.instants(wait, self._statistics):
            values = self.native.scan()
            self._statistics.dropped += self.native.take_dropped()
            yield [Row.of(due, values)]

    def _monitored(self, wait: Wait) -> Iterator[Sequence[Row]]:
        while True:
            wait(min(_LOOK, self._table.cycle / 4))
            rows = self.native.due()
            self._statistics.dropped += self.native.take_dropped()
            if rows:
                yield [Row.of(stamp, values) for stamp, values in rows]


def clock_message(name: str, distance: int) -> str:
    """The message of an event: a time stamp is `distance` seconds ahead of this machine's clock."""
    return f"{name}: its time stamp is {distance} s ahead: its readings get the present time"


def _policy(table: Table) -> tuple[Any, ...]:
    """The sampling policy of a table as `_core.Cells` takes it."""
    sample = table.sample
    return (
        sample.mode == "monitor",
        round(table.cycle * SECOND),
        None if sample.min_period is None else round(sample.min_period * SECOND),
        sample.max_period,
        round(sample.clock_drift * SECOND),
        [column.deadband for column in table.columns],
        table.nanoseconds,
    )
