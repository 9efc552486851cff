-- the tables that the caller may read, and their writers
select
  every_table.table_name,
  every_table.description,
  every_table.rows,
  every_table.cycle,
  every_table.retention,
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
from ringlog.every_table
left join ringlog.writer on writer.table_name = every_table.table_name
where every_table.table_name <> all({others})
  and every_table.table_name in (select ringlog.readable_tables())
order by every_table.table_name
