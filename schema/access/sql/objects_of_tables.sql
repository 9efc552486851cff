-- the objects of a table: the role that has the right, the privilege, the object
with named as (
  select table_name, table_name as name from unnest(%(tables)s::text[]) as table_name
  union
  select table_name, former from ringlog.former_table where table_name = any(%(tables)s::text[])
),
object as (
  select table_name, kind.role, 'execute' as privilege,
    format('function %%s', pg_proc.oid::regprocedure) as name, proacl as acl, proowner as owner
  from named
  cross join unnest(%(roles)s::text[], %(patterns)s::text[]) as kind (role, pattern)
  join pg_proc on proname = replace(pattern, '{}', named.name)
  where pronamespace = 'ringlog'::regnamespace
  union all
  select table_name, %(reader)s, 'select', pg_class.oid::regclass::text, relacl, relowner
  from named
  join pg_class on relname = named.name
  where relnamespace::regnamespace::text = any(%(schemas)s::text[]) and relkind in ('r', 'p', 'v')
    -- nobody reads one that is still moving to this server
    and not exists (select from ringlog.moved_part where moved_part.table_name = named.table_name)
  union all
  select table_name, %(writer)s, 'select (seq_no, "time")', pg_class.oid::regclass::text, attacl, relowner
  from named
  join pg_class on relname = named.name
  join pg_attribute on attrelid = pg_class.oid and attname = 'seq_no'
  where relnamespace = 'online'::regnamespace and relkind in ('r', 'p', 'v')
)
