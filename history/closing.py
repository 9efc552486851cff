"""Keeps closed rows of the logs as columns: closed.<table>, see ringlog.schema.relations.closed.

Summarised rows of a log are packed in blocks, each in a transaction of its own. A late row is marked
(ringlog.summary_mark), which makes its block invalid for readers at once; the transaction that summarises the
row deletes the block (`reopen`), and a later round makes it again. The process with the lock of summaries
does both, one after the other, so that no mark is deleted between the reading of a block's rows and its
commit.
"""

import importlib.util
import logging
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import psycopg
from numpy.typing import NDArray
from psycopg import errors, sql

from ringlog.history.arrays import Numbers, in_memory, sent
from ringlog.history.priority import lower_backend
from ringlog.history.summaries.copying import POSTGRES_EPOCH
from ringlog.history.summaries.summarising import Turn, alone, connected
from ringlog.schema import locks
from ringlog.schema.catalogue import WEEKS
from ringlog.schema.column_type import ColumnType, Kind
from ringlog.schema.layout import EARLIEST, LOG_TABLES, OWNER
from ringlog.schema.many import by_connection
from ringlog.schema.moments import MICROSECOND
from ringlog.schema.relations import closed
from ringlog.schema.sql_files import sql_file

log = logging.getLogger(__name__)

BLOCK = 4096
"""rows of a block; the last one before the week's end, or before another block, may have half as many more"""

_BYTES = 4 << 20
"""approximate bytes of a column of waveforms or texts in a block"""

_SAVING = 0.5
"""The largest ratio of packed waveforms to plain ones."""

_LONGEST_PAUSE = 0.5  # seconds

_NICENESS = 10
"""nice of PostgreSQL's process that reads the rows: it holds locks, and must progress on a busy machine
too"""


@dataclass(frozen=True)
class _Column:
    name: str
    attnum: int
    type: int
    modifier: int
    kind: ColumnType

    @property
    def is_text(self) -> bool:
        """Whether its values are packed as texts, which those of a numeric are too."""
        return self.kind.is_text or self.kind.kind is Kind.NUMERIC


@dataclass(frozen=True)
class _Part:
    """A week of a log: its partition."""

    relation: int
    name: str
    start: datetime
    end: datetime


@dataclass(frozen=True)
class Closed:
    """The number of packed rows by table, and whether no rows are left to pack."""

    rows: dict[str, int]
    complete: bool


def is_possible() -> bool:
    """Whether blocks can be made and read here, which takes pyarrow."""
    return importlib.util.find_spec("pyarrow") is not None and sys.byteorder == "little"


def close(
    conninfo: str,
    stopped: Callable[[], bool] = lambda: False,
    *,
    full: bool = True,
    read: Mapping[str, int] | None = None,
    seconds: float = float("inf"),
    pauses: float = 1.0,
    turn: Turn = Turn.AWAITED,
) -> Closed:
    """Packs closed rows: the newest ones of the tables that have enough for a block, then all of each table
    of which summaries have `read` a block more than a minute of its cycle has, as after an import, or with
    `full` of all tables.

    Ends when `stopped` returns true, or after `seconds`. Pauses last `pauses` times as long as the work;
    unless that is 0 the priority is low. One process at a time packs or makes summaries (`turn`).
    """
    rows: dict[str, int] = {}
    if not is_possible():
        return Closed(rows, True)
    begun = time.monotonic()

    def is_over() -> bool:
        return stopped() or time.monotonic() - begun > seconds

    with connected(conninfo) as connection, ExitStack() as stack:
        try:
            stack.enter_context(alone(conninfo, turn))
        except errors.LockNotAvailable:
            return Closed(rows, False)
        connection.execute(sql.SQL("set role {}").format(sql.Identifier(OWNER)))
        due = connection.execute(
            sql_file(__file__, "closing_due"),
            {
                "earliest": EARLIEST,
                "full": full,
                "tables": [*(read or {})],
                "rows": [*(read or {}).values()],
                "block": BLOCK,
            },
        ).fetchall()
        for some in by_connection(due):
            with connected(conninfo) as worker:
                if pauses:
                    lower_backend(worker, _NICENESS)
                worker.execute(sql.SQL("set role {}").format(sql.Identifier(OWNER)))
                for table, until, since in some:
                    before = time.monotonic()
                    try:
                        for made in _close(worker, table, until, since, is_over):
                            rows[table] = rows.get(table, 0) + made
                            time.sleep(min(_LONGEST_PAUSE, pauses * (time.monotonic() - before)))
                            before = time.monotonic()
                    except psycopg.Error as error:
                        if worker.broken or error.sqlstate is None:
                            raise
                        # the other tables are still packed; readers take the rows of this one
                        log.error("rows of %s are not closed: %s", table, " ".join(str(error).split()))
                    if is_over():
                        return Closed(rows, False)
    return Closed(rows, True)


def _close(
    connection: psycopg.Connection, table: str, until: datetime, since: datetime, stopped: Callable[[], bool]
) -> Iterator[int]:
    """Packs the rows of a table's weeks that end after `since`, the newest week first, and yields the number
    of rows of each block after its commit. Deletes blocks of weeks that have left the log."""
    parts = _parts(connection, table)
    since = min((part.start for part in parts if part.end > since), default=since)
    there = _covered(connection, table, since)
    if gone := there.keys() - {part.relation for part in parts}:
        connection.execute(
            sql.SQL("delete from {} where part = any(%s) and begins >= %s").format(closed.storage(table)),
            [[*gone], since],
        )
    for part in reversed(parts):
        end = min(part.end, until)
        if part.end <= since or part.start >= end:
            continue
        for start, stop in reversed([*_between(there.get(part.relation, []), part.start, end)]):
            at = start
            while at < stop and not stopped():
                made = _closed(connection, table, part, at, stop, stop == until < part.end)
                if made is None:
                    break
                at, rows = made
                yield rows


def problems_of(connection: psycopg.Connection, table: str) -> Iterator[str]:
    """A line for each block that differs from its rows, or cannot be read. The block is deleted, so that
    readers take the rows, and a later round makes it again. `connection` is in autocommit."""
    if not is_possible() or not closed.is_there(connection, table):
        return
    parts = {part.relation: part for part in _parts(connection, table)}
    query = "select begins, ends, part from {} where column_name = 'time' order by begins"
    heads = connection.execute(sql.SQL(query).format(closed.storage(table))).fetchall()
    for begins, ends, relation in heads:
        if relation not in parts:
            continue
        wrong = _difference(connection, table, parts[relation], begins, ends)
        if wrong is not None:
            with connection.transaction():
                connection.execute(sql.SQL("set local role {}").format(sql.Identifier(OWNER)))
                closed.reopen(connection, table, [(begins, ends)])
            at = begins.astimezone(UTC)
            yield f"closed.{table}: {wrong} from {at:%Y-%m-%d %H:%M:%S}+0000 on: it is made again of the rows"


def _difference(
    connection: psycopg.Connection, table: str, part: _Part, start: datetime, end: datetime
) -> str | None:
    """The difference between a block and its rows in one snapshot. None if there is none, if late rows have
    made the block invalid, or if the rows cannot be read, which `ringlog verify` reports by itself."""
    from ringlog.history.packing import DAMAGES, arrow_of, unpacked

    query = sql.SQL(
        "select column_name, attnum, type, modifier, rows, content from {} as block where begins = %s"
        " and not exists (select from ringlog.summary_mark as mark, ringlog.summarised"
        " where mark.table_name = %s and summarised.table_name = %s and mark.time < block.ends"
        " and mark.time > block.begins - levels[1] * interval '1 second')"
    ).format(closed.storage(table))
    log = sql.Identifier(LOG_TABLES, table)
    reads_rows = False
    try:
        with connection.transaction():
            connection.execute("set transaction isolation level repeatable read")
            connection.execute(sql.SQL("lock table only {} in access share mode").format(log))
            found = {
                (name, *kind): (n, content)
                for name, *kind, n, content in connection.execute(query, [start, table, table], binary=True)
            }
            if not found:
                return None
            columns = [each for each in _columns(connection, log) if _key(each) in found]
            reads_rows = True
            n, contents = _packed(connection, part, columns, start, end)
    except (errors.DataCorrupted, errors.IndexCorrupted) as error:
        if reads_rows:
            # the block may be the only copy of its values
            return None
        return f"the block cannot be read ({' '.join(str(error).split())})"
    for column, content in contents:
        rows, stored = found[_key(column)]
        if rows != n:
            return f"the block has {rows} rows, the log {n},"
        if stored == content:
            continue
        kind = arrow_of(column.kind)
        try:
            same = _buffers(unpacked(stored, kind, n)) == _buffers(unpacked(content, kind, n))
        except DAMAGES:
            same = False
        if not same:
            return f"column {column.name} of the block has other values than the log"
    return None


def _key(column: _Column) -> tuple[str, int, int, int]:
    return column.name, column.attnum, column.type, column.modifier


def _buffers(array: Any) -> list[bytes | None]:
    return [None if each is None else each.to_pybytes() for each in array.buffers()]


def _parts(connection: psycopg.Connection, table: str) -> list[_Part]:
    """The weeks of a log by time, without the default partition."""
    rows = connection.execute(
        f"""
        select child.oid, child.relname, bounds[1]::timestamptz, bounds[2]::timestamptz
        from {WEEKS}
        where inhparent = %s::regclass and bounds is not null
        order by 3
        """,
        [sql.Identifier(LOG_TABLES, table).as_string()],
    )
    return [_Part(*row) for row in rows]


def _covered(
    connection: psycopg.Connection, table: str, since: datetime
) -> dict[int, list[tuple[datetime, datetime]]]:
    """The times of the blocks that begin at this time or later, by partition."""
    if not closed.is_there(connection, table):
        return {}
    query = sql.SQL(
        "select part, lower(run), upper(run) from ("
        " select part, unnest(range_agg(tstzrange(begins, ends))) as run from {}"
        " where column_name = 'time' and begins >= %s group by part) as found order by part, run"
    ).format(closed.storage(table))
    covered: dict[int, list[tuple[datetime, datetime]]] = {}
    for part, start, stop in connection.execute(query, [since]):
        covered.setdefault(part, []).append((start, stop))
    return covered


def _between(
    runs: Sequence[tuple[datetime, datetime]], start: datetime, end: datetime
) -> Iterator[tuple[datetime, datetime]]:
    """The parts of a time outside the runs."""
    for begins, ends in runs:
        if start < begins:
            yield start, min(begins, end)
        start = max(start, ends)
    if start < end:
        yield start, end


def _closed(
    connection: psycopg.Connection, table: str, part: _Part, start: datetime, stop: datetime, open_end: bool
) -> tuple[datetime, int] | None:
    """Makes the block that begins at `start` and ends at `stop` at the latest. Returns its end and the number
    of its rows; None if there are too few rows before an open end, or if the week has left the log."""
    with connection.transaction():
        # keeps the week in the log until the transaction ends
        log = sql.Identifier(LOG_TABLES, table)
        connection.execute(locks.wait_for_change(table))
        query = "select true from pg_inherits where inhparent = %s::regclass and inhrelid = %s"
        if connection.execute(query, [log.as_string(), part.relation]).fetchone() is None:
            return None
        columns = _columns(connection, log)
        most = _most(connection, part, columns, start)
        end = _end(connection, part, start, stop, open_end, most)
        if end is None:
            return None
        n, contents = _packed(connection, part, columns, start, end)
        closed.create_missing(connection, table)
        statement = sql.SQL(
            "copy {} (column_name, begins, ends, rows, part, attnum, type, modifier, content)"
            " from stdin (format binary)"
        ).format(closed.storage(table))
        with connection.cursor() as cursor, cursor.copy(statement) as copy:
            copy.set_types(
                ["text", "timestamptz", "timestamptz", "int4", "oid", "int2", "oid", "int4", "bytea"]
            )
            for column, content in contents:
                known = (column.attnum, column.type, column.modifier, content)
                copy.write_row((column.name, start, end, n, part.relation, *known))
        connection.execute(
            "insert into ringlog.closed as known values (%s, %s)"
            " on conflict (table_name) do update set until = greatest(known.until, excluded.until)",
            [table, end],
        )
    return end, n


def _columns(connection: psycopg.Connection, log: sql.Identifier) -> list[_Column]:
    """The columns of a log that can be packed, time first: texts, numbers, and waveforms of numbers of a
    fixed width."""
    rows = connection.execute(
        "select attname, attnum, atttypid, atttypmod, format_type(atttypid, atttypmod) from pg_attribute"
        " where attrelid = %s::regclass and attnum > 0 and not attisdropped"
        " order by attname <> 'time', attnum",
        [log.as_string()],
    )
    return [
        _Column(name, attnum, oid, modifier, kind)
        for name, attnum, oid, modifier, text in rows
        if (kind := ColumnType.of_postgresql(text)) is not None
        and (name == "time" or kind.is_number or kind.is_packed or (kind.is_text and not kind.is_array))
    ]


def _most(connection: psycopg.Connection, part: _Part, columns: Sequence[_Column], start: datetime) -> int:
    """The number of rows of a block: smaller for long waveforms and texts, judged by the first rows."""
    lengths = [
        sql.SQL("octet_length({}::text) / 8" if column.is_text else "array_length({}, 1)").format(
            sql.Identifier(column.name)
        )
        for column in columns
        if column.is_text or column.kind.is_array
    ]
    if not lengths:
        return BLOCK
    query = sql.SQL(
        'select max(length) from (select greatest({}) as length from {} where "time" >= %s'
        ' order by "time" limit 10) as first'
    ).format(sql.SQL(", ").join(lengths), sql.Identifier("log", part.name))
    (length,) = connection.execute(query, [start]).fetchone() or (None,)
    return max(16, min(BLOCK, _BYTES // (8 * max(1, length or 1))))


def _end(
    connection: psycopg.Connection, part: _Part, start: datetime, stop: datetime, open_end: bool, most: int
) -> datetime | None:
    """The end of the block that begins at `start`. Rows of the same time are in the same block."""
    query = sql.SQL(
        'select count(*), min("time"), max("time") filter (where number <= {most} + 1) from ('
        ' select "time", row_number() over (order by "time") as number from {log}'
        ' where "time" >= {start} and "time" < {stop} order by "time" limit {enough}) as counted'
    ).format(
        log=sql.Identifier("log", part.name),
        start=sql.Literal(start),
        stop=sql.Literal(stop),
        most=sql.Literal(most),
        enough=sql.Literal(most + most // 2 + 1),
    )
    n, first, last = connection.execute(query).fetchone() or (0, None, None)
    if open_end and n <= most:
        return None
    if n <= most + most // 2 and not open_end:
        return stop
    cut: datetime = last if last > first else first + MICROSECOND
    return min(stop, cut)


def _packed(
    connection: psycopg.Connection, part: _Part, columns: Sequence[_Column], start: datetime, end: datetime
) -> tuple[int, list[tuple[_Column, bytes]]]:
    """The number of rows of a block, and its columns with their values; without rows the times only."""
    from ringlog.history.packing import packed, packed_texts, packed_times

    function, unpack = _packer(connection)
    single = [column for column in columns if not column.kind.is_array]
    # where the planner knows the limit, or there is none, it sorts whole rows (series_page.sql)
    rows = sql.SQL(
        'select * from {} where "time" >= {} and "time" < {} order by "time", seq_no'
        " limit (select null::bigint)"
    ).format(sql.Identifier("log", part.name), sql.Literal(start), sql.Literal(end))

    def aggregate(column: _Column) -> sql.Composed:
        if column.is_text:
            return sql.SQL("array_agg({}::text)").format(sql.Identifier(column.name))
        return sql.SQL("{}(array_agg({}))").format(function, sql.Identifier(column.name))

    query = sql.SQL("select count(*), {} from ({}) as logged").format(
        sql.SQL(", ").join(map(aggregate, single)), rows
    )
    with connection.cursor(binary=True) as cursor:
        n, *arrays = cursor.execute(query).fetchone() or (0,)
    if not n:
        return 0, [(columns[0], packed_times(np.empty(0, np.int64)))]
    contents = []
    for column, array in zip(single, arrays, strict=True):
        if column.is_text:
            content = packed_texts(array)
        elif column.name == "time":
            times, _ = unpack(array, "i8")
            content = packed_times(times + POSTGRES_EPOCH)
        else:
            content = packed(*unpack(array, column.kind.octets))
        contents.append((column, content))
    for column in columns:
        if column.kind.is_array and (waveforms := _waveforms(connection, column, rows)) is not None:
            contents.append((column, waveforms))
    return int(n), contents


def _packer(connection: psycopg.Connection) -> tuple[sql.Identifier, Callable[[Any, str], Numbers]]:
    """PostgreSQL's function that encodes an array as bytes, and the Python function that decodes them."""
    query = "select to_regprocedure('ringlog.array_bytes(anyarray)') is not null"
    if connection.execute(query).fetchone() == (True,):
        return sql.Identifier("ringlog", "array_bytes"), in_memory
    return sql.Identifier("pg_catalog", "array_send"), sent


def _waveforms(connection: psycopg.Connection, column: _Column, rows: sql.Composed) -> bytes | None:
    """The packed waveforms of a column. None if they are hardly shorter than in the rows, which are as fast
    to read, or if a waveform has nulls, for which readers of rows raise an error."""
    from ringlog.history.packing import packed_lists

    # array_send: 20 bytes before the points, and a length before each
    query = sql.SQL(
        "select pg_catalog.array_send(array_agg(cardinality({0}))),"
        " string_agg(coalesce(substr(pg_catalog.array_send({0}), 21), ''), '' order by \"time\", seq_no)"
        " from ({1}) as logged"
    ).format(sql.Identifier(column.name), rows)
    with connection.cursor(binary=True) as cursor:
        found = cursor.execute(query).fetchone()
    assert found is not None
    lengths, there = sent(found[0], "i4")
    element = np.dtype(column.kind.octets)
    each = np.dtype([("length", ">u4"), ("value", element.newbyteorder(">"))])
    if len(found[1]) != int(lengths.sum()) * each.itemsize:
        return None
    points: NDArray[Any] = np.frombuffer(found[1], each)["value"].astype(element)
    content = packed_lists(lengths.astype(np.int32), points, there)
    return content if len(content) < _SAVING * points.nbytes else None
