"""A simulated machine: live readings of signals like those of a storage ring."""

import time
from collections.abc import Iterator, MutableSequence, Sequence
from dataclasses import dataclass
from datetime import datetime
from random import Random
from typing import ClassVar

from ringlog.loader.schedule import SECOND, Schedule, now
from ringlog.loader.sources import Changed, Describe, Event, Note, Receive, Row, Subscriptions, Wait, Wanted
from ringlog.loader.sources.signals import Signal, signal
from ringlog.loader.statistics import Statistics
from ringlog.schema.facility import Column, SampleTable, Table


@dataclass(frozen=True)
class Simulator:
    """The same readings for the same seed and time; `speed` times as many as by the tables' cycles."""

    seed: int = 1
    speed: float = 1.0
    trip: MutableSequence[int] | None = None
    """shared by processes: begin and end of a trip in microseconds since 1970. Signals in mA are 0 then;
    their tables have no row in its first third."""
    recorded: ClassVar[bool] = False

    @property
    def unhindered(self) -> bool:
        return False

    def rows(
        self,
        table: Table,
        after: datetime | None,
        wait: Wait,
        statistics: Statistics,
        note: Note | None = None,
    ) -> Iterator[Sequence[Row]]:
        """A row at each instant of the table's cycle, for ever; past instants are skipped."""
        signals = self.signals(table)
        while True:
            try:
                yield from self._instants(table, signals, wait, statistics)
            except Changed as change:
                table = change.table

    def _instants(
        self, table: Table, signals: Sequence[Signal], wait: Wait, statistics: Statistics
    ) -> Iterator[Sequence[Row]]:
        schedule = Schedule.of(table.name, table.cycle / self.speed)
        for due in schedule.instants(wait, statistics):
            if not (self._tripped(due, 3) and "mA" in {column.unit for column in table.columns}):
                yield [self.row(table, signals, due)]

    def subscriptions(self, table: SampleTable, receive: Receive, describe: Describe) -> Subscriptions:
        """A sample of each signal a second, or `speed` of them; without properties."""
        return _Samples(self, table, receive)

    def signals(self, table: Table) -> Sequence[Signal]:
        """The signals of the table's columns."""
        return [
            # its times are whole microseconds
            (lambda seconds, noise: 0) if index == table.nanoseconds else signal(self.seed, column)
            for index, column in enumerate(table.columns)
        ]

    def row(self, table: Table, signals: Sequence[Signal], moment: int) -> Row:
        """The row at `moment`, in microseconds since 1970."""
        noise = Random(f"{self.seed} {table.name} {moment}")
        values = tuple(one(moment / SECOND, noise) for one in signals)
        if self._tripped(moment):
            values = tuple(
                0.0 if column.unit == "mA" else value
                for column, value in zip(table.columns, values, strict=True)
            )
        return Row.of(moment, values)

    def _tripped(self, moment: int, part: int = 1) -> bool:
        """Whether a moment is in a trip, or in the first of its parts."""
        begin, end = self.trip or (0, 0)
        return begin <= moment < begin + (end - begin) // part


class _Samples:
    """Simulated signals of a table of samples."""

    def __init__(self, simulator: Simulator, table: SampleTable, receive: Receive) -> None:
        self._simulator = simulator
        self._table = table
        self._receive = receive
        self._signals: dict[int, Signal] = {}
        self._schedule = Schedule.of("samples", 1.0 / simulator.speed)
        self._due = self._schedule.after(now())

    def add(self, wanted: Sequence[Wanted]) -> None:
        for each in wanted:
            column = Column("value", each.address, self._table.type, points=self._table.points)
            self._signals[each.number] = signal(self._simulator.seed, column)

    def remove(self, number: int) -> None:
        self._signals.pop(number, None)

    def wait(self, seconds: float) -> None:
        time.sleep(seconds)
        while self._due <= (moment := now()):
            for number, one in self._signals.items():
                noise = Random(f"{self._simulator.seed} {number} {self._due}")
                self._receive(Event(number, self._due * 1000, one(self._due / SECOND, noise)))
            # past instants are skipped
            self._due = self._schedule.after(max(self._due, moment - SECOND))

    def close(self) -> None:
        pass
