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
