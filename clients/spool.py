"""The queue on disk between a source and the server: one SQLite file a table.

A row that `put` has taken survives kill -9 and a power failure, and stays until the server has acknowledged
it. Its seq_no is assigned by `put`: however late and however often it is sent, the server recognizes it. The
file also holds the writer's records, written in the same transactions: numbers of rows by the hour
(`ledger`), events (`event`), and rows that the server refused for their content (`refused`).

When the budget or the disk is full, the older half of the rows is thinned from its oldest row on: one row in
2 is kept, then one in 4, 8 and so on, as the time that it covers grows. So the newest rows are complete, and
the others cover the whole outage evenly. The ledger counts the rows that were dropped.
"""

import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from ringlog.clients.moments import HOUR
from ringlog.clients.readings import Reading, restored, stored
from ringlog.clients.spool_books import Books, Event, Hour
from ringlog.clients.spool_file import SpoolError, is_one_of, open_file
from ringlog.clients.spool_room import NoRoomError, Room, Thinning, log_bytes

GiB = 2**30
LEAST_BUDGET = 2**20

# Acknowledged rows that are removed together at the latest.
_TOGETHER = 256
# Rows kept in memory while the disk takes nothing at all.
_MOST_HELD = 1000


class Spooled(NamedTuple):
    """A row on its way: `id` counts the rows put, `time` is in microseconds since 1970, `seq_no` is None
    until the server was asked where to go on."""

    id: int
    time: int
    seq_no: int | None
    readings: tuple[Reading, ...]


class Spool:
    """A table's queue, for one process, which may use it from several threads.

    `rows` is the size of the ring, `columns` are the names of the data columns, `budget` is in bytes.
    Raises SpoolError when another process has it, it is another table's, or has rows of columns now gone.
    """

    def __init__(self, file: Path, table: str, columns: Sequence[str], rows: int, budget: int = GiB) -> None:
        if budget < LEAST_BUDGET:
            raise SpoolError(f"a spool's budget of {budget} bytes is below {LEAST_BUDGET}, 1 MiB")
        self.file = file
        self._rows = rows
        self._lock = threading.Lock()
        # rows that the disk has not taken yet, and how many such were given up, by their hour
        self._held: list[tuple[int, str | bytes]] = []
        self._given_up: Counter[int] = Counter()
        # rows acknowledged that are still in the file, and whether they came late
        self._done: dict[int, bool] = {}
        self._repeated = 0
        # ids from the first to the last row that is being sent
        self._in_flight = range(0)
        # ids of rows that may be on the server, though it never said so
        self._doubtful: set[int] = set()
        self._db = open_file(file, table, [*columns], log_bytes(budget))
        self._books = Books(self._db)
        self._room = Room(self._db, file, budget)
        self._thinning = Thinning(self._db, budget)
        state = self._db.execute("select spool, id, seq_no, time from state").fetchone()
        self.name: str = state[0]
        """an identifier that no other spool has"""
        self.newest: int = state[1]
        """id of the row put last"""
        self.seq_no: int | None = state[2]
        self.time: int | None = state[3]
        """seq_no and time of the row put last, or of the server's latest row"""
        self.depth: int = self._db.execute("select count(*) from row").fetchone()[0]
        """rows not yet acknowledged"""
        self.thinned = 0
        """rows dropped since it was opened"""

    # --- the source's side ---

    def put(self, time: int, readings: Sequence[Reading]) -> None:
        """Takes a row for good; `time` in microseconds since 1970. It never waits for the server. On a full
        disk it makes room, and at worst keeps some rows in memory until there is some."""
        content = stored(readings)
        with self._lock:
            self._held.append((time, content))
            if self._room.is_full(len(content)):
                self._thin()
            while not self._take_in():
                if not self._thin():
                    self._give_up()
                    break

    def note(
        self, kind: str, time: int, words: str, until: int | None = None, rows: int | None = None
    ) -> None:
        """Keeps an event, to be sent to the server."""
        with self._lock:
            self._commit(lambda: self._books.note(kind, time, words, until, rows))

    def begin(self, seq_no: int, time: int | None) -> None:
        """Hears the server's latest row: 0 and None for a ring never written.

        A new spool's rows are numbered now. Another one goes on at the server's number when that row is
        later than its own, for then somebody else has written meanwhile.
        """
        with self._lock:
            new = self.seq_no is None
            later = time is not None and (self.time is None or time > self.time)
            if not new and not later:
                return

            def number() -> None:
                last = seq_no
                unnumbered = "select id from row where seq_no is null order by id"
                for (row,) in self._db.execute(unnumbered).fetchall():
                    last = last % self._rows + 1
                    self._db.execute("update row set seq_no = ? where id = ?", (last, row))
                self._db.execute("update state set seq_no = ?", (last,))
                if later:
                    self._db.execute("update state set time = ?", (time,))

            if self._commit(number):
                self.seq_no, self.time = self._db.execute("select seq_no, time from state").fetchone()

    # --- the sender's side ---

    def after(self, row: int, until: int | None = None) -> Spooled | None:
        """The first row put after that of the id `row` and up to that of the id `until`; it counts as in
        flight from now on, and is not thinned."""
        with self._lock:
            waiting = self._db.execute(
                "select id, time, seq_no, readings from row where id > ? and id <= ? order by id",
                (row, self.newest if until is None else until),
            )
            for found, time, seq_no, content in waiting:
                if found not in self._done:
                    self._in_flight = range(found, found + 1)
                    return Spooled(found, time, seq_no, restored(content))
            return None

    def batch(self, row: int, until: int, rows: int, size: int) -> list[Spooled]:
        """As `after`, the first rows in their order: at most `rows`, and one or as many as have `size`
        characters of readings."""
        found: list[Spooled] = []
        with self._lock:
            waiting = self._db.execute(
                "select id, time, seq_no, readings from row where id > ? and id <= ? order by id",
                (row, until),
            )
            for number, time, seq_no, content in waiting:
                if number in self._done:
                    continue
                size -= len(content)
                if found and (size < 0 or len(found) >= rows):
                    break
                found.append(Spooled(number, time, seq_no, restored(content)))
            waiting.close()
            if found:
                self._in_flight = range(found[0].id, found[-1].id + 1)
        return found

    def acknowledge(self, row: Spooled, late: bool = False) -> None:
        """The server has the row: it goes with the next row put, or at `settle`. `late`: overtaken."""
        with self._lock:
            self._doubtful.discard(row.id)
            self._done[row.id] = late
            self.depth -= 1
            if len(self._done) >= _TOGETHER:
                self._commit()

    def renumber(self, row: Spooled) -> Spooled:
        """Gives a row the next place of the ring: at its own there is another row of this time."""
        other = row._replace(seq_no=(row.seq_no or 0) % self._rows + 1)
        with self._lock:
            place = (other.seq_no, other.id)
            done = self._commit(lambda: self._db.execute("update row set seq_no = ? where id = ?", place))
        return other if done else row

    def refuse(self, row: Spooled, reason: str) -> None:
        """The server will never take the row: it is laid aside."""

        def lay_aside() -> None:
            self._db.execute(
                "insert into refused select id, time, seq_no, readings, ? from row where id = ?",
                (reason, row.id),
            )
            self._db.execute("delete from row where id = ?", (row.id,))
            self._books.count(row.time, refused=1)
            self._books.note("refused", row.time, reason, None, 1)

        with self._lock:
            if self._commit(lay_aside):
                self.depth -= 1

    def repeat(self, unknown: bool = False) -> None:
        """Counts a call that is sent again. When it is `unknown` whether the server has the rows in flight,
        they are not thinned: the books would call lost what is not."""
        with self._lock:
            self._repeated += 1
            if unknown:
                self._doubtful.update(self._in_flight)

    def settle(self) -> None:
        """Removes what has been acknowledged, which otherwise waits for the next row put."""
        with self._lock:
            if self._held:
                self._take_in()
            elif self._done or self._repeated or self._given_up:
                self._commit()

    @property
    def oldest(self) -> int | None:
        """The time of the row that waits longest."""
        with self._lock:
            waiting = self._db.execute("select id, time from row order by id")
            return next((moment for row, moment in waiting if row not in self._done), None)

    # --- the books ---

    def hours(self) -> list[Hour]:
        """Hours whose figures have changed since they were sent; at most a hundred, oldest first."""
        with self._lock:
            return self._books.hours()

    def hour_reported(self, hour: Hour) -> None:
        """The server has these figures."""
        with self._lock:
            self._commit(lambda: self._books.hour_reported(hour))

    def events(self) -> list[Event]:
        """Events that have not been sent, oldest first; at most EVENTS."""
        with self._lock:
            return self._books.events()

    def events_reported(self, last: Event) -> None:
        """The server has the events up to this one."""
        with self._lock:
            self._commit(lambda: self._books.events_reported(last))

    def close(self) -> None:
        """Stores the current state and closes the file."""
        self.settle()
        with self._lock:
            self._db.close()
            self._room.close()

    # --- inside, with the lock held ---

    def _commit(self, work: Callable[[], object] | None = None) -> bool:
        """Does some work, and what waits to be written, in one transaction. False when there is no room for
        it: nothing was done then."""
        try:
            self._db.execute("begin immediate")
            for row, late in self._done.items():
                found = self._db.execute("delete from row where id = ? returning time", (row,)).fetchone()
                self._books.count(found[0], acknowledged=1, late=int(late))
            for hour, rows in self._given_up.items():
                self._books.count(hour, produced=rows, thinned=rows)
                self._books.note(
                    "thinned", hour, "the disk accepted no writes: rows in memory were dropped", None, rows
                )
            repeated = self._repeated
            self._books.count(time.time_ns() // 1000, repeated=repeated)
            if work is not None:
                work()
            self._db.execute("commit")
        except (sqlite3.OperationalError, NoRoomError) as error:
            if self._db.in_transaction:
                self._db.execute("rollback")
            if isinstance(error, sqlite3.OperationalError):
                if not is_one_of(error, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
                    raise
                self._room.disk_is_full()
            return False
        self._done.clear()
        self._given_up.clear()
        self._repeated -= repeated
        return True

    def _take_in(self) -> bool:
        """Writes the rows in memory into the file."""
        seq_no, newest, moment = self.seq_no, self.newest, self.time

        def insert() -> None:
            nonlocal seq_no, newest, moment
            for moment, content in self._held:
                newest += 1
                if seq_no is not None:
                    seq_no = seq_no % self._rows + 1
                self._db.execute("insert into row values (?, ?, ?, ?)", (newest, moment, seq_no, content))
                self._books.count(moment, produced=1)
            self._db.execute("update state set id = ?, seq_no = ?, time = ?", (newest, seq_no, moment))

        if not self._commit(insert):
            return False
        self.seq_no, self.newest, self.time = seq_no, newest, moment
        self.depth += len(self._held)
        self._held.clear()
        return True

    # --- when it is full ---

    def _thin(self) -> bool:
        """Drops rows of the next stretch on the way through the older half."""
        dropped = 0

        def thin() -> None:
            nonlocal dropped
            doomed = self._thinning.doomed(self.depth, self._is_sent)
            for row, moment in doomed:
                self._db.execute("delete from row where id = ?", (row,))
                self._books.count(moment, thinned=1)
            words = f"the spool was full: one in {self._thinning.keep_each} of the oldest rows was kept"
            self._books.note("thinned", doomed[0][1], words, doomed[-1][1], len(doomed))
            dropped = len(doomed)

        if not self._commit(thin):
            return False
        self.depth -= dropped
        self.thinned += dropped
        return True

    def _is_sent(self, row: int) -> bool:
        return row in self._in_flight or row in self._doubtful

    def _give_up(self) -> None:
        """Drops every second row in memory when they are too many; the ledger counts them when it can be
        written."""
        if len(self._held) > _MOST_HELD:
            for moment, _ in self._held[1::2]:
                self._given_up[moment // HOUR * HOUR] += 1
                self.thinned += 1
            del self._held[1::2]
