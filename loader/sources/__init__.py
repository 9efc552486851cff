"""The sources of readings."""

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import ClassVar, NamedTuple, Protocol, TypeAlias

from ringlog.clients.readings import Reading as Reading
from ringlog.loader.statistics import Statistics
from ringlog.schema.facility import Table

Wait: TypeAlias = Callable[[float], None]
"""Sleeps for so many seconds; raises if the process must end, and Changed."""

Note: TypeAlias = Callable[[str, int, str, int | None, int | None], None]
"""Takes kind, begin, words, end and number of rows of an event."""


class Changed(Exception):
    """The facility file was read again: `table` has the new sampling."""

    def __init__(self, table: Table) -> None:
        super().__init__(table.name)
        self.table = table


class SourceError(Exception):
    """A source cannot give its rows; the message has the place and the reason."""


class Row(NamedTuple):
    """The readings of a table's columns, in their order, at one time (with its zone)."""

    time: datetime
    values: tuple[Reading, ...]


class Source(Protocol):
    """Gives the rows of a table, each when it is due."""

    recorded: ClassVar[bool]
    """Whether the rows can be read again later: such a source waits for the server at its start."""

    @property
    def unhindered(self) -> bool:
        """Whether rows come as fast as they are taken: only such a source waits for the server."""
        ...

    def rows(
        self, table: Table, after: datetime | None, wait: Wait, statistics: Statistics, note: Note
    ) -> Iterator[Row]:
        """Rows later than `after` (the time of the table's last row, if known). Waits for a row's time by
        `wait`, which raises Changed only where `recorded` is not.

        Counts in `statistics`, as `missed`, cycles that passed without a reading because the caller returned
        too late, and as `skipped`, its rows that are not later than `after`. Raises SourceError.
        """
        ...
