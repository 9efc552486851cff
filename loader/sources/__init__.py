"""The sources of readings."""

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import ClassVar, NamedTuple, Protocol, TypeAlias

from ringlog.clients.readings import Reading as Reading
from ringlog.loader.statistics import Statistics
from ringlog.schema.facility import Table

Wait: TypeAlias = Callable[[float], None]
"""Sleeps for so many seconds; raises when the process should end, and Changed."""

Note: TypeAlias = Callable[[str, int, str, int | None, int | None], None]
"""Takes kind, begin, words, end and number of rows of an event."""


class Changed(Exception):
    """The facility file was read again: from now on `table` says how it is sampled."""

    def __init__(self, table: Table) -> None:
        super().__init__(table.name)
        self.table = table


class SourceError(Exception):
    """A source that cannot give its rows; the message says where and why."""


class Row(NamedTuple):
    """The readings of a table's columns, in their order, at one time (with its zone)."""

    time: datetime
    values: tuple[Reading, ...]


class Source(Protocol):
    """Gives the rows of a table, each when it is due."""

    recorded: ClassVar[bool]
    """Whether the rows are there for ever: such a source waits at its begin for the server."""

    @property
    def unhindered(self) -> bool:
        """Whether rows come as fast as they are taken: such a source waits for the server, no other does."""
        ...

    def rows(
        self, table: Table, after: datetime | None, wait: Wait, statistics: Statistics, note: Note
    ) -> Iterator[Row]:
        """Rows later than `after` (the time of the table's last row, as far as it is known). Waits for a
        row's time by `wait`, which raises Changed only where `recorded` is not.

        Counts in `statistics`, as `missed`, cycles that passed without a reading because the caller came
        back too late, and as `skipped`, rows it has that are not later than `after`. Raises SourceError.
        """
        ...
