"""Where readings come from."""

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import NamedTuple, Protocol, TypeAlias

from ringlog.loader.statistics import Statistics
from ringlog.schema.facility import Table

# A column's value as its type in the facility file has it; None is no reading.
Reading: TypeAlias = bool | int | float | str | None

# Waits until a moment, in microseconds since 1970; raises when the process should end.
Wait: TypeAlias = Callable[[int], None]


class SourceError(Exception):
    """A source that cannot give its rows; the message says where and why."""


class Row(NamedTuple):
    """The readings of a table's columns, in their order, at one time (with its zone)."""

    time: datetime
    values: tuple[Reading, ...]


class Source(Protocol):
    """Gives the rows of a table, each when it is due."""

    def rows(self, table: Table, after: datetime | None, wait: Wait, statistics: Statistics) -> Iterator[Row]:
        """Rows later than `after` (the time of the table's last row). Waits for a row's time by `wait`.

        Counts in `statistics`, as `missed`, cycles that passed without a reading because the caller came
        back too late, and as `skipped`, rows it has that are not later than `after`. Raises SourceError.
        """
        ...
