"""The sources of readings."""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any, ClassVar, NamedTuple, Protocol, Self, TypeAlias

from ringlog.clients.readings import Content, restored, stored
from ringlog.clients.readings import Reading as Reading
from ringlog.loader.statistics import Statistics
from ringlog.schema.facility import SampleTable, Table

Wait: TypeAlias = Callable[[float], None]
"""Sleeps for so many seconds; raises if the process must end, and Changed."""

Note: TypeAlias = Callable[[str, int, str, int | None, int | None], None]
"""Takes kind, begin, message, end and number of rows of an event."""


class Changed(Exception):
    """The facility file was read again: `table` has the new sampling."""

    def __init__(self, table: Table) -> None:
        super().__init__(table.name)
        self.table = table


class SourceError(Exception):
    """A source cannot give its rows; the message has the location and the reason."""


class Row(NamedTuple):
    """The readings of a table's columns, in their order and in the form of a spool, at one time in
    microseconds since 1970."""

    time: int
    content: Content

    @classmethod
    def of(cls, time: int, values: Sequence[Reading]) -> Self:
        return cls(time, stored(values))

    @property
    def values(self) -> tuple[Reading, ...]:
        return restored(self.content)


class Source(Protocol):
    """Gives the rows of a table, each when it is due."""

    recorded: ClassVar[bool]
    """Whether the rows can be read again later: such a source waits for the server at its start."""

    @property
    def unhindered(self) -> bool:
        """Whether rows arrive as fast as they are taken: only such a source waits for the server."""
        ...

    def rows(
        self, table: Table, after: datetime | None, wait: Wait, statistics: Statistics, note: Note
    ) -> Iterator[Sequence[Row]]:
        """Rows later than `after` (the time of the table's last row, if known): those together that are due
        together. Waits for a row's time by `wait`, which raises Changed only where `recorded` is not.

        Counts in `statistics`, as `missed`, cycles that passed without a reading because the caller returned
        too late, and as `skipped`, its rows that are not later than `after`. Raises SourceError.
        """
        ...


class Wanted(NamedTuple):
    """A signal of the registry that is to be taken: its number, its name at the source, its deadband and the
    name of its policy."""

    number: int
    address: str
    deadband: str
    policy: str = ""


class Event(NamedTuple):
    """An event of a signal at its source; `time` is in nanoseconds since 1970. None for a lost signal."""

    number: int
    time: int | None
    value: Any = None
    severity: int = 0
    status: int = 0


Receive: TypeAlias = Callable[[Event], None]
Describe: TypeAlias = Callable[[int, dict[str, Any]], None]
"""Takes properties of a signal, by its number: columns of ringlog.signal, None where the source has none, and
`record_type`, the type of its EPICS record."""


class Subscriptions(Protocol):
    """The signals of a source, by one thread of a process."""

    def add(self, wanted: Sequence[Wanted]) -> None:
        """Subscribes to these signals."""
        ...

    def remove(self, number: int) -> None: ...

    def wait(self, seconds: float) -> None:
        """Handles events for so many seconds."""
        ...

    def close(self) -> None: ...


class SampleSource(Protocol):
    """A source of events."""

    def subscriptions(self, table: SampleTable, receive: Receive, describe: Describe) -> Subscriptions:
        """For signals of this table. `receive` and, when a signal is connected, `describe` are called in any
        thread. A waveform is a numpy array. Raises SourceError."""
        ...
