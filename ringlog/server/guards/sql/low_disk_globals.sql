with files (relation) as (
  select coalesce(pg_filenode_relation(0, file)::oid, file) from unnest(%s::oid[]) as file
), large (relation) as (
  select relation from files
  union select c.oid from pg_class as c join files on files.relation = c.reltoastrelid
  union select indrelid from pg_index join files on files.relation = indexrelid
)
select l.pid from pg_locks as l join large using (relation)
where l.mode in ('RowExclusiveLock', 'AccessExclusiveLock')
union
select pg_stat_get_backend_pid(substring(n.nspname from '\d+$')::integer)
from tsql.global_table as made join large using (relation)
join pg_class as c on c.oid = made.marker join pg_namespace as n on n.oid = c.relnamespace
where current_setting('server_version_num')::int >= 160000
