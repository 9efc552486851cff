select distinct on (log.relname)
  child.relname, bounds[1]::timestamptz, sampled.table_name
from {weeks}
join pg_class as log on log.oid = inhparent
left join ringlog.sample_table as sampled on sampled.table_name = log.relname
where child.oid in ({those}) and {has_pages}
order by log.relname, bounds[1]::timestamptz
