-- what happened to the readings of each table, the newest first
select event.table_name, event."time", event.until, event.kind, event.rows, event.words
from ringlog.event
where coalesce(event.until, event."time") >= {start}
  and event."time" < {end}
  and ({of_table}::text is null or event.table_name = {of_table})
order by event."time" desc
limit {limit}
