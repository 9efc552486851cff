"""Samples of the archive become blocks of their table again, with those that came meanwhile."""

from collections.abc import Mapping

import sqlalchemy as sa
from psycopg import sql

from ringlog.history.books import enter_twice
from ringlog.schema.change import run

# no block is of two hours, and housekeeping merges up to 4096 samples
PACK = """
insert into {partition} (signal, n, "time", begins, times, samples, severities, statuses)
select
  number, count(*), ringlog.moment(max(ns)), ringlog.moment(min(ns)), array_agg(ns order by ns),
  array_agg(value order by ns), case when bool_or(severity <> 0) then array_agg(severity order by ns) end,
  case when bool_or(status <> 0) then array_agg(status order by ns) end
from (
  select *, ns / 3600000000000 as hour,
    (row_number() over (partition by number, ns / 3600000000000 order by ns) - 1) / 4096 as block
  from ({samples}) as sample
) as sample
group by number, hour, block
"""
"""Makes blocks of samples: number, ns (nanoseconds since 1970), value, severity and status."""


def take_late_samples(
    connection: sa.Connection, table: str, place: str, names: Mapping[str, sql.Composable]
) -> int:
    """Adds the samples that came for a week to its partition, and enters repeated ones in the ledger. Returns
    the number of the added ones. `names`: the relations `late` and `partition`, and `start` and `end`."""
    run(connection, sql.SQL(_CAME).format(**names))
    twice = 'select "time", to_json(came.*)::text, there = text from pg_temp.came where there is not null'
    enter_twice(connection, table, place, sql.SQL(twice))
    new = sql.SQL("select * from pg_temp.came where there is null")
    run(connection, sql.SQL(PACK).format(samples=new, **names))
    added = connection.exec_driver_sql("select count(*) from pg_temp.came where there is null").scalar_one()
    run(connection, "drop table pg_temp.came")
    return int(added)


_CAME = """
create temporary table came on commit drop as
select distinct on (late.signal, each."time")
  late.signal as number, each."time" as ns, ringlog.moment(each."time") as "time", each.value,
  coalesce(each.severity, 0::smallint) as severity, coalesce(each.status, 0::smallint) as status,
  concat_ws(' ', each.value::text, coalesce(each.severity, 0), coalesce(each.status, 0)) as text, kept.there
from {late} as late
cross join lateral unnest(late.times, late.samples, late.severities, late.statuses)
  as each ("time", value, severity, status)
left join lateral (
  select concat_ws(' ', one.value::text, coalesce(one.severity, 0), coalesce(one.status, 0)) as there
  from {partition} as block
  cross join lateral unnest(block.times, block.samples, block.severities, block.statuses)
    as one ("time", value, severity, status)
  where block.signal = late.signal and block."time" >= ringlog.moment(each."time")
    and block."time" < ringlog.moment(each."time") + interval '1 hour'
    and block.begins <= ringlog.moment(each."time") and one."time" = each."time"
) as kept on true
where late."time" >= {start} and late."time" < {end}
order by late.signal, each."time"
"""
