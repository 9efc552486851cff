insert into ringlog.last_archived as known (number, table_name, "time", value, severity, status)
select block.signal, {table}, newest.* from (
  select distinct on (signal) * from {relation} where "time" >= {start} and "time" < {end}
  order by signal, "time" desc, times[cardinality(times)] desc
) as block
cross join lateral (
  select each."time", each.value::text, coalesce(each.severity, 0), coalesce(each.status, 0)
  from {samples_of_block} as each ("time", value, severity, status)
  order by each."time" desc
  limit 1
) as newest
on conflict (number) do update
set "time" = excluded."time", value = excluded.value, severity = excluded.severity, status = excluded.status
where excluded."time" > known."time"
