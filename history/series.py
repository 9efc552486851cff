"""Reads one column of numbers from a log, in blocks of bytes.

libpq handles each row separately, which takes the client as long as PostgreSQL. So PostgreSQL aggregates the
times and values of a span of time into arrays: a block of thousands of rows is one row of the result.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
import pyarrow as pa
from psycopg import sql

from ringlog.history.arrays import HEAD, Numbers, Unpack, in_memory, in_memory_cut, sent
from ringlog.history.connection import Connection, ReadError, records, rows, time_literal
from ringlog.history.summaries.copying import POSTGRES_EPOCH
from ringlog.schema.column_type import ColumnType
from ringlog.schema.layout import LOG_TABLES
from ringlog.schema.sql_files import sql_file

TIME = pa.timestamp("us", tz="UTC")

_BLOCK = 8192  # rows of a block, if they keep the table's cycle or another constant rate
_MOST = 1_000_000  # the most rows of a block: more are read as rows
_STRETCHES = 50_000  # the most stretches: each takes a lookup, also an empty one
_FASTER = 512  # the most stretches for rows faster than the cycle
_FEW = 10_000  # the most rows that are read as rows
_SOME = 256  # rows from which the rate is estimated
_LEAST = 32  # rows of a stretch on average: the lookup of one takes as long as reading these

_SEND = sql.Identifier("pg_catalog", "array_send")

_QUERY = sql_file(__file__, "series_query")


_EXTENT = sql_file(__file__, "series_extent")


_COUNT = sql_file(__file__, "series_count")


class NotInBlocks(Exception):
    """The rows from `since` on must be read one by one."""

    def __init__(self, since: datetime) -> None:
        super().__init__(f"from {since} on")
        self.since = since


def series(
    connection: Connection, table: str, column: str, start: datetime, end: datetime
) -> Iterator[pa.RecordBatch] | None:
    """The column's rows, including nulls, from `start` on and before `end`, by time: `time` and the column.
    At least one batch, which may be empty.

    None if the column is text, or the rows are too few for blocks. The iterator may raise NotInBlocks at its
    end, and ReadError.
    """
    known = _known(connection, table, column)
    if known is None:
        return None
    kind, seconds = known.type, known.seconds
    if kind is not None and kind.is_packed:
        return _waveforms(connection, table, known, start, end)
    if kind is None or not kind.is_fixed:
        return None
    span = (end - start).total_seconds()
    if not seconds or span < _FEW * seconds:
        return None
    found = _extent(connection, table, start, end)
    if found is None:
        return None
    start, end, faster = found
    span = (end - start).total_seconds()
    width = max(_BLOCK * seconds, span / _STRETCHES)
    width = min(width, max(_BLOCK * faster, span / _FASTER))
    most = round(span / width * _LEAST)
    if most > _SOME and _count(connection, table, start, end, most) < most:
        return None
    return _blocks(connection, table, known, start, end, max(1, round(width * 1e6)))


def _extent(
    connection: Connection, table: str, start: datetime, end: datetime
) -> tuple[datetime, datetime, float] | None:
    """The time of the first row in an interval, a moment after the last one, and the seconds from row to row
    at the begin. None if the rows are few.
    """
    bounds = {"log": _log(table), "start": time_literal(start), "end": time_literal(end)}
    (row,) = records(connection, sql.SQL(_EXTENT).format(some=sql.Literal(_SOME), **bounds))
    if row["n"] < _SOME:
        return None
    seconds = (row["later"] - row["first"]).total_seconds() / (_SOME - 1)
    return row["first"], row["last"] + timedelta(microseconds=1), seconds


def _count(connection: Connection, table: str, start: datetime, end: datetime, most: int) -> int:
    """The number of rows, at most `most`."""
    bounds = {"log": _log(table), "start": time_literal(start), "end": time_literal(end)}
    (row,) = records(connection, sql.SQL(_COUNT).format(most=sql.Literal(most), **bounds))
    return int(row["n"])


@dataclass(frozen=True)
class _Column:
    """A column, its type (None: not one of ringlog's), the seconds from row to row of its log, and the
    decoder of its arrays."""

    name: str
    type: ColumnType | None
    seconds: float
    pack: sql.Composable
    """PostgreSQL's function that encodes an array as bytes"""
    unpack: Unpack


def _known(connection: Connection, table: str, column: str) -> _Column | None:
    query = sql.SQL(
        "select attribute.atttypid::regtype::text as kind,"
        " greatest(logged_table.cycle * logged_table.log_nth, logged_table.log_period) as seconds,"
        # only a superuser can have installed it
        " coalesce(has_function_privilege(to_regprocedure('ringlog.array_bytes(anyarray)'), 'execute'),"
        " false) as packs"
        " from pg_attribute as attribute"
        " join ringlog.logged_table on logged_table.table_name = {}"
        " where attribute.attrelid = to_regclass({}) and attribute.attname = {}"
    ).format(sql.Literal(table), sql.Literal(_log(table).as_string()), sql.Literal(column))
    found = records(connection, query)
    if not found:
        return None
    (row,) = found
    pack, unpack = (sql.Identifier("ringlog", "array_bytes"), in_memory) if row["packs"] else (_SEND, sent)
    return _Column(column, ColumnType.of_postgresql(row["kind"]), row["seconds"], pack, unpack)


def _element(column: _Column) -> tuple[str, pa.DataType]:
    """The types of a value, or of a waveform's points: numpy's and Arrow's."""
    assert column.type is not None
    kind = column.type.element
    return kind.octets, kind.arrow


def _blocks(
    connection: Connection, table: str, column: _Column, start: datetime, end: datetime, width: int
) -> Iterator[pa.RecordBatch]:
    element, arrow = _element(column)
    span = (end - start) // timedelta(microseconds=1)
    query = sql.SQL(_QUERY).format(
        last=sql.Literal((span - 1) // width),
        pack=column.pack,
        column=sql.Identifier(column.name),
        log=_log(table),
        start=time_literal(start),
        end=time_literal(end),
        width=sql.Literal(f"{width} microseconds"),
        most=sql.Literal(_MOST + 1),
    )
    schema = pa.schema([("time", TIME), (column.name, arrow)])
    latest = None
    since = None
    # row by row, so that PostgreSQL makes the next block meanwhile
    for batch in rows(connection, query, batch_bytes=1):
        if since is not None:
            # read to the end: a cancelled query would end the transaction, which the following reads need
            continue
        for number, times, samples in zip(*batch.columns, strict=True):
            time = _unpacked(column, times.as_buffer(), "i8")[0] + POSTGRES_EPOCH
            if len(time) > _MOST:
                since = start + timedelta(microseconds=number.as_py() * width)
                break
            values, there = _unpacked(column, samples.as_buffer(), element)
            if len(values) != len(time) or (latest is not None and time[0] < latest):
                raise ReadError(f"the rows of {table} came out of their order", None)
            latest = int(time[-1])
            values = pa.array(np.require(values, requirements="A"), mask=None if there is None else ~there)
            yield pa.RecordBatch.from_arrays([pa.array(time, TIME), values.cast(arrow)], schema=schema)
    if since is not None:
        raise NotInBlocks(since)
    if latest is None:
        yield pa.RecordBatch.from_pylist([], schema=schema)


def _waveforms(
    connection: Connection, table: str, column: _Column, start: datetime, end: datetime
) -> Iterator[pa.RecordBatch]:
    element, arrow = _element(column)
    # each array is cut behind its head, so that Arrow uses the received bytes without a copy
    is_cut = column.unpack is in_memory
    parts = "substr(packed, 1, {head}) as head, substr(packed, {head} + 1) as values" if is_cut else "packed"
    query = sql.SQL(
        'select "time", {parts} from ('
        'select "time", {pack}(waveform) as packed from ('
        # sorted before the waveforms are read: otherwise PostgreSQL may sort them too, in files
        'select "time", {column} as waveform from {log} where "time" >= {start} and "time" < {end}'
        ' order by "time", seq_no offset 0'
        ") as found offset 0) as read"
    ).format(
        parts=sql.SQL(parts).format(head=sql.Literal(HEAD)),
        pack=column.pack,
        column=sql.Identifier(column.name),
        log=_log(table),
        start=time_literal(start),
        end=time_literal(end),
    )
    schema = pa.schema([("time", TIME), (column.name, pa.list_(arrow))])
    for batch in rows(connection, query):
        bounds, points = _cut(column, batch, element) if is_cut else _together(column, batch, element)
        lists = pa.ListArray.from_arrays(
            pa.array(bounds, pa.int32()), pa.array(points).cast(arrow), mask=batch.column(1).is_null()
        )
        yield pa.RecordBatch.from_arrays([batch.column(0), lists], schema=schema)


def _cut(column: _Column, batch: pa.RecordBatch, element: str) -> tuple[np.ndarray, np.ndarray]:
    try:
        bounds, points = in_memory_cut(batch["head"], batch["values"], element)
    except ValueError as error:
        raise ReadError(f"{column.name}: {error}", None) from error
    return bounds, np.require(points, requirements="A")


def _together(column: _Column, batch: pa.RecordBatch, element: str) -> tuple[np.ndarray, np.ndarray]:
    parts = [_points(column, content.as_buffer(), element) for content in batch["packed"]]
    bounds = np.cumsum([0, *(0 if part is None else len(part) for part in parts)])
    there = [part for part in parts if part is not None]
    return bounds, np.concatenate(there) if there else np.empty(0, element)


def _points(column: _Column, content: pa.Buffer | None, element: str) -> np.ndarray | None:
    if content is None:
        return None
    values, there = _unpacked(column, content, element)
    if there is not None:
        raise ReadError("a waveform has nulls", None)
    return values


def _unpacked(column: _Column, content: pa.Buffer, element: str) -> Numbers:
    try:
        return column.unpack(content, element)
    except ValueError as error:
        raise ReadError(f"{column.name}: {error}", None) from error


def _log(table: str) -> sql.Identifier:
    return sql.Identifier(LOG_TABLES, table)
