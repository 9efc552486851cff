{storage} as block
join ringlog.summarised on summarised.table_name = {table} and summarised.until >= block.ends
where block.column_name = 'time'
  and exists (select from pg_inherits where inhrelid = block.part and inhparent = {log}::regclass)
  and not exists (
    select from ringlog.summary_mark as mark
    where mark.table_name = {table}
      and mark."time" > block.begins - summarised.levels[1] * interval '1 second'
      and mark."time" < block.ends
  )
