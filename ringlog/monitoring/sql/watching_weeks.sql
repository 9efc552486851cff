select child.oid
from {weeks}
join pg_class as log on log.oid = inhparent
join pg_namespace on pg_namespace.oid = log.relnamespace
where nspname = 'weeks'
  and bounds[2]::timestamptz > now() - interval '28 days' and bounds[1]::timestamptz <= now()
  and exists (select from ringlog.every_table where table_name = log.relname)
