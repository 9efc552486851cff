select pg_proc.oid::regprocedure::text
from pg_proc
where pronamespace = 'pg_catalog'::regnamespace and has_function_privilege('public', pg_proc.oid, 'execute')
  and proname in (
    'lo_creat', 'lo_create', 'lo_from_bytea', 'lo_import', 'lo_put', 'lowrite', 'lo_truncate',
    'lo_truncate64', 'pg_logical_emit_message')
order by 1
