select nspname::text, relname::text, relkind::text
from pg_class join pg_namespace on pg_namespace.oid = relnamespace
where nspname = any(%(schemas)s) and relname = any(%(names)s)
order by relname, relkind <> 'v', nspname
