-- every table, and who writes it
select
  logged_table.table_name,
  logged_table.description,
  logged_table.rows,
  logged_table.cycle,
  logged_table.retention,
  writer.name as writer,
  writer.since,
  writer.released,
  writer.reported,
  writer.state,
  writer.trouble,
  writer.troubled,
  writer.produced,
  writer.acknowledged,
  writer.waiting,
  writer.late,
  writer.refused,
  writer.latency
from (
  select table_name, description, rows, cycle, retention from ringlog.logged_table
  union all
  -- signals with times of their own have no cycle
  select table_name, description, ring, null, retention from ringlog.sample_table
) as logged_table
left join ringlog.writer on writer.table_name = logged_table.table_name
where logged_table.table_name <> all({others})
order by logged_table.table_name
