select weeks.relname
from pg_class as weeks
left join pg_class as view on view.relname = weeks.relname and view.relnamespace = to_regnamespace('log')
where weeks.relnamespace = to_regnamespace('weeks') and weeks.relname = any(:names)
  and not {has_archive}
  and (
    select array_agg((attname, atttypid) order by attnum) from pg_attribute
    where attrelid = weeks.oid and attnum > 0 and not attisdropped
  ) is distinct from (
    select array_agg((attname, atttypid) order by attnum) from pg_attribute
    where attrelid = view.oid and attnum > 0 and not attisdropped
  )
order by 1
