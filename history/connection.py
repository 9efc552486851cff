"""Connections to PostgreSQL: small answers by libpq, streams of Arrow by ADBC."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import psycopg
import pyarrow as pa
import pyarrow.compute as pc
from adbc_driver_manager import Error
from psycopg import pq, sql
from psycopg.rows import dict_row

from ringlog.schema import session

if TYPE_CHECKING:
    # it takes as much memory as everything else in a reader of closed rows
    import adbc_driver_manager.dbapi as adbc

__all__ = [
    "BeyondArrow",
    "Connection",
    "ReadError",
    "as_text",
    "connect",
    "plain",
    "rows",
    "run",
    "time_literal",
    "transaction",
]

BATCH_BYTES = 4 << 20
"""bytes of PostgreSQL's format in a record batch"""

_PACKS = """
select coalesce(has_function_privilege(to_regprocedure('ringlog.array_bytes(anyarray)'), 'execute'), false)
"""

_STATEMENTS = 64
"""prepared statements of a connection"""

# PostgreSQL counts microseconds from 2000, Arrow from 1970. In the driver a time too late for Arrow wraps
# around to the earliest times, before -infinity.
_MINUS_INFINITY = -(2**63) + 946_684_800_000_000

# Without it the driver reads all columns of the database for each connection (arrow-adbc, issue 1755): a
# second of CPU for six tables of 200 columns, minutes for ten years of partitions. We read types of
# PostgreSQL's own only.
_TYPES = {"adbc.postgresql.type_resolver_mode": "builtin"}


class ReadError(Exception):
    """PostgreSQL cannot be reached or refuses to read.

    `sqlstate` is PostgreSQL's code, as 42501 (no right), 42P01 (no such table), 42703 (no such column); None
    without one.
    """

    def __init__(self, message: str, sqlstate: str | None) -> None:
        super().__init__(message)
        self.sqlstate = sqlstate


class BeyondArrow(ReadError):
    """A time is infinity, or after 294247-01-10 04:00:54.775807 UTC, Arrow's last one; a numeric is NaN."""

    def __init__(
        self,
        column: str,
        what: str = "a time after 294247-01-10 04:00:54.775807 UTC, or infinity,"
        " which Arrow and Parquet do not have",
        sqlstate: str = "22008",  # datetime_field_overflow
    ) -> None:
        super().__init__(f"column {column} has {what}", sqlstate)


class Connection:
    """A login's sessions in PostgreSQL: one of libpq for small answers, each in a transaction of its own, and
    one of ADBC for streams of Arrow, all in one transaction, which the first stream opens.

    One thread at a time uses it; other threads may call `cancel`. `opened` is called with the process of each
    session.
    """

    def __init__(self, conninfo: str, opened: Callable[[int], None]) -> None:
        """Logs in. Raises ReadError."""
        self._conninfo = conninfo
        self._opened = opened
        self._stream: adbc.Connection | None = None
        self._is_used = False
        self._names: dict[str, bytes] = {}
        self.storages: set[str] = set()
        """tables that are known to have closed rows (ringlog.history.closed)"""
        with _errors_converted():
            self._small = session.connect(conninfo, autocommit=True)
            # in zones with summer time two moments of autumn have one name (PEP 495); custom plans would cost
            # planning at each call and are no better
            self._small.execute("set timezone to 'UTC'; set plan_cache_mode to force_generic_plan")
        opened(self._small.info.backend_pid)

    @property
    def streams(self) -> "adbc.Connection":
        """The session of ADBC. Raises ReadError."""
        if self._stream is None:
            with _errors_converted():
                self._stream = session.arrow(self._conninfo, **_TYPES)
                with closing(self._stream.cursor()) as cursor:
                    cursor.execute("select pg_backend_pid()")
                    ((pid,),) = cursor.fetchall()
            self._opened(pid)
        self._is_used = True
        return self._stream

    @cached_property
    def packs(self) -> bool:
        """Whether arrays come in PostgreSQL's form in memory: only a superuser can have installed that."""
        return self.answer(_PACKS).get_value(0, 0) == b"\1"

    def records(self, query: sql.Composable) -> list[dict[str, Any]]:
        """All rows of a query's result, which must be small. Raises ReadError."""
        with _errors_converted(), self._small.cursor(row_factory=dict_row) as cursor:
            return cursor.execute(query.as_string().encode()).fetchall()

    def change(self, query: sql.Composable) -> list[dict[str, Any]]:
        """The rows of a statement that may write although the login's transactions are read-only. Raises
        ReadError."""
        with _errors_converted(), self._small.transaction():
            self._small.execute("set transaction read write")
            return self.records(query)

    def answer(self, text: str, *values: bytes) -> pq.abc.PGresult:
        """The result, in binary, of a statement with $1, $2 …, which stays prepared. The values are in
        PostgreSQL's text format. Raises ReadError."""
        libpq = self._small.pgconn
        name = self._names.get(text)
        if name is None:
            if len(self._names) == _STATEMENTS:
                _checked(libpq.exec_(b"deallocate all"))
                self._names.clear()
            name = f"ringlog_{sha256(text.encode()).hexdigest()[:24]}".encode()
            _checked(libpq.prepare(name, text.encode()))
            self._names[text] = name
        return _checked(libpq.exec_prepared(name, values, result_format=1))

    def begin_snapshot(self) -> None:
        """Begins a transaction of the streams in which all read the same rows. Raises ReadError."""
        with _errors_converted():
            # opening the session has begun a transaction of its own
            self.streams.rollback()
        run(self, sql.SQL("set transaction isolation level repeatable read"))

    def commit(self) -> None:
        """Ends the transaction of the streams and keeps its changes. Raises ReadError."""
        with _errors_converted():
            self.streams.commit()
        self._is_used = False

    def rollback(self) -> None:
        """Ends the transaction of the streams."""
        if self._stream is not None and self._is_used:
            self._is_used = False
            self._stream.rollback()

    def cancel(self) -> None:
        with suppress(psycopg.Error):
            self._small.cancel()
        if self._stream is not None:
            with suppress(Error, OSError):
                self._stream.adbc_cancel()

    def close(self) -> None:
        self._small.close()
        if self._stream is not None:
            # closing it also ends a result that is still being read
            with suppress(Error, OSError, RuntimeError):
                self._stream.close()


def connect(conninfo: str, opened: Callable[[int], None] = lambda pid: None) -> Connection:
    """Logs in by a libpq connection string or URI. Raises ReadError."""
    return Connection(conninfo, opened)


@contextmanager
def transaction(database: str | Connection) -> Iterator[Connection]:
    """A new connection, or the given one; the transaction of its streams is rolled back at the end."""
    if isinstance(database, str):
        with closing(connect(database)) as connection:
            yield connection
        return
    try:
        yield database
    finally:
        with suppress(Error):  # of a lost connection, which the statement has already reported
            database.rollback()


def run(connection: Connection, statement: sql.Composable) -> None:
    """Runs a statement without a result in the transaction of the streams. Raises ReadError."""
    with _errors_converted(), closing(connection.streams.cursor()) as cursor:
        cursor.execute(statement.as_string())


def rows(
    connection: Connection, query: sql.Composable, batch_bytes: int = BATCH_BYTES
) -> Iterator[pa.RecordBatch]:
    """Streams the result of a query: at least one batch, which may be empty. A batch ends when it has this
    many bytes of PostgreSQL's format.

    Only the socket's buffers are read ahead of the caller. Closing the iterator cancels the query. Raises
    ReadError; BeyondArrow for a time that Arrow cannot represent.
    """
    cursor = connection.streams.cursor()
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
            # otherwise closing would first fetch the rest of the result
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
    """A batch without the driver's metadata on PostgreSQL's types. The driver's own type of numerics, which
    Arrow's functions do not take, and a file's decimals become text as PostgreSQL writes it."""
    return pa.RecordBatch.from_arrays([_plain(column) for column in batch.columns], names=batch.schema.names)


def _plain(values: pa.Array) -> pa.Array:
    if isinstance(values, pa.ExtensionArray):
        return values.storage
    return as_text(values) if pa.types.is_decimal(values.type) else values


def as_text(values: pa.Array) -> pa.Array:
    """Decimals as PostgreSQL writes them."""
    texts = values.cast(pa.string())
    # Arrow writes 1E-8
    short = pc.match_substring(texts, "E").fill_null(False)
    if not pc.any(short).as_py():
        return texts
    written = [f"{value:f}" for value in values.filter(short).to_pylist()]
    return pc.replace_with_mask(texts, short, pa.array(written, pa.string()))


def time_literal(moment: datetime) -> sql.Composable:
    """A time in a query's text, where the planner sees it."""
    return sql.SQL("timestamptz {}").format(sql.Literal(moment.astimezone(UTC).isoformat()))


def records(connection: Connection, query: sql.Composable) -> list[dict[str, Any]]:
    """All rows of a query's result, which must be small. Raises ReadError."""
    return connection.records(query)


def _checked(result: pq.abc.PGresult) -> pq.abc.PGresult:
    """Raises ReadError for a statement that has failed."""
    if result.status in (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK):
        return result
    state = result.error_field(pq.DiagnosticField.SQLSTATE)
    raise ReadError(result.get_error_message(), None if state is None else state.decode())


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
    except (Error, psycopg.Error) as error:
        raise ReadError(str(error), error.sqlstate) from error
    except OSError as error:
        # Arrow's stream passes an error in the middle of a result without its SQLSTATE
        raise ReadError(str(error), None) from error
