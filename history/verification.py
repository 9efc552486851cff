"""Verifies summaries, closed rows and archived weeks against the rows they were made from."""

from collections.abc import Iterator, Mapping

import psycopg
import sqlalchemy as sa
from psycopg import sql

from ringlog.history import closing
from ringlog.history.summaries.summary_table import summarised_columns
from ringlog.schema.layout import LOG_TABLES

_DAY = 86_400


def problems_of(connection: psycopg.Connection, administrator: sa.Engine) -> Iterator[str]:
    """Yields a line for each defect. Reads all of the log's times and all files."""
    tables = connection.execute(
        "select table_name, levels, until, is_of_samples from ringlog.summarised"
        " join ringlog.every_table using (table_name) where until is not null order by table_name"
    ).fetchall()
    for table, levels, until, is_of_samples in tables:
        yield from whole(connection, f"summary.{table}", _levels(connection, table, levels))
        length = max((level for level in levels if level <= _DAY), default=levels[0])
        names = {
            "log": sql.Identifier(LOG_TABLES, table),
            "storage": sql.Identifier("summary", table),
            "table": sql.Literal(table),
            "level": sql.Literal(length),
            "length": sql.SQL("interval {}").format(sql.Literal(f"{length} seconds")),
            "until": sql.Literal(until),
        }
        compare = _compared_samples if is_of_samples else _compared
        yield from whole(connection, f"summary.{table}", compare(connection, table, length, names))
        yield from whole(connection, f"closed.{table}", closing.problems_of(connection, table))
    yield from _archive(administrator)


def whole(connection: psycopg.Connection, place: str, problems: Iterator[str]) -> Iterator[str]:
    """These problems, and one more if PostgreSQL raises an error; the rest is read too."""
    try:
        yield from problems
    except psycopg.Error as error:
        if connection.broken:
            raise
        message = str(error.diag.message_primary or error)
        found = connection.execute("select ringlog.damaged_place(%s)", [message]).fetchone()
        where = "" if found is None or found[0] is None else f" ({found[0]})"
        yield f"{place}: {message}{where}"


def _compared(
    connection: psycopg.Connection, table: str, length: int, names: Mapping[str, sql.Composable]
) -> Iterator[str]:
    there = sql.Literal([*summarised_columns(connection, table)])
    for column, spans, begin in connection.execute(sql.SQL(_COLUMNS).format(there=there, **names)):
        yield (
            f"summary.{table}: column {column} has fewer rows than others in {spans} spans of {length} s,"
            f" the first at {begin:%Y-%m-%d %H:%M:%S%z}"
        )
    for begin, stored, logged in connection.execute(
        sql.SQL(_COUNTS + _COMPARED).format(key=sql.SQL("begin"), **names)
    ):
        yield (
            f"summary.{table}: the span of {length} s at {begin:%Y-%m-%d %H:%M:%S%z} has {stored} rows,"
            f" the log {logged}"
        )


def _compared_samples(
    connection: psycopg.Connection, table: str, length: int, names: Mapping[str, sql.Composable]
) -> Iterator[str]:
    query = sql.SQL(_SAMPLES + _COMPARED).format(key=sql.SQL("signal, begin"), **names)
    for begin, stored, there in connection.execute(query):
        yield (
            f"summary.{table}: a signal has {stored} samples in the span of {length} s at"
            f" {begin:%Y-%m-%d %H:%M:%S%z}, and {there} in the log"
        )


# columns of the log with spans whose counts, including nulls, differ from another column's: every row has all
# columns, and null in a younger one
_COLUMNS = """
with span as (
  select
    block.column_name,
    begins + (number - 1) * {length} as begin,
    span.n + coalesce(span.nans, 0) + coalesce(span.nulls, 0) as rows
  from {storage} as block
  cross join unnest(block.n, block.nans, block.nulls) with ordinality as span (n, nans, nulls, number)
  where block.level = {level} and split_part(block.column_name, '.', 1) = any({there}::text[])
), compared as (
  select *, max(rows) over (partition by begin) as most from span
)
select column_name, count(*), min(begin) from compared where rows < most group by 1 order by 1
"""

# spans that are over, without marks and outside the archive: counts of the summaries and of the log
_COUNTS = """
with span as (
  select
    begins + (number - 1) * {length} as begin,
    max(span.n + coalesce(span.nans, 0) + coalesce(span.nulls, 0)) as rows
  from {storage} as block
  cross join unnest(block.n, block.nans, block.nulls) with ordinality as span (n, nans, nulls, number)
  where block.level = {level} and span.n + coalesce(span.nans, 0) + coalesce(span.nulls, 0) > 0
  group by 1
), logged as (
  select date_bin({length}, "time", 'epoch') as begin, count(*) as rows
  from {log} where "time" >= '1970-01-05 00:00+00' and "time" < {until} group by 1
)
"""

# the same for each signal of samples; no block is of two spans
_SAMPLES = """
with span as (
  select
    block.column_name as signal, begins + (number - 1) * {length} as begin,
    span.n + coalesce(span.nans, 0) + coalesce(span.nulls, 0) as rows
  from {storage} as block
  cross join unnest(block.n, block.nans, block.nulls) with ordinality as span (n, nans, nulls, number)
  where block.level = {level} and block.column_name not like '%.severity'
    and span.n + coalesce(span.nans, 0) + coalesce(span.nulls, 0) > 0
), logged as (
  select signal::text, date_bin({length}, "time", 'epoch') as begin, sum(n) as rows
  from {log} where "time" >= '1970-01-05 00:00+00' and "time" < {until} group by 1, 2
)
"""

_COMPARED = """
select begin, coalesce(span.rows, 0), coalesce(logged.rows, 0)
from span full join logged using ({key})
where coalesce(span.rows, 0) <> coalesce(logged.rows, 0)
  and begin + {length} <= {until}
  and not exists (
    select from ringlog.summary_mark as mark
    where mark.table_name = {table} and mark."time" >= begin and mark."time" < begin + {length}
  )
  and not exists (
    select from ringlog.cold_week as week
    where week.table_name = {table} and week.recalled_until is null
      and week.begins < begin + {length} and begin < week.ends
  )
  and not exists (
    select from ringlog.every_table as kept
    where kept.table_name = {table} and begin < now() - kept.retention::interval
  )
  and not exists (
    select from ringlog.dropped where dropped.table_name = {table} and begin < dropped.until
  )
order by begin
"""


def _levels(connection: psycopg.Connection, table: str, levels: list[int]) -> Iterator[str]:
    """Longer spans whose counts differ from the sum of their shorter spans."""
    storage = sql.Identifier("summary", table)
    for level in levels[1:]:
        shorter = max(each for each in levels if each < level and level % each == 0)
        query = sql.SQL(
            """
            with span as (
              select block.level, block.column_name, date_bin(
                {length}, begins + (number - 1) * block.level * interval '1 second', 'epoch'
              ) as begin, span.n
              from {storage} as block cross join unnest(block.n) with ordinality as span (n, number)
              where block.level in ({shorter}, {level}) and block.column_name not like '%.severity'
            )
            select column_name, begin from span
            group by column_name, begin
            having sum(n) filter (where level = {level}) > 0
              and sum(n) filter (where level = {level}) <> sum(n) filter (where level = {shorter})
            order by 2, 1
            """
        ).format(
            storage=storage,
            level=sql.Literal(level),
            shorter=sql.Literal(shorter),
            length=sql.SQL("interval {}").format(sql.Literal(f"{level} seconds")),
        )
        for column, begin in connection.execute(query):
            yield (
                f"summary.{table}: column {column} at {begin:%Y-%m-%d %H:%M:%S%z} has"
                f" another number of values in {level} s than in the spans of {shorter} s"
            )


def _archive(administrator: sa.Engine) -> Iterator[str]:
    with administrator.connect() as connection:
        if connection.scalar(sa.text("select count(*) from ringlog.cold_week")) == 0:
            return
        from ringlog.history.archive.folder import Folder  # which takes the extra `history`
        from ringlog.history.archive.manifest import damages, manifest, settings

        chosen = settings(connection)
        weeks = manifest(connection)
    if chosen is None:
        yield f"{len(weeks)} weeks are in the archive, but its folder is not configured"
    else:
        yield from map(str, damages(Folder(chosen[1]), weeks))
