"""Reads columns of numbers from PostgreSQL's binary COPY, without a Python object for each value.

Layout: https://www.postgresql.org/docs/current/sql-copy.html, "Binary Format".
"""

from collections.abc import Iterator, Sequence

import numpy as np
import psycopg
from numpy.typing import NDArray
from psycopg import pq, sql

from ringlog.history.arrays import sent
from ringlog.schema.column_type import ColumnType

_SIGNATURE = b"PGCOPY\n\xff\r\n\0"
_HEADER = 19  # signature, flags, length of the extension, which PostgreSQL leaves empty
_TRAILER = 2
POSTGRES_EPOCH = 946_684_800_000_000
"""2000-01-01, where PostgreSQL's times begin, in microseconds since 1970."""

_TIME = ">i8"


def copied(
    connection: psycopg.Connection, query: sql.Composable, types: Sequence[ColumnType]
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.bool_]]:
    """The result of a query whose first column is a time and whose others are numbers of these types.

    Returns the times in microseconds since 1970, the values, (rows, columns), and a mask of the nulls. Raises
    ValueError for a column of another length.
    """
    content = _content(connection, sql.SQL("copy ({}) to stdout (format binary)").format(query))
    formats = [np.dtype(_TIME), *(np.dtype(f">{kind.octets}") for kind in types)]
    rows = _of_one_length(content, formats)
    if rows is None:
        return _of_any_length(content, formats)
    values = np.empty((len(rows), len(types)))
    for number in range(len(types)):
        values[:, number] = rows[f"v{number + 1}"]
    return rows["v0"].astype(np.int64) + POSTGRES_EPOCH, values, np.zeros(values.shape, bool)


def _content(connection: psycopg.Connection, statement: sql.Composed) -> bytes:
    """The messages of a COPY, by libpq: psycopg's waits for each row take three times as long."""
    server = connection.pgconn
    result = server.exec_(statement.as_bytes(connection))
    if result.status != pq.ExecStatus.COPY_OUT:
        raise psycopg.errors.error_from_result(result, connection.info.encoding)
    rows = []
    while True:
        length, row = server.get_copy_data(0)
        if length < 0:
            break
        rows.append(bytes(row))
    failed = None
    # up to the last result: before it the connection takes no other command
    while (end := server.get_result()) is not None:
        if end.status == pq.ExecStatus.FATAL_ERROR:
            failed = end
    if failed is not None:
        raise psycopg.errors.error_from_result(failed, connection.info.encoding)
    return b"".join(rows)


def copied_waveforms(
    connection: psycopg.Connection, query: sql.Composable, kind: ColumnType
) -> Iterator[NDArray[np.float64] | None]:
    """Yields the arrays of a query's only column, of this type, None for null.

    One row is in memory at once. Raises ValueError.
    """
    with (
        connection.cursor() as cursor,
        cursor.copy(sql.SQL("copy ({}) to stdout (format binary)").format(query)) as copy,
    ):
        # a message has one row: https://www.postgresql.org/docs/current/libpq-copy.html
        for message in copy:
            row = memoryview(message)
            if row[: len(_SIGNATURE)] == _SIGNATURE:
                row = row[_HEADER:]
            if len(row) <= _TRAILER:
                continue
            length = int.from_bytes(row[2:6], signed=True)
            if length < 0:
                yield None
                continue
            values, there = sent(row[6 : 6 + length], kind.octets)
            if there is not None:
                raise ValueError("a waveform has nulls")
            yield values.astype(np.float64)


def _of_one_length(content: bytes, formats: Sequence[np.dtype[np.generic]]) -> np.ndarray | None:
    """The rows; None if one has a null."""
    fields: list[tuple[str, object]] = [("fields", ">i2")]
    for number, kind in enumerate(formats):
        fields += [(f"l{number}", ">i4"), (f"v{number}", kind)]
    row = np.dtype(fields)
    if (len(content) - _HEADER - _TRAILER) % row.itemsize:
        return None
    rows = np.frombuffer(content, row, (len(content) - _HEADER - _TRAILER) // row.itemsize, _HEADER)
    whole = all((rows[f"l{number}"] == kind.itemsize).all() for number, kind in enumerate(formats))
    return rows if whole and (rows["fields"] == len(formats)).all() else None


def _of_any_length(
    content: bytes, formats: Sequence[np.dtype[np.generic]]
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.bool_]]:
    octets = np.frombuffer(content, np.uint8)
    lengths = np.lib.stride_tricks.sliding_window_view(octets, 4)
    # the length of a row is known only after its values; a null is shorter than other values
    starts = []
    offset = _HEADER
    while offset < len(content) - _TRAILER:
        starts.append(offset)
        offset += 2
        for _ in formats:
            length = int.from_bytes(content[offset : offset + 4], signed=True)
            offset += 4 + max(length, 0)
    position = np.array(starts, np.int64) + 2
    times = np.empty(len(starts), np.int64)
    values = np.full((len(starts), len(formats) - 1), np.nan)
    nulls = np.zeros(values.shape, bool)
    for number, kind in enumerate(formats):
        sizes = lengths[position].copy().view(">i4").reshape(-1)
        there = sizes >= 0
        if (sizes[there] != kind.itemsize).any():
            raise ValueError(f"column {number} of a COPY is not of type {kind}")
        wide = np.lib.stride_tricks.sliding_window_view(octets, kind.itemsize)
        found = wide[position[there] + 4].copy().view(kind).reshape(-1)
        if number:
            values[there, number - 1] = found
            nulls[:, number - 1] = ~there
        else:
            times[:] = found.astype(np.int64) + POSTGRES_EPOCH
        position += 4 + np.maximum(sizes, 0)
    return times, values, nulls
