"""The records of a spool, in its file: numbers of rows by the hour, and events.

They are written in the transactions of the spool.
"""

import sqlite3
import time
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

from ringlog.clients.spool.file import EVENT, LEDGER, seal_of
from ringlog.schema.moments import HOUR

# Events that are sent by one call.
EVENTS = 500

# Hours that the server has are kept this long, for late rows.
_KEPT = 14 * 24 * HOUR
# The range of datetime, in microseconds since 1970. A time outside it comes from a damaged file.
_FIRST, _LAST = -62_135_596_800_000_000, 253_402_300_799_000_000


Shares: TypeAlias = Sequence[tuple[int, int]]
"""The ledger's counts for a row of the spool: times (microseconds since 1970), each with a number of rows."""


class Hour(NamedTuple):
    """A writer's ledger of an hour; rows belong to the hour of their time.

    Every row produced is acknowledged, thinned or refused, or is still in the spool.
    """

    hour: int
    """its begin, in microseconds since 1970"""
    produced: int
    acknowledged: int
    thinned: int
    refused: int
    late: int
    """rows that reached the server after later ones"""
    repeated: int
    """calls sent again because no answer arrived"""


Stored: TypeAlias = tuple[Any, ...]
"""an hour or an event in the form of the file: its checksum is the last value"""

_HOURS = f"select {LEDGER}, crc from ledger"
_NO_HOUR = Hour(0, 0, 0, 0, 0, 0, 0)


class Event(NamedTuple):
    """An event of a table's readings, from `time` to `until` (microseconds since 1970)."""

    id: int
    time: int
    until: int | None
    kind: str
    rows: int | None
    message: str


class Books:
    """The tables `ledger` and `event` of a spool."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def count(self, moment: int, **figures: int) -> None:
        """Adds figures to the hour of a moment."""
        counted = {name: int(figure) for name, figure in figures.items() if figure}
        if not counted:
            return
        if not isinstance(moment, int) or not _FIRST <= moment <= _LAST:
            moment = time.time_ns() // 1000
        hour = _NO_HOUR._replace(hour=moment // HOUR * HOUR)
        before = self._db.execute(f"{_HOURS} where hour = ?", (hour.hour,)).fetchone()
        if before is not None and _is_sound(before):
            hour = Hour(*before[:-1])
        elif before is not None:
            self.lay_aside_hours([before])
        hour = hour._replace(**{name: getattr(hour, name) + figure for name, figure in counted.items()})
        self._db.execute(
            f"insert or replace into ledger ({LEDGER}, changed, crc) values (?, ?, ?, ?, ?, ?, ?, 1, ?)",
            (*hour, seal_of(*hour)),
        )

    def count_produced(self, shares: Iterable[Shares]) -> None:
        """Counts the shares of new rows."""
        for hour, produced in _by_hour(shares).items():
            self.count(hour, produced=produced)

    def count_done(self, done: Collection[tuple[Shares, bool, Shares]]) -> None:
        """Counts acknowledged rows: their shares, whether they were late, and shares that were refused."""
        acknowledged = _by_hour(shares for shares, _, _ in done)
        late = _by_hour(shares for shares, is_late, _ in done if is_late)
        refused = _by_hour(shares for _, _, shares in done)
        for hour in acknowledged.keys() | refused.keys():
            stored = acknowledged[hour] - refused[hour]
            self.count(hour, acknowledged=stored, refused=refused[hour], late=late[hour])

    def note(self, kind: str, time: int, message: str, until: int | None, rows: int | None) -> None:
        event = (time, until, kind, rows, message)
        added = self._db.execute(
            "insert into event (time, until, kind, rows, message) values (?, ?, ?, ?, ?)", event
        )
        self._seal(added.lastrowid, *event)

    def note_anew(self, kind: str, moment: int, message: str, until: int | None, rows: int | None) -> None:
        """Like `note`, with a number above all former ones, also those that the file has lost."""
        event = (moment, until, kind, rows, message)
        (last,) = self._db.execute("select coalesce(max(id), 0) from event").fetchone()
        (used,) = self._db.execute(
            "select coalesce(max(seq), 0) from sqlite_sequence where name = 'event'"
        ).fetchone()
        number = max(last + 1, used + 1, int(time.time()))
        self._db.execute(
            "insert into event (id, time, until, kind, rows, message) values (?, ?, ?, ?, ?, ?)",
            (number, *event),
        )
        self._seal(number, *event)

    def _seal(self, number: int | None, *event: object) -> None:
        self._db.execute("update event set crc = ? where id = ?", (seal_of(number, *event), number))

    def has_hour(self, moment: object) -> bool:
        """Whether there are figures of the hour of a moment."""
        return (
            isinstance(moment, int)
            and self._db.execute("select 1 from ledger where hour = ?", (moment // HOUR * HOUR,)).fetchone()
            is not None
        )

    def hours(self) -> tuple[list[Hour], list[Stored]]:
        """Hours whose figures have changed since they were sent, at most a hundred, oldest first; and those
        that are damaged."""
        changed = self._db.execute(f"{_HOURS} where changed order by hour limit 100").fetchall()
        return [Hour(*each[:-1]) for each in changed if _is_sound(each)], _damaged(changed)

    def lay_aside_hours(self, damaged: Sequence[Stored]) -> None:
        """Makes events of damaged hours, which start again at 0."""
        for each in damaged:
            self._db.execute("delete from ledger where hour is ?", each[:1])
            self._note_damage("the figures of an hour were damaged on the disk, and count anew", Hour, each)

    def hour_reported(self, hour: Hour) -> None:
        self._db.execute(
            "update ledger set changed = 0 where (hour, produced, acknowledged, thinned, refused, late,"
            " repeated) = (?, ?, ?, ?, ?, ?, ?)",
            hour,
        )
        old = time.time_ns() // 1000 - _KEPT
        self._db.execute("delete from ledger where hour < ? and not changed", (old,))

    def events(self) -> tuple[list[Event], list[Stored]]:
        """Events that have not been sent, oldest first; at most EVENTS. And those that are damaged."""
        unsent = self._db.execute(f"select {EVENT}, crc from event order by id limit {EVENTS}").fetchall()
        return [Event(*each[:-1]) for each in unsent if _is_sound(each)], _damaged(unsent)

    def lay_aside_events(self, damaged: Sequence[Stored]) -> None:
        """Replaces damaged events by events about the damage."""
        for each in damaged:
            self._db.execute("delete from event where id is ?", each[:1])
            self._note_damage("an event was damaged on the disk", Event, each)

    def _note_damage(self, message: str, of: type[Hour] | type[Event], stored: Stored) -> None:
        kept = ", ".join(f"{name} {value}" for name, value in zip(of._fields, stored[:-1], strict=True))
        self.note("damaged", time.time_ns() // 1000, f"{message}: {kept}", None, None)

    def events_reported(self, last: Event) -> None:
        self._db.execute("delete from event where id <= ?", (last.id,))


def _by_hour(counted: Iterable[Shares]) -> Counter[int]:
    """The sums of some shares by hour, in microseconds since 1970."""
    found: Counter[int] = Counter()
    for shares in counted:
        for moment, rows in shares:
            found[moment // HOUR * HOUR] += rows
    return found


def _is_sound(stored: Stored) -> bool:
    return bool(seal_of(*stored[:-1]) == stored[-1])


def _damaged(stored: Sequence[Stored]) -> list[Stored]:
    return [each for each in stored if not _is_sound(each)]
