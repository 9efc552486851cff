-- events of the readings of each table, and the hours with late rows, the newest first
select happened.table_name, happened."time", happened.until, happened.kind, happened.rows, happened.message
from (
  select event.table_name, event."time", event.until, event.kind, event.rows, event.message
  from ringlog.event
  where coalesce(event.until, event."time") >= {start} and event."time" < {end}
  union all
  select
    ledger.table_name,
    ledger.hour,
    ledger.hour + interval '1 hour',
    'late',
    sum(ledger.late)::bigint,
    'rows of this hour arrived after later ones'
  from ringlog.ledger
  where ledger.hour > {start} - interval '1 hour' and ledger.hour < {end} and ledger.late > 0
  group by ledger.table_name, ledger.hour
) as happened
where ({of_table}::text is null or happened.table_name = {of_table})
  and happened.table_name <> all({others})
order by happened."time" desc
limit {limit}
