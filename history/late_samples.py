"""Makes blocks of a table from archived samples, with those that arrived meanwhile."""

from collections.abc import Mapping

import sqlalchemy as sa
from psycopg import sql

from ringlog.history.books import enter_twice
from ringlog.schema.change import run
from ringlog.schema.sample_tables import blocks_of

# no block is of two hours, and housekeeping merges up to 4096 samples
_PACK = """
insert into {{partition}} (signal, n, "time", begins, times, {column}, severities, statuses)
select
  sent.number, count(*), ringlog.moment(max(sent."time")), ringlog.moment(min(sent."time")),
  array_agg(sent."time" order by sent."time"), {value},
  case when bool_or(severity <> 0) then array_agg(severity order by sent."time") end,
  case when bool_or(status <> 0) then array_agg(status order by sent."time") end
from (
  select *,
    (row_number() over (partition by number, "time" / 3600000000000 order by "time") - 1) / 4096 as block
  from ({{samples}}) as sample
) as sent
group by sent.number, {hour}, sent.block
"""


def packing(connection: sa.Connection, table: str) -> sql.SQL:
    """The SQL that makes blocks in `partition` of `samples`: a query of number, time (nanoseconds since
    1970), value, severity and status."""
    blocks = blocks_of(connection, table)
    return sql.SQL(_PACK.format(column=blocks.column, value=blocks.value, hour=blocks.hour))


def take_late_samples(
    connection: sa.Connection, table: str, place: str, names: Mapping[str, sql.Composable]
) -> int:
    """Adds the samples that arrived for a week to its partition, and enters repeated ones in the ledger.
    Returns the number of added ones. `names`: the relations `late` and `partition`, and `start` and `end`."""
    of_block = sql.SQL(blocks_of(connection, table).samples)
    run(connection, sql.SQL(_CAME).format(samples_of_block=of_block, **names))
    twice = 'select "time", to_json(came.*)::text, there = text from pg_temp.came where there is not null'
    enter_twice(connection, table, place, sql.SQL(twice))
    new = sql.SQL(
        'select number, ns as "time", value, severity, status from pg_temp.came where there is null'
    )
    run(connection, packing(connection, table).format(samples=new, **names))
    added = connection.exec_driver_sql("select count(*) from pg_temp.came where there is null").scalar_one()
    run(connection, "drop table pg_temp.came")
    return int(added)


_CAME = """
create temporary table came on commit drop as
select distinct on (late.signal, late.ns)
  late.signal as number, late.ns, ringlog.moment(late.ns) as "time", late.value,
  coalesce(late.severity, 0::smallint) as severity, coalesce(late.status, 0::smallint) as status,
  concat_ws(' ', late.value::text, coalesce(late.severity, 0), coalesce(late.status, 0)) as text, kept.there
from (
  select block.signal, block."time" as ends, each.*
  from {late} as block
  cross join lateral {samples_of_block} as each (ns, value, severity, status)
) as late
left join lateral (
  select concat_ws(' ', one.value::text, coalesce(one.severity, 0), coalesce(one.status, 0)) as there
  from {partition} as block
  cross join lateral {samples_of_block} as one (ns, value, severity, status)
  where block.signal = late.signal and block."time" >= ringlog.moment(late.ns)
    and block."time" < ringlog.moment(late.ns) + interval '1 hour'
    and block.begins <= ringlog.moment(late.ns) and one.ns = late.ns
) as kept on true
where late.ends >= {start} and late.ends < {end}
order by late.signal, late.ns
"""
