-- The columns of a partition lose their statistics together: its first one stands for all. A week that begins after
-- :horizon has no rows yet.
select table_name, string_agg(statement, '; ' order by relation)
from unnest(cast(:tables as text[]), cast(:logs as regclass[])) as log (table_name, oid)
cross join lateral (
  select child.oid, format('%I.%I', child.relnamespace::regnamespace, child.relname)
  from {weeks}
  where inhparent = log.oid and (bounds is null or cast(bounds[1] as timestamptz) <= :horizon)
) as partition (oid, relation)
cross join lateral (
  select attstattarget
  from pg_attribute
  where attrelid = partition.oid and attnum > 0 and not attisdropped and attname <> all(cast(:keys as name[]))
  order by attnum
  limit 1
) as first
cross join lateral (
  select format(
    'alter table %s %s', relation,
    string_agg(format('alter column %I set statistics 0', attname), ', ' order by attnum)
  )
  from pg_attribute
  where attrelid = partition.oid and attnum > 0 and not attisdropped and attname <> all(cast(:keys as name[]))
) as action (statement)
where first.attstattarget is distinct from 0
group by table_name
order by table_name
