select table_name, until, case when is_whole then %(earliest)s else packed end
from (
  select table_name, summarised.until, closed.until as packed, coalesce(log_period, cycle * log_nth) as period,
    %(full)s or coalesce(read.rows >= %(block)s + 60 / coalesce(log_period, cycle * log_nth), false) as is_whole
  from ringlog.summarised
  join ringlog.logged_table using (table_name)
  left join ringlog.closed using (table_name)
  left join unnest(%(tables)s::text[], %(rows)s::bigint[]) as read (table_name, rows) using (table_name)
  where levels <> '{}' and summarised.until is not null
) as known
where is_whole or until >= packed + period * %(block)s * interval '1 second'
order by is_whole, table_name
