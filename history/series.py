"""Reads numbers from a log as columns, in pages of thousands of rows.

libpq handles each row separately, which takes the client as long as PostgreSQL. So PostgreSQL aggregates the
times and values of a page into arrays: a page is one row of the result.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

import numpy as np
import pyarrow as pa
from psycopg import sql

from ringlog.history.arrays import HEAD, Content, Numbers, in_memory, in_memory_cut, sent
from ringlog.history.closed import array, whole
from ringlog.history.connection import Connection, ReadError, rows, time_literal
from ringlog.history.summaries.copying import POSTGRES_EPOCH
from ringlog.schema.column_type import TYPES, ColumnType
from ringlog.schema.layout import LOG_TABLES
from ringlog.schema.moments import moment_of
from ringlog.schema.sql_files import sql_file

TIME = pa.timestamp("us", tz="UTC")

_VALUES = 1 << 17  # of a page, with the times
_LEAST = 1024  # rows of a page
_WIDER = 4  # a page is sought within so many times the time of the last one: PostgreSQL plans fewer weeks

_PAGE = sql_file(__file__, "series_page")

_KINDS = """
select attname, atttypid from pg_attribute
where attrelid = to_regclass($1) and attname = any($2) and attnum > 0
"""


def series(
    connection: Connection,
    table: str,
    columns: Sequence[str],
    start: datetime,
    end: datetime,
    limit: int | None = None,
) -> Iterator[pa.RecordBatch] | None:
    """The rows, including nulls, from `start` on and before `end`, at most `limit`, by time: `time` and the
    columns. At least one batch, which may be empty. The iterator may raise ReadError.

    None unless the columns are numbers, or a single waveform of numbers.
    """
    found = connection.answer(_KINDS, _log(table).as_string().encode(), array(columns))
    value = found.get_value
    types = {value(row, 0): TYPES.get(whole(value(row, 1))) for row in range(found.ntuples)}
    kinds = {column: kind for column in columns if (kind := types.get(column.encode())) is not None}
    if len(kinds) < len(columns):
        return None
    if all(kind.is_fixed for kind in kinds.values()):
        return _pages(connection, table, kinds, start, end, limit)
    if len(columns) == 1 and kinds[columns[0]].is_packed and limit is None:
        return _waveforms(connection, table, columns[0], kinds[columns[0]], start, end)
    return None


def _pages(
    connection: Connection,
    table: str,
    kinds: Mapping[str, ColumnType],
    start: datetime,
    end: datetime,
    limit: int | None,
) -> Iterator[pa.RecordBatch]:
    most = size = max(_LEAST, _VALUES // (1 + len(kinds)))
    since, until, left = start, end, limit
    given = False
    while True:
        page = _page(connection, table, kinds, since, until, size if left is None else min(size, left))
        n, reached = page.num_rows, until
        if n == size:
            # more rows of the last time may follow
            times = page.column(0).view(pa.int64()).to_numpy()
            n = int(np.searchsorted(times, times[-1]))
            if n == 0:
                size *= 2
                continue
            reached = moment_of(int(times[n]))
        left = None if left is None else left - n
        is_last = reached >= end or left == 0
        if n or (is_last and not given):
            yield page.slice(0, n)
            given = True
        if is_last:
            return
        width = _WIDER * (reached - since)
        since, size = reached, most
        until = since + width if width < end - since else end


def _page(
    connection: Connection,
    table: str,
    kinds: Mapping[str, ColumnType],
    since: datetime,
    until: datetime,
    most: int,
) -> pa.RecordBatch:
    """The first rows of a time, at most `most`."""
    pack = _pack(connection)
    names = [sql.Identifier(column) for column in ("time", *kinds)]
    query = sql.SQL(_PAGE).format(
        packed=sql.SQL(", ").join(sql.SQL("{}(array_agg({}))").format(pack, name) for name in names),
        columns=sql.SQL(", ").join(names),
        log=_log(table),
        start=time_literal(since),
        end=time_literal(until),
        most=sql.Literal(most),
    )
    # in the session that holds the lock (reading.held): another one would wait behind whoever waits for that
    (batch,) = rows(connection, query)
    contents = [column[0].as_buffer() or b"" for column in batch.columns]
    times, _ = _unpacked(connection, "time", contents[0], "i8")
    if (times[1:] < times[:-1]).any():
        raise ReadError(f"the rows of {table} came out of their order", None)
    arrays = [pa.array(times + POSTGRES_EPOCH, TIME)]
    for (column, kind), content in zip(kinds.items(), contents[1:], strict=True):
        values, there = _unpacked(connection, column, content, kind.octets)
        if len(values) != len(times):
            raise ReadError(f"{column}: {len(values)} values of {len(times)} rows", None)
        values = pa.array(np.require(values, requirements="A"), mask=None if there is None else ~there)
        arrays.append(values.cast(kind.arrow))
    return pa.RecordBatch.from_arrays(arrays, ["time", *kinds])


def _pack(connection: Connection) -> sql.Identifier:
    """PostgreSQL's function that encodes an array as bytes."""
    return sql.Identifier(*(("ringlog", "array_bytes") if connection.packs else ("pg_catalog", "array_send")))


def _waveforms(
    connection: Connection, table: str, column: str, kind: ColumnType, start: datetime, end: datetime
) -> Iterator[pa.RecordBatch]:
    element, arrow = kind.octets, kind.element.arrow
    # each array is cut behind its head, so that Arrow uses the received bytes without a copy
    is_cut = connection.packs
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
        pack=_pack(connection),
        column=sql.Identifier(column),
        log=_log(table),
        start=time_literal(start),
        end=time_literal(end),
    )
    schema = pa.schema([("time", TIME), (column, pa.list_(arrow))])
    for batch in rows(connection, query):
        bounds, points = (
            _cut(column, batch, element) if is_cut else _together(connection, column, batch, element)
        )
        lists = pa.ListArray.from_arrays(
            pa.array(bounds, pa.int32()), pa.array(points).cast(arrow), mask=batch.column(1).is_null()
        )
        yield pa.RecordBatch.from_arrays([batch.column(0), lists], schema=schema)


def _cut(column: str, batch: pa.RecordBatch, element: str) -> tuple[np.ndarray, np.ndarray]:
    try:
        bounds, points = in_memory_cut(batch["head"], batch["values"], element)
    except ValueError as error:
        raise ReadError(f"{column}: {error}", None) from error
    return bounds, np.require(points, requirements="A")


def _together(
    connection: Connection, column: str, batch: pa.RecordBatch, element: str
) -> tuple[np.ndarray, np.ndarray]:
    parts = [_points(connection, column, content.as_buffer(), element) for content in batch["packed"]]
    bounds = np.cumsum([0, *(0 if part is None else len(part) for part in parts)])
    there = [part for part in parts if part is not None]
    return bounds, np.concatenate(there) if there else np.empty(0, element)


def _points(
    connection: Connection, column: str, content: pa.Buffer | None, element: str
) -> np.ndarray | None:
    if content is None:
        return None
    values, there = _unpacked(connection, column, content, element)
    if there is not None:
        raise ReadError("a waveform has nulls", None)
    return values


def _unpacked(connection: Connection, column: str, content: Content, element: str) -> Numbers:
    """The values of an array; no bytes are none."""
    if not len(content):
        return np.empty(0, element), None
    try:
        return (in_memory if connection.packs else sent)(content, element)
    except ValueError as error:
        raise ReadError(f"{column}: {error}", None) from error


def _log(table: str) -> sql.Identifier:
    return sql.Identifier(LOG_TABLES, table)
