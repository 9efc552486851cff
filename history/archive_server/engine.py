"""DuckDB over the archive's files: queries of postgres_fdw, and their rows as messages."""

import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

import duckdb
import numpy as np
import pyarrow as pa

from ringlog.history.archive.folder import Damaged
from ringlog.history.archive_server import encoding
from ringlog.history.archive_server.lists import Changed, Lists
from ringlog.history.archive_server.rows import Rows
from ringlog.history.archive_server.statement import Refused, Statement, read

MEMORY = 160
"""MiB of DuckDB's memory; it spills the rest to disk"""
_FULL = "Out of Memory Error"
_AHEAD = "10KB"
"""of rows that are computed before the client fetches them"""
_ROWS = 10_000
_VALUES = 200_000
"""approximate limits of a part of an answer in rows and values: the client may want the first rows only"""
_FEW = 100
"""rows of the parts of DuckDB's answer to a query with an order"""
_FIRST = 10
"""rows of the first part of an answer with an order, after which they grow"""
_SENT = 1 << 20
"""bytes of rows that are sent at once"""


class Failed(Exception):
    """A query cannot be answered: SQLSTATE and the reason."""

    def __init__(self, state: str, message: str) -> None:
        super().__init__(message)
        self.state = state


class Engine:
    """DuckDB, for all connections."""

    def __init__(self, spill: str, spilled: int, threads: int, lists: Lists) -> None:
        """`spill` is the folder for data beyond the memory, up to `spilled` bytes."""
        self._database = duckdb.connect(
            config={
                "memory_limit": f"{MEMORY}MiB",
                "threads": str(threads),
                "temp_directory": spill,
                "max_temp_directory_size": f"{spilled}B",
                "allocator_background_threads": "false",
                "autoinstall_known_extensions": "false",
                "autoload_known_extensions": "false",
                "python_enable_replacements": "false",
            }
        )
        # this process reads the files, not DuckDB
        self._database.execute("set enable_external_access = false")
        self._lock = threading.Lock()
        self._lists = lists

    def query(self, text: str, parameters: Sequence[str | None]) -> "Answer":
        """Begins to answer a query. Raises Failed."""
        with Failures([]):
            statement = read(text, parameters)
        with self._lock:
            connection = self._database.cursor()
        return Answer(connection, statement, self._lists)


class Answer:
    """The rows of a query, computed as the client fetches them."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, statement: Statement, lists: Lists) -> None:
        self._connection = connection
        self._statement = statement
        self._lists = lists
        self._sources: list[Rows] = []
        self._parts: Generator[_Part] | None = None
        self._part: _Part | None = None
        self.columns: list[str] = []
        """names of the columns, known after the first fetch"""
        self._starved = False
        self._taken = 0
        """the number of calls of `take`"""
        self._error: Exception | None = None
        """of a part that was made ahead"""

    def rewind(self) -> None:
        """Begins with the first row again."""
        self._release()
        self._starved = False
        self._taken, self._error = 0, None

    def _release(self) -> None:
        """Frees the memory of the rows by breaking the cycle between the generator and this object."""
        if self._parts is not None:
            self._parts.close()
        self._parts = self._part = None
        self._sources.clear()

    def _made(self) -> "Generator[_Part]":
        self._sources.clear()
        statement = self._statement
        for relation in statement.relations:
            self._sources.append(Rows(relation, self._lists.of(relation.files), statement.descending))
        if statement.columns is None:
            batches = self._calculated()
        else:
            self.columns = statement.columns
            batches = (batch.select(self.columns) for batch in self._sources[0].reader())
        size = None if statement.descending is None else _FIRST
        for batch in batches:
            most = _most_rows(len(self.columns))
            while batch.num_rows:
                size = min(most, size or most)
                yield _Part(*encoding.messages(batch.slice(0, size)))
                batch, size = batch.slice(size), 10 * size

    def _calculated(self) -> Iterator[pa.RecordBatch]:
        """DuckDB's answer."""
        connection, statement = self._connection, self._statement
        connection.execute("set integer_division = true")
        connection.execute("set TimeZone = 'UTC'")
        if statement.descending is not None:
            # the client may want the first rows only: no more files are read ahead than that
            connection.execute(f"set session streaming_buffer_size = '{_AHEAD}'")
        for relation, rows in zip(statement.relations, self._sources, strict=True):
            connection.register(relation.name, rows.reader())
        result = connection.sql(statement.text, params=statement.values)
        most = _most_rows(len(result.columns)) if statement.descending is None else _FEW
        reader = result.to_arrow_reader(most)
        self.columns = reader.schema.names
        yield from reader

    def take(self, count: int) -> tuple[list[memoryview], int]:
        """The messages of further rows, and their number. Raises Failed.

        They are `count` or more, fewer only at the end: postgres_fdw accepts more, and takes fewer than it
        requested as the end. The first answer to a query with an order has `count`: the client may need no
        others.
        """
        room = 0 if self._parts is None and self._statement.descending is not None else _SENT
        taken: list[memoryview] = []
        rows = 0
        with Failures(self._sources, lambda: self._starved):
            if self._error is not None:
                raise self._error
            if self._parts is None:
                self._parts = self._made()
            self._taken += 1
            while rows < count:
                if self._part is None or self._part.is_empty:
                    self._part = next(self._parts, None)
                    if self._part is None:
                        break
                messages, number = self._part.take(count - rows, room)
                taken.append(messages)
                rows += number
        return taken, rows

    def prepare(self) -> None:
        """Makes the next part while the client reads the last one; its error is that of the next `take`.

        Only for a client that has fetched twice, and so wants all rows, and of rows that need no DuckDB,
        which may compute for long: a client that gives up would wait for its end.
        """
        is_wanted = self._taken > 1 and self._statement.columns is not None
        if self._parts is not None and is_wanted and (self._part is None or self._part.is_empty):
            try:
                self._part = next(self._parts, None)
            except Exception as error:
                self._error = error

    def cancel(self, *, starved: bool = False) -> None:
        """For another thread: cancels the query, at a user's request or because the memory is used up."""
        self._starved = starved
        with suppress(duckdb.Error):
            self._connection.interrupt()

    def close(self) -> None:
        self._release()
        with suppress(duckdb.Error):
            self._connection.close()


class Failures:
    """Converts errors into Failed, with the error of the failed source of rows if there is one."""

    def __init__(self, sources: list[Rows], is_starved: Callable[[], bool] = lambda: False) -> None:
        self._sources = sources
        self._is_starved = is_starved

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None or not isinstance(error, Exception) or isinstance(error, Failed):
            return
        cause = next((rows.error for rows in self._sources if rows.error is not None), error)
        # after the first rows DuckDB's errors arrive through Arrow's stream as text
        reason = _line(cause)
        if isinstance(cause, Refused):
            raise Failed("0A000", reason) from error
        if isinstance(cause, Changed):
            raise Failed("40001", reason) from error
        if isinstance(cause, Damaged):
            message = (
                f"the archive cannot be read: {reason}. `ringlog archive verify` checks all of its weeks"
            )
            raise Failed("58030", message) from error
        is_interrupted = isinstance(cause, duckdb.InterruptException) or "INTERRUPT Error" in reason
        if is_interrupted and not self._is_starved():
            raise Failed("57014", "canceling statement due to user request") from error
        if is_interrupted or isinstance(cause, MemoryError | duckdb.OutOfMemoryException) or _FULL in reason:
            message = (
                "the archive server's memory is used up: request fewer columns or groups, or try again later"
            )
            raise Failed("53200", message) from error
        if isinstance(cause, duckdb.ConversionException | duckdb.OutOfRangeException):
            raise Failed("22000", reason) from error
        raise Failed("XX000", f"the archive server cannot answer this: {reason}") from error


def _most_rows(columns: int) -> int:
    """Rows of a part of an answer."""
    return max(100, min(_ROWS, _VALUES // columns))


def _line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__


@dataclass
class _Part:
    """Messages of rows that are not fetched yet."""

    messages: memoryview
    offsets: np.ndarray
    at: int = 0

    @property
    def is_empty(self) -> bool:
        return self.at == len(self.offsets) - 1

    def take(self, count: int, room: int) -> tuple[memoryview, int]:
        """The next `count` rows, or more where more fit into `room` bytes."""
        within = int(self.offsets.searchsorted(self.offsets[self.at] + room, "right")) - 1
        last = min(max(self.at + count, within), len(self.offsets) - 1)
        found = self.messages[self.offsets[self.at] : self.offsets[last]]
        number = last - self.at
        self.at = last
        return found, number
