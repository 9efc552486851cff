"""The file of a spool: its tables, the checksums of its rows, and the conversion of rows that were stored
under an older facility file."""

import json
import os
import sqlite3
import uuid
from collections.abc import Mapping
from contextlib import closing, suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple
from zlib import crc32

from ringlog.clients.readings import restored, stored

PAGE = 4096
"""bytes"""
DAMAGED = "damaged on the disk: its checksum is wrong"
"""the reason why a row is moved aside"""

# A file of up to this size in bytes is checked completely when it is opened.
_CHECKED = 64 * 2**20

TABLES = (
    "create table if not exists row (id integer primary key, time integer not null, seq_no integer,"
    " readings text not null, crc integer)",
    "create table if not exists refused (id integer primary key, time integer not null, seq_no integer,"
    " readings text not null, reason text not null)",
    "create table if not exists ledger (hour integer primary key, produced integer not null default 0,"
    " acknowledged integer not null default 0, thinned integer not null default 0,"
    " refused integer not null default 0, late integer not null default 0,"
    " repeated integer not null default 0, changed integer not null default 1, crc integer)",
    "create table if not exists event (id integer primary key autoincrement, time integer not null,"
    " until integer, kind text not null, rows integer, message text not null, crc integer)",
    "create table if not exists state (spool text not null, table_name text not null, columns text not null,"
    " id integer not null, seq_no integer, time integer, crc integer)",
)


LEDGER = "hour, produced, acknowledged, thinned, refused, late, repeated"
EVENT = "id, time, until, kind, rows, message"
"""the columns that a checksum is of"""

UNREADABLE = (sqlite3.DatabaseError, UnicodeDecodeError)
"""errors of a damaged file: SQLite's, and Python's about SQLite's message"""


class SpoolError(Exception):
    """A spool cannot be opened; the message has the reason and the remedy."""


class State(NamedTuple):
    """The state of a spool: id, seq_no and time of the latest row; `columns` are the names of the data
    columns in JSON."""

    spool: str
    table: str
    columns: str
    id: int = 0
    seq_no: int | None = None
    time: int | None = None

    @property
    def names(self) -> list[str]:
        return list(json.loads(self.columns))

    @property
    def seal(self) -> int:
        """The initial value of the rows' checksums, which includes the names of the columns."""
        return crc32(self.columns.encode())

    def store(self, db: sqlite3.Connection) -> None:
        """Stores the state in place of the former one."""
        whole = (*self, self._checksum())
        columns = "(spool, table_name, columns, id, seq_no, time, crc)"
        if not db.execute(f"update state set {columns} = (?, ?, ?, ?, ?, ?, ?)", whole).rowcount:
            db.execute(f"insert into state {columns} values (?, ?, ?, ?, ?, ?, ?)", whole)

    @classmethod
    def load(cls, db: sqlite3.Connection) -> "State | None":
        """The state of a file; None for a new one. Raises DatabaseError when it is damaged."""
        found = db.execute("select spool, table_name, columns, id, seq_no, time, crc from state").fetchone()
        if found is None:
            return None
        state = cls(*found[:-1])
        if state._checksum() != found[-1]:
            raise damage("the checksum of its state is wrong")
        return state

    def _checksum(self) -> int:
        return crc32("\0".join(map(str, self)).encode())


def checksum(seal: int, row: Any, time: Any, seq_no: Any, readings: Any) -> int:
    """The checksum of a row; of a damaged one the values may be of any type."""
    content = readings if isinstance(readings, bytes) else str(readings).encode()
    return crc32(content, crc32(repr((row, time, seq_no, type(readings).__name__)).encode(), seal))


def seal_of(*values: object) -> int:
    """The checksum of an hour's figures or of an event."""
    return crc32(repr(values).encode(errors="replace"))


class Former(NamedTuple):
    """The former names of a table and its columns."""

    table: str | None = None
    columns: Mapping[str, str] = MappingProxyType({})
    """the new names by the old ones"""


def open_file(file: Path, state: State, log: int, former: Former = Former()) -> sqlite3.Connection:  # noqa: B008
    """Opens or makes the file, for this process alone; `log` are bytes that SQLite may write before it goes
    to the file itself. A new file gets the name in `state`, or one that no other has where that is empty.

    Raises SpoolError, and DatabaseError for a damaged file (see `is_damage`).
    """
    db = None
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # readings are private; SQLite gives its log the file's permissions
        os.close(os.open(file, os.O_RDWR | os.O_CREAT, 0o600))
        file.chmod(0o600)
        db = connect(file)
        db.execute(f"pragma page_size = {PAGE}")
        db.execute("pragma journal_mode = wal")
        db.execute("pragma synchronous = full")
        db.execute("pragma cache_size = -512")
        db.execute(f"pragma wal_autocheckpoint = {log // 2 // PAGE}")
        if file.stat().st_size <= _CHECKED:
            (found,) = db.execute("pragma quick_check(1)").fetchone()
            if found != "ok":
                raise damage(found)
        db.execute("begin immediate")
        for statement in TABLES:
            db.execute(statement)
        _check_tables(db)
        _take(file, db, state, former)
        db.execute("commit")
    except BaseException as error:
        if db is not None:
            db.close()
        if isinstance(error, UnicodeDecodeError):
            # SQLite's message contains damaged text
            raise damage("its tables have changed") from None
        if isinstance(error, sqlite3.DatabaseError) and is_damage(error):
            raise
        if isinstance(error, sqlite3.OperationalError):
            if is_one_of(error, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise SpoolError(f"{file}: another process writes table {state.table}") from None
            raise SpoolError(f"{file}: {error}") from None
        if isinstance(error, OSError):
            raise SpoolError(f"{file}: {error.strerror}") from None
        raise
    return db


def connect(file: Path) -> sqlite3.Connection:
    """A connection to a spool's file that locks other processes out."""
    db = sqlite3.connect(file, isolation_level=None, check_same_thread=False, timeout=0.5)
    # a damaged text is found by its checksum
    db.text_factory = lambda text: text.decode(errors="replace")
    # exclusive: no other process writes here, so no shared memory is needed
    db.execute("pragma locking_mode = exclusive")
    return db


def _check_tables(db: sqlite3.Connection) -> None:
    """Raises DatabaseError when the file has other tables than it was made with."""
    made = {text for (text,) in db.execute("select sql from sqlite_schema where name not glob 'sqlite_*'")}
    if made != {text.replace("create table if not exists", "CREATE TABLE") for text in TABLES}:
        raise damage("its tables have changed")


def take_over(file: Path, former: Path) -> None:
    """Gives the spool of a renamed table its new name, if no process has it. Raises SpoolError."""
    if file.exists() or not former.exists():
        return
    try:
        with closing(connect(former)) as db:
            db.execute("begin immediate")
            db.execute("commit")
    except sqlite3.DatabaseError as error:
        if is_one_of(error, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise SpoolError(
                f"{former}: a process still writes this table by its former name: stop it first"
            ) from None
        # damaged: it is read when it is opened
    for part in ("-count", "-wal", ""):
        with suppress(FileNotFoundError):
            former.with_name(former.name + part).rename(file.with_name(file.name + part))


def _take(file: Path, db: sqlite3.Connection, wanted: State, former: Former) -> None:
    """Assigns a new file to the table; rearranges rows that were stored under an older facility file."""
    state = State.load(db)
    if state is None:
        wanted._replace(spool=wanted.spool or uuid.uuid4().hex).store(db)
        return
    if state.table not in (wanted.table, former.table):
        raise SpoolError(f"{file} is the spool of table {state.table}, not of {wanted.table}")
    if (state.table, state.columns) == (wanted.table, wanted.columns):
        return
    taken = state._replace(table=wanted.table, columns=wanted.columns)
    had = [former.columns.get(name, name) if name not in wanted.names else name for name in state.names]
    names, seal, taken_seal = taken.names, state.seal, taken.seal
    for row, moment, seq_no, kept, crc in db.execute(
        "select id, time, seq_no, readings, crc from row"
    ).fetchall():
        if checksum(seal, row, moment, seq_no, kept) != crc:
            # its checksum stays wrong
            continue
        readings = dict(zip(had, restored(kept), strict=True))
        for name, reading in readings.items():
            if reading is not None and name not in names:
                raise SpoolError(f"{file} has rows with column {name}, which {state.table} no longer has")
        content = stored([readings.get(name) for name in names])
        sealed = checksum(taken_seal, row, moment, seq_no, content)
        db.execute("update row set readings = ?, crc = ? where id = ?", (content, sealed, row))
    taken.store(db)


def is_one_of(error: sqlite3.DatabaseError, *codes: int) -> bool:
    """Whether it is SQLite's error of one of these codes."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in codes


def is_damage(error: sqlite3.DatabaseError) -> bool:
    """Whether it is an error of a damaged file."""
    return is_one_of(error, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def damage(message: str) -> sqlite3.DatabaseError:
    """The error for damage that SQLite does not detect."""
    error = sqlite3.DatabaseError(message)
    error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
    return error
