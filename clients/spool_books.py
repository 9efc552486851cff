"""The records of a spool, in its file: numbers of rows by the hour, and events.

They are written in the transactions of the spool.
"""

import sqlite3
import time
from itertools import islice
from typing import NamedTuple

from ringlog.clients.moments import HOUR

# Events that are sent by one call.
EVENTS = 500

# Hours whose figures the server has are kept this long: late rows find theirs.
_KEPT = 14 * 24 * HOUR
# What datetime can represent, in microseconds since 1970. A time outside it comes from a damaged file.
_FIRST, _LAST = -62_135_596_800_000_000, 253_402_300_799_000_000


class Hour(NamedTuple):
    """A writer's books of an hour; rows belong to the hour of their time.

    Every row produced is acknowledged, thinned or refused, or is still in the spool.
    """

    hour: int
    """its begin, in microseconds since 1970"""
    produced: int
    acknowledged: int
    thinned: int
    refused: int
    late: int
    """rows that came to the server after later ones"""
    repeated: int
    """calls sent again because no answer came"""


class Event(NamedTuple):
    """Something that happened to a table's readings, from `time` to `until` (microseconds since 1970)."""

    id: int
    time: int
    until: int | None
    kind: str
    rows: int | None
    words: str


class Books:
    """The tables `ledger` and `event` of a spool."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def count(self, moment: int, **figures: int) -> None:
        """Adds figures to the hour of a moment."""
        counted = {name: int(figure) for name, figure in figures.items() if figure}
        if counted:
            if not isinstance(moment, int) or not _FIRST <= moment <= _LAST:
                moment = time.time_ns() // 1000
            self._db.execute(
                f"insert into ledger (hour, {', '.join(counted)}) values (?{', ?' * len(counted)})"
                " on conflict (hour) do update set changed = 1,"
                f" {', '.join(f'{name} = {name} + excluded.{name}' for name in counted)}",
                (moment // HOUR * HOUR, *counted.values()),
            )

    def note(self, kind: str, time: int, words: str, until: int | None, rows: int | None) -> None:
        """Adds an event."""
        self._db.execute(
            "insert into event (time, until, kind, rows, words) values (?, ?, ?, ?, ?)",
            (time, until, kind, rows, words),
        )

    def note_anew(self, kind: str, moment: int, words: str, until: int | None, rows: int | None) -> None:
        """As `note`, by a number that is above all former ones, also those that the file has lost."""
        self.note(kind, moment, words, until, rows)
        self._db.execute(
            "update event set id = max(id, ?) where id = last_insert_rowid()", (int(time.time()),)
        )
        self._db.execute("update sqlite_sequence set seq = (select max(id) from event) where name = 'event'")

    def has_hour(self, moment: object) -> bool:
        """Whether there are figures of the hour of a moment."""
        return (
            isinstance(moment, int)
            and self._db.execute("select 1 from ledger where hour = ?", (moment // HOUR * HOUR,)).fetchone()
            is not None
        )

    def hours(self) -> list[Hour]:
        """Hours whose figures have changed since they were sent; at most a hundred, oldest first."""
        changed = self._db.execute(
            "select hour, produced, acknowledged, thinned, refused, late, repeated"
            " from ledger where changed order by hour"
        )
        return [*islice((Hour(*row) for row in changed if _are_numbers(*row)), 100)]

    def hour_reported(self, hour: Hour) -> None:
        self._db.execute(
            "update ledger set changed = 0 where (hour, produced, acknowledged, thinned, refused, late,"
            " repeated) = (?, ?, ?, ?, ?, ?, ?)",
            hour,
        )
        old = time.time_ns() // 1000 - _KEPT
        self._db.execute("delete from ledger where hour < ? and not changed", (old,))

    def events(self) -> list[Event]:
        """Events that have not been sent, oldest first; at most EVENTS."""
        unsent = self._db.execute("select id, time, until, kind, rows, words from event order by id")
        events = (Event(*row) for row in unsent)
        return [
            *islice((event for event in events if _are_numbers(event.time, event.until, event.rows)), EVENTS)
        ]

    def events_reported(self, last: Event) -> None:
        self._db.execute("delete from event where id <= ?", (last.id,))


def _are_numbers(*values: object) -> bool:
    """Whether these are numbers that a time or a count can have; a damaged file may have others."""
    return all(value is None or (isinstance(value, int) and _FIRST <= value <= _LAST) for value in values)
