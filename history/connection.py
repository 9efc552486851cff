"""Connections to PostgreSQL that return Arrow, by ADBC."""

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from hashlib import sha256
from typing import Any
from weakref import WeakKeyDictionary

import pyarrow as pa
import pyarrow.compute as pc
from adbc_driver_manager import Error
from adbc_driver_manager.dbapi import Connection
from psycopg import sql

from ringlog.schema import session

__all__ = [
    "BeyondArrow",
    "Connection",
    "ReadError",
    "connect",
    "plain",
    "rows",
    "run",
    "table_of",
    "transaction",
]

BATCH_BYTES = 4 << 20
"""of PostgreSQL's, in a record batch"""

# PostgreSQL counts microseconds from 2000, Arrow from 1970. To the driver, what is too late for
# that begins again at the earliest time, which is before -infinity.
_MINUS_INFINITY = -(2**63) + 946_684_800_000_000

# Without it the driver reads all columns of the database for each connection (arrow-adbc, issue 1755): a
# second of CPU for six tables of 200 columns, minutes for ten years of partitions. We read types of
# PostgreSQL's own only.
_TYPES = {"adbc.postgresql.type_resolver_mode": "builtin"}


class ReadError(Exception):
    """PostgreSQL cannot be reached or refuses to read.

    `sqlstate` says why where PostgreSQL does, as 42501 (no right), 42P01 (no such table), 42703 (no such
    column).
    """

    def __init__(self, message: str, sqlstate: str | None) -> None:
        super().__init__(message)
        self.sqlstate = sqlstate


class BeyondArrow(ReadError):
    """A time is infinity, or after 294247-01-10 04:00:54.775807 UTC, the last that Arrow has."""

    def __init__(self, column: str) -> None:
        # datetime_field_overflow
        super().__init__(
            f"column {column} has a time after 294247-01-10 04:00:54.775807 UTC, or infinity, "
            "which Arrow and Parquet do not have",
            "22008",
        )


def connect(conninfo: str) -> Connection:
    """Logs in by a libpq connection string or URI. Raises ReadError."""
    with _errors_converted():
        return session.arrow(conninfo, **_TYPES)


@contextmanager
def transaction(database: str | Connection) -> Iterator[Connection]:
    """A transaction of a connection of its own, or of one that is there; it is rolled back at the end."""
    if isinstance(database, str):
        with closing(connect(database)) as connection:
            yield connection
        return
    try:
        yield database
    finally:
        with suppress(Error):  # the connection is lost, which what ran in it has said
            database.rollback()


def run(connection: Connection, statement: sql.Composable) -> None:
    """Runs a statement without a result. Raises ReadError."""
    with _errors_converted(), closing(connection.cursor()) as cursor:
        cursor.execute(statement.as_string())


def rows(
    connection: Connection, query: sql.Composable, batch_bytes: int = BATCH_BYTES
) -> Iterator[pa.RecordBatch]:
    """Streams the result of a query: one batch at least, which may be empty. A batch is given when it has so
    many bytes of PostgreSQL's.

    Nothing is read ahead of the one who takes the batches but what the socket holds. Closing the iterator
    cancels the query. Raises ReadError; BeyondArrow for a time that Arrow does not have.
    """
    cursor = connection.cursor()
    ended = False
    try:
        with _errors_converted():
            cursor.adbc_statement.set_options(**{"adbc.postgresql.batch_size_hint_bytes": str(batch_bytes)})
            cursor.execute(query.as_string())
            reader = cursor.fetch_record_batch()
        empty = True
        while (batch := _next(reader)) is not None:
            empty = False
            _check_times(batch)
            yield plain(batch)
        ended = True
        if empty:
            yield plain(pa.RecordBatch.from_pylist([], schema=reader.schema))
    finally:
        if not ended:
            # else closing would first fetch all that is left
            with suppress(Error):
                cursor.adbc_cancel()
        with suppress(Error):
            cursor.close()


def _check_times(batch: pa.RecordBatch) -> None:
    for field, column in zip(batch.schema, batch.columns, strict=True):
        if pa.types.is_timestamp(field.type):
            earliest = pc.min(column).value
            if earliest is not None and earliest < _MINUS_INFINITY:
                raise BeyondArrow(field.name)


def plain(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A batch without the driver's notes on PostgreSQL's types. Numerics are their digits, as text, where the
    driver has a type of its own for them, which Arrow's functions do not take."""
    columns = [
        column.storage if isinstance(column, pa.ExtensionArray) else column for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def records(connection: Connection, query: sql.Composable) -> list[dict[str, Any]]:
    """All rows of a query's result, which must be small. Raises ReadError."""
    found: list[dict[str, Any]] = table_of(connection, query).to_pylist()
    return found


def table_of(connection: Connection, query: sql.Composable) -> pa.Table:
    """The result of a query, which is in memory as a whole. Raises ReadError."""
    cursor = connection.cursor()
    try:
        with _errors_converted():
            # by COPY, as the driver reads else, it costs twice as much: it is parsed once more
            cursor.adbc_statement.set_options(**{"adbc.postgresql.use_copy": "false"})
            cursor.execute(query.as_string())
            return cursor.fetch_arrow_table()
    finally:
        with suppress(Error):
            cursor.close()


_MOST = 64
"""prepared statements of a connection"""
_prepared: WeakKeyDictionary[Connection, set[str]] = WeakKeyDictionary()
"""the names of those of each connection"""


def answer(
    connection: Connection, query: sql.Composable, types: Sequence[str], values: Sequence[sql.Composable]
) -> pa.Table:
    """As `table_of`, of a query with $1, $2 … of these types, which PostgreSQL plans only the first times
    that a connection asks it. Raises ReadError."""
    text = query.as_string()
    name = sql.Identifier(f"ringlog_{sha256(text.encode()).hexdigest()[:24]}")
    there = _prepared.setdefault(connection, set())
    if name.as_string() not in there:
        if len(there) == _MOST:
            run(connection, sql.SQL("deallocate all"))
            there.clear()
        of_types = sql.SQL(", ").join(map(sql.SQL, types))
        run(connection, sql.SQL("prepare {} ({}) as {}").format(name, of_types, sql.SQL(text)))
        there.add(name.as_string())
    return table_of(connection, sql.SQL("execute {} ({})").format(name, sql.SQL(", ").join(values)))


def _next(reader: pa.RecordBatchReader) -> pa.RecordBatch | None:
    with _errors_converted():
        try:
            return reader.read_next_batch()
        except StopIteration:
            return None


@contextmanager
def _errors_converted() -> Iterator[None]:
    """Raises ReadError for the driver's errors."""
    try:
        yield
    except Error as error:
        raise ReadError(str(error), error.sqlstate) from error
    except OSError as error:
        # an error in the middle of a result comes through Arrow's stream, without an SQLSTATE
        raise ReadError(str(error), None) from error
