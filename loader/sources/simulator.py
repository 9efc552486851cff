"""A simulated machine: live readings of signals like those of a storage ring."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from random import Random
from typing import ClassVar

from ringlog.clients.moments import moment_of
from ringlog.loader.schedule import SECOND, Schedule
from ringlog.loader.sources import Changed, Note, Row, Wait
from ringlog.loader.sources.signals import Signal, signal
from ringlog.loader.statistics import Statistics
from ringlog.schema.facility import Table


@dataclass(frozen=True)
class Simulator:
    """The same readings for the same seed and time; `speed` times as many as by the tables' cycles."""

    seed: int = 1
    speed: float = 1.0
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
    ) -> Iterator[Row]:
        """A row at each instant of the table's cycle, for ever; past instants are skipped."""
        signals = self.signals(table)
        while True:
            try:
                yield from self._instants(table, signals, wait, statistics)
            except Changed as change:
                table = change.table

    def _instants(
        self, table: Table, signals: Sequence[Signal], wait: Wait, statistics: Statistics
    ) -> Iterator[Row]:
        schedule = Schedule.of(table.name, table.cycle / self.speed)
        for due in schedule.instants(wait, statistics):
            yield self.row(table, signals, due)

    def signals(self, table: Table) -> Sequence[Signal]:
        """The signals of the table's columns."""
        return [
            # its times are whole microseconds
            (lambda seconds, noise: 0) if place == table.nanoseconds else signal(self.seed, column)
            for place, column in enumerate(table.columns)
        ]

    def row(self, table: Table, signals: Sequence[Signal], moment: int) -> Row:
        """The row at `moment`, in microseconds since 1970."""
        noise = Random(f"{self.seed} {table.name} {moment}")
        values = tuple(one(moment / SECOND, noise) for one in signals)
        return Row(moment_of(moment), values)
