"""The queue on disk between a source and the server: one SQLite file per table.

A row that `put` has taken survives kill -9 and a power failure, and stays until the server has acknowledged
it. Its seq_no is assigned by `put`: however late and however often it is sent, the server recognizes it. The
file also holds the writer's records, written in the same transactions: numbers of rows by the hour
(`ledger`), events (`event`), and rows that the server refused for their content (`refused`).

Each row has a checksum: a row with damaged bytes is moved to `refused`. A damaged file is renamed, and the
spool continues in a new one with all readable rows. Both are events (`damaged`), and the ledger counts lost
rows as thinned.

When the budget or the disk is full, the older half of the rows is thinned from its oldest row on: one row in
2 is kept, then one in 4, 8 and so on, as the time that it covers grows. So the newest rows are complete, and
the others cover the whole outage evenly. The ledger counts the rows that were dropped.
"""

import json
import logging
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from pathlib import Path
from typing import Concatenate, NamedTuple, ParamSpec, TypeVar

from ringlog.clients.readings import Content, Reading, restored
from ringlog.clients.spool.books import Books, Event, Hour, Shares
from ringlog.clients.spool.damage import Count, CountFile, Row, finish_rescue, read_count, rescue
from ringlog.clients.spool.file import (
    DAMAGED,
    Former,
    SpoolError,
    State,
    checksum,
    is_damage,
    is_one_of,
    open_file,
    take_over,
)
from ringlog.clients.spool.room import NoRoomError, Room, Thinning, log_bytes
from ringlog.schema.moments import HOUR

log = logging.getLogger(__name__)
_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")

GiB = 2**30
LEAST_BUDGET = 2**20

# Maximum number of acknowledged rows before they are removed.
_TOGETHER = 256
# Rows kept in memory while the disk accepts no writes.
_MOST_HELD = 1000


class Spooled(NamedTuple):
    """A row on its way: `id` counts the rows put, `time` is in microseconds since 1970, `seq_no` is None
    until the server's position is known."""

    id: int
    time: int
    seq_no: int | None
    content: Content

    @property
    def readings(self) -> tuple[Reading, ...]:
        return restored(self.content)


def one_row(time: int, content: Content) -> Shares:
    """The shares of a row that is one row of its table."""
    return ((time, 1),)


def _locked(
    method: Callable[Concatenate["Spool", _Arguments], _Result],
) -> Callable[Concatenate["Spool", _Arguments], _Result]:
    """Runs a method with the lock held, and again with a new file if the file is damaged."""

    @wraps(method)
    def done(spool: "Spool", /, *arguments: _Arguments.args, **named: _Arguments.kwargs) -> _Result:
        with spool._lock:
            try:
                return method(spool, *arguments, **named)
            except sqlite3.DatabaseError as error:
                if not is_damage(error):
                    raise
                spool._rescue(error)
                return method(spool, *arguments, **named)

    return done


class Spool:
    """A table's queue, for one process, which may use it from several threads.

    `rows` is the size of the ring, `columns` are the names of the data columns, `budget` is in bytes. Raises
    SpoolError if another process has it, it belongs to another table, or it has rows of removed columns.
    `shares` returns the ledger's counts for a row's time and content.
    """

    def __init__(
        self,
        file: Path,
        table: str,
        columns: Sequence[str],
        rows: int,
        budget: int = GiB,
        former: Former = Former(),  # noqa: B008
        shares: Callable[[int, Content], Shares] = one_row,
    ) -> None:
        if budget < LEAST_BUDGET:
            raise SpoolError(f"a spool's budget of {budget} bytes is below {LEAST_BUDGET}, 1 MiB")
        self.file = file
        self._rows = rows
        self._budget = budget
        self._former = former
        self._shares = shares
        self._lock = threading.RLock()
        # rows that are not on the disk yet, and the number of dropped ones by hour
        self._held: list[tuple[int, Content, Shares]] = []
        self._given_up: Counter[int] = Counter()
        # acknowledged rows that are still in the file: their shares, whether they were late, and the shares
        # that were refused
        self._done: dict[int, tuple[Shares, bool, Shares]] = {}
        self._repeated = 0
        # ids from the first to the last row that is being sent
        self._in_flight = range(0)
        # ids of rows that the server may have stored without an acknowledgement
        self._doubtful: set[int] = set()
        self.depth = 0
        """rows not yet acknowledged"""
        self.thinned = 0
        """rows dropped since it was opened"""
        self._db: sqlite3.Connection | None = None
        self._state = State("", table, json.dumps([*columns]))
        if former.table is not None:
            take_over(file, file.with_name(f"{former.table}{file.suffix}"))
        finish_rescue(file)
        self._count = read_count(file)
        self._count_file: CountFile | None = None
        try:
            self._open()
        except sqlite3.DatabaseError as error:
            if not is_damage(error):
                raise
            self._rescue(error)
        self._compare()
        self._keep_count()

    @property
    def name(self) -> str:
        """An identifier that no other spool has."""
        return self._state.spool

    @property
    def newest(self) -> int:
        """The id of the row put last."""
        return self._state.id

    @property
    def seq_no(self) -> int | None:
        """That of the row put last, or of the server's latest row."""
        return self._state.seq_no

    @property
    def time(self) -> int | None:
        """That of the row put last, or of the server's latest row."""
        return self._state.time

    # --- the source's side ---

    def put(self, rows: Sequence[tuple[int, Content]]) -> None:
        """Stores rows durably, in one transaction: their times in microseconds since 1970, and contents. It
        never waits for the server. On a full disk it makes room, and if that fails keeps some rows in
        memory."""
        size = 0
        for _, content in rows:
            # a text has no surrogates, which cannot be stored
            size += len(content.encode() if isinstance(content, str) else content)
        with self._lock:
            self._held += [(time, content, self._shares(time, content)) for time, content in rows]
            self._store(size)

    @_locked
    def _store(self, more: int) -> None:
        if self._held and self._room.is_full(more):
            self._thin()
        while self._held and not self._take_in():
            if not self._thin():
                self._give_up()
                break

    @_locked
    def note(
        self, kind: str, time: int, message: str, until: int | None = None, rows: int | None = None
    ) -> None:
        """Keeps an event, to be sent to the server."""
        self._commit(lambda: self._books.note(kind, time, message, until, rows))

    @_locked
    def begin(self, seq_no: int, time: int | None) -> None:
        """Takes the server's latest row: 0 and None for an empty ring.

        A new spool's rows are numbered now. Another one continues after the server's number if that row is
        later than its own, because another writer has written meanwhile.
        """
        later = time is not None and (self.time is None or time > self.time)
        if self.seq_no is not None and not later:
            return
        state = self._state

        def number() -> None:
            nonlocal state
            last = seq_no
            for (row,) in self._sql("select id from row where seq_no is null order by id").fetchall():
                last = last % self._rows + 1
                self._number(row, last)
            state = self._state._replace(seq_no=last, time=time if later else self.time)
            state.store(self._database)

        if self._commit(number):
            self._state = state

    # --- the sender's side ---

    def after(self, row: int, until: int | None = None) -> Spooled | None:
        """The first row put after that of the id `row` and up to that of the id `until`; it counts as in
        flight from now on, and is not thinned."""
        found = self.batch(row, self.newest if until is None else until, 1, 0)
        return found[0] if found else None

    @_locked
    def batch(self, row: int, until: int, rows: int, size: int) -> list[Spooled]:
        """As `after`, the first rows in their order: at most `rows`, and one or as many as have `size`
        characters of readings."""
        found: list[Spooled] = []
        wrong: list[Row] = []
        waiting = self._sql(
            "select id, time, seq_no, readings, crc from row where id > ? and id <= ? order by id",
            row,
            until,
        )
        for each in waiting:
            number, time, seq_no, content, _ = each
            if number in self._done:
                continue
            if not self._is_sound(each):
                wrong.append(each)
                continue
            size -= len(content)
            if found and (size < 0 or len(found) >= rows):
                break
            found.append(Spooled(number, time, seq_no, content))
            if len(found) >= rows:
                break
        waiting.close()
        if wrong:
            self._lay_aside(wrong)
        if found:
            self._in_flight = range(found[0].id, found[-1].id + 1)
        return found

    @_locked
    def acknowledge(self, rows: Sequence[Spooled], late: bool = False, refused: Shares = ()) -> None:
        """The server has the rows: they are removed with the next put, or at `settle`. `late`: later rows
        arrived before. `refused` are the shares that the server will never take."""
        for row in rows:
            if row.id not in self._done:
                self._doubtful.discard(row.id)
                self._done[row.id] = self._shares(row.time, row.content), late, refused
                refused = ()
                self.depth -= 1
        if len(self._done) < _TOGETHER or not self._commit():
            self._keep_count()

    @_locked
    def renumber(self, row: Spooled) -> Spooled:
        """Gives a row the next place of the ring: its own place has another row of this time."""
        other = row._replace(seq_no=(row.seq_no or 0) % self._rows + 1)
        return other if self._commit(lambda: self._number(other.id, other.seq_no)) else row

    @_locked
    def refuse(self, row: Spooled, reason: str) -> None:
        """The server will never accept the row: it is moved to `refused`."""

        def lay_aside() -> None:
            self._sql(
                "insert into refused select id, time, seq_no, readings, ? from row where id = ?",
                reason,
                row.id,
            )
            self._sql("delete from row where id = ?", row.id)
            shares = self._shares(row.time, row.content)
            for moment, rows in shares:
                self._books.count(moment, refused=rows)
            self._books.note("refused", row.time, reason, None, sum(rows for _, rows in shares))

        if self._commit(lay_aside):
            self.depth -= 1
            self._keep_count()

    def repeat(self, unknown: bool = False) -> None:
        """Counts a call that is sent again. When it is `unknown` whether the server has the rows in flight,
        they are not thinned: stored rows would be counted as lost."""
        with self._lock:
            self._repeated += 1
            if unknown:
                self._doubtful.update(self._in_flight)

    @_locked
    def settle(self) -> None:
        """Removes acknowledged rows now, instead of at the next put."""
        if self._held:
            self._take_in()
        elif self._done or self._repeated or self._given_up:
            self._commit()

    @property
    @_locked
    def oldest(self) -> int | None:
        """The time of the row that waits longest."""
        waiting = self._sql("select id, time, seq_no, readings, crc from row order by id")
        return next((row[1] for row in waiting if row[0] not in self._done and self._is_sound(row)), None)

    # --- the ledger ---

    @_locked
    def hours(self) -> list[Hour]:
        """Hours whose figures have changed since they were sent; at most a hundred, oldest first."""
        hours, damaged = self._books.hours()
        if damaged:
            self._commit(lambda: self._books.lay_aside_hours(damaged))
        return hours

    @_locked
    def hour_reported(self, hour: Hour) -> None:
        """The server has these figures."""
        self._commit(lambda: self._books.hour_reported(hour))

    @_locked
    def events(self) -> list[Event]:
        """Events that have not been sent, oldest first; at most EVENTS."""
        events, damaged = self._books.events()
        if damaged:
            self._commit(lambda: self._books.lay_aside_events(damaged))
        return events

    @_locked
    def events_reported(self, last: Event) -> None:
        """The server has the events up to this one."""
        self._commit(lambda: self._books.events_reported(last))

    def close(self) -> None:
        """Stores the current state and closes the file."""
        self.settle()
        with self._lock:
            self._close()
            if self._count_file is not None:
                self._count_file.close()

    # --- inside, with the lock held ---

    @property
    def _database(self) -> sqlite3.Connection:
        assert self._db is not None
        return self._db

    def _sql(self, statement: str, *values: object) -> sqlite3.Cursor:
        return self._database.execute(statement, values)

    def _open(self) -> None:
        """Opens the file, for the rows that are in it."""
        self._db = open_file(self.file, self._state, log_bytes(self._budget), self._former)
        self._count_file = self._count_file or CountFile(self.file)
        self._books = Books(self._db)
        self._room = Room(self._db, self.file, self._budget)
        self._thinning = Thinning(self._db, self._budget)
        state = State.load(self._db)
        assert state is not None
        self._state = state
        self._seal = state.seal
        rows = {row for (row,) in self._sql("select id from row")}
        self.depth = len(rows - self._done.keys())

    def _close(self) -> None:
        if self._db is not None:
            self._db.close()
            self._db = None
            self._room.close()

    def _is_sound(self, row: Row) -> bool:
        return checksum(self._seal, *row[:-1]) == row[-1]

    def _number(self, row: int, seq_no: int | None) -> None:
        """Gives a row a place in the ring."""
        query = "select id, time, seq_no, readings, crc from row where id = ?"
        found = self._sql(query, row).fetchone()
        if self._is_sound(found):
            crc = checksum(self._seal, row, found[1], seq_no, found[3])
            self._sql("update row set seq_no = ?, crc = ? where id = ?", seq_no, crc, row)

    def _commit(self, work: Callable[[], object] | None = None) -> bool:
        """Does some work, and writes the waiting rows, in one transaction. False if there is no room: nothing
        was done then."""
        try:
            self._sql("begin immediate")
            self._database.executemany("delete from row where id = ?", [(row,) for row in self._done])
            self._books.count_done(self._done.values())
            for hour, rows in self._given_up.items():
                self._books.count(hour, produced=rows, thinned=rows)
                self._books.note(
                    "thinned", hour, "the disk accepted no writes: rows in memory were dropped", None, rows
                )
            repeated = self._repeated
            self._books.count(time.time_ns() // 1000, repeated=repeated)
            if work is not None:
                work()
            self._sql("commit")
        except (sqlite3.OperationalError, NoRoomError) as error:
            if self._database.in_transaction:
                self._sql("rollback")
            if isinstance(error, sqlite3.OperationalError):
                if not is_one_of(error, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
                    raise
                self._room.disk_is_full()
            return False
        self._done.clear()
        self._given_up.clear()
        self._repeated -= repeated
        if work is None:
            self._keep_count()
        return True

    def _take_in(self) -> bool:
        """Writes the rows in memory into the file."""
        state = self._state

        def numbered() -> Iterator[tuple[int, int, int | None, Content, int]]:
            seq_no = state.seq_no
            for number, (moment, content, _) in enumerate(self._held, state.id + 1):
                seq_no = None if seq_no is None else seq_no % self._rows + 1
                yield number, moment, seq_no, content, checksum(self._seal, number, moment, seq_no, content)

        def insert() -> None:
            nonlocal state
            rows = [*numbered()]
            self._database.executemany("insert into row values (?, ?, ?, ?, ?)", rows)
            self._books.count_produced(shares for _, _, shares in self._held)
            number, moment, seq_no, _, _ = rows[-1]
            state = state._replace(id=number, seq_no=seq_no, time=moment)
            state.store(self._database)

        if not self._commit(insert):
            return False
        self._state = state
        self.depth += len(self._held)
        self._held.clear()
        self._keep_count()
        return True

    # --- damage ---

    def _keep_count(self) -> None:
        """Writes the count of the rows."""
        stored_rows = self.depth + len(self._done)
        self._count = Count(self.name, self.newest, self.time or 0, stored_rows, self.depth)
        if self._count_file is not None:
            self._count_file.write(self._count)

    def _lay_aside(self, wrong: Sequence[Row]) -> None:
        """Moves rows with wrong checksums aside."""
        moments = [row[1] if self._books.has_hour(row[1]) else self.time or 0 for row in wrong]
        message = f"rows were damaged on the disk: they are in the table refused of {self.file}"

        def move() -> None:
            for row, moment in zip(wrong, moments, strict=True):
                self._sql(
                    "insert or ignore into refused select id, coalesce(time, 0), seq_no,"
                    " coalesce(readings, ''), ? from row where id = ?",
                    DAMAGED,
                    row[0],
                )
                self._sql("delete from row where id = ?", row[0])
                self._books.count(moment, thinned=1)
            self._books.note("damaged", min(moments), message, max(moments), len(wrong))

        if self._commit(move):
            self.depth -= len(wrong)
            self.thinned += len(wrong)
            self._keep_count()

    def _rescue(self, error: sqlite3.DatabaseError) -> None:
        """Continues in a new file with the readable rows of the damaged one."""
        self._close()
        count = self._count
        wanted = (
            self._state if self._state.spool or count is None else self._state._replace(spool=count.spool)
        )
        rescued = rescue(self.file, wanted, 0 if count is None else count.newest)
        self._open()
        lost = rescued.wrong
        if count is not None:
            lost = max(0, min(count.stored - rescued.rows, count.waiting))
        message = (
            f"the spool was damaged ({error}): {rescued.aside} keeps it, the rows that can be read are in"
            f" {self.file}"
        )
        self._account(message, rescued.behind, lost, self.time)

    def _compare(self) -> None:
        """Compares the count of the rows with the spool, to detect lost rows."""
        count = self._count
        if count is None:
            return
        if count.spool != self.name:
            if count.waiting:
                message = f"{self.file} was removed while rows waited in it"
                self._account(message, count.waiting, count.waiting, None, count.time)
        elif count.newest > self.newest:
            behind, since = count.newest - self.newest, self.time
            self._state = self._state._replace(id=count.newest)
            message = f"{self.file} has lost its newest rows: its -wal file was removed or damaged"
            self._account(message, behind, min(behind, count.waiting), since, count.time)

    def _account(
        self, message: str, behind: int, lost: int, since: int | None, until: int | None = None
    ) -> None:
        """Records a damage: `behind` rows are not in the ledger, `lost` were not acknowledged. Their times
        are from `since` to `until`."""
        until = until or self.time or time.time_ns() // 1000
        since = until if since is None else since
        rows = max(behind, lost)

        def record() -> None:
            self._state.store(self._database)
            for row in range(rows):
                moment = until - (until - since) * row // rows
                self._books.count(moment, produced=row < behind, acknowledged=row >= lost, thinned=row < lost)
            self._books.note_anew("damaged", min(since, until), message, until, lost)

        self._commit(record)
        self.thinned += lost
        log.warning("%s: %s; %d rows are lost", self._state.table, message, lost)

    # --- a full spool ---

    def _thin(self) -> bool:
        """Drops rows of the next part of the older half."""
        dropped = 0

        def thin() -> None:
            nonlocal dropped
            deleted = self._thinning.to_delete(self.depth, self._is_sent)
            lost = 0
            for row, moment in deleted:
                for of, rows in self._shares_of(row, moment):
                    self._books.count(of, thinned=rows)
                    lost += rows
                self._sql("delete from row where id = ?", row)
            message = f"the spool was full: one in {self._thinning.keep_each} of the oldest rows was kept"
            self._books.note("thinned", deleted[0][1], message, deleted[-1][1], lost)
            dropped = len(deleted)

        if not self._commit(thin):
            return False
        self.depth -= dropped
        self.thinned += dropped
        self._keep_count()
        return True

    def _shares_of(self, row: int, moment: int) -> Shares:
        """The shares of a row that is in the file."""
        if self._shares is one_row:
            return one_row(moment, "")
        (content,) = self._sql("select readings from row where id = ?", row).fetchone()
        return self._shares(moment, content)

    def _is_sent(self, row: int) -> bool:
        return row in self._in_flight or row in self._doubtful

    def _give_up(self) -> None:
        """Drops every second row in memory when they are too many; the ledger counts them when it can be
        written."""
        if len(self._held) > _MOST_HELD:
            for _, _, shares in self._held[1::2]:
                for moment, rows in shares:
                    self._given_up[moment // HOUR * HOUR] += rows
                self.thinned += 1
            del self._held[1::2]
