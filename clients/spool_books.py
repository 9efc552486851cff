"""The records of a spool, in its file: numbers of rows by the hour, and events.

They are written in the transactions of the spool.
"""

import sqlite3
import time
from typing import NamedTuple

from ringlog.clients.moments import HOUR

# Events that are sent by one call.
EVENTS = 500

# Hours whose figures the server has are kept this long: late rows find theirs.
_KEPT = 14 * 24 * HOUR


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
        counted = {name: figure for name, figure in figures.items() if figure}
        if counted:
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

    def hours(self) -> list[Hour]:
        """Hours whose figures have changed since they were sent; at most a hundred, oldest first."""
        changed = self._db.execute(
            "select hour, produced, acknowledged, thinned, refused, late, repeated"
            " from ledger where changed order by hour limit 100"
        )
        return [Hour(*row) for row in changed]

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
        unsent = self._db.execute(
            "select id, time, until, kind, rows, words from event order by id limit ?", (EVENTS,)
        )
        return [Event(*row) for row in unsent]

    def events_reported(self, last: Event) -> None:
        self._db.execute("delete from event where id <= ?", (last.id,))
