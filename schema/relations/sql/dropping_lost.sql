with bound as (
  select now() - cast(:to as interval) as later, now() - known.retention::interval as earlier
  from ringlog.every_table as known where known.table_name = :table
)
select week.begins, week.relation, week.estimate
from (
  select
    (bounds[1])::timestamptz, (bounds[2])::timestamptz, child.oid::regclass::text, child.reltuples::bigint
  from {weeks}
  where inhparent = to_regclass(format('weeks.%I', cast(:table as text))) and bounds is not null
  union all
  select cold.begins, cold.ends, null, cold.rows from ringlog.cold_week as cold
  where cold.table_name = :table and cold.recalled_until is null
) as week (begins, ends, relation, estimate)
cross join bound
where week.ends <= bound.later and (bound.earlier is null or week.ends > bound.earlier)
order by week.begins
