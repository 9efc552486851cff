"""The file of a spool: its transactions, damage and thinning. All is used with the lock held."""

import json
import logging
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from ringlog.clients.readings import Content
from ringlog.clients.spool.books import Books, Shares
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
_Spool = TypeVar("_Spool", bound="Stored")

GiB = 2**30
LEAST_BUDGET = 2**20

# Rows kept in memory while the disk accepts no writes.
_MOST_HELD = 1000


def one_row(time: int, content: Content) -> Shares:
    return ((time, 1),)


def locked(
    method: Callable[Concatenate[_Spool, _Arguments], _Result],
) -> Callable[Concatenate[_Spool, _Arguments], _Result]:
    """Runs a method with the lock held, and again with a new file if the file is damaged."""

    @wraps(method)
    def done(spool: _Spool, /, *arguments: _Arguments.args, **named: _Arguments.kwargs) -> _Result:
        with spool._lock:
            try:
                return method(spool, *arguments, **named)
            except sqlite3.DatabaseError as error:
                if not is_damage(error):
                    raise
                spool._rescue(error)
                return method(spool, *arguments, **named)

    return done


class Stored:
    """The rows of a spool in its file, and those that wait in memory for the disk."""

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
        """Gives a row a number in the ring."""
        query = "select id, time, seq_no, readings, crc from row where id = ?"
        stored = self._sql(query, row).fetchone()
        if self._is_sound(stored):
            crc = checksum(self._seal, row, stored[1], seq_no, stored[3])
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
