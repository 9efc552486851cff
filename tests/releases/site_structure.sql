with own as (select oid, nspname from pg_namespace where nspname = any(%(schemas)s))
select format('column %%s.%%s.%%s %%s%%s', nspname, relname, attname, format_type(atttypid, atttypmod),
    case when attnotnull then ' not null' else '' end)
  from pg_class join own on own.oid = relnamespace join pg_attribute on attrelid = pg_class.oid
  where relkind in ('r', 'p', 'v', 'f', 'c') and not relispartition and attnum > 0 and not attisdropped
union all
select format('constraint %%s.%%s %%s', nspname, conrelid::regclass, pg_get_constraintdef(pg_constraint.oid))
  from pg_constraint join own on own.oid = connamespace join pg_class on pg_class.oid = conrelid
  where not relispartition
union all
select format('index %%s', indexdef) from pg_indexes
  where schemaname = any(%(schemas)s) and (schemaname, tablename) not in (
    select nspname, relname from pg_class join own on own.oid = relnamespace where relispartition)
union all
select format('function %%s.%%s(%%s) %%s', nspname, proname, pg_get_function_identity_arguments(pg_proc.oid),
    pg_get_function_result(pg_proc.oid))
  from pg_proc join own on own.oid = pronamespace
union all
select format('type %%s.%%s', nspname, typname) from pg_type join own on own.oid = typnamespace
  where typtype in ('b', 'd') and typelem = 0
order by 1
