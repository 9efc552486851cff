"""The file of a spool: its tables, and the conversion of rows that were stored under an older facility
file."""

import json
import sqlite3
import uuid
from pathlib import Path

from ringlog.clients.readings import restored, stored

PAGE = 4096
"""bytes"""

_TABLES = (
    "create table if not exists row ("
    " id integer primary key, time integer not null, seq_no integer, readings text not null)",
    "create table if not exists refused (id integer primary key, time integer not null, seq_no integer,"
    " readings text not null, reason text not null)",
    "create table if not exists ledger (hour integer primary key, produced integer not null default 0,"
    " acknowledged integer not null default 0, thinned integer not null default 0,"
    " refused integer not null default 0, late integer not null default 0,"
    " repeated integer not null default 0, changed integer not null default 1)",
    "create table if not exists event (id integer primary key autoincrement, time integer not null,"
    " until integer, kind text not null, rows integer, words text not null)",
    "create table if not exists state (spool text not null, table_name text not null, columns text not null,"
    " id integer not null, seq_no integer, time integer)",
)


class SpoolError(Exception):
    """A spool that cannot be opened; the message says why and what to do."""


def open_file(file: Path, table: str, columns: list[str], log: int) -> sqlite3.Connection:
    """Opens or makes the file, for this process alone; `log` are bytes that SQLite may write before it goes
    to the file itself. Raises SpoolError."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        db = sqlite3.connect(file, isolation_level=None, check_same_thread=False, timeout=0.5)
        # exclusive: no other process writes here, so no shared memory is needed
        db.execute("pragma locking_mode = exclusive")
        db.execute(f"pragma page_size = {PAGE}")
        db.execute("pragma journal_mode = wal")
        db.execute("pragma synchronous = full")
        db.execute("pragma cache_size = -512")
        db.execute(f"pragma wal_autocheckpoint = {log // 2 // PAGE}")
        db.execute("begin immediate")
        for statement in _TABLES:
            db.execute(statement)
        _take(file, db, table, columns)
        db.execute("commit")
    except sqlite3.OperationalError as error:
        if is_one_of(error, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise SpoolError(f"{file}: another process writes table {table}") from None
        raise SpoolError(f"{file}: {error}") from None
    except sqlite3.DatabaseError as error:
        raise SpoolError(f"{file} is not a spool ({error}): move it away to begin a new one") from None
    except OSError as error:
        raise SpoolError(f"{file}: {error.strerror}") from None
    return db


def _take(file: Path, db: sqlite3.Connection, table: str, columns: list[str]) -> None:
    """Makes a new file the table's; lays rows that an older facility file ordered otherwise out anew."""
    state = db.execute("select table_name, columns from state").fetchone()
    if state is None:
        words = (uuid.uuid4().hex, table, json.dumps(columns))
        db.execute("insert into state values (?, ?, ?, 0, null, null)", words)
        return
    if state[0] != table:
        raise SpoolError(f"{file} is the spool of table {state[0]}, not of {table}")
    had: list[str] = json.loads(state[1])
    if had == columns:
        return
    for row, content in db.execute("select id, readings from row").fetchall():
        readings = dict(zip(had, restored(content), strict=True))
        for name, reading in readings.items():
            if reading is not None and name not in columns:
                raise SpoolError(f"{file} has rows with column {name}, which {table} no longer has")
        laid_out = stored([readings.get(name) for name in columns])
        db.execute("update row set readings = ? where id = ?", (laid_out, row))
    db.execute("update state set columns = ?", (json.dumps(columns),))


def is_one_of(error: sqlite3.OperationalError, *codes: int) -> bool:
    """Whether it is SQLite's error of one of these codes."""
    return error.sqlite_errorcode & 0xFF in codes
