"""Reads the samples of one signal of a table of samples, as Arrow record batches.

The table's blocks have arrays (ringlog.schema.sample_tables), which are decoded without an object for each
value. A batch has `time`, the value under the name of its place's column, and `nanoseconds` (of the time
below a microsecond), `severity` and `status`.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from functools import cache

import numpy as np
import pyarrow as pa
from psycopg import sql

from ringlog.history.arrays import in_memory, sent
from ringlog.history.blocks import EPOCH
from ringlog.history.connection import Connection, records, rows
from ringlog.history.signals import Place
from ringlog.schema.column_type import ColumnType, Kind
from ringlog.schema.layout import LOG_TABLES

NANOSECONDS, SEVERITY, STATUS = "nanoseconds", "severity", "status"

_TIME = pa.timestamp("us", tz="UTC")
_MICROSECOND = timedelta(microseconds=1)
_BLOCKS = 64
"""so many blocks are read at once, and the rest of the hour of the last"""

# no block is of two hours, so those of different hours are in order of time
_PAGE = """
with bound as materialized (
  select coalesce((
    select date_trunc('hour', block."time", 'UTC') + interval '1 hour'
    from {log} as block
    where block.signal = $1 and block."time" >= $2::timestamptz
      and block."time" < $3::timestamptz + interval '1 hour' and block.begins < $3::timestamptz
    order by block."time"
    limit 1 offset {more}
  ), 'infinity') as until
)
select
  (extract(epoch from nullif(bound.until, 'infinity')) * 1000000)::bigint, {pack}(block.times),
  {pack}(block.samples), {pack}(block.severities), {pack}(block.statuses)
from bound
cross join lateral (
  select * from {log} as each
  where each.signal = $1 and each."time" >= $2::timestamptz
    and each."time" < least($3::timestamptz + interval '1 hour', bound.until)
    and each.begins < $3::timestamptz
) as block
order by block."time"
"""

_COUNT = """
select coalesce(sum(
  case
    when block.begins >= {start} and block."time" < {end} then block.n
    else (
      select count(*) from unnest(block.times) as each
      where ringlog.moment(each) >= {start} and ringlog.moment(each) < {end}
    )
  end
), 0)::bigint as n
from {log} as block
where block.signal = {number} and block."time" >= {start} and block."time" < {end} + interval '1 hour'
  and block.begins < {end}
"""

_NEWEST = """
select newest."time", newest.value as {column}, newest.nanoseconds, newest.severity, newest.status
from unnest({numbers}::integer[]) with ordinality as asked (number, place)
left join lateral ringlog.{procedure}({at}, asked.number) as newest on true
order by asked.place
"""

_GIVEN = """
select "time", value as {column}, nanoseconds, severity, status
from ringlog.{procedure}(null, null, {end}, null, {number})
where value is not null or severity <> 0
order by "time" desc, nanoseconds desc
limit 1
"""

_ROWS = """
select "time", value as {column}, nanoseconds, severity, status
from ringlog.{procedure}(null, {start}, {end}, {limit}, {number})
"""


def read(
    connection: Connection, place: Place, start: datetime, end: datetime, limit: int | None = None
) -> Iterator[pa.RecordBatch]:
    """The samples from `start` on and before `end`, oldest first, at most `limit`: no batch is empty. Raises
    ReadError."""
    if not place.type.is_fixed:
        query = sql.SQL(_ROWS).format(
            **_names(place), start=_moment(start), end=_moment(end), limit=sql.Literal(limit)
        )
        # read to its end: a cancellation could hit the connection's next query
        yield from [batch for batch in rows(connection, query) if batch.num_rows]
        return
    packs = _packs(connection)
    text = _page(place.table, packs)
    first, last = ((bound - EPOCH) // _MICROSECOND * 1000 for bound in (start, end))
    since = start
    left = limit
    while since < end and left != 0:
        found = connection.answer(text, place.column.encode(), _text(since), _text(end))
        if not found.ntuples:
            return
        parts = [_block(found, number, place.type, packs) for number in range(found.ntuples)]
        times, values, there, severities, statuses = (
            np.concatenate([part[column] for part in parts]) for column in range(5)
        )
        if (times[1:] < times[:-1]).any():
            order = np.argsort(times, kind="stable")
            times, values, there, severities, statuses = (
                each[order] for each in (times, values, there, severities, statuses)
            )
        begin, stop = np.searchsorted(times, [first, last])
        stop = stop if left is None else min(stop, begin + left)
        part = slice(int(begin), int(stop))
        if begin < stop:
            yield _batch(place, times[part], values[part], there[part], severities[part], statuses[part])
            left = None if left is None else left - int(stop - begin)
        until = found.get_value(0, 0)
        if until is None:
            return
        since = EPOCH + int.from_bytes(until, signed=True) * _MICROSECOND


def newest(
    connection: Connection, place: Place, before: datetime, *, given: bool = False
) -> pa.RecordBatch | None:
    """The newest sample before an instant; with `given` the newest with a reading or an alarm. None if there
    is none. Raises ReadError."""
    (found,) = newest_of(connection, place.table, [place.column], before - _MICROSECOND)
    if found is None or not given or found.column(1)[0].is_valid or found[SEVERITY][0].as_py():
        return found
    query = sql.SQL(_GIVEN).format(**_names(place), end=_moment(before))
    return next(iter([batch for batch in rows(connection, query) if batch.num_rows]), None)


def newest_of(
    connection: Connection, table: str, columns: Sequence[str], at: datetime | None = None
) -> list[pa.RecordBatch | None]:
    """The newest sample of each of these places that is not later than `at`, None: the newest of all. None
    where there is none. Raises ReadError."""
    query = sql.SQL(_NEWEST).format(
        column=sql.Identifier("value"),
        numbers=sql.Literal([int(column) for column in columns]),
        procedure=sql.Identifier(f"get_{table}_at"),
        at=sql.SQL("'infinity'") if at is None else _moment(at),
    )
    (batch,) = pa.Table.from_batches([*rows(connection, query)]).combine_chunks().to_batches() or [None]
    found: list[pa.RecordBatch | None] = []
    for number, column in enumerate(columns):
        one = batch.slice(number, 1)
        named = pa.RecordBatch.from_arrays(one.columns, names=["time", column, *one.schema.names[2:]])
        found.append(named if one.column(0)[0].is_valid else None)
    return found


def count(connection: Connection, place: Place, start: datetime, end: datetime) -> int:
    """The number of samples from `start` on and before `end`. Raises ReadError."""
    query = sql.SQL(_COUNT).format(
        log=sql.Identifier(LOG_TABLES, place.table),
        number=sql.Literal(int(place.column)),
        start=_moment(start),
        end=_moment(end),
    )
    return int(records(connection, query)[0]["n"])


def _names(place: Place) -> dict[str, sql.Composable]:
    return {
        "column": sql.Identifier(place.column),
        "number": sql.Literal(int(place.column)),
        "procedure": sql.Identifier(f"get_{place.table}"),
    }


_Part = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""times, values, whether each is a reading, severities, statuses"""


def _block(found: object, row: int, kind: ColumnType, packs: bool) -> _Part:
    unpack = in_memory if packs else sent

    def decoded(column: int, element: str) -> tuple[np.ndarray, np.ndarray | None]:
        content = found.get_value(row, column)  # type: ignore[attr-defined]
        return (np.zeros(len(times), element), None) if content is None else unpack(content, element)

    times = np.empty(0, "i8")
    times, _ = decoded(1, "i8")
    values, there = decoded(2, _element(kind))
    severities, _ = decoded(3, "i2")
    statuses, _ = decoded(4, "i2")
    return times, values, np.ones(len(times), bool) if there is None else there, severities, statuses


def _batch(
    place: Place,
    times: np.ndarray,
    values: np.ndarray,
    there: np.ndarray,
    severities: np.ndarray,
    statuses: np.ndarray,
) -> pa.RecordBatch:
    mask = None if there.all() else ~there
    shown = pa.array(np.ascontiguousarray(values), mask=mask).cast(place.type.arrow)
    columns = [
        pa.array(times // 1000, _TIME),
        shown,
        *(pa.array(each.astype("i2")) for each in (times % 1000, severities, statuses)),
    ]
    return pa.RecordBatch.from_arrays(columns, names=["time", place.column, NANOSECONDS, SEVERITY, STATUS])


def _element(kind: ColumnType) -> str:
    return "u1" if kind.kind is Kind.BIT else kind.numpy


def _packs(connection: Connection) -> bool:
    """Whether arrays come in PostgreSQL's form in memory: only a superuser can have installed that."""
    if connection.packs is None:
        query = (
            "select coalesce(has_function_privilege("
            "to_regprocedure('ringlog.array_bytes(anyarray)'), 'execute'), false) as packs"
        )
        connection.packs = bool(records(connection, sql.SQL(query))[0]["packs"])
    return connection.packs


@cache
def _page(table: str, packs: bool) -> str:
    return (
        sql.SQL(_PAGE)
        .format(
            log=sql.Identifier(LOG_TABLES, table),
            more=sql.Literal(_BLOCKS - 1),
            pack=sql.Identifier("ringlog", "array_bytes")
            if packs
            else sql.Identifier("pg_catalog", "array_send"),
        )
        .as_string()
    )


def _text(moment: datetime) -> bytes:
    return moment.isoformat().encode()


def _moment(moment: datetime) -> sql.Composable:
    return sql.SQL("timestamptz {}").format(sql.Literal(moment.isoformat()))
