"""Damaged spools: a count of the rows in a separate file, which shows losses of the spool, and a new
file with the rows that can be read from a damaged one.
"""

import os
import sqlite3
import struct
import time
import uuid
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple, TypeAlias
from zlib import crc32

from ringlog.clients.spool.file import (
    DAMAGED,
    PAGE,
    TABLES,
    UNREADABLE,
    SpoolError,
    State,
    checksum,
    connect,
    is_damage,
    is_one_of,
)

# The first bytes of each file of SQLite: its name, pages of 4096 bytes, WAL.
_HEADER = b"SQLite format 3\0" + struct.pack(">HBBBBBB", PAGE, 2, 2, 0, 64, 32, 32)
# Distance by which a row's id may exceed the last known one.
_BEYOND = 10_000

_KEPT = struct.Struct("<32sqqqqI")

Row: TypeAlias = tuple[int, int, int | None, str | bytes, int]


class Count(NamedTuple):
    """A spool's rows as of its last change: the id of the row put last and its time, rows in the file, and
    those of them that the server has not acknowledged."""

    spool: str
    newest: int
    time: int
    stored: int
    waiting: int


class CountFile:
    """A spool's count in a separate file, `<table>.spool-count`, which damage of the spool's files does not
    affect. It is not synced: after a power failure it may be behind the spool, never ahead."""

    def __init__(self, file: Path) -> None:
        self._file = os.open(_counted(file), os.O_RDWR | os.O_CREAT, 0o600)

    def write(self, count: Count) -> None:
        kept = (count.spool.encode(), *count[1:])
        content = _KEPT.pack(*kept, crc32(repr(kept).encode()))
        # on a full disk the spool continues without it
        with suppress(OSError):
            os.pwrite(self._file, content, 0)

    def close(self) -> None:
        os.close(self._file)


def read_count(file: Path) -> Count | None:
    """The count of a spool's rows; None if it is missing."""
    with suppress(FileNotFoundError, struct.error):
        *kept, crc = _KEPT.unpack(_counted(file).read_bytes())
        if crc32(repr((*kept,)).encode()) == crc:
            return Count(kept[0].decode(), *kept[1:])
    return None


def _counted(file: Path) -> Path:
    return file.with_name(file.name + "-count")


class Rescued(NamedTuple):
    """The result of a repair: the damaged file's new path, the number of its rows in the new file, of rows
    moved aside there for wrong checksums, and of rows missing in its ledger."""

    aside: Path
    rows: int
    wrong: int
    behind: int


def rescue(file: Path, wanted: State, newest: int) -> Rescued:
    """Replaces a damaged file, which is renamed, by a new one with all readable rows.

    `wanted` is the state to use if the file's own cannot be read or is older, `newest` the id of the latest
    row. Raises SpoolError.
    """
    fresh = file.with_name(file.name + "-new")
    aside = file.with_name(f"{file.name}-damaged-{time.strftime('%Y%m%dT%H%M%S')}")
    for former in (fresh, _log_of(fresh)):
        former.unlink(missing_ok=True)
    try:
        os.close(os.open(fresh, os.O_RDWR | os.O_CREAT, 0o600))
        with closing(_opened(file)) as old, closing(connect(fresh)) as new:
            state = _state_of(old, wanted)
            if state.table != wanted.table:
                raise SpoolError(f"{file} is the spool of table {state.table}, not of {wanted.table}")
            new.execute(f"pragma page_size = {PAGE}")
            new.execute("begin immediate")
            for statement in TABLES:
                new.execute(statement)
            newest = max(newest, state.id)
            behind = newest - state.id if state.id else 0
            rows, wrong = _copy_rows(old, new, state.seal, newest + _BEYOND)
            last = new.execute("select id, seq_no, time from row order by id desc limit 1").fetchone()
            if last is not None and last[0] > state.id:
                state = state._replace(seq_no=last[1], time=last[2])
            state._replace(id=max(newest, last[0] if last else 0)).store(new)
            for table in ("ledger", "event", "refused"):
                _copy(old, new, table)
            new.execute("commit")
        file.rename(aside)
        with suppress(FileNotFoundError):
            _log_of(file).rename(_log_of(aside))
        fresh.rename(file)
    except sqlite3.OperationalError as error:
        if is_one_of(error, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise SpoolError(f"{file}: another process writes table {wanted.table}") from None
        raise SpoolError(f"{file} is damaged, and a new one cannot be made: {error}") from None
    except OSError as error:
        raise SpoolError(
            f"{file} is damaged, and a new one cannot be made: {error.strerror}: {error.filename}"
        ) from None
    return Rescued(aside, rows, wrong, behind)


def _state_of(old: sqlite3.Connection, wanted: State) -> State:
    with suppress(*UNREADABLE):
        state = State.load(old)
        if state is not None and state.id >= wanted.id:
            return state
    return wanted._replace(spool=wanted.spool or uuid.uuid4().hex)


def finish_rescue(file: Path) -> None:
    """Renames a new file if the process died before it could."""
    fresh = file.with_name(file.name + "-new")
    if fresh.exists() and not file.exists():
        fresh.rename(file)


def _log_of(file: Path) -> Path:
    return file.with_name(file.name + "-wal")


def _opened(file: Path) -> sqlite3.Connection:
    """A connection to a damaged file that reads as much as possible."""
    db = connect(file)
    try:
        # SQLite refuses a file that is shorter than in its header, except in this mode
        db.execute("pragma writable_schema = on")
        db.execute("select 1 from sqlite_schema").fetchone()
    except UNREADABLE as error:
        db.close()
        if isinstance(error, sqlite3.DatabaseError) and not is_damage(error):
            raise
        with file.open("r+b") as damaged:
            if len(damaged.read(PAGE)) == PAGE:
                damaged.seek(0)
                damaged.write(_HEADER)
        db = connect(file)
        db.execute("pragma writable_schema = on")
    return db


def _copy_rows(old: sqlite3.Connection, new: sqlite3.Connection, seal: int, high: int) -> tuple[int, int]:
    """Copies the rows with ids up to `high`; how many, and how many of wrong checksums were laid aside."""
    rows = wrong = 0
    for row in _readable(old, 0, high):
        if checksum(seal, *row[:-1]) == row[-1]:
            rows += new.execute("insert or ignore into row values (?, ?, ?, ?, ?)", row).rowcount
        else:
            new.execute(
                "insert or ignore into refused values (?, coalesce(?, 0), ?, coalesce(?, ''), ?)",
                (*row[:-1], DAMAGED),
            )
            wrong += 1
    return rows, wrong


def _readable(db: sqlite3.Connection, low: int, high: int) -> Iterator[Row]:
    """The rows with ids from `low` to `high` that can be read: those before and behind the damage, and those
    between two damages by bisection."""
    query = "select id, time, seq_no, readings, crc from row where id between ? and ? order by id"
    for order in ("", " desc"):
        try:
            for row in db.execute(query + order, (low, high)):
                yield row
                if low <= row[0] <= high:
                    low, high = (low, row[0] - 1) if order else (row[0] + 1, high)
        except UNREADABLE:
            continue
        return
    if low < high:
        middle = (low + high) // 2
        yield from _readable(db, low, middle)
        yield from _readable(db, middle + 1, high)


def _copy(old: sqlite3.Connection, new: sqlite3.Connection, table: str) -> None:
    """Copies the rows of another table up to the damage."""
    with suppress(*UNREADABLE):
        width = len(new.execute(f"pragma table_info({table})").fetchall())
        for row in old.execute(f"select * from {table}"):
            # a value of the wrong type is damaged
            with suppress(sqlite3.IntegrityError):
                new.execute(f"insert or ignore into {table} values (?{', ?' * (width - 1)})", row)
