select log.relname
from pg_class as log
left join pg_class as view on view.relnamespace = to_regnamespace(:schema) and view.relname = log.relname
cross join lateral (
  select
    array_agg((attname, atttypid, atttypmod) order by attnum) filter (where attrelid = log.oid) as of_log,
    array_agg((attname, atttypid, atttypmod) order by attnum) filter (where attrelid = view.oid) as of_view
  from pg_attribute
  where attrelid in (log.oid, view.oid) and attnum > 0 and not attisdropped
) as columns
where log.relnamespace = 'log'::regnamespace and log.relkind in ('p', 'v') and log.relname = any(:names)
  and of_log is distinct from of_view
order by log.relname
