-- the relations that are named after a table, with the kinds of pg_class and 'i' for its indexes
select nspname, relname, relkind::text
from pg_class
join pg_namespace on pg_namespace.oid = relnamespace
where nspname = any(:schemas) and relkind in ('r', 'p', 'v') and relname = :old
union all
select nspname, relname, 'S'
from pg_class
join pg_namespace on pg_namespace.oid = relnamespace
where nspname = 'summary' and relname = :old || '_until'
union all
select 'log', part.relname, 'r'
from pg_inherits
join pg_class as part on part.oid = inhrelid
join pg_class as log on log.oid = inhparent
where log.relname = :old and log.relnamespace = 'weeks'::regnamespace
union all
select nspname, relname, 'f'
from pg_class
join pg_namespace on pg_namespace.oid = relnamespace
where nspname = 'archive_files' and relname in (:old || ' files', :old || ' alone')
union all
select nspname, own.relname, 'i'
from pg_index
join pg_class as own on own.oid = indexrelid
join pg_class as its on its.oid = indrelid
join pg_namespace on pg_namespace.oid = its.relnamespace
where nspname = any(:schemas) and own.relname ^@ (:old || '_') and (
  its.relname = :old
  or its.oid in (
    select inhrelid
    from pg_inherits
    join pg_class as log on log.oid = inhparent
    where log.relname = :old and log.relnamespace = 'weeks'::regnamespace
  )
)
