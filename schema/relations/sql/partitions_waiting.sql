select date_trunc('week', late."time", 'UTC') from {default} as late
where late."time" >= {since} and late."time" < {end} and not exists (
  select from ringlog.cold_week as cold
  where cold.table_name = {table} and cold.recalled_until is null
    and cold.begins <= late."time" and late."time" < cold.ends
)
group by 1
having count(*) >= {enough} or max(late."time") >= {lately}
order by 1
