"""Reads one column of numbers from a log, in blocks of bytes.

libpq handles each row separately, which costs the client as much as PostgreSQL. So PostgreSQL concatenates
the times and values of a span of time, in its binary format, and a block of thousands of rows is one row of
the result.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
from psycopg import sql

from ringlog.history.connection import Connection, ReadError, records, rows
from ringlog.history.copying import points

TIME = pa.timestamp("us", tz="UTC")

_BLOCK = 32_768  # rows, as far as the table keeps its cycle, or comes faster in the same way all the time
_MOST = 1_000_000  # rows of a block: more come as rows
_STRETCHES = 50_000  # each is looked for, though nothing be there
_FASTER = 512  # stretches because rows come faster than the cycle
_FEW = 10_000  # rows that are read as such
_SOME = 256  # rows that show how fast they come
_EPOCH = 946_684_800_000_000  # 2000-01-01, where PostgreSQL's times begin, in microseconds since 1970

# PostgreSQL's types: the function that sends a value, numpy's type of what it sends, and Arrow's
_SENT = {
    "real": ("float4send", ">f4", pa.float32()),
    "double precision": ("float8send", ">f8", pa.float64()),
    "smallint": ("int2send", ">i2", pa.int16()),
    "integer": ("int4send", ">i4", pa.int32()),
    "bigint": ("int8send", ">i8", pa.int64()),
    "boolean": ("boolsend", "u1", pa.bool_()),
}

_QUERY = """
select stretch.number, block.n, block.samples, block.missing
from generate_series(0, {last}) as stretch (number)
cross join lateral (
  select
    count(*) as n,
    -- null where there is no value, which string_agg leaves out
    string_agg(timestamptz_send(logged."time") || {send}(logged.value), '') as samples,
    string_agg(timestamptz_send(logged."time"), '') filter (where logged.value is null) as missing
  from (
    select log."time", log.{column} as value
    from {log} as log
    where log."time" >= {start} and log."time" < {end}
      and log."time" >= {start} + stretch.number * interval {width}
      and log."time" < {start} + (stretch.number + 1) * interval {width}
    order by log."time", log.seq_no
    limit {most}
  ) as logged
) as block
where block.n > 0
"""


_EXTENT = """
select
  begun.n,
  begun."first",
  begun.later,
  (select max(log."time") from {log} as log where log."time" >= {start} and log."time" < {end}) as "last"
from (
  select count(*) as n, min(shown."time") as "first", max(shown."time") as later
  from (
    select log."time" from {log} as log
    where log."time" >= {start} and log."time" < {end}
    order by log."time"
    limit {some}
  ) as shown
) as begun
"""


class NotInBlocks(Exception):
    """From `since` on the rows must be read one by one."""

    def __init__(self, since: datetime) -> None:
        super().__init__(f"from {since} on")
        self.since = since


def series(
    connection: Connection, table: str, column: str, start: datetime, end: datetime
) -> Iterator[pa.RecordBatch] | None:
    """The column's rows, null ones too, from `start` on and before `end`, by time: `time` and the column. One
    batch at least, which may be empty.

    None where the column is text, or there are too few rows for it to be worth while. The iterator may
    raise NotInBlocks at its end, and ReadError.
    """
    known = _known(connection, table, column)
    if known is None:
        return None
    kind, seconds = known
    if kind.removesuffix("[]") in _SENT and kind.endswith("[]"):
        return _waveforms(connection, table, column, kind.removesuffix("[]"), start, end)
    span = (end - start).total_seconds()
    if kind not in _SENT or not seconds or span < _FEW * seconds:
        return None
    found = _extent(connection, table, start, end)
    if found is None:
        return None
    start, end, faster = found
    span = (end - start).total_seconds()
    width = max(_BLOCK * seconds, span / _STRETCHES)
    width = min(width, max(_BLOCK * faster, span / _FASTER))
    return _blocks(connection, table, column, kind, start, end, max(1, round(width * 1e6)))


def _extent(
    connection: Connection, table: str, start: datetime, end: datetime
) -> tuple[datetime, datetime, float] | None:
    """Where the rows in an interval begin, a moment after the last of them, and how many seconds it is from
    row to row of the first ones. None where there are only some.
    """
    bounds = {"log": _log(table), "start": _moment(start), "end": _moment(end)}
    (row,) = records(connection, sql.SQL(_EXTENT).format(some=sql.Literal(_SOME), **bounds))
    if row["n"] < _SOME:
        return None
    seconds = (row["later"] - row["first"]).total_seconds() / (_SOME - 1)
    return row["first"], row["last"] + timedelta(microseconds=1), seconds


def _known(connection: Connection, table: str, column: str) -> tuple[str, float] | None:
    """The column's type, and seconds from row to row of its log."""
    query = sql.SQL(
        "select attribute.atttypid::regtype::text as kind,"
        " greatest(logged_table.cycle * logged_table.log_nth, logged_table.log_period) as seconds"
        " from pg_attribute as attribute"
        " join ringlog.logged_table on logged_table.table_name = {}"
        " where attribute.attrelid = to_regclass({}) and attribute.attname = {}"
    ).format(sql.Literal(table), sql.Literal(_log(table).as_string()), sql.Literal(column))
    found = records(connection, query)
    return (found[0]["kind"], found[0]["seconds"]) if found else None


def _blocks(
    connection: Connection, table: str, column: str, kind: str, start: datetime, end: datetime, width: int
) -> Iterator[pa.RecordBatch]:
    send, sent, arrow = _SENT[kind]
    span = (end - start) // timedelta(microseconds=1)
    query = sql.SQL(_QUERY).format(
        last=sql.Literal((span - 1) // width),
        send=sql.SQL(send),
        column=sql.Identifier(column),
        log=_log(table),
        start=_moment(start),
        end=_moment(end),
        width=sql.Literal(f"{width} microseconds"),
        most=sql.Literal(_MOST + 1),
    )
    record = np.dtype([("time", ">i8"), ("value", sent)])
    schema = pa.schema([("time", TIME), (column, arrow)])
    latest = None
    since = None
    # each as soon as PostgreSQL has made it: it makes the next one meanwhile
    for batch in rows(connection, query, batch_bytes=1):
        if since is not None:
            # to the end: a cancelled query would end the transaction, in which the rows are still to be read
            continue
        for number, n, samples, missing in zip(*(one.to_pylist() for one in batch.columns), strict=True):
            found = np.frombuffer(samples or b"", record)
            time = found["time"].astype(np.int64) + _EPOCH
            values = pa.array(found["value"].astype(record["value"].newbyteorder("=")))
            without = np.frombuffer(missing or b"", ">i8").astype(np.int64) + _EPOCH
            # of rows of one time their seq_no says which is first, and it is not here
            if n > _MOST or (len(without) and np.isin(without, time).any()):
                since = start + timedelta(microseconds=number * width)
                break
            if len(without):
                time, values = _with_missing(time, values, without)
            if len(time) != n or (latest is not None and time[0] < latest):
                raise ReadError(f"the rows of {table} came out of their order", None)
            latest = int(time[-1])
            yield pa.RecordBatch.from_arrays([pa.array(time, TIME), values.cast(arrow)], schema=schema)
    if since is not None:
        raise NotInBlocks(since)
    if latest is None:
        yield pa.RecordBatch.from_pylist([], schema=schema)


def _waveforms(
    connection: Connection, table: str, column: str, kind: str, start: datetime, end: datetime
) -> Iterator[pa.RecordBatch]:
    """Waveforms as PostgreSQL sends them: with a length before each point, which a driver takes singly."""
    _, sent, arrow = _SENT[kind]
    query = sql.SQL(
        'select "time", array_send({column}) as sent from {log} where "time" >= {start} and "time" < {end}'
        ' order by "time", seq_no'
    ).format(column=sql.Identifier(column), log=_log(table), start=_moment(start), end=_moment(end))
    schema = pa.schema([("time", TIME), (column, pa.list_(arrow))])
    for batch in rows(connection, query):
        parts = [_points(content, sent) for content in batch.column(1).to_pylist()]
        lengths = [0 if part is None else len(part) for part in parts]
        there = [part for part in parts if part is not None]
        flat = pa.array(np.concatenate(there) if there else np.empty(0, np.dtype(sent).newbyteorder("=")))
        lists = pa.ListArray.from_arrays(
            pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32()),
            flat.cast(arrow),
            mask=pa.array([part is None for part in parts], pa.bool_()),
        )
        yield pa.RecordBatch.from_arrays([batch.column(0), lists], schema=schema)


def _points(content: bytes | None, sent: str) -> np.ndarray | None:
    if content is None:
        return None
    try:
        return points(content, sent).astype(np.dtype(sent).newbyteorder("="))
    except ValueError as error:
        raise ReadError(str(error), None) from error


def _with_missing(time: np.ndarray, values: pa.Array, missing: np.ndarray) -> tuple[np.ndarray, pa.Array]:
    both = np.concatenate([missing, time])
    order = np.argsort(both, kind="stable")
    all_of_it = pa.concat_arrays([pa.nulls(len(missing), values.type), values])
    return both[order], all_of_it.take(pa.array(order))


def _log(table: str) -> sql.Identifier:
    return sql.Identifier("log", table)


def _moment(moment: datetime) -> sql.Composable:
    return sql.SQL("timestamptz {}").format(sql.Literal(moment.astimezone(UTC).isoformat()))
