create temporary table staying on commit drop as select r.* from {partition} as r
where exists (
  select from ringlog.late_row as late
  where late.partition = {name} and late."time" = r."time" and late.seq_no = r.{key}
) or exists (
  select from ringlog.cold_week as cold
  where cold.table_name = {table} and cold.recalled_until is null
    and r."time" >= cold.begins and r."time" < cold.ends
)
