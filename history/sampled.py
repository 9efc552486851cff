"""Reads the samples of one signal of a table of samples, as Arrow record batches, from PostgreSQL and the
archive.

The table's blocks have arrays (schema/relations/sample_tables.py), which are decoded without an object for
each value. A batch has `time`, the value under the name of its location's column, and `nanoseconds` (of the
time below a microsecond), `severity` and `status`.
"""

from collections.abc import Generator, Iterator, Sequence
from datetime import datetime
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from psycopg import sql

from ringlog.history.archive.parquet.late import merged
from ringlog.history.archive.parquet.sample_blocks import samples_of
from ringlog.history.arrays import in_memory, sent
from ringlog.history.connection import Connection, records, rows, time_literal, transaction
from ringlog.history.reading import WeekFile, count_cold, held
from ringlog.history.signals import Location
from ringlog.schema.column_type import ColumnType
from ringlog.schema.layout import LOG_TABLES
from ringlog.schema.moments import EPOCH, MICROSECOND, microseconds, moment_of
from ringlog.schema.sql_files import sql_file

NANOSECONDS, SEVERITY, STATUS = "nanoseconds", "severity", "status"

_TIME = pa.timestamp("us", tz="UTC")
_BLOCKS = 64
"""number of blocks that are read at once, with the rest of the last one's hour"""

# no block is of two hours, so those of different hours are in order of time
_PAGE = sql_file(__file__, "sampled_page")

_COUNT = sql_file(__file__, "sampled_count")

_LAST_ARCHIVED = 'select "time" from ringlog.last_archived where number = {number}'

_NEWEST = sql_file(__file__, "sampled_newest")

_BLOCKS_OF = """
select * from {log}
where signal = any({numbers}) and "time" >= {start} and "time" < {end} + interval '1 hour' and begins < {end}
order by signal, "time"
"""


def read(
    connection: Connection, location: Location, start: datetime, end: datetime, limit: int | None = None
) -> Iterator[pa.RecordBatch]:
    """The samples from `start` on and before `end`, oldest first, at most `limit`: no batch is empty. Raises
    ReadError; ringlog.history.archive.folder.Damaged for a cold week's file."""
    left = limit
    is_paged = location.type.is_fixed  # the first part
    with transaction(connection):
        for part in _pieces(connection, location, start, end):
            for batch in part:
                if left is None or left:
                    yield batch if left is None else batch.slice(0, left)
                left = left and max(0, left - batch.num_rows)
                # a stream is read to its end: a cancellation could hit the connection's next query
                if left == 0 and is_paged:
                    return
            if left == 0:
                return
            is_paged = False


def _pieces(
    connection: Connection, location: Location, start: datetime, end: datetime
) -> Iterator[Iterator[pa.RecordBatch]]:
    """The samples of each part, in order. Where the query of the first samples meets no cold week, PostgreSQL
    has all."""
    reached: datetime | None = start

    def leading() -> Iterator[pa.RecordBatch]:
        nonlocal reached
        reached = yield from _hot(connection, location, start, end)

    if location.type.is_fixed:
        yield leading()
    if reached is not None:
        for week, since, until in _parts(connection, location.table, reached, end):
            yield _part(connection, location, week, since, until)


def _part(
    connection: Connection, location: Location, week: WeekFile | None, start: datetime, end: datetime
) -> Iterator[pa.RecordBatch]:
    if week is not None:
        yield from _cold(connection, location, week, start, end)
    else:
        batches = _unnested(connection, location.table, [int(location.column)], start, end)
        yield from _with_column(location, batches)


def _parts(
    connection: Connection, table: str, start: datetime, end: datetime
) -> Iterator[tuple[WeekFile | None, datetime, datetime]]:
    """The parts of a time in their order, each with its cold week; None: in PostgreSQL."""
    at = start
    for week in held(connection, table, end).weeks:
        if week.ends <= at:
            continue
        if at < week.begins:
            yield None, at, week.begins
        yield week, max(at, week.begins), min(week.ends, end)
        at = min(week.ends, end)
    if at < end:
        yield None, at, end


def _cold(
    connection: Connection, location: Location, week: WeekFile, start: datetime, end: datetime
) -> Iterator[pa.RecordBatch]:
    """The samples of a week's file, and its late ones in PostgreSQL. Raises Damaged."""
    batches = _merged(connection, location.table, [int(location.column)], week, start, end)
    yield from _with_column(location, batches)


def every(
    database: str, table: str, numbers: Sequence[int], start: datetime, end: datetime
) -> Iterator[pa.RecordBatch]:
    """The samples of some signals from `start` on and before `end` as the archive has them, in each part of
    the time ordered by number and time. Raises ReadError, Damaged."""
    with transaction(database) as connection:
        for week, since, until in _parts(connection, table, start, end):
            if week is None:
                yield from _unnested(connection, table, numbers, since, until)
            else:
                for batch in _merged(connection, table, numbers, week, since, until):
                    yield batch.filter(pc.is_in(batch["number"], pa.array(numbers, pa.int32())))


def _merged(
    connection: Connection, table: str, numbers: Sequence[int], week: WeekFile, start: datetime, end: datetime
) -> Iterator[pa.RecordBatch]:
    """The samples of a week's file, of one signal or of all, with the late ones of these signals."""
    late = pa.Table.from_batches(_unnested(connection, table, numbers, start, end)).combine_chunks()
    number = numbers[0] if len(numbers) == 1 else None
    yield from merged(week.read(late.schema.names, start, end, number), late)


def _unnested(
    connection: Connection, table: str, numbers: Sequence[int], start: datetime, end: datetime
) -> Iterator[pa.RecordBatch]:
    """The samples in PostgreSQL as the archive has them; at least one batch. Reading them checks the reader's
    right."""
    query = sql.SQL(_BLOCKS_OF).format(
        log=sql.Identifier(LOG_TABLES, table),
        numbers=sql.Literal([*numbers]),
        start=time_literal(start),
        end=time_literal(end),
    )
    first, last = (pa.scalar(bound, _TIME) for bound in (start, end))
    for batch in samples_of(rows(connection, query)):
        time = batch["time"]
        yield batch.filter(pc.and_(pc.greater_equal(time, first), pc.less(time, last)))


def _with_column(location: Location, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Batches in the form of `read`."""
    names = ["time", "value", NANOSECONDS, SEVERITY, STATUS]
    for batch in batches:
        if batch.num_rows:
            yield batch.select(names).rename_columns(["time", location.column, *names[2:]])


def _hot(
    connection: Connection, location: Location, start: datetime, end: datetime
) -> Generator[pa.RecordBatch, None, datetime | None]:
    """The samples in PostgreSQL. Returns the moment up to which it has read them where some of the others are
    in a cold week."""
    packs = connection.packs
    text = _page(location.table, packs)
    first, last = (microseconds(bound) * 1000 for bound in (start, end))
    since = start
    while since < end:
        answer = connection.answer(text, location.column.encode(), _text(since), _text(end))
        if answer.get_value(0, 5) == b"\1":
            return since
        if answer.get_value(0, 1) is None:
            return None
        parts = [_block(answer, number, location.type, packs) for number in range(answer.ntuples)]
        times, values, present, severities, statuses = (
            np.concatenate([part[column] for part in parts]) for column in range(5)
        )
        if (times[1:] < times[:-1]).any():
            order = np.argsort(times, kind="stable")
            times, values, present, severities, statuses = (
                each[order] for each in (times, values, present, severities, statuses)
            )
        begin, stop = np.searchsorted(times, [first, last])
        part = slice(int(begin), int(stop))
        if begin < stop:
            yield _batch(location, times[part], values[part], present[part], severities[part], statuses[part])
        until = answer.get_value(0, 0)
        if until is None:
            return None
        since = moment_of(int.from_bytes(until, signed=True))
    return None


def newest(connection: Connection, location: Location, before: datetime) -> pa.RecordBatch | None:
    """The newest sample before an instant; None if there is none. Raises ReadError, Damaged."""
    last = records(connection, sql.SQL(_LAST_ARCHIVED).format(number=sql.Literal(int(location.column))))
    if not last or last[0]["time"] < microseconds(before) * 1000:
        (found,) = newest_of(connection, location.table, [location.column], before - MICROSECOND)
        return found
    # the parts that have it, the newest first
    with transaction(connection):
        for week, start, end in reversed([*_parts(connection, location.table, EPOCH, before)]):
            sample = None
            for batch in _part(connection, location, week, start, end):
                sample = batch.slice(batch.num_rows - 1)
            if sample is not None:
                return sample
    return None


def newest_of(
    connection: Connection, table: str, columns: Sequence[str], at: datetime | None = None
) -> list[pa.RecordBatch | None]:
    """The newest sample of each of these signals that is not later than `at`, None: the newest of all. None
    where there is none. Raises ReadError."""
    query = sql.SQL(_NEWEST).format(
        column=sql.Identifier("value"),
        numbers=sql.Literal([int(column) for column in columns]),
        procedure=sql.Identifier(f"get_{table}_at"),
        at=sql.SQL("'infinity'") if at is None else time_literal(at),
    )
    (batch,) = pa.Table.from_batches([*rows(connection, query)]).combine_chunks().to_batches() or [None]
    newest: list[pa.RecordBatch | None] = []
    for number, column in enumerate(columns):
        one = batch.slice(number, 1)
        named = pa.RecordBatch.from_arrays(one.columns, names=["time", column, *one.schema.names[2:]])
        newest.append(named if one.column(0)[0].is_valid else None)
    return newest


def count(connection: Connection, location: Location, start: datetime, end: datetime) -> int:
    """The number of samples from `start` on and before `end`. Raises ReadError."""
    query = sql.SQL(_COUNT).format(
        log=sql.Identifier(LOG_TABLES, location.table),
        number=sql.Literal(int(location.column)),
        start=time_literal(start),
        end=time_literal(end),
    )
    n = int(records(connection, query)[0]["n"])
    return n + count_cold(connection, location.table, start, end, int(location.column))


_Part = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""times, values, whether each is a reading, severities, statuses"""


def _block(answer: object, row: int, kind: ColumnType, packs: bool) -> _Part:
    unpack = in_memory if packs else sent

    def decoded(column: int, element: str) -> tuple[np.ndarray, np.ndarray | None]:
        content = answer.get_value(row, column)  # type: ignore[attr-defined]
        return (np.zeros(len(times), element), None) if content is None else unpack(content, element)

    times = np.empty(0, "i8")
    times, _ = decoded(1, "i8")
    values, present = decoded(2, kind.octets)
    severities, _ = decoded(3, "i2")
    statuses, _ = decoded(4, "i2")
    return times, values, np.ones(len(times), bool) if present is None else present, severities, statuses


def _batch(
    location: Location,
    times: np.ndarray,
    values: np.ndarray,
    present: np.ndarray,
    severities: np.ndarray,
    statuses: np.ndarray,
) -> pa.RecordBatch:
    mask = None if present.all() else ~present
    shown = pa.array(np.ascontiguousarray(values), mask=mask).cast(location.type.arrow)
    columns = [
        pa.array(times // 1000, _TIME),
        shown,
        *(pa.array(each.astype("i2")) for each in (times % 1000, severities, statuses)),
    ]
    return pa.RecordBatch.from_arrays(columns, names=["time", location.column, NANOSECONDS, SEVERITY, STATUS])


@cache
def _page(table: str, packs: bool) -> str:
    return (
        sql.SQL(_PAGE)
        .format(
            log=sql.Identifier(LOG_TABLES, table),
            table=sql.Literal(table),
            more=sql.Literal(_BLOCKS - 1),
            pack=sql.Identifier("ringlog", "array_bytes")
            if packs
            else sql.Identifier("pg_catalog", "array_send"),
        )
        .as_string()
    )


def _text(moment: datetime) -> bytes:
    return moment.isoformat().encode()
